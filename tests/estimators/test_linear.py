"""Straight lines: Bayesian linear regression, ridge, random slopes, coefficients that vary, and their table."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

import vff
from vff import Categorical, GPClassifier, GPRegressor, Linear, Matern32, parse_kernel
from vff.baselines import ExactGP
from vff.inference import REACH
from vff.kernels.formula import parse_terms

FIXED = {"optimizer": None}


def groups(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Lines of six groups, intercepts and slopes correlated."""
    rng = np.random.default_rng(seed)
    effects = rng.multivariate_normal([0.0, 0.0], [[4.0, -0.5], [-0.5, 0.25]], 6)
    frame = pd.DataFrame(
        {"x": rng.uniform(5.0, 30.0, n), "g": rng.choice(list("abcdef"), n), "t": rng.uniform(0.0, 1.0, n)}
    )
    code = frame["g"].map(dict(zip("abcdef", range(6), strict=True))).to_numpy()
    f = 3.0 + 0.5 * frame["x"] + effects[code, 0] + effects[code, 1] * frame["x"]
    return frame, (f + rng.normal(size=n)).to_numpy()


def evidence(y: np.ndarray, covariance: np.ndarray) -> float:
    """log p(y) with a constant of the house's width around the mean of y beside the terms."""
    constant = (REACH * np.std(y)) ** 2
    return float(multivariate_normal(np.full(y.size, y.mean()), covariance + constant).logpdf(y))


# --- linear regression -----------------------------------------------------------------------------------------------


def test_bayesian_linear_regression_by_loops(rng):
    """Posterior of (constant, slopes) from the sums of a loop over rows."""
    X = rng.normal(size=(60, 2)) * [1.0, 30.0] + [2.0, -7.0]
    y = 4.0 + X @ [1.5, -0.2] + 0.7 * rng.normal(size=60)
    variances, noise = (0.9, 0.05), 0.6
    kernel = Linear(0, variance=variances[0], origin=0.0) + Linear(1, variance=variances[1], origin=0.0)
    model = GPRegressor(kernel, noise_variance=noise, **FIXED).fit(X, y)
    precision, total = np.diag([1.0 / (REACH * np.std(y)) ** 2, *(1.0 / v for v in variances)]), np.zeros(3)
    for row, target in zip(X, y, strict=True):
        phi = np.array([1.0, *row])
        precision += np.outer(phi, phi) / noise
        total += phi * (target - y.mean()) / noise
    covariance = np.linalg.inv(precision)
    found = model.coefficients(level=0.9)
    assert found.names == ("constant", "0", "1")
    np.testing.assert_allclose(found.mean, covariance @ total + [y.mean(), 0.0, 0.0], rtol=1e-8)
    np.testing.assert_allclose(found.std, np.sqrt(np.diagonal(covariance)), rtol=1e-7)
    np.testing.assert_allclose(found.upper - found.mean, 1.6448536269514722 * found.std, rtol=1e-10)
    np.testing.assert_allclose(found.mean - found.lower, found.upper - found.mean, rtol=1e-10)
    mean, variance = model.predict_f(X[:5])
    phi = np.column_stack([np.ones(5), X[:5]])
    np.testing.assert_allclose(mean, phi @ found.mean, rtol=1e-9)
    np.testing.assert_allclose(variance, np.einsum("ni,ij,nj->n", phi, covariance, phi), rtol=1e-7)


