"""GPRegressor with every likelihood: recovers what was simulated, its answers agree, and no problem is too hard."""

import os
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

from vff import GPRegressor, Matern12, Matern32, Matern52
from vff import likelihoods as lk

N = 256  # one block of compiled code


class Case(NamedTuple):
    truth: Any
    asked: Any
    learnt: Any = ()
    """By parameter, between which values it should be: pairs of a dictionary."""


CASES = {
    "gaussian": Case(lk.Gaussian(0.25), "gaussian", {"variance": (0.18, 0.34)}),
    "student-t": Case(lk.StudentT(0.4, 4.0), "student-t", {"scale": (0.3, 0.5), "df": (2.1, 12.0)}),
    "gamma": Case(lk.Gamma(3.0), "gamma", {"shape": (2.3, 4.0)}),
    "beta": Case(lk.Beta(10.0), "beta", {"precision": (7.5, 13.5)}),
    "poisson": Case(lk.Poisson(), "poisson"),
    "negative-binomial": Case(lk.NegativeBinomial(0.4), "negative-binomial", {"dispersion": (0.15, 0.8)}),
    "bernoulli": Case(lk.Bernoulli(), "bernoulli"),
    "probit": Case(lk.Bernoulli("probit"), "probit"),
    "ordinal": Case(lk.Ordinal((-1.0, 0.2, 1.5)), "ordinal"),
}


def _simulated(name: str, seed: int = 1, rows: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, the function there, and y."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 6.0, rows)
    f = 1.3 * np.sin(1.7 * x)
    return x[:, None], f, CASES[name].truth.sample(f, np.ones(rows), rng)


@pytest.mark.parametrize("name", CASES)
def test_recovers_what_was_simulated(name):
    X, f, y = _simulated(name)
    model = GPRegressor(Matern52(0), likelihood=CASES[name].asked, frequencies=8).fit(X, y)
    mean, variance = model.predict_f(X)
    if name == "ordinal":  # its cut points say where zero is
        shift = np.mean(model.likelihood_.values["cuts"]) - np.mean(CASES[name].truth.cuts)
        mean = mean - shift
        assert np.abs(np.diff(model.likelihood_.values["cuts"]) - [1.2, 1.3]).max() < 0.5
    assert np.corrcoef(mean, f)[0, 1] > 0.88
    covered = np.mean(np.abs(mean - f) < 1.645 * np.sqrt(variance))
    assert 0.75 < covered <= 1.0
    for parameter, (low, high) in dict(CASES[name].learnt).items():
        assert low < model.likelihood_.values[parameter] < high
    assert np.isnan(model.noise_variance_) == (name != "gaussian")
    _answers_agree(model, X)
    _fresh_rows_are_covered(model, name)


def _answers_agree(model: GPRegressor, X: np.ndarray) -> None:
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-9, atol=1e-9 * std.max())
    draws = model.sample_y(X[:40], 3000, random_state=1)
    error = np.median(np.abs(draws.mean(axis=1) - mean[:40]) / (std[:40] / np.sqrt(3000.0)))
    assert error < 2.0
    quantiles = model.predict_quantiles(X[:40], [0.1, 0.5, 0.9])
    assert np.all(np.diff(quantiles, axis=1) >= 0.0)
    reached = np.mean(draws[:, :, None] <= quantiles[:, None, :], axis=1)
    assert np.all(reached > np.array([0.1, 0.5, 0.9]) - 0.04)
    if not model.likelihood_.discrete:
        assert np.all(reached < np.array([0.1, 0.5, 0.9]) + 0.04)
    else:  # probabilities of all numbers sum to one
        every = np.arange(0.0, 60.0)
        top = model.likelihood_.support[1]
        every = every[every <= top]
        table = np.repeat(X[:3], every.size, axis=0)
        density = model.log_predictive_density(table, np.tile(every, 3)).reshape(3, -1)
        np.testing.assert_allclose(np.exp(density).sum(axis=1), 1.0, atol=0.02)


def _fresh_rows_are_covered(model: GPRegressor, name: str) -> None:
    X, f, y = _simulated(name, seed=9)
    inside = (X[:, 0] > model.domain_[0][0]) & (X[:, 0] < model.domain_[0][1])
    X, f, y = X[inside], f[inside], y[inside]
    low, high = model.predict_quantiles(X, [0.05, 0.95]).T
    assert np.mean((y >= low) & (y <= high)) > 0.84
    if not model.likelihood_.discrete:
        assert np.mean((y >= low) & (y <= high)) < 0.97
    density = model.log_predictive_density(X, y)
    one = np.ones(y.size)
    best = lk.log_predictive(CASES[name].truth, CASES[name].truth.psi, y, one, f, 0.0 * one)
    assert -0.03 < best.mean() - density.mean() < 0.12


