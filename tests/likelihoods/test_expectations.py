"""Expectations against mpmath, finite differences, and each other."""

import itertools
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
from likelihood_makers import DISTINCT, MAKERS, NAMES, rows
from scipy import integrate, stats

from vff import likelihoods as lk
from vff.likelihoods import expectations

PRECISE = {
    "logit": lambda f: -mpmath.log(1 + mpmath.exp(-f)),
    "probit": lambda f: mpmath.log(mpmath.ncdf(f)),
    "squashed": lambda f: mpmath.log(mpmath.mpf("0.001") + mpmath.mpf("0.998") * mpmath.ncdf(f)),
}


def precise(function, mean: float, sd: float) -> float:
    """E function(f), f ~ N(mean, sd²)."""
    inside = lambda z: function(mean + sd * z) * mpmath.npdf(z)  # noqa: E731
    return float(mpmath.quad(inside, mpmath.linspace(-10, 10, 21)))


@pytest.mark.parametrize("name", PRECISE)
@pytest.mark.parametrize("sd", [0.05, 0.25, 0.6, 1.0, 2.0, 5.0])
def test_quadrature_is_that_of_mpmath(name: str, sd: float) -> None:
    if name == "squashed" and sd > 1.5:
        pytest.skip("singularities at a third of the distance: documented as less accurate")
    likelihood, means = MAKERS[name].likelihood, np.array([-3.0, 0.0, 2.0])
    one = np.ones(3)
    answer = lk.expected(likelihood, likelihood.psi, one, one, means, one * sd**2)
    reference = [precise(PRECISE[name], mean, sd) for mean in means]
    np.testing.assert_allclose(answer.value, reference, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variance", [0.02, 0.6])
def test_slope_and_curvature_are_derivatives(name: str, variance: float) -> None:
    likelihood, (y, f, extra) = MAKERS[name].likelihood, rows(name)
    v, step = np.full_like(f, variance), 1e-4 * np.sqrt(variance)

    def at(mean: np.ndarray, variance: np.ndarray) -> lk.Expected:
        return lk.expected(likelihood, likelihood.psi, y, extra, mean, variance)

    here, up, down = at(f, v), at(f + step, v), at(f - step, v)
    np.testing.assert_allclose(here.slope, (up.value - down.value) / (2 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(here.curvature, (up.slope - down.slope) / (2 * step), rtol=1e-5, atol=1e-6)
    wide, narrow = at(f, v * 1.001), at(f, v * 0.999)
    np.testing.assert_allclose(here.curvature, (wide.value - narrow.value) / (0.001 * v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma"])
def test_closed_forms_are_what_quadrature_finds(name: str) -> None:
    from vff.likelihoods import compiled
    from vff.likelihoods.rules import padded

    likelihood, (y, f, extra) = MAKERS[name].likelihood, rows(name)
    assert likelihood.closed_form
    arguments = (likelihood.psi, y, extra, f, np.full_like(f, 0.5))
    numeric = expectations._in_float64(lambda: compiled.quadrature(likelihood.form)(*arguments, *padded(128)))
    for exact, summed in zip(lk.expected(likelihood, *arguments), numeric, strict=True):
        np.testing.assert_allclose(exact, summed, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["gaussian", "student", "gamma", "beta", "negative", "ordinal", "ordinal probit"])
def test_parameter_derivatives(name: str) -> None:
    likelihood, (y, f, extra) = MAKERS[name].likelihood, rows(name)
    w, v, psi, step = np.linspace(0, 2, len(y)), np.full_like(f, 0.3), likelihood.psi, 1e-4

    def at(psi: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return lk.parameter_derivatives(likelihood, psi, y, extra, w, f, v)

    value, gradient, hessian = at(psi)
    assert value == pytest.approx(w @ lk.expected(likelihood, psi, y, extra, f, v).value, rel=1e-12)
    for k in range(len(psi)):
        move = step * np.eye(len(psi))[k]
        up, down = at(psi + move), at(psi - move)
        assert gradient[k] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(hessian[k], (up[1] - down[1]) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", DISTINCT)
@pytest.mark.parametrize("variance", [1e-6, 0.5, 9.0])
def test_log_predictive_is_the_integral(name: str, variance: float) -> None:
    likelihood, (y, f, extra) = MAKERS[name].likelihood, rows(name, 3)
    sd = np.sqrt(variance)
    answer = lk.log_predictive(likelihood, likelihood.psi, y, extra, f, np.full_like(f, variance))
    for n in range(len(y)):
        point = [part[n : n + 1] for part in (y, extra)]

        def inside(z: float, n: int = n, point: list[np.ndarray] = point) -> float:
            with np.errstate(divide="ignore"):  # SciPy's probabilities of zero
                value = MAKERS[name].logpdf(point[0], f[n] + sd * z, point[1])[0]
            return float(np.exp(value - z * z / 2)) / np.sqrt(2 * np.pi)

        breaks = np.linspace(-8, 8, 9)
        total = sum(integrate.quad(inside, *pair, epsrel=1e-11)[0] for pair in itertools.pairwise(breaks))
        assert answer[n] == pytest.approx(np.log(total), abs=1e-8)


def test_log_predictive_of_narrow_factors() -> None:
    """A count of a million against a standard deviation of one is nearly a point on the log-normal density."""
    y, one = np.array([1e6, 3e6, 0.0]), np.ones(3)
    answer = lk.log_predictive(lk.Poisson(), np.empty(0), y, one, np.full(3, np.log(1e6)), one)
    np.testing.assert_allclose(answer[:2], stats.lognorm.logpdf(y[:2], 1.0, scale=1e6), atol=2e-6)
    assert np.isfinite(answer[2])
    gaussian = lk.Gaussian(1e-10)
    exact = stats.norm.logpdf(y, 2.0, np.sqrt(4 + 1e-10))
    np.testing.assert_allclose(lk.log_predictive(gaussian, gaussian.psi, y, one, 2 * one, 4 * one), exact, rtol=1e-9)


@pytest.mark.parametrize("y", [0.5, 3.0, 8.0, 30.0])
def test_log_predictive_with_two_maxima(y: float) -> None:
    """An outlier: the product of a narrow Student density and a Gaussian prior has a peak at either."""
    likelihood, one = lk.StudentT(0.05, 3.0), np.ones(1)
    answer = lk.log_predictive(likelihood, likelihood.psi, y * one, one, 0 * one, one)
    inside = lambda f: stats.t.pdf(y, 3.0, f, 0.05) * stats.norm.pdf(f)  # noqa: E731
    points = np.unique(np.concatenate([np.linspace(-12, 40, 105), y + 0.05 * np.linspace(-9, 9, 37)]))
    total = sum(integrate.quad(inside, *pair, epsrel=1e-11)[0] for pair in itertools.pairwise(points))
    assert answer[0] == pytest.approx(np.log(total), abs=1e-7)


@pytest.mark.parametrize("name", DISTINCT)
def test_row_modes_are_maxima(name: str) -> None:
    likelihood, (y, _, extra) = MAKERS[name].likelihood, rows(name)
    for centre, spread in ((0.0, 1.0), (-4.0, 3.0)):
        mode, slope, curvature = lk.row_modes(likelihood, likelihood.psi, y, extra, centre, spread)
        np.testing.assert_allclose(slope, (mode - centre) / spread**2, atol=1e-6)
        there = lk.expected(likelihood, likelihood.psi, y, extra, mode, np.zeros_like(mode))
        np.testing.assert_allclose(slope, there.slope, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(curvature, there.curvature, rtol=1e-9, atol=1e-9)


def test_row_modes_from_far_away() -> None:
    y, one = np.array([0.0, 1.0, 1e6, 1e15]), np.ones(4)
    mode, _, curvature = lk.row_modes(lk.Poisson(), np.empty(0), y, one, 0.0, 100.0)
    np.testing.assert_allclose(np.exp(mode), y - mode / 1e4, rtol=1e-6)
    np.testing.assert_allclose(curvature, -np.exp(mode))


@pytest.mark.parametrize("name", NAMES)
def test_best_constant_is_a_maximum(name: str) -> None:
    likelihood, (y, _, extra) = MAKERS[name].likelihood, rows(name)
    w = np.linspace(0.5, 1.5, len(y))

    def total(f: float) -> float:
        return float(w @ MAKERS[name].logpdf(y, np.full_like(y, f), extra))

    best = lk.best_constant(likelihood, likelihood.psi, y, extra, w)
    assert total(best) >= max(total(best + step) for step in (-1, -0.1, -1e-3, 1e-3, 0.1, 1)) - 1e-9


def test_best_constant_of_one_class_is_bounded() -> None:
    one = np.ones(1000)
    for likelihood, y in ((lk.Bernoulli(), one), (lk.Bernoulli("probit"), 0 * one), (lk.Poisson(), 0 * one)):
        best = lk.best_constant(likelihood, likelihood.psi, y, one, one)
        assert 3 < abs(best) < 16
    y = np.concatenate([np.random.default_rng(0).normal(size=999), [1e9]])
    student = lk.StudentT(1.0, 3.0)
    assert abs(lk.best_constant(student, student.psi, y, one, one) - np.median(y)) < 0.2


@pytest.mark.parametrize("count", [0, 1, 255, 257, 2**15 + 3])
def test_any_number_of_rows(count: int) -> None:
    rng = np.random.default_rng(0)
    y, f, one = rng.integers(0, 2, count).astype(float), rng.normal(size=count), np.ones(count)
    likelihood = lk.Bernoulli()
    answer = lk.expected(likelihood, likelihood.psi, y, one, f, 0.04 * one)
    assert answer.value.shape == (count,)
    value, gradient, _ = lk.parameter_derivatives(likelihood, likelihood.psi, y, one, one, f, 0.04 * one)
    assert value == pytest.approx(answer.value.sum(), rel=1e-12)
    assert gradient.shape == (0,)
    if count:
        last = lk.expected(likelihood, likelihood.psi, y[-1:], one[-1:], f[-1:], 0.04 * one[-1:])
        np.testing.assert_allclose([part[-1] for part in answer], [part[0] for part in last], rtol=1e-12)


def test_other_values_compile_nothing() -> None:
    from vff.likelihoods import compiled

    y, f, extra = rows("negative")
    for dispersion in (0.1, 0.2, 3.0):
        likelihood = lk.NegativeBinomial(dispersion, "e")
        lk.expected(likelihood, likelihood.psi, y, extra, f, np.full_like(f, 0.01))
    assert compiled.quadrature(likelihood.form)._cache_size() == 1


def test_float64_without_touching_global_flags() -> None:
    program = """
import sys
from vff import likelihoods as lk
import numpy as np
assert "jax" not in sys.modules
one = np.ones(300)
answer = lk.expected(lk.Bernoulli(), np.empty(0), one, one, one, 1e-30 * one)
import jax
assert not jax.config.jax_enable_x64
assert jax.numpy.ones(2).dtype == "float32"
assert all(part.dtype == np.float64 for part in answer)
assert abs(answer.value[0] + np.log1p(np.exp(-1))) < 1e-15
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2] / "src")