def test_ridge_has_the_same_coefficients(rng):
    X = rng.normal(size=(80, 3)) * [1.0, 20.0, 0.01] + [2.0, 5.0, 0.0]
    y = X @ [1.0, -0.3, 40.0] + 2.0 + rng.normal(size=80)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kernel = sum(Linear(name, variance=0.8) for name in "abc")
    model = GPRegressor(kernel, noise_variance=1.7, **FIXED).fit(frame, y)
    ridge = Ridge(alpha=1.7 / 0.8, tol=1e-14).fit(X, y)
    found = model.coefficients()
    # ridge's constant has no prior; the house's is a hundred times wider than the targets
    np.testing.assert_allclose(found.mean[1:], ridge.coef_, rtol=1e-4)
    free = GPRegressor(kernel, noise_variance=1.7, **FIXED).fit(frame - X.mean(axis=0), y - y.mean())
    np.testing.assert_allclose(free.coefficients().mean[1:], ridge.coef_, rtol=1e-8)
    np.testing.assert_allclose(free.predict(frame - X.mean(axis=0)) + y.mean(), ridge.predict(X), rtol=1e-8)


def test_the_bound_is_the_evidence(rng):
    X = rng.normal([3.0, 0.0], size=(40, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=40)
    model = GPRegressor(Linear(0, variance=1.0) + Linear(1)).fit(X, y)
    noise = model.likelihood_.values["variance"] * np.eye(40)

    def at(factor: float) -> float:
        """The evidence, with another variance of the first slope."""
        first, second = model.kernel_.terms
        K = factor * first(X[:, 0], X[:, 0]) + second(X[:, 1], X[:, 1])
        return evidence(y, K + noise)

    assert model.elbo_ == pytest.approx(at(1.0), abs=1e-6)
    assert model.elbo_gap_[0] < 1e-6
    # a variance that is given is where learning starts: no step in it raises the evidence
    assert max(at(0.9), at(1.1)) < at(1.0)


def test_a_slope_is_found_wherever_zero_is(rng):
    """Years and dates: the constant takes up the shift, and its prior does not mind."""
    year = rng.integers(2000, 2025, 300).astype(float)
    y = 0.5 * (year - 2012.0) + rng.normal(size=300)
    least, _, _, _ = np.linalg.lstsq(np.column_stack([np.ones(300), year]), y, rcond=None)
    for likelihood in ("gaussian", "student-t"):
        found = GPRegressor(Linear("year"), likelihood=likelihood).fit(pd.DataFrame({"year": year}), y).coefficients()
        assert found["year"].mean == pytest.approx(least[1], rel=0.02)
        assert found["constant"].mean == pytest.approx(least[0], rel=0.02)
    days = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=60)})
    model = GPRegressor(Linear("day")).fit(days, 0.1 * np.arange(60.0) + 0.3 * rng.normal(size=60))
    assert model.coefficients()["day"].mean == pytest.approx(0.1, rel=0.1)
    assert model.fit_.terms[0].active
    assert model.notes_ == ()


def test_a_slope_within_its_error_of_zero_is_not_known_to_be_zero():
    """Of one slope there is one draw, of which no variance can be learnt: intervals would end at nothing."""
    held = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        g, x, slopes = np.repeat(np.arange(12), 20), rng.uniform(-1.0, 1.0, 240), rng.normal(0.3, 1.0, 12)
        y = slopes[g] * x + rng.normal(size=12)[g] + 0.5 * rng.normal(size=240)
        frame = pd.DataFrame({"x": x, "g": [f"g{n}" for n in g]})
        model = GPRegressor(Linear("x") + Linear("x", intercept=True) * Categorical("g")).fit(frame, y)
        found = model.coefficients(levels=False)["x"]
        assert 0.15 < found.std < 0.6  # twelve slopes of standard deviation one
        held.append(found.lower < 0.3 < found.upper)
    assert np.mean(held) >= 0.85


def test_shifting_a_column_changes_nothing_beside_a_constant(rng):
    x = rng.uniform(0.0, 1.0, (50, 1))
    y = 2.0 * x[:, 0] + 0.1 * rng.normal(size=50)
    one = GPRegressor(Linear(0, variance=1.0), noise_variance=0.01, **FIXED).fit(x, y)
    far = GPRegressor(Linear(0, variance=1.0), noise_variance=0.01, **FIXED).fit(x + 5.0, y)
    np.testing.assert_allclose(one.predict(x), far.predict(x + 5.0), atol=1e-9)
    np.testing.assert_allclose(one.coefficients()["0"].mean, far.coefficients()["0"].mean, rtol=1e-2)


