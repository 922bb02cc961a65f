"""A known part of the function: exactly taken off y where that is in its units, against glm with offset elsewhere."""

import duckdb
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import vff
from vff import GPClassifier, GPRegressor, Linear, Matern32
from vff.likelihoods import Binomial, Gamma, Poisson


def rows(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Counts and numbers that know of an offset; values are few, as a database likes them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"o": rng.integers(-3, 7, n) / 3.0, "x": rng.integers(0, 60, n) / 10.0})
    f = np.sin(frame["x"]) + frame["o"]
    return frame.assign(y=f + 0.1 * rng.standard_normal(n), count=rng.poisson(np.exp(f)).astype(float))


def streams(frame: pd.DataFrame, tmp_path, size: int = 70):
    """The same rows in files, as an iterator of arrays and in a database."""
    frame.to_parquet(tmp_path / "rows.parquet")
    connection = duckdb.connect()
    connection.register("rows_of_test", frame)
    return vff.scan(tmp_path / "rows.parquet", chunk_rows=size), connection.sql("select * from rows_of_test")


def test_gaussian_is_exactly_that_of_y_less_the_offset():
    frame = rows()
    model = GPRegressor(offset="o").fit(frame[["o", "x", "y"]], "y")
    plain = GPRegressor().fit(frame[["x"]], frame["y"] - frame["o"])
    assert model.elbo_ == plain.elbo_
    assert model.feature_names_in_.tolist() == ["o", "x"]
    assert len(model.statistics_.terms) == 1  # it is no feature
    np.testing.assert_allclose(model.predict(frame), plain.predict(frame[["x"]]) + frame["o"], rtol=1e-14)
    mean, std = model.predict(frame, return_std=True)
    np.testing.assert_array_equal(std, plain.predict(frame[["x"]], return_std=True)[1])
    np.testing.assert_allclose(model.predict_f(frame)[0], mean, rtol=1e-14)
    np.testing.assert_allclose(model.predict_f(frame[:4], full_covariance=True)[0], mean[:4], rtol=1e-10)
    np.testing.assert_allclose(
        model.predict_quantiles(frame[:5], [0.2]), plain.predict_quantiles(frame[["x"]][:5], [0.2]) + frame[["o"]][:5]
    )
    np.testing.assert_allclose(
        model.log_predictive_density(frame, "y"),
        plain.log_predictive_density(frame[["x"]], frame["y"] - frame["o"]),
        rtol=1e-10,
    )
    for draw in ("sample_f", "sample_y"):
        drawn, other = (getattr(own, draw)(X, 2, 0) for own, X in ((model, frame[:9]), (plain, frame[["x"]][:9])))
        np.testing.assert_allclose(drawn, other + frame[["o"]][:9].to_numpy(), rtol=1e-12)
    assert model.score(frame, "y") > 0.98
    np.testing.assert_array_equal(model.effects(frame).mean, plain.effects(frame[["x"]]).mean)


def test_student_takes_it_off_y_too():
    frame = rows()
    model = GPRegressor(Matern32("x"), likelihood="student-t", offset="o").fit(frame, "y")
    plain = GPRegressor(Matern32("x"), likelihood="student-t").fit(frame, frame["y"] - frame["o"])
    assert model.elbo_ == plain.elbo_
    np.testing.assert_allclose(model.predict(frame), plain.predict(frame) + frame["o"])


@pytest.mark.parametrize("more", [{}, {"covariance": "factorised"}, {"batch_size": 256}], ids=str)
def test_counts_with_an_offset_are_counts_with_an_exposure(more):
    frame = rows(520 if "batch_size" in more else 200)
    frame["e"] = np.exp(frame["o"])
    model = GPRegressor(Matern32("x"), likelihood="poisson", offset="o", **more).fit(frame, "count")
    exposed = GPRegressor(Matern32("x"), likelihood=Poisson(exposure="e"), **more).fit(frame, "count")
    assert model.elbo_ == pytest.approx(exposed.elbo_, abs=1e-6)
    np.testing.assert_allclose(model.predict(frame), exposed.predict(frame), rtol=1e-6)
    np.testing.assert_allclose(model.predict_f(frame)[0], exposed.predict_f(frame)[0] + frame["o"], atol=1e-6)


