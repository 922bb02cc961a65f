"""Log-densities against SciPy, and the NumPy side against the densities."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from likelihood_makers import MAKERS, NAMES, rows
from scipy import integrate

from vff import likelihoods as lk


def local(likelihood: lk.AbstractLikelihood, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> lk.Expected:
    """log p and its derivatives: the expectations without variance."""
    return lk.expected(likelihood, likelihood.psi, y, extra, f, np.zeros_like(f))


@pytest.mark.parametrize("name", NAMES)
def test_log_density_is_that_of_scipy(name: str) -> None:
    y, f, extra = rows(name)
    value = local(MAKERS[name].likelihood, y, f, extra).value
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, MAKERS[name].logpdf(y, f, extra), rtol=2e-12, atol=2e-13)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(f=st.floats(-600, 600), variance=st.sampled_from([0.0, 1e-20, 0.3, 30.0]))
def test_extremes_stay_finite(name: str, f: float, variance: float) -> None:
    y, _, extra = rows(name)
    likelihood = MAKERS[name].likelihood
    answer = lk.expected(likelihood, likelihood.psi, y, extra, np.full_like(y, f), np.full_like(y, variance))
    assert all(np.isfinite(part).all() for part in answer)
    assert np.isfinite(lk.predictive_moments(MAKERS["logit"].likelihood, np.array([f]), np.ones(1), np.ones(1))).all()


@pytest.mark.parametrize("name", NAMES)
def test_conditional_moments_and_cdf_are_those_of_the_density(name: str) -> None:
    likelihood, (_, _, extra) = MAKERS[name].likelihood, rows(name)
    f, e = np.array([0.4]), extra[:1]
    low, high = likelihood.support
    if likelihood.discrete:
        grid = np.arange(low, min(high, 400) + 1)
        mass = np.exp(MAKERS[name].logpdf(grid, f, e))
        mass, total = np.nan_to_num(mass), np.cumsum(np.nan_to_num(mass))
        np.testing.assert_allclose(likelihood.cdf(grid, f, e), total, atol=1e-12)
        np.testing.assert_allclose(likelihood.conditional_mean(f, e), mass @ grid, rtol=1e-10)
        variance = mass @ (grid - mass @ grid) ** 2
        np.testing.assert_allclose(likelihood.conditional_variance(f, e), variance, rtol=1e-9)
        return
    density = lambda y: float(np.exp(MAKERS[name].logpdf(np.array([y]), f, e))[0])  # noqa: E731
    np.testing.assert_allclose(
        likelihood.cdf(np.array(0.7), f, e), integrate.quad(density, low, 0.7, epsabs=1e-12)[0], rtol=1e-8
    )
    if name == "cauchy":
        assert np.isinf(likelihood.conditional_variance(f, e)).all()
        return
    mean = integrate.quad(lambda y: y * density(y), low, high)[0]
    variance = integrate.quad(lambda y: (y - mean) ** 2 * density(y), low, high)[0]
    np.testing.assert_allclose(likelihood.conditional_mean(f, e), mean, rtol=1e-6)
    np.testing.assert_allclose(likelihood.conditional_variance(f, e), variance, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_samples_follow_the_cdf(name: str) -> None:
    likelihood, (_, _, extra) = MAKERS[name].likelihood, rows(name)
    f, e = np.full(20_000, 0.3), np.full(20_000, extra[0])
    y = likelihood.sample(f, e, np.random.default_rng(0))
    likelihood.check(y, e)
    for point in np.quantile(y, [0.2, 0.5, 0.8]):
        assert abs(np.mean(y <= point) - likelihood.cdf(point, f[0], e[0])) < 0.015


@pytest.mark.parametrize("name", NAMES)
def test_parameters_go_out_and_come_back(name: str) -> None:
    likelihood, (y, _, extra) = MAKERS[name].likelihood, rows(name)
    assert len(likelihood.parameters) == len(likelihood.psi) == len(likelihood.free)
    assert not likelihood.free.any()
    np.testing.assert_allclose(likelihood.start(y, extra, np.ones_like(y)), likelihood.psi)
    again = likelihood.with_values(likelihood.psi)
    for key, value in likelihood.values.items():
        np.testing.assert_allclose(again.values[key], value)
    assert pickle.loads(pickle.dumps(likelihood)) == likelihood
    assert hash(likelihood.form) == hash(likelihood.form.form)
    np.testing.assert_allclose(likelihood.in_units(3.0).in_units(1 / 3).psi, likelihood.psi)


@pytest.mark.parametrize("open_", [lk.Gaussian(), lk.StudentT(), lk.Gamma(), lk.Beta(), lk.NegativeBinomial()])
def test_what_is_not_given_is_learnt(open_: lk.AbstractLikelihood) -> None:
    assert open_.free.all()
    with pytest.raises(ValueError, match="has no value of"):
        open_.psi  # noqa: B018
    y = np.random.default_rng(0).integers(1, 9, 50) / 10.0
    psi = open_.start(y, np.ones(50), np.ones(50))
    assert np.isfinite(psi).all()
    fitted = open_.with_values(psi)
    np.testing.assert_allclose(fitted.psi, psi)
    assert fitted.form == open_.form


def test_ordinal_learns_its_levels_from_data() -> None:
    y = np.array([0.0, 1, 1, 2, 3, 3, 3])
    likelihood, ones = lk.Ordinal(), np.ones(7)
    with pytest.raises(ValueError, match="number of levels"):
        likelihood.parameters  # noqa: B018
    sized = likelihood.sized(y)
    psi = likelihood.start(y, ones, ones)
    assert sized.parameters == ("cut_0", "gap_1", "gap_2")
    assert sized.free.all()
    fitted = likelihood.with_values(psi)
    assert fitted.levels == 4
    assert fitted.locates
    np.testing.assert_allclose(fitted.psi, psi)
    shares = np.diff(fitted.cdf(np.arange(-1, 4), np.zeros(5), np.ones(5)))
    np.testing.assert_allclose(shares, (np.array([1, 2, 1, 3]) + 0.5) / 9, rtol=1e-12)


def test_units_scale_with_y() -> None:
    assert lk.Gaussian(2.0).in_units(3.0).variance == pytest.approx(18.0)
    assert lk.StudentT(2.0, 4.0).in_units(3.0).values == pytest.approx({"scale": 6.0, "df": 4.0})
    assert lk.Poisson().in_units(3.0) == lk.Poisson()