# --- random slopes ---------------------------------------------------------------------------------------------------

RANDOM = {
    "slopes": Linear("x", variance=0.2) * Categorical("g"),
    "independent": Categorical("g", variance=3.0) + Linear("x", variance=0.2) * Categorical("g"),
    "correlated": Linear("x", variance=3.0, intercept=True, slope=0.3, correlation=-0.6) * Categorical("g"),
    "with a slope of all": Linear("x", variance=0.3, origin=0.0)
    + Linear("x", variance=3.0, intercept=True, slope=0.3, correlation=0.8) * Categorical("g"),
}


def mixed(frame: pd.DataFrame, name: str) -> np.ndarray:
    """Z D Z' of a mixed model, with loops over rows and groups."""
    intercept, slope, both = {
        "slopes": (0.0, 0.2, 0.0),
        "independent": (3.0, 0.2, 0.0),
        "correlated": (3.0, 3.0 * 0.09, -0.6 * 3.0 * 0.3),
        "with a slope of all": (3.0, 3.0 * 0.09, 0.8 * 3.0 * 0.3),
    }[name]
    D, x, n = np.array([[intercept, both], [both, slope]]), frame["x"].to_numpy(), len(frame)
    total = np.zeros((n, n)) + (0.3 * np.outer(x, x) if name == "with a slope of all" else 0.0)
    for group in frame["g"].unique():
        Z = np.zeros((n, 2))
        for row in np.flatnonzero(frame["g"] == group):
            Z[row] = 1.0, x[row]
        total += Z @ D @ Z.T
    return total


@pytest.mark.parametrize("name", RANDOM)
def test_random_slopes_are_those_of_a_mixed_model(name):
    frame, y = groups()
    model = GPRegressor(RANDOM[name], noise_variance=1.2, **FIXED).fit(frame, y)
    K = mixed(frame, name)
    assert model.elbo_ == pytest.approx(evidence(y, K + 1.2 * np.eye(len(y))), abs=1e-6)
    assert model.elbo_gap_[0] < 1e-6
    constant = (REACH * np.std(y)) ** 2
    expected = y.mean() + (K + constant) @ np.linalg.solve(K + constant + 1.2 * np.eye(len(y)), y - y.mean())
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-8)


def test_correlation_and_slope_are_learnt():
    frame, y = groups(600)
    kernel = Linear("x", intercept=True) * Categorical("g")
    model = GPRegressor(kernel).fit(frame, y)
    line = model.kernel_.factors[0]
    assert -1.0 < line.correlation < 1.0
    again = GPRegressor(model.kernel_, noise_variance=model.likelihood_.values["variance"], **FIXED).fit(frame, y)
    assert again.elbo_ == pytest.approx(model.elbo_, abs=1e-6)
    for change in ({"correlation": 0.9 * line.correlation}, {"slope": 1.1 * line.slope}, {"slope": 0.9 * line.slope}):
        trial = Linear(**{**line.get_params(), **change})
        other = GPRegressor(trial * Categorical("g"), noise_variance=model.likelihood_.values["variance"], **FIXED)
        assert other.fit(frame, y).elbo_ < model.elbo_


