"""A new y as an average over draws of f, against loops over draws."""

import numpy as np
import pytest
from scipy import stats

from vff.likelihoods import Bernoulli, Gaussian, Marginal, Mixture, Poisson, StudentT

N, S = 6, 400
RNG = np.random.default_rng(0)
F = RNG.standard_normal((N, S)) + np.arange(N)[:, None] / 3.0
EXTRA = np.linspace(0.5, 2.0, N)
PSI = RNG.uniform(0.5, 1.5, S)


def poisson() -> Mixture:
    return Mixture([Poisson(exposure=0)] * S, F, EXTRA)


def student() -> Mixture:
    """Every draw has a scale of its own."""
    return Mixture([StudentT(float(scale), 5.0) for scale in PSI], F, np.ones(N))


def test_moments_of_counts():
    mean, variance = poisson().moments()
    rate = EXTRA[:, None] * np.exp(F)
    np.testing.assert_allclose(mean, rate.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(poisson().mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(variance, rate.mean(axis=1) + rate.var(axis=1), rtol=1e-12)


def test_moments_with_parameters_by_draw():
    mean, variance = student().moments()
    np.testing.assert_allclose(mean, F.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(variance, (PSI**2 * 5.0 / 3.0).mean() + F.var(axis=1), rtol=1e-12)


def test_densities_are_averages():
    y = np.array([0.0, 3.0, 1.0, 7.0, 2.0, 40.0])
    truth = np.log([np.mean([stats.poisson.pmf(y[n], EXTRA[n] * np.exp(f)) for f in F[n]]) for n in range(N)])
    np.testing.assert_allclose(poisson().log_density(y), truth, rtol=1e-7)
    y = F[:, 0] + [0.0, 1.0, -2.0, 30.0, 0.1, -300.0]
    rows = [[stats.t.pdf(y[n], 5.0, f, scale) for f, scale in zip(F[n], PSI, strict=True)] for n in range(N)]
    np.testing.assert_allclose(student().log_density(y), np.log(np.mean(rows, axis=1)), rtol=1e-7)


def test_densities_far_away_are_finite():
    """Where every density of a draw is below what float64 can hold."""
    own = Mixture([Gaussian(0.1)] * S, F, np.ones(N))
    found = own.log_density(np.full(N, 1e3))
    best = [max(stats.norm.logpdf(1e3, f, np.sqrt(0.1)) for f in F[n]) for n in range(N)]
    assert np.all((found <= np.array(best)) & (found >= np.array(best) - np.log(S) - 1e-6))


def test_labels():
    own = Mixture([Bernoulli()] * S, F, np.ones(N))
    p = (1.0 / (1.0 + np.exp(-F))).mean(axis=1)
    np.testing.assert_allclose(own.mean(), p, rtol=1e-12)
    np.testing.assert_allclose(own.moments()[1], p * (1.0 - p), rtol=1e-9)
    np.testing.assert_allclose(own.log_density(np.ones(N)), np.log(p), rtol=1e-7)
    np.testing.assert_allclose(own.log_density(np.zeros(N)), np.log1p(-p), rtol=1e-7)
    assert set(np.unique(own.quantiles(np.array([0.1, 0.5, 0.9])))) <= {0.0, 1.0}


def test_draws_and_quantiles():
    drawn = student().sample(np.random.default_rng(1))
    assert drawn.shape == (N, S)
    mean, variance = student().moments()
    assert np.all(np.abs(drawn.mean(axis=1) - mean) < 5.0 * np.sqrt(variance / S))
    levels = np.array([0.05, 0.5, 0.95])
    found = student().quantiles(levels)
    assert found.shape == (N, 3)
    for n in range(N):
        below = [np.mean(stats.t.cdf(q, 5.0, F[n], PSI)) for q in found[n]]
        np.testing.assert_allclose(below, levels, atol=5.0 * np.sqrt(0.25 / S))
    whole = poisson().quantiles(levels)
    np.testing.assert_array_equal(whole, whole.round())
    assert np.all(np.diff(whole, axis=1) >= 0.0)
    with pytest.raises(ValueError, match="strictly between"):
        student().quantiles(np.array([0.0]))


def test_many_draws_of_a_normal_f_are_a_marginal():
    f = np.random.default_rng(2).normal(0.3, 0.5, (1, 40_000))
    one = Mixture([Poisson()] * f.size, f, np.ones(1))
    other = Marginal(Poisson(), np.array([0.3]), np.array([0.25]), np.ones(1))
    np.testing.assert_allclose(one.moments(), other.moments(), rtol=0.05)
    np.testing.assert_allclose(one.log_density(np.array([2.0])), other.log_density(np.array([2.0])), atol=0.02)


def test_an_infinite_mean_is_said():
    own = Mixture([Poisson()] * 2, np.array([[800.0, 0.0]]), np.ones(1))
    assert own.mean()[0] == np.inf
    assert own.moments()[0][0] == np.inf
