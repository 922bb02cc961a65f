"""Single likelihoods: values that the law suite does not know to ask for."""

import numpy as np
import pytest
from scipy import stats

from vff import likelihoods as lk

LEVELS = np.array([0.025, 0.3, 0.5, 0.9])


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


def test_learnt_degrees_of_freedom_stay_above_two():
    learnt = lk.StudentT().with_values(np.array([0.0, -60.0]))
    assert learnt.values["df"] > 2.0
    assert np.isfinite(learnt.conditional_variance(np.zeros(1), np.ones(1))).all()
    assert np.isfinite(learnt.psi).all()


def test_quantiles_of_narrow_factors() -> None:
    """Nearly log-normal, when counts are large or a shape is."""
    one, exact = np.ones(1), np.exp(stats.norm.ppf(LEVELS))
    counts = lk.Poisson().predictive(one * np.log(1e8), one, one).quantiles(LEVELS)
    np.testing.assert_allclose(counts[0], 1e8 * exact, rtol=1e-6)
    np.testing.assert_allclose(lk.Gamma(1e9).predictive(0 * one, one, one).quantiles(LEVELS)[0], exact, rtol=1e-6)


def test_samples_have_the_predictive_moments() -> None:
    likelihood, rng = lk.Poisson(), np.random.default_rng(1)
    f = rng.normal(1.0, 0.5, 100_000)
    y = likelihood.sample(f, np.ones_like(f), rng)
    mean, variance = likelihood.predictive(np.ones(1), np.array([0.25]), np.ones(1)).moments()
    assert y.mean() == pytest.approx(mean[0], rel=0.02)
    assert y.var() == pytest.approx(variance[0], rel=0.05)


def test_levels_lie_between_zero_and_one() -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        lk.Poisson().predictive(np.zeros(1), np.ones(1), np.ones(1)).quantiles(np.array([0.5, 1.0]))


def test_moments_of_extremes_are_finite() -> None:
    f = np.array([-600.0, -40.0, 0.0, 40.0, 600.0])
    assert np.isfinite(lk.Bernoulli().predictive(f, np.ones(5), np.ones(5)).moments()).all()


def test_a_density_that_is_not_log_concave_has_two_modes() -> None:
    """Mislabelled, or a success after all: with a broad f far away both count."""
    likelihood, one = lk.Bernoulli("probit", squash=0.001), np.ones(1)
    found = likelihood.predictive(-100 * one, 1e4 * one, one).log_density(one)
    exact = 0.001 + 0.998 * stats.norm.cdf(-100 / np.sqrt(1 + 1e4))
    np.testing.assert_allclose(found, np.log(exact), atol=1e-8)