def test_the_table_names_groups():
    frame, y = groups(600)
    model = GPRegressor(Linear("x") + Linear("x", intercept=True) * Categorical("g") + Matern32("t")).fit(frame, y)
    found = model.coefficients()
    assert found.names[:4] == ("constant", "x", "x[intercept] * g[a]", "x[intercept] * g[b]")
    assert len(found) == 2 + 12
    table = pd.DataFrame(found.data).set_index("coefficient")
    assert list(table.columns) == ["mean", "std", "lower", "upper"]
    assert table.loc["x * g[c]", "mean"] == found["x * g[c]"].mean
    assert str(found).splitlines()[1].startswith("constant ")
    with pytest.raises(KeyError, match="there is no coefficient 'z'"):
        found["z"]
    with pytest.raises(ValueError, match="between 0 and 1, got 95"):
        model.coefficients(level=95)
    # the slope of a group is that of predictions
    rows = pd.DataFrame({"x": [10.0, 11.0], "g": "c", "t": 0.5})
    slope = np.diff(model.predict(rows))[0]
    assert slope == pytest.approx(found["x"].mean + found["x * g[c]"].mean, rel=1e-8)


def test_smooth_terms_have_no_coefficients(rng):
    x = rng.uniform(size=(40, 2))
    model = GPRegressor(Linear(0) * Matern32(1), frequencies=3).fit(x, x[:, 0] * np.sin(x[:, 1]))
    assert model.coefficients().names == ("constant",)


# --- slopes that vary ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        Linear("x", variance=0.3) * Matern32("t", lengthscale=1.0),
        Linear("x", variance=1.0, intercept=True, slope=0.3, correlation=0.3) * Matern32("t", lengthscale=1.0),
        Linear("x", variance=0.3) * Matern32("t", lengthscale=1.0) + Matern32("t", variance=2.0, lengthscale=0.7),
        Linear("x", variance=0.3) * Matern32("x", lengthscale=20.0) + Linear("x", variance=0.1) * Linear("t"),
    ],
)
def test_a_slope_that_varies_is_that_of_the_dense_kernel(kernel):
    frame, y = groups(80)
    exact = ExactGP(kernel, noise_variance=1.2, **FIXED).fit(frame, y)
    bounds = []
    for M in (4, 16, 64):
        model = GPRegressor(kernel, noise_variance=1.2, frequencies=M, **FIXED).fit(frame, y)
        bounds.append(model.elbo_)
        assert model.elbo_ <= exact.elbo_ + 1e-6
    assert bounds[0] < bounds[1] < bounds[2]
    assert exact.elbo_ - bounds[2] < 0.05 * (exact.elbo_ - bounds[0])
    for found, expected in zip(model.predict_f(frame), exact.predict_f(frame), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(expected).max())


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
def test_every_engine_gives_the_same(engine):
    frame, y = groups(3000)
    fixed = {"optimizer": None, "noise_variance": 1.0, "frequencies": {"t": 4}}
    kernel = parse_kernel(
        "Linear('x', variance=0.3) * Matern32('t', lengthscale=0.5) + "
        "Linear('x', variance=2, intercept=True, slope=0.2, correlation=-0.3) * Categorical('g')"
    )
    expected = GPRegressor(kernel, **fixed, engine="dense").fit(frame, y)
    model = GPRegressor(kernel, **fixed, engine=engine).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame), rtol=1e-9)
    if engine == "auto":
        assert "weighted" in model.engine_reason_


# --- everything else that a kind goes through ------------------------------------------------------------------------


def test_poisson_and_bernoulli(rng):
    frame, _ = groups(400)
    counts = rng.poisson(np.exp(0.08 * frame["x"] - 1.0))
    model = GPRegressor(Linear("x") + Matern32("t"), likelihood="poisson", frequencies=4).fit(frame, counts)
    slope = model.coefficients()["x"]
    assert slope.lower < 0.08 < slope.upper
    chance = 1.0 / (1.0 + np.exp(-(0.4 * frame["x"] - 7.0)))
    labels = rng.uniform(size=400) < chance
    classes = GPClassifier(Linear("x") + Linear("x") * Categorical("g")).fit(frame, labels)
    assert classes.score(frame, labels) > 0.75
    assert classes.coefficients()["x"].mean > 0.0