def test_classes():
    frame, rng = rows(300), np.random.default_rng(1)
    labels = rng.random(300) < 1.0 / (1.0 + np.exp(-2.0 * np.sin(frame["x"]) - frame["o"]))
    model = GPClassifier(Matern32("x"), offset="o").fit(frame[["o", "x"]], labels)
    moved = frame[["o", "x"]].assign(o=frame["o"] + 1.0)
    np.testing.assert_allclose(model.decision_function(moved) > model.decision_function(frame), True)
    np.testing.assert_allclose(model.predict_f(moved)[0], model.predict_f(frame)[0] + 1.0)
    several = np.where(labels, "a", np.where(frame["x"] > 3.0, "b", "c"))
    assert GPClassifier(Matern32("x"), offset="o").fit(frame, several).predict_proba(moved).shape == (300, 3)


# --- rates against generalised linear models ------------------------------------------------------------------------


def glm_rows(n: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.uniform(-1.0, 1.0, n), "o": rng.normal(0.5, 0.8, n)})
    eta = 0.3 + 0.5 * frame["a"] - 0.4 * frame["b"] + frame["o"]
    trials = rng.integers(3, 12, n).astype(float)
    return frame.assign(
        count=rng.poisson(np.exp(eta)).astype(float),
        size=rng.gamma(4.0, np.exp(eta) / 4.0),
        trials=trials,
        won=rng.binomial(trials.astype(int), 1.0 / (1.0 + np.exp(-eta))).astype(float),
    )


LINES = Linear("a", variance=9.0, origin=0.0) + Linear("b", variance=9.0, origin=0.0)


@pytest.mark.parametrize(
    ("target", "likelihood", "family"),
    [
        ("count", Poisson(), sm.families.Poisson()),
        ("size", Gamma(), sm.families.Gamma(sm.families.links.Log())),
        ("won", Binomial(trials="trials"), sm.families.Binomial()),
    ],
    ids=["poisson", "gamma", "binomial"],
)
def test_slopes_and_rates_of_glm_with_offset(target, likelihood, family):
    """Straight lines under priors a hundred standard errors wide: coefficients agree to 3 % of their standard errors.

    What is left is the difference between the mean of q and the top of the likelihood.
    """
    frame = glm_rows()
    model = GPRegressor(LINES, likelihood=likelihood, offset="o", optimizer=None).fit(frame, target)
    design = sm.add_constant(frame[["a", "b"]])
    y = np.column_stack([frame["won"], frame["trials"] - frame["won"]]) if target == "won" else frame[target]
    glm = sm.GLM(y, design, family=family, offset=frame["o"]).fit()
    found = model.coefficients()
    np.testing.assert_allclose((found.mean - glm.params) / glm.bse, 0.0, atol=0.03)
    np.testing.assert_allclose(found.std, glm.bse, rtol=0.05)
    times = frame["trials"] if target == "won" else 1.0
    np.testing.assert_allclose(model.predict(frame), glm.predict(design, offset=frame["o"]) * times, rtol=0.01)


# --- wherever rows are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("likelihood", "target"), [("gaussian", "y"), ("poisson", "count")])
def test_sources_agree(tmp_path, likelihood, target):
    frame = rows()[["o", "x", "y" if likelihood == "gaussian" else "count"]]
    make = lambda: GPRegressor(likelihood=likelihood, offset="o", frequencies=12)  # noqa: E731
    model = make().fit(frame, target)
    for source in streams(frame, tmp_path):
        other = make().fit(source, target)
        assert other.elbo_ == pytest.approx(model.elbo_, abs=1e-6)
        np.testing.assert_allclose(other.predict(source), model.predict(frame), rtol=1e-6)
    X, y = frame[["o", "x"]].to_numpy(), frame[target].to_numpy()
    numbered = GPRegressor(likelihood=likelihood, offset=0, frequencies=12)
    for chunks in (X, lambda: ((X[at : at + 60], y[at : at + 60]) for at in range(0, 240, 60))):
        other = numbered.fit(chunks, y) if isinstance(chunks, np.ndarray) else numbered.fit(chunks)
        assert other.elbo_ == pytest.approx(model.elbo_, abs=1e-6)
        np.testing.assert_allclose(other.predict(X), model.predict(frame), rtol=1e-6)


def test_pieces_merge_forget_and_files(tmp_path):
    frame = rows()
    make = lambda: GPRegressor(Matern32("x"), offset="o", domain=(0, 6), frequencies=10)  # noqa: E731
    whole = make().fit(frame, "y")
    pieces = make().partial_fit(frame[:100], "y").partial_fit(frame[100:], "y")
    both = make().collect(frame[:100], "y").merge(make().collect(frame[100:], "y")).learn()
    less = make().fit(frame, "y").forget(frame[200:], "y")
    for other, expected in ((pieces, whole), (both, whole), (less, make().fit(frame[:200], "y"))):
        assert other.elbo_ == pytest.approx(expected.elbo_, abs=1e-7)
    whole.save(tmp_path / "model.vff")
    loaded = vff.load(tmp_path / "model.vff")
    np.testing.assert_array_equal(loaded.predict(frame), whole.predict(frame))
    with pytest.raises(ValueError, match="offset is now None"):
        loaded.set_params(offset=None).partial_fit(frame, "y")
    with pytest.raises(ValueError, match="offset of the two models differs"):
        whole.merge(GPRegressor(Matern32("x"), domain=(0, 6), frequencies=10).fit(frame, "y"))


