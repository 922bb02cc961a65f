"""A new y: moments and quantiles against brute force."""

import numpy as np
import pytest
from likelihood_makers import MAKERS, NAMES, rows
from scipy import stats

from vff import likelihoods as lk

MEANS, VARIANCES = np.array([-1.0, 0.3, 1.2]), np.array([0.0, 0.2, 1.5])
LEVELS = np.array([0.025, 0.3, 0.5, 0.9])


def grid(mean: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """f and weights, very fine."""
    z = np.linspace(-9, 9, 4001)
    return mean + np.sqrt(variance) * z, stats.norm.pdf(z) / stats.norm.pdf(z).sum()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cauchy"])
def test_moments(name: str) -> None:
    likelihood, extra = MAKERS[name].likelihood, rows(name, 3)[2]
    mean, variance = lk.predictive_moments(likelihood, MEANS, VARIANCES, extra)
    for n in range(3):
        f, weights = grid(MEANS[n], VARIANCES[n])
        centre = likelihood.conditional_mean(f, extra[n])
        first = weights @ centre
        second = weights @ (likelihood.conditional_variance(f, extra[n]) + (centre - first) ** 2)
        np.testing.assert_allclose([mean[n], variance[n]], [first, second], rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_quantiles(name: str) -> None:
    likelihood, extra = MAKERS[name].likelihood, rows(name, 3)[2]
    answer = lk.predictive_quantiles(likelihood, MEANS, VARIANCES, extra, LEVELS)
    for n in range(3):
        f, weights = grid(MEANS[n], VARIANCES[n])
        for quantile, level in zip(answer[n], LEVELS, strict=True):
            here = weights @ likelihood.cdf(quantile, f, extra[n])
            if likelihood.discrete:
                assert quantile == np.floor(quantile)
                below = weights @ likelihood.cdf(quantile - 1, f, extra[n])
                assert below < level + 1e-9
                assert here >= level - 1e-9
            else:
                step = 1e-6 * abs(quantile)
                assert weights @ likelihood.cdf(quantile - step, f, extra[n]) <= level
                assert weights @ likelihood.cdf(quantile + step, f, extra[n]) >= level


def test_quantiles_of_narrow_factors() -> None:
    """Nearly log-normal, when counts are large or a shape is."""
    one, exact = np.ones(1), np.exp(stats.norm.ppf(LEVELS))
    counts = lk.predictive_quantiles(lk.Poisson(), one * np.log(1e8), one, one, LEVELS)
    np.testing.assert_allclose(counts[0], 1e8 * exact, rtol=1e-6)
    np.testing.assert_allclose(lk.predictive_quantiles(lk.Gamma(1e9), 0 * one, one, one, LEVELS)[0], exact, rtol=1e-6)


def test_samples_have_the_predictive_moments() -> None:
    likelihood, rng = lk.Poisson(), np.random.default_rng(1)
    f = rng.normal(1.0, 0.5, 100_000)
    y = lk.predictive_sample(likelihood, f, np.ones_like(f), rng)
    mean, variance = lk.predictive_moments(likelihood, np.ones(1), np.array([0.25]), np.ones(1))
    assert y.mean() == pytest.approx(mean[0], rel=0.02)
    assert y.var() == pytest.approx(variance[0], rel=0.05)


def test_levels_lie_between_zero_and_one() -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        lk.predictive_quantiles(lk.Poisson(), np.zeros(1), np.ones(1), np.ones(1), [0.5, 1.0])