@pytest.mark.parametrize("covariance", ["two kroneckers", "kronecker", "factorised"])
def test_structured_covariances(covariance, rng):
    frame, _ = groups(150)
    counts = rng.poisson(np.exp(0.08 * frame["x"] - 1.0))
    kernel = Linear("x") * Matern32("t") + Linear("x")
    model = GPRegressor(kernel, likelihood="poisson", frequencies=3, covariance=covariance).fit(frame, counts)
    assert model.coefficients()["x"].std > 0.0
    assert np.isfinite(model.predict(frame)).all()


def test_chains_show_the_correlation_itself():
    frame, y = groups(200)
    kernel = Linear("x", intercept=True) * Categorical("g")
    model = GPRegressor(kernel, inference="mcmc", draws=200, warmup=200, chains=2, random_state=0).fit(frame, y)
    (place,) = [n for n, own in enumerate(model.samples_.parameters) if own.kind == "correlation"]
    values = model.samples_.parameters[place].values(model.samples_.t[:, :, place])
    assert np.all(np.abs(values) < 1.0)
    assert values.min() < 0.0
    found, variational = model.coefficients(), GPRegressor(kernel).fit(frame, y).coefficients()
    np.testing.assert_allclose(found["x * g[a]"].mean, variational["x * g[a]"].mean, atol=3.0 * found["x * g[a]"].std)
    assert np.all(found.lower < found.upper)
    held = {"correlation": 0.25}
    fixed = GPRegressor(
        kernel, inference="mcmc", draws=20, warmup=50, chains=1, priors={**held, "slope": vff.priors.LogNormal(0.2, 1)}
    ).fit(frame, y)
    assert fixed.kernel_.factors[0].correlation == pytest.approx(0.25)
    with pytest.raises(ValueError, match="between -1 and 1"):
        GPRegressor(kernel, inference="mcmc", priors={"correlation": 1.5}).fit(frame, y)
    with pytest.raises(ValueError, match="such as LKJ"):
        GPRegressor(kernel, inference="mcmc", priors={"correlation": vff.priors.Normal(0.0, 1.0)}).fit(frame, y)


def test_rows_may_come_in_parts_and_be_merged(tmp_path):
    frame, y = groups(400)
    kernel = Linear("x", intercept=True) * Categorical("g") + Linear("x") * Matern32("t")
    how = {"domain": {"x": (0.0, 30.0), "t": (0.0, 1.0)}, "frequencies": {"t": 3}}
    whole = GPRegressor(kernel, **how).fit(frame, y)
    parts = GPRegressor(kernel, **how)
    for start in range(0, 400, 100):
        parts.partial_fit(frame[start : start + 100], y[start : start + 100])
    np.testing.assert_allclose(parts.predict(frame), whole.predict(frame), rtol=1e-4)
    # rows further out than the first ones are no trouble: a line has no outside
    slope = Linear("x", variance=1.0, origin=0.0)
    later = GPRegressor(slope).partial_fit(frame[:50], y[:50])
    far = frame[50:].assign(x=10.0 * frame["x"][50:])
    later.partial_fit(far, y[50:])
    again = GPRegressor(slope).fit(pd.concat([frame[:50], far]), y)
    assert later.elbo_ == pytest.approx(again.elbo_, abs=1e-5)
    np.testing.assert_allclose(later.coefficients().mean, again.coefficients().mean, rtol=1e-5)
    whole.save(tmp_path / "model.vff")
    loaded = vff.load(tmp_path / "model.vff")
    np.testing.assert_array_equal(loaded.predict(frame), whole.predict(frame))
    np.testing.assert_array_equal(loaded.coefficients().mean, whole.coefficients().mean)
    assert loaded.kernel_ == whole.kernel_


def test_an_iterator_is_read_once_where_the_domain_is_given():
    frame, y = groups(300)
    chunks = (frame[start : start + 60].assign(y=y[start : start + 60]) for start in range(0, 300, 60))
    kernel = Linear("x") * Categorical("g")
    model = GPRegressor(kernel, domain={"x": (0.0, 30.0)}).fit(chunks, "y")
    whole = GPRegressor(kernel, domain={"x": (0.0, 30.0)}).fit(frame, y)
    np.testing.assert_allclose(model.coefficients().mean, whole.coefficients().mean, rtol=1e-6)


