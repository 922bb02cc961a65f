"""Missing numbers: an effect of their own, against dense algebra, and the same wherever the rows are."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import vff
from vff import Categorical, GPClassifier, GPRegressor, Linear, Matern32, Matern52, Ordered, Sphere

mpl.use("agg")
N = 120
UNIT = (0.0, 1.0)
DOMAIN = {"a": UNIT, "b": UNIT}


def _table(seed: int = 0, n: int = N, share: float = 0.15) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    whole = pd.DataFrame(rng.integers(0, 101, (n, 3)) / 100, columns=["a", "b", "c"])
    y = np.sin(6.0 * whole.a) + whole.b * whole.a + 0.1 * rng.standard_normal(n)
    return whole.mask(rng.random(whole.shape) < share), y.to_numpy()


FRAME, Y = _table()


def _with_level(leaf, x: np.ndarray, z: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """A kernel on one column by loops: missing values are alike, and unlike any number."""
    found = np.zeros((len(x), len(z)))
    for i, one in enumerate(x):
        for j, other in enumerate(z):
            if np.isnan(one) and np.isnan(other):
                found[i, j] = scale
            elif not np.isnan(one) and not np.isnan(other):
                found[i, j] = leaf(np.array([one]), np.array([other]))[0, 0]
    return found


def _exact(train: np.ndarray, cross: np.ndarray, prior: np.ndarray, noise: float, y: np.ndarray):
    """Log evidence, and mean and variance at new rows, by dense algebra."""
    A = train + noise * np.eye(len(y))
    solved = np.linalg.solve(A, y)
    evidence = -0.5 * (y @ solved + np.linalg.slogdet(A)[1] + len(y) * np.log(2.0 * np.pi))
    return evidence, cross @ solved, prior - np.einsum("ij,ji->i", cross, np.linalg.solve(A, cross.T))


A, B, C = (
    Matern32("a", variance=0.7, lengthscale=0.4),
    Matern52("b", variance=1.3, lengthscale=0.6),
    Linear("c", variance=2.0, origin=0.0),
)
KERNELS = {
    "sum": (A + B, lambda x, z: _with_level(A, x.a, z.a, 0.7) + _with_level(B, x.b, z.b, 1.3)),
    "product": (A * B, lambda x, z: _with_level(A, x.a, z.a, 0.7) * _with_level(B, x.b, z.b, 1.3)),
    # a line reaches one, its unit, at the end of the rows
    "line": (A + C, lambda x, z: _with_level(A, x.a, z.a, 0.7) + _with_level(C, x.c, z.c, 2.0)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_bound_and_predictions_are_those_of_the_kernel_with_a_level_more(name):
    kernel, dense = KERNELS[name]
    frame, new = FRAME.reset_index(drop=True), _table(1, 30)[0]
    arrays = [part.apply(np.asarray) for part in (frame, new)]
    model = GPRegressor(
        kernel, optimizer=None, noise_variance=0.05, normalize_y=False, frequencies=24, domain=UNIT
    ).fit(frame, Y)
    train, cross = dense(arrays[0], arrays[0]), dense(arrays[1], arrays[0])
    evidence, mean, variance = _exact(train, cross, np.diagonal(dense(arrays[1], arrays[1])), 0.05, Y)
    assert evidence - 0.3 < model.elbo_ < evidence + 1e-9
    found = model.predict_f(new)
    np.testing.assert_allclose(found[0], mean, atol=5e-3)
    np.testing.assert_allclose(found[1], variance, atol=5e-3)
    joint = model.predict_f(new[:8], full_covariance=True)[1]
    np.testing.assert_allclose(np.diagonal(joint), found[1][:8], rtol=1e-6)


@pytest.mark.parametrize("engine", ["dense", "table", "nufft"])
def test_every_engine_has_the_same_sums(engine):
    kernel = Matern32("a") * Matern32("b") + Linear("c") * Matern32("a")
    one, other = (GPRegressor(kernel, frequencies=3, engine=own).collect(FRAME, Y) for own in ("auto", engine))
    for mine, theirs in zip(one.statistics_.moments.grams, other.statistics_.moments.grams, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


def test_learning_ends_at_the_top_of_the_bound():
    """The gradient is that of the bound: a step away from where learning ended is a step down."""
    model = GPRegressor(Matern32("a") + Matern32("b"), frequencies=12).fit(FRAME, Y)
    first, second = model.kernel_.terms if hasattr(model.kernel_, "terms") else model.kernel_.summands

    def at(**changes):
        kernel = vff.Matern32("a", **{**_numbers(first), **changes}) + second
        held = {"optimizer": None, "frequencies": 12, "noise_variance": model.noise_variance_}
        return GPRegressor(kernel, domain=model.domain_, **held).fit(FRAME, Y).elbo_

    top = at()
    for name, value in _numbers(first).items():
        for step in (-0.1, 0.1):
            assert at(**{name: value * np.exp(step)}) < top + 1e-6


def _numbers(leaf):
    return {"variance": leaf.variance, "lengthscale": leaf.lengthscale}


def test_rows_may_come_in_any_order_and_in_any_parts():
    """A later part may be the first with a missing value, and the first part the only one."""
    options = {"kernel": Matern32("a") * Matern32("b") + Linear("b"), "frequencies": 4, "domain": DOMAIN}
    order = np.argsort(FRAME.a.isna() | FRAME.b.isna(), kind="stable")
    whole = GPRegressor(**options).fit(FRAME, Y)
    for rows in (order, order[::-1]):
        model = GPRegressor(**options)
        for part in (rows[:50], rows[50:90], rows[90:]):
            model.partial_fit(FRAME.iloc[part], Y[part])
        assert model.elbo_ == pytest.approx(whole.elbo_, abs=1e-6)
        assert model.notes_[:2] == whole.notes_[:2]
        np.testing.assert_allclose(model.predict(FRAME), whole.predict(FRAME), atol=1e-5)
    halves = [GPRegressor(**options).collect(FRAME.iloc[part], Y[part]) for part in (order[:60], order[60:])]
    merged = halves[0].merge(halves[1]).learn()
    assert merged.elbo_ == pytest.approx(whole.elbo_, abs=1e-6)


def test_rows_are_forgotten_with_their_missing_values():
    options = {"kernel": Matern32("a"), "frequencies": 4, "domain": UNIT}
    model = GPRegressor(**options).fit(FRAME, Y)
    model.forget(FRAME[:40], Y[:40])
    rest = GPRegressor(**options).fit(FRAME[40:], Y[40:])
    assert model.elbo_ == pytest.approx(rest.elbo_, abs=1e-5)
    assert model.notes_[0] == rest.notes_[0]
    complete = FRAME.dropna()
    with pytest.raises(ValueError, match="'a' of the rows to forget is missing in some, and never was"):
        GPRegressor(**options).fit(complete, Y[complete.index]).forget(FRAME[:40], Y[:40])


def test_words_of_the_model():
    kernel, complete = Matern32("a") + Matern32("b"), FRAME[["a", "b"]].notna().all(axis=1)
    model = GPRegressor(kernel, frequencies=4, missing="drop").fit(FRAME, Y)
    expected = GPRegressor(kernel, frequencies=4).fit(FRAME[complete], Y[complete])
    assert model.elbo_ == pytest.approx(expected.elbo_)
    assert f"{N - complete.sum()} rows were left out" in model.notes_[0]
    with pytest.raises(ValueError, match="column 'a' of X contains NaN"):
        model.predict(FRAME)
    with pytest.raises(ValueError, match="column 'a' of X contains NaN"):
        clone(model).set_params(missing="refuse").fit(FRAME, Y)
    with pytest.raises(ValueError, match="missing must be one of 'effect', 'drop', 'refuse'; got 'fill'"):
        clone(model).set_params(missing="fill").fit(FRAME, Y)
    with pytest.raises(ValueError, match="contains inf"):
        clone(expected).fit(FRAME.replace(0.5, np.inf), Y)
    with pytest.raises(ValueError, match="y contains NaN"):
        clone(expected).fit(FRAME, np.where(np.arange(N) == 3, np.nan, Y))
    labels = np.where(Y > 0.5, "high", "low").astype(object)
    labels[3] = None
    dropped = GPClassifier(kernel, frequencies=3, missing="drop").fit(FRAME, labels)
    assert "rows were left out" in dropped.notes_[0]
    for own, said in ((expected, True), (model, False)):
        assert own.__sklearn_tags__().input_tags.allow_nan is said


def test_a_column_of_nothing_but_missing_values_is_refused():
    with pytest.raises(
        ValueError, match="column 'b' of X was expected to hold numbers, and is missing in all 120 rows"
    ):
        GPRegressor().fit(FRAME.assign(b=np.nan)[["a", "b"]], Y)


def test_missing_where_the_fit_saw_none_is_the_prior_of_its_effect():
    complete = FRAME.dropna()
    kernel = Matern32("a", variance=0.7, lengthscale=0.4) + Linear("c", variance=2.0, origin=0.0)
    model = GPRegressor(kernel, frequencies=6, optimizer=None, noise_variance=0.05, normalize_y=False)
    model.fit(complete, Y[complete.index])
    new = pd.DataFrame({"a": [0.5, np.nan, np.nan], "b": 0.5, "c": 0.0})
    with pytest.warns(vff.ExtrapolationWarning, match="2 of 3 rows are missing column 'a', which the fit never saw"):
        mean, variance = model.predict_f(new)
    assert mean[1] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(variance[1:], 0.7, rtol=1e-6)
    assert variance[0] < 0.1
    with pytest.warns(vff.ExtrapolationWarning):
        joint = model.predict_f(new, full_covariance=True)[1]
    np.testing.assert_allclose(joint[1:, 1:], 0.7, rtol=1e-6)  # all missing values are alike
    np.testing.assert_allclose(joint[0, 1:], 0.0, atol=1e-9)
    with pytest.warns(vff.ExtrapolationWarning, match="missing column 'c'"):
        _, variance = model.predict_f(pd.DataFrame({"a": [0.5], "b": 0.5, "c": np.nan}))
    assert variance[0] == pytest.approx(2.0, rel=0.05)


def test_other_likelihoods_and_classes_learn_the_effect():
    rng = np.random.default_rng(3)
    x = pd.DataFrame({"a": rng.uniform(size=400)}).mask(rng.random((400, 1)) < 0.3)
    gone = x.a.isna().to_numpy()
    f = np.where(gone, 1.5, np.sin(6.0 * x.a.fillna(0.0)))
    counts = GPRegressor(Matern32("a"), likelihood="poisson", frequencies=6).fit(x, rng.poisson(np.exp(f)))
    at = pd.DataFrame({"a": [np.nan]})
    assert counts.predict(at)[0] == pytest.approx(np.exp(1.5), rel=0.15)
    classes = GPClassifier(Matern32("a"), frequencies=6).fit(x, rng.random(400) < 1.0 / (1.0 + np.exp(-2.0 * f)))
    assert classes.predict_proba(at)[0, 1] > 0.85
    structured = GPRegressor(Matern32("a"), likelihood="poisson", covariance="factorised", frequencies=6)
    structured.fit(x, rng.poisson(np.exp(f)))
    assert structured.predict(at)[0] == pytest.approx(np.exp(1.5), rel=0.15)


def test_chains_know_missing_values():
    pytest.importorskip("blackjax")
    options = {"frequencies": 4, "inference": "mcmc", "draws": 30, "warmup": 40, "chains": 1, "random_state": 0}
    y = Y + np.where(FRAME.a.isna(), 2.0, 0.0)
    sampled = GPRegressor(Matern32("a"), **options).fit(FRAME[["a"]], y)
    at = pd.DataFrame({"a": [np.nan, 0.5]})
    best = GPRegressor(Matern32("a"), frequencies=4).fit(FRAME[["a"]], y)
    np.testing.assert_allclose(sampled.predict(at), best.predict(at), atol=0.3)


def test_kinds_of_several_columns_and_of_named_levels():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"lat": rng.uniform(-80, 80, N), "lon": rng.uniform(-180, 180, N)})
    frame["grade"] = np.array(["poor", "fair", "good", None], object)[rng.integers(4, size=N)]
    frame.loc[:9, "lat"], frame.loc[5:14, "lon"] = np.nan, np.nan
    gone, unknown = frame[["lat", "lon"]].isna().any(axis=1), frame.grade.isna()
    y = np.where(gone, 3.0, np.sin(np.radians(frame.lat.fillna(0.0)))) + 2.0 * unknown + 0.05 * rng.standard_normal(N)
    kernel = Sphere("lat", "lon") + Ordered("grade", ["poor", "fair", "good"]) + Categorical("grade")
    model = GPRegressor(kernel, frequencies=3).fit(frame, y)
    assert np.std(y - model.predict(frame)) < 0.15
    assert "column 'lat' is missing in 10 of 120 rows" in model.notes_[0]
    assert any(f"'grade' is missing in {unknown.sum()} of 120 rows" in note for note in model.notes_)
    new = pd.DataFrame({"lat": [np.nan, 10.0], "lon": [20.0, np.nan], "grade": ["fair", "fair"]})
    np.testing.assert_allclose(*model.predict(new), rtol=1e-9)


def test_times_integers_and_objects_may_be_missing():
    days = pd.date_range("2024-01-01", periods=60).to_series(index=range(60)).mask(np.arange(60) % 7 == 0)
    whole = pd.Series(np.arange(60) % 9, dtype="Int64").mask(np.arange(60) % 5 == 0)
    objects = pd.Series([None if n % 11 == 0 else n / 60 for n in range(60)], dtype=object)
    frame = pd.DataFrame({"day": days, "whole": whole, "object": objects})
    model = GPRegressor(frequencies=4).fit(frame, np.sin(np.arange(60) / 5.0))
    assert [note.split(" of ")[0] for note in model.notes_[:3]] == [
        "column 'day' is missing in 9",
        "column 'whole' is missing in 12",
        "column 'object' is missing in 6",
    ]
    assert np.isfinite(model.predict(frame)).all()


def test_files_of_models_and_pictures(tmp_path):
    model = GPRegressor(Matern32("a") + Matern32("b") * Matern32("c") + Linear("c"), frequencies=3).fit(FRAME, Y)
    model.save(tmp_path / "model.vff")
    again = vff.load(tmp_path / "model.vff")
    for one, other in zip(model.predict(FRAME, return_std=True), again.predict(FRAME, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.notes_ == model.notes_
    assert again.coefficients()["c[missing]"].std > 0.0
    figure = vff.plot.effects(again)
    assert [text.get_text() for text in figure.axes[0].texts].count("missing") == 1
    vff.plot.fit(GPRegressor(Matern32("a"), frequencies=3).fit(FRAME[["a"]], Y), FRAME[["a"]], Y)


def test_the_prior_has_the_effect_of_missing_values():
    kernel = Matern32("a", variance=2.0, lengthscale=0.4) * Linear("c", variance=1.0, origin=0.0)
    new = pd.DataFrame({"a": [0.5, np.nan, np.nan, np.nan], "b": 0.5, "c": [1.0, 3.0, np.nan, np.nan]})
    prior = GPRegressor(kernel, noise_variance=0.1)
    expected = np.array([[2.0, 0, 0, 0], [0, 18.0, 0, 0], [0, 0, 2.0, 2.0], [0, 0, 2.0, 2.0]])
    np.testing.assert_allclose(prior.predict_f(new, full_covariance=True)[1], expected)
    drawn = prior.sample_prior(new, 4000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn), expected, atol=1.2)
    fitted = GPRegressor(Matern32("a"), frequencies=4).fit(FRAME[["a"]], Y)
    assert np.isfinite(fitted.sample_prior(FRAME[["a"]], 2, random_state=0)).all()
    with pytest.raises(ValueError, match="missing value"):
        GPRegressor(kernel, noise_variance=0.1, missing="refuse").predict_f(new)


def test_notes_and_refusals_speak_of_missing_values():
    half = pd.DataFrame({"q": np.where(np.arange(N) % 2, 1.0, np.nan), "a": np.linspace(0.0, 1.0, N)})
    notes = GPRegressor(Matern32("q") + Matern32("a"), frequencies=4).fit(half, Y).notes_
    assert any("holds one value, 1, in all rows where it is not missing; its effect" in note for note in notes)
    with pytest.raises(ValueError, match=r"scan\(X, missing='drop'\) leaves them out\), or fit .* missing='effect'"):
        GPRegressor(Matern32("q"), missing="refuse").fit(half, Y)