def test_units_of_y_do_not_matter_where_f_has_them():
    X, _, y = _simulated("student-t")
    model, other = (
        GPRegressor(Matern52(0), likelihood="student-t", frequencies=8).fit(X, target) for target in (y, 1e4 + 1e3 * y)
    )
    assert other.elbo_ == pytest.approx(model.elbo_ - N * np.log(1e3), abs=0.02)
    assert other.likelihood_.scale == pytest.approx(1e3 * model.likelihood_.scale, rel=0.02)
    assert other.kernel_.variance == pytest.approx(1e6 * model.kernel_.variance, rel=0.05)
    np.testing.assert_allclose(other.predict(X), 1e4 + 1e3 * model.predict(X), rtol=1e-3)


def test_a_function_of_your_own():
    """Written by hand, a Poisson is a Poisson."""
    X, _, y = _simulated("poisson")

    def log_density(y, f):
        import jax.numpy as jnp
        from jax.scipy.special import gammaln

        return y * f - jnp.exp(f) - gammaln(y + 1.0)

    kernel = Matern52(0, variance=1.0, lengthscale=1.5)
    how: dict[str, Any] = {"frequencies": 8, "optimizer": None, "normalize_y": False}
    model = GPRegressor(kernel, likelihood=lk.Custom(log_density), **how).fit(X, y)
    poisson = GPRegressor(kernel, likelihood="poisson", **how).fit(X, y)
    assert model.elbo_ == pytest.approx(poisson.elbo_, abs=1e-5)
    np.testing.assert_allclose(model.predict_f(X), poisson.predict_f(X), atol=1e-4)


HARD: dict[str, Any] = {
    **{name: case.asked for name, case in CASES.items() if name != "gaussian"},
    "held gaussian": lk.Gaussian(0.3),
    "binomial": lk.Binomial(1),
    "cauchy": lk.StudentT(0.3, 1.0),
    "exposed": lk.Poisson(1),
}
SECONDS = 120.0 if os.environ.get("VFF_THOROUGH") else 1.5
KINDS = ("plain", "separable", "constant", "extreme")