def test_large_products_are_solved_by_iterations(monkeypatch, rng):
    frame, y = groups(500)
    kernel = parse_kernel(
        "Linear('x', variance=0.3) * Matern32('t', lengthscale=0.5) + "
        "Linear('x', variance=2, intercept=True, slope=0.2, correlation=-0.3) * Matern32('t', lengthscale=0.9)"
    )
    how = {"optimizer": None, "noise_variance": 1.0, "frequencies": 6}
    direct = GPRegressor(kernel, **how).fit(frame, y)
    monkeypatch.setattr("vff.inference.learning.solver.LARGEST_DIRECT", 10)
    model = GPRegressor(kernel, **how).fit(frame, y)
    assert model.solver_ != direct.solver_
    np.testing.assert_allclose(model.predict(frame), direct.predict(frame), rtol=1e-5)
    assert model.elbo_ == pytest.approx(direct.elbo_, abs=1.0)


# --- sentences -------------------------------------------------------------------------------------------------------


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match=r"Linear\('x'\): correlation must be a number between -1 and 1, got 1.0"):
        Linear("x", intercept=True, correlation=1.0)
    with pytest.raises(ValueError, match="intercept must be True or False, got 1; "):
        Linear("x", intercept=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"slope is that of a slope beside an intercept, got 2\.0 without one"):
        Linear("x", slope=2.0)
    with pytest.raises(ValueError, match="intercept must be True or False, got 3"):
        parse_kernel("Linear('x', intercept=3)")
    with pytest.raises(ValueError, match="a number was expected, found True"):
        parse_kernel("Linear('x', variance=True)")
    with pytest.raises(ValueError, match="one factor per column was expected"):
        Linear("x") * Linear("x")


def test_texts():
    kernel = Linear("x", intercept=True, correlation=-0.25) * Categorical("g")
    assert repr(kernel) == "Linear('x', intercept=True, correlation=-0.25) * Categorical('g')"
    assert parse_kernel(repr(kernel)) == kernel
    kinds = {"x": "number", "g": "text"}
    assert parse_terms("linear(x) + linear(x, intercept=true) * g", kinds) == Linear("x") + Linear(
        "x", intercept=True
    ) * Categorical("g")


# --- elsewhere -------------------------------------------------------------------------------------------------------

EVERYWHERE = Linear("x", intercept=True) * Categorical("g") + Linear("x") * Matern32("t")


