"""Known standard deviations of y beside a learnt noise: against exact processes, celerite2, and simulated tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import vff
from vff import Categorical, GPRegressor, Linear, Matern32, Oscillator
from vff.inference import REACH
from vff.likelihoods import ErrorBars

KERNEL = Matern32("x") + Categorical("g")
SETTLED = {"domain": {"x": (0.0, 6.0)}, "frequencies": 10}


def rows(n: int = 300, seed: int = 0, noise: float = 0.1, spread: float = 0.8) -> pd.DataFrame:
    """Two groups on a wave, with error bars that differ widely and noise beside them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(0.0, 6.0, n), "g": rng.choice(list("ab"), n)})
    frame["err"] = np.exp(rng.normal(-2.0, spread, n))
    f = np.sin(frame["x"]) + 0.7 * (frame["g"] == "a")
    return frame.assign(y=f + np.sqrt(frame["err"] ** 2 + noise**2) * rng.standard_normal(n))


def make(**more) -> GPRegressor:
    return GPRegressor(KERNEL, noise_std="err", **{**SETTLED, **more})


# --- against what is exact ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.04])
@pytest.mark.parametrize("weighted", [False, True])
def test_lines_and_levels_are_those_of_the_normal_distribution(noise, weighted):
    """Their features carry all of the prior, so the bound is the evidence; a weight counts equal rows."""
    frame = rows(80)
    w = np.random.default_rng(1).integers(1, 4, 80) if weighted else None
    kernel = Linear("x", variance=0.5, origin=0.0) + Categorical("g", variance=0.8)
    model = GPRegressor(kernel, noise_std="err", noise_variance=noise, optimizer=None, normalize_y=False)
    model.fit(frame, "y", sample_weight=w)
    every = frame.loc[frame.index.repeat(1 if w is None else w)]
    K = 0.5 * np.outer(every["x"], every["x"]) + 0.8 * (every["g"].to_numpy()[:, None] == every["g"].to_numpy())
    exact = multivariate_normal(np.zeros(len(every)), K + np.diag(every["err"] ** 2 + noise))
    assert model.elbo_ == pytest.approx(exact.logpdf(every["y"]), abs=1e-6)
    assert model.noise_variance_ == pytest.approx(noise, rel=1e-12)
    D = np.linalg.inv(K + np.diag(every["err"] ** 2 + noise))
    mean, std = model.predict(every, return_std=True)
    np.testing.assert_allclose(mean, K @ D @ every["y"], atol=1e-8)
    variance = np.diagonal(K - K @ D @ K) + every["err"] ** 2 + noise
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)