def test_missing_offsets_are_left_out_where_that_is_asked_for(tmp_path):
    frame = rows()
    holes = frame.assign(o=np.where(np.arange(240) % 50 == 7, np.nan, frame["o"]))
    holes.to_parquet(tmp_path / "holes.parquet")
    source = vff.scan(tmp_path / "holes.parquet", missing="drop")
    model = GPRegressor(Matern32("x"), offset="o").fit(source, "y")
    assert model.elbo_ == pytest.approx(GPRegressor(Matern32("x"), offset="o").fit(holes.dropna(), "y").elbo_, abs=1e-7)
    assert model.notes_[0] == "5 rows were left out because cells were missing or infinite"


REFUSED = {
    "no such column": (lambda f, p: GPRegressor(Matern32("x"), offset="q").fit(f, "y"), "offset names column 'q'"),
    "no such column of files": (
        lambda f, p: GPRegressor(Matern32("x"), offset="q").fit(vff.scan(p), "y"),
        "offset names column 'q'",
    ),
    "almost that column": (
        lambda f, p: GPRegressor(Matern32("x"), offset="oo").fit(f, "y"),
        "perhaps 'o' was meant",
    ),
    "almost that column of files": (
        lambda f, p: GPRegressor(Matern32("x"), offset="oo").fit(vff.scan(p), "y"),
        "perhaps 'o' was meant",
    ),
    "without its logarithm": (
        lambda f, p: GPRegressor(Matern32("x"), offset="o", likelihood="poisson").fit(
            f.assign(o=np.arange(60.0), y=np.arange(60) % 3), "y"
        ),
        r"column 'o' is 59 in row 59, .* was the logarithm forgotten\?",
    ),
    "the target": (lambda f, p: GPRegressor(Matern32("x"), offset="y").fit(f, "y"), "which is the target"),
    "a list": (lambda f, p: GPRegressor(Matern32("x"), offset=["o"]).fit(f, "y"), "must be None, or the name"),
    "missing": (
        lambda f, p: GPRegressor(Matern32("x"), offset="o").fit(f.assign(o=f["o"].where(f.index != 3)), "y"),
        "column 'o' of X, which is the offset, contains NaN .* first in row 3.*: drop or fill these rows first$",
    ),
    "infinite": (
        lambda f, p: GPRegressor(Matern32("x"), offset="o").fit(f.assign(o=f["o"].where(f.index != 3, np.inf)), "y"),
        "column 'o' of X, which is the offset, contains inf",
    ),
    "not there when predicted": (
        lambda f, p: GPRegressor(Matern32("x"), offset="o", frequencies=5).fit(f, "y").predict(f[["x"]]),
        "add the column, with zeros for the function alone",
    ),
    "alone": (lambda f, p: GPRegressor(offset="o").fit(f[["o", "y"]], "y"), "no column beside"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case, tmp_path):
    frame, (ask, said) = rows(60), REFUSED[case]
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises((TypeError, ValueError), match=said):
        ask(frame, tmp_path / "rows.parquet")


def test_before_the_fit_the_offset_of_a_text_is_in_predictions():
    frame = rows(5)
    text = GPRegressor("Matern32(x, variance=1, lengthscale=2) + offset(o)", noise_variance=0.1)
    np.testing.assert_array_equal(text.predict(frame), frame["o"])
    np.testing.assert_array_equal(text.predict_f(frame)[0], frame["o"])


def test_effects_and_the_prior_need_no_offset(tmp_path):
    frame = rows(60)
    model = GPRegressor(Matern32("x"), offset="o", frequencies=5).fit(frame, "y")
    frame[["x"]].to_parquet(tmp_path / "bare.parquet")
    for bare in (frame[["x"]], vff.scan(tmp_path / "bare.parquet")):
        np.testing.assert_array_equal(model.effects(bare).mean, model.effects(frame).mean)
        np.testing.assert_array_equal(model.predict_derivative(bare), model.predict_derivative(frame))
        with pytest.raises(ValueError, match="is the offset of the fit"):
            model.predict_f(bare)
    assert model.sample_prior(frame[["x"]], random_state=0).shape == (60, 1)
