"""Fits under any likelihood: rows counted, joined, permuted, taken together, added later, and read by every engine."""

from typing import Any

import numpy as np
import pytest

from vff import Categorical, GPRegressor, Matern32, Matern52
from vff.likelihoods import Bernoulli, Binomial, NegativeBinomial, Poisson, StudentT

N = 120
RNG = np.random.default_rng(8)
X = np.stack([RNG.uniform(0.0, 6.0, N), RNG.uniform(-1.0, 1.0, N)], axis=1)
WHOLE = np.stack([RNG.integers(0, 5, N), RNG.integers(0, 3, N)], axis=1).astype(float)
NEW = np.stack([np.linspace(0.3, 3.9, 9), np.linspace(0.1, 0.9, 9)], axis=1)


def _targets(X: np.ndarray, seed: int = 2) -> dict[str, tuple[Any, np.ndarray]]:
    rng, wave = np.random.default_rng(seed), np.sin(1.5 * X[:, 0]) + X[:, 1]
    return {
        "bernoulli": (Bernoulli(), (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * wave))) * 1.0),
        "poisson": (Poisson(), rng.poisson(np.exp(0.5 + wave)) * 1.0),
        "student": (StudentT(0.4, 4.0), 2.0 + wave + 0.4 * rng.standard_t(4.0, len(X))),
    }


TARGETS = _targets(X)
KERNEL = Matern32(0, variance=1.5, lengthscale=1.2) + Matern52(1, variance=0.7, lengthscale=0.9)
FREE = Matern32(0) + Matern52(1)
KEPT: dict[str, Any] = {"optimizer": None, "frequencies": 5}


