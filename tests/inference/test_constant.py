"""A constant beside the terms: against dense algebra with its own row and column written out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.features import ColumnPrior, TailRows, tail_features
from vff.inference import SumModel, Term
from vff.moments import ColumnRequest, MomentRequest, moments_of_arrays

UNIT, V = Interval(-1.0, 1.0), 7.0
THETA = np.log([0.8, 0.9, 0.4, 0.09])
"""Variance and lengthscale of a Matérn-3/2, variance of three levels, noise."""


def _rows(N: int = 50, seed: int = 1):
    rng = np.random.default_rng(seed)
    t, codes = rng.uniform(-1, 1, N), rng.integers(0, 3, N).astype(float)
    return t, codes, 2.0 + np.sin(3 * t) + 0.5 * codes + 0.3 * rng.normal(size=N), rng.uniform(0.3, 2.0, N)


def _sum(t, codes, y, w) -> SumModel:
    requests = (ColumnRequest(UNIT, ColumnBasis(9, 3)), ColumnRequest(Codes(), LevelBasis(("a", "b", "c"))))
    moments = moments_of_arrays(MomentRequest.of_columns(requests), [t, codes], y, w, "dense")
    return SumModel((Term((MaternFactor(1),)), Term((LevelFactor(),))), moments, constant=V)


def _one(t, y, w, p: int) -> SumModel:
    """One Matérn, with rows beyond its interval."""
    inside = np.abs(t) <= 1
    request = MomentRequest.of_columns([ColumnRequest(UNIT, ColumnBasis(8, p + 2))])
    moments = moments_of_arrays(request, [t[inside]], y[inside], w[inside], "dense")
    sides = [(side, side * t > 1) for side in (-1, 1)]
    tails = tuple(TailRows(side, np.abs(t[out]) - 1, w[out], y[out]) for side, out in sides if out.any())
    return SumModel((Term((MaternFactor(p),)),), moments, tails, constant=V)


def _smooth(p, M, lengthscale, t):
    basis = ColumnBasis(M, p + 2)
    prior = ColumnPrior(basis, p, np.sqrt(2 * p + 1) / lengthscale)
    inside, phi = np.abs(t) <= 1, np.empty((t.size, basis.size))
    phi[inside] = prior.transform.forward(basis.evaluate(t[inside]).T).T
    phi[~inside] = tail_features(prior, t[~inside])
    return phi, prior.matrix().to_dense()


def _written(t, codes):
    """All features and the constant, (N, P + 1), and their prior precision."""
    phi, K = _smooth(1, 9, 0.9, t)
    levels = (codes[:, None] == np.arange(3)).astype(float)
    Phi = np.concatenate([phi, levels, np.ones((t.size, 1))], axis=1)
    precision = np.zeros((Phi.shape[1],) * 2)
    P = phi.shape[1]
    precision[:P, :P], precision[P : P + 3, P : P + 3], precision[-1, -1] = K / 0.8, np.eye(3) / 0.4, 1 / V
    return Phi, precision


def _evidence(y, w, Q, noise, missed):
    evidence = multivariate_normal(np.zeros(y.size), Q + np.diag(noise / w)).logpdf(y)
    counted = -0.5 * w.sum() * np.log(2 * np.pi * noise) + 0.5 * np.sum(np.log(2 * np.pi * noise / w))
    return evidence + counted - 0.5 / noise * np.sum(w * missed)


def test_bound_is_that_of_a_process_with_a_constant():
    t, codes, y, w = _rows()
    Phi, precision = _written(t, codes)
    Q = Phi @ np.linalg.solve(precision, Phi.T)
    expected = _evidence(y, w, Q, 0.09, 1.2 + V - np.diagonal(Q))
    assert _sum(t, codes, y, w).at(THETA).elbo == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_gradient_with_rows_beyond_the_interval(p):
    rng = np.random.default_rng(p)
    t, w = rng.uniform(-1.6, 1.6, 60), rng.uniform(0.3, 2.0, 60)
    y = 1.5 + np.sin(3 * t) + 0.3 * rng.normal(size=60)
    model = _one(t, y, w, p)
    for values in ([1.3, 0.6, 0.09], [0.2, 5.0, 1.0], [3.0, 0.2, 0.05]):
        theta, h = np.log(values), 1e-5
        gradient = model.pull_back(theta, model.at(theta).cotangents)
        differences = [(model.at(theta + e).elbo - model.at(theta - e).elbo) / (2 * h) for e in h * np.eye(3)]
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)
        phi, K = _smooth(p, 8, values[1], t)
        Q = values[0] * phi @ np.linalg.solve(K, phi.T)
        expected = _evidence(y, w, Q + V, values[2], values[0] - np.diagonal(Q))
        assert model.at(theta).elbo == pytest.approx(expected, rel=1e-9)


def test_gradient_of_a_sum():
    model, h = _sum(*_rows()), 1e-5
    gradient = model.pull_back(THETA, model.at(THETA).cotangents)
    differences = [(model.at(THETA + e).elbo - model.at(THETA - e).elbo) / (2 * h) for e in h * np.eye(4)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


def _dense_posterior(t, codes, y, w):
    Phi, precision = _written(t, codes)
    A = precision + Phi.T @ (w[:, None] * Phi) / 0.09
    return np.linalg.solve(A, Phi.T @ (w * y) / 0.09), np.linalg.inv(A)


def _remainder(Phi, precision):
    """Of the terms: the constant has none."""
    K = precision[:-1, :-1]
    return 1.2 - np.einsum("np,pn->n", Phi[:, :-1], np.linalg.solve(K, Phi[:, :-1].T))


def test_posterior_moments_joint_slope_effects_and_average():
    rows = _rows()
    model = _sum(*rows)
    posterior = model.posterior(model.at(THETA), THETA)
    m, C = _dense_posterior(*rows)
    t, codes, _, w = rows
    x = np.column_stack([np.linspace(-0.95, 0.95, 7), np.array([0.0, 1, 2, 0, 1, 2, 0])])
    Phi, precision = _written(*x.T)
    mean, variance = posterior.marginals(x)
    np.testing.assert_allclose(mean, Phi @ m, rtol=1e-9)
    np.testing.assert_allclose(variance, _remainder(Phi, precision) + np.diag(Phi @ C @ Phi.T), rtol=1e-8)
    inside = posterior.inside(posterior.rows(x), {})
    np.testing.assert_allclose(inside, [mean, variance], rtol=1e-10)
    joint_mean, covariance = posterior.joint(x)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(np.diagonal(covariance), variance, rtol=1e-8)
    between = (Phi @ C @ Phi.T)[0, 4]  # rows far apart: what features do not carry is small between them
    assert covariance[0, 4] == pytest.approx(between, abs=2e-3)
    centre = (w @ _written(t, codes)[0]) / w.sum()
    level, spread = posterior.average()
    assert level == pytest.approx(centre @ m, rel=1e-9)
    assert spread == pytest.approx(centre @ C @ centre, rel=1e-9)
    levels = slice(Phi.shape[1] - 4, Phi.shape[1] - 1)
    away = Phi[:, levels] - centre[levels]
    own, sd2 = posterior.effect(1, x, posterior.rows(x))
    np.testing.assert_allclose(own, away @ m[levels], rtol=1e-8)
    np.testing.assert_allclose(sd2, np.einsum("np,pq,nq->n", away, C[levels, levels], away), rtol=1e-8)
    slope = np.array([posterior.slope(x, 0)[1], posterior.slope(x + 1e-9, 0)[1]])
    assert (slope > 0).all()


def test_draws_have_the_moments_of_the_posterior():
    model = _sum(*_rows())
    posterior = model.posterior(model.at(THETA), THETA)
    x = np.column_stack([np.linspace(-1.9, 0.9, 6), np.zeros(6)])
    mean, variance = posterior.marginals(x)
    values, rest = posterior.draws(x, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(values.mean(axis=1), mean, atol=4 * np.sqrt(variance.max() / 20_000))
    np.testing.assert_allclose(values.var(axis=1) + rest, variance, rtol=0.05)


def test_a_weak_prior_leaves_the_constant_to_the_rows():
    """With all variances near nothing, f is the mean of y, known to its standard error."""
    t, codes, y, w = _rows()
    theta = np.log([1e-8, 0.9, 1e-8, 0.5])
    model = _sum(t, codes, y, w)
    posterior = model.posterior(model.at(theta), theta)
    mean, variance = posterior.marginals(np.array([[0.3, 1.0]]))
    share = V / (V + 0.5 / w.sum())
    assert mean[0] == pytest.approx(share * np.average(y, weights=w), rel=1e-5)
    assert variance[0] == pytest.approx(share * 0.5 / w.sum(), rel=1e-4)
