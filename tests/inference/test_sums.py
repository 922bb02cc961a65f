"""Sums of terms against dense algebra on the features written out, and against the exact additive process."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.features import ColumnPrior
from vff.inference import SumModel, Term
from vff.kernels import HalfInteger
from vff.moments import ColumnRequest, MomentRequest, moments_of_arrays

UNIT = Interval(-1.0, 1.0)
LEVELS = ("a", "b", "c", "d")
ORDERS = (0, 1, 2, None)
"""Matérn-1/2, 3/2, 5/2, and levels."""
THETA = np.log([0.8, 0.9, 1.3, 0.6, 0.5, 1.5, 0.4, 0.09])
"""Variance and lengthscale of every Matérn, variance of the levels, noise."""


def _rows(N: int, seed: int):
    rng = np.random.default_rng(seed)
    columns = [rng.uniform(-1, 1, N) for _ in range(3)] + [rng.integers(0, len(LEVELS), N).astype(float)]
    y = np.sin(3 * columns[0]) + columns[1] ** 2 + 0.5 * (columns[3] == 2) + 0.3 * rng.normal(size=N)
    return columns, y, rng.uniform(0.3, 2.0, N)


def _basis(order, M: int, q: int | None = None):
    return LevelBasis(LEVELS) if order is None else ColumnBasis(M, order + 2 if q is None else q)


def _model(columns, y, w, M: int, orders=ORDERS, q: int | None = None, engine: str = "dense") -> SumModel:
    requests = tuple(ColumnRequest(Codes() if p is None else UNIT, _basis(p, M, q)) for p in orders)
    terms = tuple(Term((LevelFactor() if p is None else MaternFactor(p),)) for p in orders)
    return SumModel(terms, moments_of_arrays(MomentRequest.of_columns(requests), columns, y, w, engine))


def _split(theta, orders=ORDERS):
    """(variance, lengthscale) of every term, and the noise."""
    values, pairs = iter(np.exp(theta)), []
    for p in orders:
        variance = next(values)
        pairs.append((variance, None if p is None else next(values)))
    return pairs, next(values)


def _written(order, M: int, lengthscale, x, q: int | None = None):
    """Features at the rows and the prior precision for unit variance, both dense."""
    if order is None:
        return (x[:, None] == np.arange(len(LEVELS))).astype(float), np.eye(len(LEVELS))
    basis = _basis(order, M, q)
    prior = ColumnPrior(basis, order, np.sqrt(2 * order + 1) / lengthscale)
    return prior.transform.forward(basis.evaluate(x).T).T, prior.matrix().to_dense()


def _covariance(order, variance, lengthscale, x, z):
    if order is None:
        return variance * np.equal.outer(x, z)
    return variance * HalfInteger.from_lengthscale(order, lengthscale).covariance(np.subtract.outer(x, z))


def _exact(columns, theta, orders=ORDERS, others=None):
    pairs, _ = _split(theta, orders)
    parts = zip(orders, pairs, columns, columns if others is None else others, strict=True)
    return sum(_covariance(p, *values, x, z) for p, values, x, z in parts)


def _dense_elbo(columns, y, w, theta, M, orders=ORDERS, q=None):
    """log N(y | 0, Phi K^-1 Phi' + noise / w), counted as w rows each, less what the features miss."""
    pairs, noise = _split(theta, orders)
    Q = 0.0
    for p, (variance, lengthscale), x in zip(orders, pairs, columns, strict=True):
        phi, K = _written(p, M, lengthscale, x, q)
        Q = Q + variance * phi @ np.linalg.solve(K, phi.T)
    evidence = multivariate_normal(np.zeros(y.size), Q + np.diag(noise / w)).logpdf(y)
    counted = -0.5 * w.sum() * np.log(2 * np.pi * noise) + 0.5 * np.sum(np.log(2 * np.pi * noise / w))
    total = sum(variance for variance, _ in pairs)
    return evidence + counted - 0.5 / noise * np.sum(w * (total - np.diagonal(Q)))


@pytest.mark.parametrize("engine", ["dense", "nufft", "table", "auto"])
@pytest.mark.parametrize("q", [0, None])
@given(seed=st.integers(0, 10**6), M=st.integers(1, 9))
def test_bound_is_the_dense_construction(engine, q, seed, M):
    columns, y, w = _rows(40, seed)
    expected = _dense_elbo(columns, y, w, THETA, M, q=q)
    assert _model(columns, y, w, M, q=q, engine=engine).at(THETA).elbo == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("orders", [(0, 1), (1, None), (2, 0, None), (None, None), ORDERS])
@given(
    seed=st.integers(0, 10**6),
    lengthscale=st.floats(0.05, 20.0),
    variance=st.floats(0.01, 10.0),
    noise=st.floats(1e-3, 10.0),
)
def test_bounds_hold_and_rise_with_M(orders, seed, lengthscale, variance, noise):
    columns, y, _ = _rows(30, seed)
    columns = [columns[3 if p is None else p] for p in orders]
    sizes = [[variance] if p is None else [variance, lengthscale] for p in orders]
    theta = np.log(np.concatenate([*sizes, [noise]]))
    evidence = multivariate_normal(np.zeros(30), _exact(columns, theta, orders) + noise * np.eye(30)).logpdf(y)
    slack, previous = 1e-7 * max(1.0, abs(evidence)), -np.inf
    for M in (2, 6, 20):
        closed = _model(columns, y, np.ones(30), M, orders).at(theta)
        assert previous - slack <= closed.elbo <= evidence + slack
        assert closed.upper_bound() >= evidence - slack
        previous = closed.elbo


@pytest.mark.parametrize(
    ("orders", "M", "theta"),
    [
        ((1, 2, None), 300, [1.0, 0.8, 0.5, 1.2, 0.3, 0.2]),
        ((0, None), 1000, [1.0, 100.0, 0.3, 4.0]),
        ((2, 2), 100, [1.0, 0.8, 2.0, 0.5, 0.2]),
    ],
)
def test_bound_meets_the_evidence_when_M_is_large(orders, M, theta):
    """Within 1e-6 nats per row."""
    columns, y, _ = _rows(60, 3)
    columns, theta = [columns[3 if p is None else p] for p in orders], np.log(theta)
    closed = _model(columns, y, np.ones(60), M, orders).at(theta)
    K = _exact(columns, theta, orders) + np.exp(theta[-1]) * np.eye(60)
    assert closed.elbo == pytest.approx(multivariate_normal(np.zeros(60), K).logpdf(y), abs=1e-6 * 60)


def test_levels_alone_are_exact():
    """Indicators miss nothing, so the bound is the evidence."""
    columns, y, _ = _rows(50, 1)
    theta = np.log([0.7, 0.2])
    closed = _model(columns[3:], y, np.ones(50), 1, (None,)).at(theta)
    K = _exact(columns[3:], theta, (None,)) + 0.2 * np.eye(50)
    assert closed.elbo == pytest.approx(multivariate_normal(np.zeros(50), K).logpdf(y), rel=1e-9)
    assert closed.bound_gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("q", [0, None])
@pytest.mark.parametrize("quantity", ["elbo", "bound_gap"])
def test_gradient_against_differences(q, quantity):
    columns, y, w = _rows(60, 5)
    model, h = _model(columns, y, w, 8, q=q), 1e-5
    for shift in (np.zeros(8), np.linspace(-1.5, 1.5, 8), np.linspace(1.0, -2.0, 8)):
        theta, closed = THETA + shift, model.at(THETA + shift)
        gradient = model.pull_back(theta, closed.cotangents if quantity == "elbo" else closed.gap_cotangents)
        steps = h * np.eye(8)
        values = [[getattr(model.at(theta + sign * e), quantity) for sign in (1, -1)] for e in steps]
        differences = [(up - down) / (2 * h) for up, down in values]
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


def test_parts_of_what_is_missed_sum_to_all_of_it():
    columns, y, w = _rows(60, 5)
    model = _model(columns, y, w, 4)
    closed = model.at(THETA)
    by_term = model.bound_gap_by_term(closed, THETA)
    assert by_term.sum() == pytest.approx(closed.bound_gap, rel=1e-9)
    pairs, noise = _split(THETA)
    for s, (p, (variance, lengthscale)) in enumerate(zip(ORDERS, pairs, strict=True)):
        phi, K = _written(p, 4, lengthscale, columns[s])
        left = variance * (1.0 - np.einsum("np,np->n", phi, np.linalg.solve(K, phi.T).T))
        assert by_term[s] == pytest.approx(0.5 / noise * (w @ left), rel=1e-8, abs=1e-9)


def test_one_term_alone_is_the_model_of_its_column():
    columns, y, w = _rows(40, 2)
    model = _model(columns, y, w, 6)
    for s, theta in ((1, np.log([1.3, 0.6, 0.1])), (3, np.log([0.4, 0.1]))):
        own = _model(columns[s : s + 1], y, w, 6, ORDERS[s : s + 1])
        assert model.alone(s).at(theta).elbo == pytest.approx(own.at(theta).elbo, rel=1e-12)


def test_posterior_is_the_dense_one_on_the_features():
    """Marginals, joint covariance and the single terms, all from c ~ N(m, A^-1) plus what the features miss."""
    columns, y, w = _rows(70, 8)
    model, M = _model(columns, y, w, 5), 5
    posterior = model.posterior(model.at(THETA), THETA)
    pairs, noise = _split(THETA)
    new, _, _ = _rows(25, 9)
    written = [_written(p, M, length, x) for p, (_, length), x in zip(ORDERS, pairs, columns, strict=True)]
    phi = np.concatenate([features for features, _ in written], axis=1)
    sizes = np.cumsum([0, *(K.shape[0] for _, K in written)])
    K = np.zeros((sizes[-1], sizes[-1]))
    for s, (variance, _) in enumerate(pairs):
        K[sizes[s] : sizes[s + 1], sizes[s] : sizes[s + 1]] = written[s][1] / variance
    inverse = np.linalg.inv(K + phi.T @ (w[:, None] * phi) / noise)
    mean = inverse @ phi.T @ (w * y) / noise
    at = [_written(p, M, length, x)[0] for p, (_, length), x in zip(ORDERS, pairs, new, strict=True)]
    here = np.concatenate(at, axis=1)
    prior = _exact(new, THETA)
    covariance = prior - here @ (np.linalg.inv(K) - inverse) @ here.T
    x = np.stack(new, axis=1)
    got_mean, got_variance = posterior.marginals(x)
    np.testing.assert_allclose(got_mean, here @ mean, atol=1e-8)
    np.testing.assert_allclose(got_variance, np.diagonal(covariance), atol=1e-8)
    joint_mean, joint = posterior.joint(x)
    np.testing.assert_allclose(joint_mean, here @ mean, atol=1e-8)
    np.testing.assert_allclose(joint, covariance, atol=1e-8)
    np.testing.assert_allclose(posterior.mean_at(x), here @ mean, atol=1e-8)


def test_a_term_that_says_nothing_changes_nothing():
    """The least variance that is allowed costs no more than it explains."""
    columns, y, w = _rows(60, 4)
    two, one = _model(columns[:2], y, w, 8, (0, 1)), _model(columns[1:2], y, w, 8, (1,))
    full = two.at(np.log([1e-8, 0.5, 1.3, 0.6, 0.1])).elbo
    assert full == pytest.approx(one.at(np.log([1.3, 0.6, 0.1])).elbo, abs=1e-3)


@given(
    lengthscale=st.floats(-3, 2).map(lambda e: 2.0 * 10.0**e),
    noise=st.floats(-8, 2).map(lambda e: 10.0**e),
    variance=st.floats(-8, 3).map(lambda e: 10.0**e),
    M=st.sampled_from([3, 30]),
    q=st.sampled_from([0, None]),
    seed=st.integers(0, 1000),
    N=st.sampled_from([2, 50, 400]),
)
def test_no_hyperparameter_breaks_the_arithmetic(lengthscale, noise, variance, M, q, seed, N):
    columns, y, w = _rows(N, seed)
    columns[1] = 0.5 * columns[0]  # collinear
    model = _model(columns, y, w, M, q=q)
    theta = np.log([variance, lengthscale, 1.0, lengthscale, 0.5, 1.0, variance, noise])
    closed = model.at(theta)
    assert np.isfinite(closed.elbo)
    assert np.all(np.isfinite(model.pull_back(theta, closed.cotangents)))
    posterior = model.posterior(closed, theta)
    mean, spread = posterior.marginals(np.stack(columns, axis=1))
    assert np.all(np.isfinite(mean))
    assert np.all(spread >= 0.0)