def _assert_same(one: GPRegressor, other: GPRegressor, tolerance: float = 1e-6, X: np.ndarray = NEW) -> None:
    if np.isfinite(one.elbo_):
        assert one.elbo_ == pytest.approx(other.elbo_, abs=tolerance * max(1.0, abs(other.elbo_)))
    for mine, theirs in zip(one.predict_f(X), other.predict_f(X), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", TARGETS)
def test_a_weight_is_a_number_of_rows(name):
    likelihood, y = TARGETS[name]
    times = np.random.default_rng(0).integers(0, 4, N)
    times[[X[:, 0].argmin(), X[:, 0].argmax(), X[:, 1].argmin(), X[:, 1].argmax()]] = 1
    weighted = GPRegressor(KERNEL, likelihood=likelihood, **KEPT).fit(X, y, times)
    repeated = GPRegressor(KERNEL, likelihood=likelihood, **KEPT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    left_out = GPRegressor(KERNEL, likelihood=likelihood, **KEPT).fit(X[times > 0], y[times > 0], times[times > 0])
    _assert_same(weighted, left_out, 1e-9)
    if name != "student":
        _assert_same(weighted, repeated, 1e-6)


def test_a_weight_is_a_number_of_rows_in_units_of_y_too():
    """The scale of y that learning sees must not matter when hyperparameters are kept."""
    likelihood, y = TARGETS["student"]
    times = np.random.default_rng(0).integers(1, 4, N)
    weighted = GPRegressor(KERNEL, likelihood=likelihood, **KEPT).fit(X, y, times)
    repeated = GPRegressor(KERNEL, likelihood=likelihood, **KEPT).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    _assert_same(weighted, repeated, 1e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_the_order_of_rows_does_not_matter(name):
    likelihood, y = TARGETS[name]
    order = np.random.default_rng(1).permutation(N)
    kept = [GPRegressor(KERNEL, likelihood=likelihood, **KEPT).fit(X[rows], y[rows]) for rows in (slice(None), order)]
    _assert_same(*kept, 1e-7)
    learnt = [
        GPRegressor(FREE, likelihood=likelihood, frequencies=5).fit(X[rows], y[rows]) for rows in (slice(None), order)
    ]
    _assert_same(*learnt, 1e-4)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kernel", [KERNEL, Matern32(0, variance=1.5, lengthscale=1.2) * Matern32(1, lengthscale=0.9)])
def test_engines_agree(name, kernel):
    likelihood, y = TARGETS[name]
    how: dict[str, Any] = {"optimizer": None, "frequencies": 3, "likelihood": likelihood}
    dense = GPRegressor(kernel, engine="dense", **how).fit(X, y)
    for engine in ("nufft", "table", "auto"):
        _assert_same(GPRegressor(kernel, engine=engine, **how).fit(X, y), dense, 1e-6)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
@pytest.mark.parametrize("learns", [False, True])
def test_equal_rows_are_taken_together(name, learns):
    likelihood, y = _targets(WHOLE)[name]
    together, apart = (
        GPRegressor(
            FREE if learns else KERNEL,
            likelihood=likelihood,
            frequencies=3,
            optimizer="lbfgs" if learns else None,
        ).fit(table, y)
        # a row of its own 1e-9 away, so that no column has few values
        for table in (WHOLE, WHOLE + np.where(np.isin(WHOLE, [0.0]), 1e-9 * RNG.random(WHOLE.shape), 0.0))
    )
    assert together.fit_.n < N == apart.fit_.n
    _assert_same(together, apart, 1e-4 if learns else 1e-6, WHOLE + 0.0)


def test_engines_agree_on_what_is_learnt():
    likelihood, y = _targets(WHOLE)["poisson"]
    how: dict[str, Any] = {"likelihood": likelihood, "frequencies": 3}
    dense, table, auto = (
        GPRegressor(FREE, engine=engine, **how).fit(WHOLE, y) for engine in ("dense", "table", "auto")
    )
    _assert_same(table, dense, 1e-4, WHOLE)
    _assert_same(auto, dense, 1e-4, WHOLE)


def test_a_constant_exposure_shifts_the_constant():
    _, y = TARGETS["poisson"]
    t = 3.7
    table = np.column_stack([X, np.full(N, t)])
    plain = GPRegressor(KERNEL, likelihood="poisson", **KEPT).fit(X, y)
    exposed = GPRegressor(KERNEL, likelihood=Poisson(exposure=2), **KEPT).fit(table, y)
    assert exposed.elbo_ == pytest.approx(plain.elbo_, abs=1e-6)
    mean, variance = exposed.predict_f(table)
    np.testing.assert_allclose(mean + np.log(t), plain.predict_f(X)[0], atol=1e-6)
    np.testing.assert_allclose(variance, plain.predict_f(X)[1], atol=1e-6)
    np.testing.assert_allclose(exposed.predict(table), plain.predict(X), rtol=1e-6)
    longer = np.column_stack([X, np.full(N, 10.0 * t)])
    np.testing.assert_allclose(exposed.predict(longer), 10.0 * plain.predict(X), rtol=1e-6)
    assert np.all(exposed.predict_quantiles(longer) >= exposed.predict_quantiles(table))


@pytest.mark.parametrize("likelihood", [Poisson(1), NegativeBinomial(0.3, 1)])
def test_exposure_of_rows_is_time_at_risk(likelihood):
    rng = np.random.default_rng(4)
    x, t = rng.uniform(0.0, 6.0, 250), 10.0 ** rng.uniform(-1.0, 1.0, 250)
    f = 1.0 + np.sin(x)
    table = np.column_stack([x, t])
    model = GPRegressor(Matern32(0), likelihood=likelihood, frequencies=8).fit(table, likelihood.sample(f, t, rng))
    mean, variance = model.predict_f(table)
    assert np.mean(np.abs(mean - f) < 1.645 * np.sqrt(variance)) > 0.7
    once = model.predict(np.column_stack([x, np.ones(250)]))
    np.testing.assert_allclose(model.predict(table), t * once, rtol=1e-10)


def test_trials_are_labels_repeated():
    rng = np.random.default_rng(5)
    trials = rng.integers(1, 6, N).astype(float)
    successes = rng.binomial(trials.astype(int), 1.0 / (1.0 + np.exp(-np.sin(X[:, 0])))).astype(float)
    table = np.column_stack([X, trials])
    model = GPRegressor(KERNEL, likelihood=Binomial(2), **KEPT).fit(table, successes)
    rows = np.concatenate([X, X])
    labels, w = np.repeat([1.0, 0.0], N), np.concatenate([successes, trials - successes])
    other = GPRegressor(KERNEL, likelihood="bernoulli", **KEPT).fit(rows, labels, w)
    np.testing.assert_allclose(model.predict_f(table), other.predict_f(X), atol=2e-5)
    np.testing.assert_allclose(model.predict(table), trials * other.predict(X), rtol=2e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_the_first_rows_of_many_are_a_fit(name):
    likelihood, y = TARGETS[name]
    how: dict[str, Any] = {"likelihood": likelihood, "domain": {0: (-0.1, 6.1), 1: (-1.1, 1.1)}, "frequencies": 5}
    first, fitted = GPRegressor(FREE, **how).partial_fit(X, y), GPRegressor(FREE, **how).fit(X, y)
    _assert_same(first, fitted, 1e-6)


@pytest.mark.parametrize("name", [*TARGETS, "learnt student"])
def test_rows_in_chunks_are_close_to_all_rows(name):
    likelihood, y = TARGETS[name.removeprefix("learnt ")]
    likelihood = StudentT() if name.startswith("learnt") else likelihood
    domain = {0: (-0.1, 6.1), 1: (-1.1, 1.1)}
    how: dict[str, Any] = {"likelihood": likelihood, "domain": domain, "frequencies": 5}
    whole, chunks = GPRegressor(FREE, **how).fit(X, y), GPRegressor(FREE, **how)
    for rows in np.array_split(np.arange(N), 4):
        chunks.partial_fit(X[rows], y[rows])
    assert np.isnan(chunks.elbo_)
    (mean, variance), (other, spread) = whole.predict_f(X), chunks.predict_f(X)
    assert np.abs(mean - other).max() < 0.7 * np.sqrt(variance).max()
    assert np.sqrt(np.mean((mean - other) ** 2 / variance)) < 0.4
    assert np.all(np.abs(np.log(spread / variance)) < np.log(2.0))


def test_levels_may_come_later():
    import pandas as pd

    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"u": rng.uniform(0.0, 5.0, 120), "g": np.repeat(["a", "b", "c"], 40)})
    y = rng.poisson(np.exp(np.sin(frame["u"]) + (frame["g"] == "c"))) * 1.0
    how: dict[str, Any] = {"likelihood": "poisson", "domain": {"u": (0.0, 5.0)}, "frequencies": 4}
    kernel = Matern32("u") + Categorical("g")
    model = GPRegressor(kernel, **how).partial_fit(frame[:80], y[:80]).partial_fit(frame[80:], y[80:])
    whole = GPRegressor(kernel, **how).fit(frame, y)
    (mean, variance), (other, _) = whole.predict_f(frame), model.predict_f(frame)
    assert np.sqrt(np.mean((mean - other) ** 2 / variance)) < 0.6