def test_dask_gives_the_model_of_the_rows_in_memory():
    dd = pytest.importorskip("dask.dataframe")
    frame, y = groups(400)
    rows = dd.from_pandas(frame.assign(y=y), npartitions=4)
    model = GPRegressor(EVERYWHERE, frequencies={"t": 3}).fit(rows, "y")
    whole = GPRegressor(EVERYWHERE, frequencies={"t": 3}).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), whole.predict(frame), rtol=1e-6)
    np.testing.assert_allclose(model.coefficients().mean, whole.coefficients().mean, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
def test_a_database_gives_the_model_of_the_rows_in_memory():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    frame, y = groups(400)
    frame = frame.assign(x=frame["x"].round(), t=frame["t"].round(2), y=y)
    model = GPRegressor(EVERYWHERE, frequencies={"t": 3}).fit(vff.scan(duckdb.from_df(frame)), "y")
    whole = GPRegressor(EVERYWHERE, frequencies={"t": 3}).fit(frame[["x", "g", "t"]], y)
    np.testing.assert_allclose(model.predict(frame[["x", "g", "t"]]), whole.predict(frame[["x", "g", "t"]]), rtol=1e-6)


def test_the_command_line_prints_slopes(tmp_path, capsys):
    from vff.cli import main

    frame, y = groups(300)
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", str(tmp_path / "rows.csv"), "--target", "y", "--terms", "linear(x) + linear(x, intercept=true) * g"]
    assert main([*words, "--out", str(tmp_path / "model.vff")]) == 0
    assert main(["info", str(tmp_path / "model.vff")]) == 0
    printed = capsys.readouterr().out
    slope = vff.load(tmp_path / "model.vff").coefficients()["x"]
    assert f"{slope.mean:.4g}" in printed
    assert f"{slope.lower:.4g} to {slope.upper:.4g}" in printed
    assert "correlation " in printed


def test_pictures_are_straight_lines():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    frame, y = groups(300)
    model = GPRegressor(Linear("x") + Linear("x") * Categorical("g")).fit(frame, y)
    for term in ("x", "x * g"):
        drawn = pd.DataFrame(vff.plot.effects(model, term).data)
        for _, own in drawn.groupby(drawn["y"].astype(str)) if term == "x * g" else [(0, drawn)]:
            x, mean = own["x"].to_numpy(float), own["mean"].to_numpy(float)
            np.testing.assert_allclose(mean, np.polyval(np.polyfit(x, mean, 1), x), atol=1e-9 * np.abs(mean).max())
    slopes, variances = model.predict_derivative(frame[:3], "x")
    rises = np.diff(model.predict(pd.DataFrame({"x": [1.0, 2.0], "g": frame["g"][0], "t": 0.0})))
    assert slopes[0] == pytest.approx(rises[0], rel=1e-8)
    assert np.all(variances > 0.0)


def test_a_steep_slope_of_a_small_column_is_no_wide_function(rng):
    """Of counts, f may not be so wide that its exponential leaves float64: f, and not its slope."""
    x = 1e-4 * rng.uniform(size=(60, 1))
    counts = rng.poisson(np.exp(1e4 * x[:, 0]))
    model = GPRegressor(Linear(0, variance=1e8), likelihood="poisson", optimizer=None).fit(x, counts)
    assert model.coefficients()["0"].mean == pytest.approx(1e4, rel=0.5)
    with pytest.raises(ValueError, match="float64 cannot hold"):
        GPRegressor(Linear(0, variance=1.0), likelihood="poisson", optimizer=None).fit(1e8 * x, counts)


def test_interactions_with_a_line_are_suggested_in_the_users_units(rng):
    X = pd.DataFrame({"x": rng.uniform(0.0, 1000.0, 400), "t": rng.uniform(size=400)})
    y = 0.01 * X["x"] * np.sin(6.0 * X["t"]) + 0.1 * rng.normal(size=400)
    model = GPRegressor(Linear("x") + Matern32("t"), frequencies={"t": 5}).fit(X, y)
    (found,) = vff.suggest_interactions(model, X, y)[:1]
    assert 1e-6 < found.kernel.factors[0].variance < 1e-2


def test_the_constant_is_f_at_zero_with_other_terms_averaged(rng):
    """Against the joint posterior of the average over the rows of f less what the slope says of them."""
    frame = pd.DataFrame({"x": rng.normal(3.0, 1.0, 80), "t": rng.uniform(0.0, 5.0, 80)})
    y = 2.0 - frame["x"] + np.sin(frame["t"]) + 0.3 * rng.normal(size=80)
    model = GPRegressor(Linear("x") + Matern32("t"), frequencies=6).fit(frame, y)
    at_zero = frame.assign(x=0.0)
    mean, covariance = model.posterior_.joint(model._evaluate(at_zero, lambda one: (one.x,))[0])
    found, scale = model.coefficients()["constant"], model.target_.scale
    assert found.mean == pytest.approx(model.target_.mean + scale * mean.mean(), rel=1e-9)
    # what features miss has no average over many rows
    assert found.std == pytest.approx(scale * np.sqrt(covariance.mean()), rel=1e-2)
    assert found.std < 0.3
