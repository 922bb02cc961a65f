"""Likelihoods that are logistic in f, in NumPy, against what is compiled from their densities."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from vff import likelihoods as lk
from vff.likelihoods import expectations

CASES: dict[str, tuple[lk.AbstractLikelihood, np.ndarray]] = {
    "labels": (lk.Bernoulli(), np.zeros(0)),
    "successes": (lk.Binomial(trials="n"), np.zeros(0)),
    "counts": (lk.NegativeBinomial(), np.array([np.log(0.4)])),
    "all but Poisson": (lk.NegativeBinomial(exposure="hours"), np.array([-15.0])),
    "widely spread": (lk.NegativeBinomial(), np.array([4.0])),
}


def rows(name: str, n: int = 3000) -> tuple[np.ndarray, ...]:
    """y, extra, weights, means and variances, from next to nothing to very wide."""
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(0.0, 2.5, n), np.exp(rng.normal(-4.0, 2.5, n))
    variance[:10] = 0.0
    extra = rng.integers(1, 30, n).astype(float) if name in ("successes", "all but Poisson") else np.ones(n)
    if name == "labels":
        y = (rng.uniform(size=n) < 0.5).astype(float)
    elif name == "successes":
        y = rng.binomial(extra.astype(int), 0.4).astype(float)
    else:
        y = rng.poisson(extra * np.exp(mean)).astype(float)
    return y, extra, rng.uniform(0.2, 2.0, n), mean, variance


def compiled(monkeypatch: pytest.MonkeyPatch, call: Any) -> Any:
    """What the density in JAX says of the same."""
    with monkeypatch.context() as own:
        own.setattr(expectations, "_logistic", lambda *rows: None)
        return call()


@pytest.mark.parametrize("name", CASES)
def test_expectations_are_those_of_the_density(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (likelihood, psi), (y, extra, _, mean, variance) = CASES[name], rows(name)
    call = lambda: likelihood.expected(psi, y, extra, mean, variance)  # noqa: E731
    for found, wanted in zip(call(), compiled(monkeypatch, call), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize("name", CASES)
def test_slopes_in_the_parameter_are_those_of_the_density(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (likelihood, psi), own = CASES[name], rows(name)
    call = lambda: expectations.parameter_derivatives(likelihood, psi, *own)  # noqa: E731
    largest = abs(call()[0])
    for found, wanted in zip(call(), compiled(monkeypatch, call), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11 * largest)


@pytest.mark.parametrize("spread", [0.05, 2.0, 50.0])
@pytest.mark.parametrize("name", CASES)
def test_modes_are_where_the_slope_is_that_of_the_prior(name: str, spread: float) -> None:
    (likelihood, psi), (y, extra, _, mean, _) = CASES[name], rows(name)
    f, slope, curvature = expectations.row_modes(likelihood, psi, y, extra, mean, spread)
    scale = np.sqrt(1.0 / spread**2 - curvature)
    np.testing.assert_allclose((slope - (f - mean) / spread**2) / scale, 0.0, atol=1e-9 * np.sqrt(1.0 + y.max()))
    there = likelihood.expected(psi, y, extra, f, np.zeros(y.size))
    np.testing.assert_allclose(slope, there.slope, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(curvature, there.curvature, rtol=1e-12, atol=1e-12)


def test_counts_too_large_for_a_table_are_compiled() -> None:
    """A count of ten million, next to its own expectation."""
    likelihood, y, one = lk.NegativeBinomial(0.1), np.array([1e7, 3.0]), np.ones(2)
    assert likelihood.logistic(likelihood.psi, y, one) is None
    assert np.isfinite(likelihood.expected(likelihood.psi, y, one, np.log(y), 0.01 * one).value).all()


def test_a_density_of_ones_own_is_taken() -> None:
    @dataclass(frozen=True)
    class Twice(lk.Bernoulli):
        def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
            return super().log_density(y, 2.0 * f, extra, psi)

    one = np.ones(3)
    own = Twice().expected(np.zeros(0), one, one, one, one * 0.25)
    plain = lk.Bernoulli().expected(np.zeros(0), one, one, 2.0 * one, one)
    np.testing.assert_allclose(own.value, plain.value, rtol=1e-9)


@pytest.mark.parametrize("likelihood", ["logit", "negative-binomial"])
def test_a_fit_imports_no_compiler(likelihood: str) -> None:
    kind = "GPClassifier" if likelihood == "logit" else "GPRegressor"
    program = (
        "import sys, numpy as np, vff\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.uniform(size=(200, 1))\n"
        "y = (rng.uniform(size=200) < X[:, 0]).astype(float)\n"
        f"vff.{kind}(likelihood={likelihood!r}).fit(X, y)\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