def _hard_target(name: str, kind: str, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    N, above = f.size, f > np.median(f)
    first = np.arange(N) == 0
    if name in ("bernoulli", "probit", "binomial"):
        top = extra if name == "binomial" else np.ones(N)
        p = 1.0 / (1.0 + np.exp(-f))
        made = (rng.binomial(top.astype(int), p), above * top, top, np.where(first, 0.0, top))
    elif name in ("poisson", "negative-binomial", "exposed"):
        same = np.full(N, rng.choice([0.0, 1.0, 7.0, 1e6]))
        made = (rng.poisson(np.exp(f)), 10.0 * above, same, rng.choice([0.0, 1e6], N))
    elif name == "gamma":
        same = np.full(N, rng.choice([1e-8, 1.0, 1e8]))
        made = (np.exp(f) * rng.gamma(2.0, 0.5, N), np.where(above, 1e3, 1e-3), same, 10.0 ** rng.uniform(-9, 9, N))
    elif name == "beta":
        same = np.full(N, rng.choice([1e-6, 0.5, 1.0 - 1e-6]))
        plain = np.clip(1.0 / (1.0 + np.exp(-f - 0.3 * rng.normal(size=N))), 1e-9, 1.0 - 1e-9)
        made = (plain, np.where(above, 0.999, 0.001), same, rng.choice([1e-9, 1.0 - 1e-9], N))
    elif name == "ordinal":
        cuts = [-1.0, 0.0, 1.0]
        same = np.full(N, rng.choice([0.0, 1.0, 2.0]))
        made = (np.digitize(f + rng.normal(size=N), cuts), np.digitize(f, cuts), same, np.where(first, 4.0, 0.0))
    else:
        same = np.full(N, rng.choice([0.0, 3.0, 1e8]))
        made = (f + 0.3 * rng.standard_t(3.0, N), f, same, f + 1e3 * (rng.random(N) < 0.1))
    return np.asarray(made[KINDS.index(kind)], float)


def _hard_problem(name: str, seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None, Any]:
    """Kernel, rows, y, weights, frequencies."""
    rng = np.random.default_rng([seed, 77])
    rows = int(rng.choice([rng.integers(2, 6), rng.integers(6, 30), rng.integers(30, 120)]))
    x = {
        0: rng.uniform(-1.0, 1.0, rows),
        1: rng.choice([-1.0, 0.0, 0.3], rows),
        2: rng.integers(-3, 12, rows).astype(float),
        3: (rng.random(rows) < 0.5) + 1e-4 * rng.normal(size=rows),
    }[int(rng.integers(4))]
    extra = rng.integers(1, 12, rows).astype(float) if name != "exposed" else 10.0 ** rng.uniform(-3.0, 3.0, rows)
    y = _hard_target(name, str(rng.choice(KINDS)), 3.0 * np.sin(3.0 * x) + rng.normal(), extra, rng)
    offset, scale = rng.choice([0.0, 1e3, -1e6]), rng.choice([1.0, 1e-3, 1e5])
    w = [None, None, rng.integers(1, 5, rows).astype(float), 10.0 ** rng.uniform(-3.0, 3.0, rows)][int(rng.integers(4))]
    table = np.stack([scale * (x + offset), extra, rng.uniform(0.0, 1.0, rows)], axis=1)
    kernel = [Matern12(0), Matern32(0), Matern52(0), Matern32(0) + Matern32(2)][int(rng.integers(4))]
    return kernel, table, y, w, ["auto", 5][int(rng.integers(2))]


def _sound(model: GPRegressor, X: np.ndarray, y: np.ndarray, certain: bool) -> list[str]:
    """What is not a number."""
    mean, std = model.predict(X, return_std=True)
    answers = {
        "elbo": model.elbo_,
        "mean": mean,
        "std": std if certain else 0.0,
        "f": model.predict_f(X),
        "quantiles": model.predict_quantiles(X),
        "density": model.log_predictive_density(X, y),
        "draws": model.sample_y(X, 2, random_state=0),
    }
    wrong = [name for name, values in answers.items() if not np.all(np.isfinite(values))]
    if np.any(np.diff(model.fit_.bounds) < -1e-9 * abs(model.elbo_)):
        wrong.append("the bound fell")
    if model.elbo_ < -1e13:
        wrong.append(f"bound {model.elbo_:.3g}")
    return wrong


@pytest.mark.parametrize("name", HARD)
def test_hard_problems_end_well(name):
    """Either with numbers or with a sentence of our own."""
    wrong, budget = [], time.perf_counter() + SECONDS
    for seed in range(40):
        if time.perf_counter() > budget:
            break
        kernel, X, y, w, frequencies = _hard_problem(name, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                model = GPRegressor(kernel, likelihood=HARD[name], frequencies=frequencies).fit(X, y, w)
                wrong += [(seed, what) for what in _sound(model, X, y, name != "cauchy")]
            except (ValueError, RuntimeWarning, ArithmeticError, np.linalg.LinAlgError) as error:
                wrong.append((seed, repr(error)))
    assert not wrong


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        ("poisson", [0.0, 1.5, 2.0], "whole numbers from zero"),
        ("poisson", [0.0, -1.0, 2.0], "whole numbers from zero"),
        ("gamma", [1.0, 0.0, 2.0], "numbers above zero"),
        ("beta", [0.2, 1.0, 0.3], "strictly between 0 and 1"),
        ("bernoulli", [0.0, 2.0, 1.0], "0"),
        ("ordinal", [0.0, 0.5, 1.0], "whole"),
        ("binomial", [0.0, 1.0, 1.0], "column of trials"),
        ("normal", [0.0, 1.0, 1.0], "likelihood must be one of"),
        (lk.Poisson("t"), [0.0, 1.0, 1.0], "t"),
        (lk.Poisson(1), [0.0, 1.0, 1.0], "exposure above zero"),
        (lk.Binomial(1), [0.0, 1.0, 1.0], "trials above zero"),
    ],
)
def test_refusals(likelihood, y, message):
    X = np.array([[0.0, 1.0], [1.0, -2.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match=message):
        GPRegressor(Matern32(0), likelihood=likelihood).fit(X, y)


def test_merge_is_refused_with_a_sentence():
    X, _, y = _simulated("poisson")
    model = GPRegressor(likelihood="poisson", frequencies=4).fit(X, y)
    with pytest.raises(ValueError, match="another likelihood"):
        model.merge(model)
    with pytest.raises(ValueError, match="likelihood is now"):
        model.set_params(likelihood="gaussian").partial_fit(X, y)