def test_the_noise_beside_is_learnt_where_the_evidence_is_highest():
    frame, rng = rows(160), np.random.default_rng(4)
    frame["h"] = rng.choice(list("abcdefgh"), 160)
    frame["y"] += frame["h"].map(dict(zip("abcdefgh", rng.normal(size=8), strict=True))) - np.sin(frame["x"])
    kernel = Categorical("h") + Categorical("g")
    model = GPRegressor(kernel, noise_std="err", normalize_y=False).fit(frame, "y")
    alike = [frame[name].to_numpy()[:, None] == frame[name].to_numpy() for name in ("h", "g")]

    def loss(theta):
        one, two, noise = np.exp(theta)
        K = one * alike[0] + two * alike[1] + np.diag(frame["err"] ** 2 + noise)
        return -multivariate_normal(np.zeros(160), K).logpdf(frame["y"])

    found = minimize(loss, np.log([0.7, 0.5, 0.02]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    assert model.elbo_ == pytest.approx(-found.fun, abs=1e-6)
    assert model.noise_variance_ == pytest.approx(np.exp(found.x[-1]), rel=1e-4)


def light_curve(n: int = 60):
    rng = np.random.default_rng(5)
    t = np.sort(rng.uniform(0.0, 12.0, n))
    errors = np.exp(rng.normal(-0.5, 0.6, n))
    return t, np.sin(2.0 * t) + np.sqrt(errors**2 + 0.09) * rng.standard_normal(n), errors


def test_bound_and_noise_are_those_of_celerite2():
    """With so many harmonics that features miss 1e-6 nats, held and learnt."""
    celerite2 = pytest.importorskip("celerite2")
    t, y, errors = light_curve()

    def likelihood(variance, period, quality, noise):
        gp = celerite2.GaussianProcess(
            celerite2.terms.SHOTerm(sigma=np.sqrt(variance), rho=period, Q=quality), mean=0.0
        )
        gp.compute(t, diag=errors**2 + noise, quiet=True)
        return float(gp.log_likelihood(y))

    kernel = Oscillator(0, period=3.0, quality=4.0, variance=0.8)
    how = {"noise_std": 1, "normalize_y": False, "frequencies": 700}
    held = GPRegressor(kernel, noise_variance=0.09, optimizer=None, **how).fit(np.c_[t, errors], y)
    assert held.elbo_gap_[0] < 1e-6
    assert held.elbo_ == pytest.approx(likelihood(0.8, 3.0, 4.0, 0.09), abs=1e-6)
    coarse = {**how, "frequencies": 60}
    learnt = GPRegressor(kernel, **coarse).fit(np.c_[t, errors], y)
    known = learnt.kernel_.variance, learnt.kernel_.period, learnt.kernel_.quality
    again = GPRegressor(learnt.kernel_, noise_variance=learnt.noise_variance_, optimizer=None, **how)
    assert again.fit(np.c_[t, errors], y).elbo_ == pytest.approx(likelihood(*known, learnt.noise_variance_), abs=1e-6)
    start = np.log([*known, learnt.noise_variance_])
    best = minimize(lambda theta: -likelihood(*np.exp(theta)), start, method="Nelder-Mead", options={"fatol": 1e-9})
    assert learnt.elbo_ == pytest.approx(-best.fun, abs=max(2.0 * learnt.elbo_gap_[1], 1e-3))
    assert learnt.noise_variance_ == pytest.approx(np.exp(best.x[-1]), rel=0.02)


# --- what they mean -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_residuals_are_as_large_as_they_are_said_to_be(seed):
    """Of new rows, whose error bars are other than those of the fit: divided by their own sd, sd 0.95 to 1.05."""
    model = GPRegressor(KERNEL, noise_std="err").fit(rows(1200, seed), "y")
    new = rows(4000, seed + 10, spread=1.2)
    mean, std = model.predict(new, return_std=True)
    z = (new["y"] - mean) / std
    assert 0.95 < z.std() < 1.05
    for some in (new["err"] < 0.05, new["err"] > 0.4):  # where they are small, and where they are large
        assert 0.93 < z[some].std() < 1.07
    assert model.noise_variance_ == pytest.approx(0.01, rel=0.15)
    inside = model.predict_quantiles(new, [0.05, 0.95])
    assert np.mean((new["y"] > inside[:, 0]) & (new["y"] < inside[:, 1])) == pytest.approx(0.9, abs=0.015)


def test_predictions_have_the_error_of_their_own_row():
    frame = rows()
    model = make(hyperparameters="maximise").fit(frame, "y")
    small, large = (model.predict(frame.assign(err=err), return_std=True)[1] for err in (0.0, 3.0))
    np.testing.assert_allclose(large**2 - small**2, 9.0, rtol=1e-10)
    np.testing.assert_allclose(small**2, model.predict_f(frame)[1] + model.noise_variance_, rtol=1e-10)
    drawn = model.sample_y(frame[:3].assign(err=[0.0, 5.0, 50.0]), 400, random_state=0).std(axis=1)
    np.testing.assert_allclose(drawn[1:], [5.0, 50.0], rtol=0.15)
    density = model.log_predictive_density(frame, "y")
    mean, std = model.predict(frame, return_std=True)
    np.testing.assert_allclose(density, -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((frame["y"] - mean) / std) ** 2)


def test_error_bars_beside_the_rows():
    frame = rows()
    model = make().fit(frame, "y")
    plain = GPRegressor(KERNEL, **SETTLED).fit(frame, "y", noise_std=frame["err"])
    assert plain.elbo_ == model.elbo_
    assert plain.likelihood_ == ErrorBars(model.noise_variance_)
    std = plain.predict(frame[["x", "g"]], return_std=True)[1]  # an instrument without error
    np.testing.assert_allclose(std, model.predict(frame.assign(err=0.0), return_std=True)[1])


def test_error_bars_over_many_decades_and_rows_without():
    frame = rows(400)
    frame["err"] = 10.0 ** np.random.default_rng(2).uniform(-9.0, 6.0, 400)
    frame.loc[::7, "err"] = 0.0
    rng = np.random.default_rng(3)
    frame["y"] = np.sin(frame["x"]) + np.sqrt(frame["err"] ** 2 + 0.01) * rng.standard_normal(400)
    model = GPRegressor(Matern32("x"), noise_std="err").fit(frame, "y")
    assert np.abs(model.predict_f(frame)[0] - np.sin(frame["x"])).max() < 0.15
    assert model.noise_variance_ == pytest.approx(0.01, rel=0.3)


def test_equal_error_bars_are_one_sum_and_few_are_few():
    frame = rows()
    for values in ([0.2], [0.1, 0.3, 0.5]):
        few = frame.assign(err=np.resize(values, len(frame)))
        assert len(make().fit(few, "y").statistics_.moments.nodes) == len(values)
    same = make().fit(frame.assign(err=0.2), "y")
    plain = GPRegressor(KERNEL, **SETTLED).fit(frame, "y")
    assert same.elbo_ == pytest.approx(plain.elbo_, abs=1e-4)
    assert same.noise_variance_ + 0.04 == pytest.approx(plain.noise_variance_, rel=1e-3)
    assert "nodes" in same.engine_reason_


NOTES = {
    "nothing left": (lambda f: f.assign(y=np.sin(f["x"]) + f["err"] * _draw(len(f))), "came to nothing"),
    "too large": (lambda f: f.assign(y=np.sin(f["x"]) + 0.3 * f["err"] * _draw(len(f))), "look too large"),
    "too small": (lambda f: f.assign(err=f["err"] / 100.0), "these look too small"),
}


def _draw(n: int) -> np.ndarray:
    return np.random.default_rng(9).standard_normal(n)


@pytest.mark.parametrize("case", NOTES)
def test_notes_say_when_error_bars_do_not_fit(case):
    change, said = NOTES[case]
    assert any(said in note for note in make().fit(change(rows(500)), "y").notes_)


def test_without_noise_notes_say_when_some_is_left():
    model = make(noise_variance=0).fit(rows(), "y")
    assert model.noise_variance_ == 0.0
    assert "leave noise_variance=None" in model.notes_[0]
    assert not make().fit(rows(), "y").notes_


# --- wherever rows are, and whatever becomes of them ----------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False])
def test_files_agree(tmp_path, given):
    frame = rows()
    frame.to_parquet(tmp_path / "rows.parquet")
    more = {} if given else {"domain": "auto"}
    whole, source = make(**more).fit(frame, "y"), vff.scan(tmp_path / "rows.parquet", chunk_rows=80)
    chunked = make(**more).fit(source, "y")
    assert chunked.elbo_ == pytest.approx(whole.elbo_, abs=1e-7)
    np.testing.assert_allclose(chunked.predict(source, return_std=True)[1], whole.predict(frame, return_std=True)[1])


def test_pieces_merge_forget_and_saved_files(tmp_path):
    frame = rows()
    whole = make().fit(frame, "y")
    pieces = make().partial_fit(frame[:40], "y").partial_fit(frame[40:45], "y").partial_fit(frame[45:], "y")
    both = make().collect(frame[:100], "y").merge(make().collect(frame[100:], "y")).learn()
    less = make().fit(frame, "y").forget(frame[290:], "y")
    for other, expected in ((pieces, whole), (both, whole), (less, make().fit(frame[:290], "y"))):
        assert other.elbo_ == pytest.approx(expected.elbo_, abs=1e-7)
    whole.save(tmp_path / "model.vff")
    loaded = vff.load(tmp_path / "model.vff")
    assert loaded.likelihood_ == whole.likelihood_
    np.testing.assert_array_equal(loaded.predict(frame, return_std=True)[1], whole.predict(frame, return_std=True)[1])
    assert loaded.forget(frame[290:], "y").elbo_ == pytest.approx(less.elbo_, abs=1e-7)
    by_row = GPRegressor(KERNEL, **SETTLED).collect(frame, "y", noise_std=frame["err"])
    by_row.save(tmp_path / "sums.vffm")
    assert vff.load(tmp_path / "sums.vffm").learn().elbo_ == pytest.approx(whole.elbo_, abs=1e-7)


def test_the_constant_has_its_prior_around_rows_that_are_known():
    """Rows of wild y and honest, huge error bars do not move the scale that learning sees."""
    frame = rows()
    wild = pd.concat([frame, frame[:30].assign(y=1e6, err=1e7)])
    model = make().fit(wild, "y")
    assert model.target_.scale < 3.0
    np.testing.assert_allclose(model.predict_f(frame)[0], make().fit(frame, "y").predict_f(frame)[0], atol=0.02)
    assert model.intercept_ == pytest.approx(frame["y"].mean(), abs=0.1)
    assert REACH * model.target_.scale < 100.0


REFUSED = {
    "another likelihood": (lambda f: make(likelihood="poisson").fit(f, "y"), "noise_std is for likelihood='gaussian'"),
    "below zero": (lambda f: make().fit(f.assign(err=-f["err"]), "y"), "standard deviations, zero or more"),
    "no such column": (lambda f: make().set_params(noise_std="q").fit(f, "y"), "noise_std names column 'q', which has"),
    "almost that column": (lambda f: make().set_params(noise_std="er").fit(f, "y"), "perhaps 'err' was meant"),
    "twice": (lambda f: make().fit(f, "y", noise_std=f["err"]), "fit was given others"),
    "by name": (lambda f: GPRegressor(KERNEL).fit(f, "y", noise_std="err"), r"GPRegressor\(noise_std='err'\)"),
    "one for all": (lambda f: GPRegressor(KERNEL).fit(f, "y", noise_std=0.3), r"noise_variance=fixed\(0.09\)"),
    "too few": (lambda f: GPRegressor(KERNEL).fit(f, "y", noise_std=f["err"][:3]), "one standard deviation per row"),
    "no noise and no error": (
        lambda f: make(noise_variance=0).fit(f.assign(err=f["err"].where(f.index > 2, 0.0)), "y"),
        "3 row.s. have an error bar of zero",
    ),
    "no noise without error bars": (lambda f: GPRegressor(KERNEL, noise_variance=0).fit(f, "y"), "noise_std"),
    "missing": (
        lambda f: make().fit(f.assign(err=f["err"].where(f.index != 4)), "y"),
        "column 'err' of X, which is noise_std, .* first in row 4.*: drop or fill these rows first$",
    ),
    "text": (
        lambda f: make().fit(f.assign(err="large"), "y"),
        r"'err' of X, which is noise_std, .* such as 'large'; numbers were expected: encode it as numbers \(could",
    ),
    "a prior for nothing": (
        lambda f: make(priors={"noise_variance": 0.0}).fit(f, "y"),
        r"where error bars are all the noise there is, GPRegressor\(noise_variance=0\) says so",
    ),
    "none any more": (
        lambda f: GPRegressor(KERNEL, **SETTLED).fit(f, "y", noise_std=f["err"]).partial_fit(f, "y"),
        "give noise_std to partial_fit",
    ),
    "some at last": (
        lambda f: GPRegressor(KERNEL, **SETTLED).fit(f, "y").partial_fit(f, "y", noise_std=f["err"]),
        "leave noise_std out of partial_fit",
    ),
    "not there when predicted": (lambda f: make().fit(f, "y").sample_y(f[["x", "g"]]), "an instrument without error"),
    "beyond the domain": (
        lambda f: GPRegressor(Matern32("x"), noise_std="err", domain=(1, 6)).fit(f, "y"),
        "rows with error bars must lie inside",
    ),
    "changed": (
        lambda f: make().fit(f, "y").set_params(noise_std=None).partial_fit(f, "y"),
        "noise_std is now None",
    ),
    "merged with others": (
        lambda f: make().fit(f, "y").merge(GPRegressor(KERNEL, **SETTLED).fit(f, "y")),
        "noise_std of the two models differs",
    ),
    "chains without noise": (
        lambda f: make(noise_variance=0, inference="mcmc", draws=10, warmup=20).fit(f, "y"),
        "noise_variance=0 holds none",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    ask, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        ask(rows(60))


def test_a_database_gives_no_rows_to_weigh():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows_of_test", rows(60))
    with pytest.raises(ValueError, match="error bars give every row a weight of its own"):
        make().fit(connection.sql("select * from rows_of_test"), "y")


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_before_the_fit_error_bars_are_in_predictions(noise):
    frame = rows(5).assign(err=10.0)
    prior = GPRegressor(Matern32("x", variance=1.0, lengthscale=2.0), noise_variance=noise, noise_std="err")
    expected = np.sqrt(1.0 + noise + 100.0)
    np.testing.assert_allclose(prior.predict(frame, return_std=True)[1], expected, rtol=1e-12)
    np.testing.assert_allclose(prior.predict_quantiles(frame, [0.841344746])[:, 0], expected, rtol=1e-6)
    assert prior.sample_y(frame, 2000, random_state=0).std() == pytest.approx(expected, rel=0.05)


def test_what_does_not_speak_of_a_new_y_needs_no_error_bars(tmp_path):
    frame = rows(60)
    model, bare = make(frequencies=5).fit(frame, "y"), frame[["x", "g", "y"]]
    bare.to_parquet(tmp_path / "bare.parquet")
    for other in (bare, vff.scan(tmp_path / "bare.parquet")):
        np.testing.assert_array_equal(model.predict_f(other), model.predict_f(frame))
        np.testing.assert_array_equal(model.predict(other), model.predict(frame))
        np.testing.assert_array_equal(model.sample_f(other, random_state=0), model.sample_f(frame, random_state=0))
        np.testing.assert_array_equal(model.effects(other).mean, model.effects(frame).mean)
        assert model.score(other, "y") == model.score(frame, "y")
        for ask in (
            lambda X: model.predict(X, return_std=True), model.predict_quantiles, model.sample_y,
            lambda X: model.log_predictive_density(X, "y"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="an instrument without error"):
                ask(other)


def test_without_noise_models_are_saved(tmp_path):
    frame = rows(60)
    model = make(noise_variance=0, frequencies=5).fit(frame, "y")
    model.save(tmp_path / "m.vff")
    np.testing.assert_array_equal(vff.load(tmp_path / "m.vff").predict(frame), model.predict(frame))


@pytest.mark.parametrize("where", ["x", "err", "y"])
def test_rows_that_are_left_out_take_their_error_bars_along(where):
    frame = rows(60)
    holes, y = frame.assign(**{where: frame[where].where(frame.index % 7 != 3)}), "y"
    kept = frame[frame.index % 7 != 3]
    options = {"frequencies": 5, "missing": "drop", "domain": {"x": (0.0, 6.0)}}
    beside = GPRegressor(KERNEL, **options).fit(holes[["x", "g"]], holes[y], noise_std=holes["err"])
    named = GPRegressor(KERNEL, **options, noise_std="err").fit(kept, "y")
    assert beside.elbo_ == pytest.approx(named.elbo_, abs=1e-9)
