"""The closed form against the paper's formula, written naively with dense matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from vff.basis import ColumnBasis, Interval
from vff.factors.interval.factor import MaternFactor
from vff.features import ColumnPrior, TailRows, tail_features
from vff.inference import SumModel, Term
from vff.inference.learning.optimise import maximise, rescale
from vff.kernels import HalfInteger
from vff.moments import ColumnRequest, MomentRequest, moments_of_arrays

UNIT = Interval(-1.0, 1.0)


def _data(N: int, seed: int, reach: float = 1.0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-reach, reach, N)
    return t, np.sin(3 * t) + 0.3 * rng.normal(size=N), rng.uniform(0.3, 2.0, N)


def _model(p, basis, t, y, w, engine="dense") -> SumModel:
    inside = np.abs(t) <= 1
    moments = moments_of_arrays(
        MomentRequest.of_columns([ColumnRequest(UNIT, basis)]), [t[inside]], y[inside], w[inside], engine
    )
    sides = [(side, side * t > 1) for side in (-1, 1)]
    tails = tuple(TailRows(side, np.abs(t[out]) - 1, w[out], y[out]) for side, out in sides if out.any())
    return SumModel((Term((MaternFactor(p),)),), moments, tails)


def _features(p, basis, rate, t):
    prior = ColumnPrior(basis, p, rate)
    inside = np.abs(t) <= 1
    phi = np.empty((t.size, basis.size))
    phi[inside] = prior.transform.forward(basis.evaluate(t[inside]).T).T
    phi[~inside] = tail_features(prior, t[~inside])
    return phi, prior.matrix().to_dense()


def _naive_elbo(p, basis, t, y, w, variance, lengthscale, noise):
    """log N(y | 0, Q + noise I) - tr(K - Q) / (2 noise); a row of weight w is w rows, so its noise is noise / w."""
    phi, K = _features(p, basis, np.sqrt(2 * p + 1) / lengthscale, t)
    Q = variance * phi @ np.linalg.solve(K, phi.T)
    evidence = multivariate_normal(np.zeros(t.size), Q + np.diag(noise / w)).logpdf(y)
    counted = -0.5 * w.sum() * np.log(2 * np.pi * noise) + 0.5 * np.sum(np.log(2 * np.pi * noise / w))
    return evidence + counted - 0.5 / noise * np.sum(w * (variance - np.diagonal(Q)))


@pytest.mark.parametrize("p", [0, 1, 2])
@pytest.mark.parametrize("q", [0, None])
@pytest.mark.parametrize("reach", [1.0, 1.6])
@given(seed=st.integers(0, 10**6), M=st.integers(1, 12))
def test_bound_is_the_papers_formula(p, q, reach, seed, M):
    basis = ColumnBasis(M, p + 2 if q is None else q)
    t, y, w = _data(40, seed, reach)
    expected = _naive_elbo(p, basis, t, y, w, 1.3, 0.6, 0.09)
    model = _model(p, basis, t, y, w)
    assert model.at(np.log([1.3, 0.6, 0.09])).elbo == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("p", range(4))
@pytest.mark.parametrize("q", [0, None])
@pytest.mark.parametrize("reach", [1.0, 1.6])
def test_gradient_against_differences(p, q, reach):
    basis = ColumnBasis(8, p + 2 if q is None else q)
    model = _model(p, basis, *_data(60, p, reach))
    for values in ([1.3, 0.6, 0.09], [0.2, 5.0, 1.0], [3.0, 0.05, 0.01]):
        theta, h = np.log(values), 1e-5
        gradient = model.pull_back(theta, model.at(theta).cotangents)
        steps = h * np.eye(3)
        differences = [(model.at(theta + e).elbo - model.at(theta - e).elbo) / (2 * h) for e in steps]
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


def _evidence(p, t, y, variance, lengthscale, noise):
    kernel = HalfInteger.from_lengthscale(p, lengthscale)
    K = variance * kernel.covariance(np.subtract.outer(t, t)) + noise * np.eye(t.size)
    return multivariate_normal(np.zeros(t.size), K).logpdf(y)


@pytest.mark.parametrize("p", [0, 1, 2])
@given(
    seed=st.integers(0, 10**6),
    lengthscale=st.floats(0.02, 20.0),
    noise=st.floats(1e-3, 10.0),
    reach=st.sampled_from([0.5, 1.0, 1.5]),
)
def test_bounds_hold_and_rise_with_M(p, seed, lengthscale, noise, reach):
    t, y, _ = _data(30, seed, reach)
    theta = np.log([1.0, lengthscale, noise])
    evidence = _evidence(p, t, y, 1.0, lengthscale, noise)
    slack = 1e-7 * max(1.0, abs(evidence))
    previous = -np.inf
    for M in (2, 5, 12, 30):
        closed = _model(p, ColumnBasis(M, p + 2), t, y, np.ones(30)).at(theta)
        assert previous - slack <= closed.elbo <= evidence + slack
        assert closed.upper_bound() >= evidence - slack
        previous = closed.elbo


@pytest.mark.parametrize(
    ("p", "M", "lengthscale", "noise"),
    [(0, 1000, 100.0, 4.0), (1, 300, 0.8, 0.2), (1, 300, 5.0, 0.01), (2, 100, 0.8, 0.2)],
)
def test_bound_meets_the_evidence_when_M_is_large(p, M, lengthscale, noise):
    """Within 1e-6 nats per row. A Matérn-1/2 needs a slow function and much noise: what it misses falls like 1/M."""
    t, y, _ = _data(60, 3)
    closed = _model(p, ColumnBasis(M, p + 2), t, y, np.ones(60)).at(np.log([1.0, lengthscale, noise]))
    assert closed.elbo == pytest.approx(_evidence(p, t, y, 1.0, lengthscale, noise), abs=1e-6 * 60)


def test_weights_count_rows(rng):
    t, y, _ = _data(20, 0)
    counts = rng.integers(1, 4, 20)
    basis, theta = ColumnBasis(6, 3), np.log([1.0, 0.5, 0.1])
    weighted = _model(1, basis, t, y, counts.astype(float)).at(theta).elbo
    repeated = _model(1, basis, np.repeat(t, counts), np.repeat(y, counts), np.ones(counts.sum())).at(theta).elbo
    assert weighted == pytest.approx(repeated, rel=1e-11)


def test_rescale_finds_the_best_common_factor():
    model = _model(1, ColumnBasis(8, 3), *_data(80, 1))
    theta = np.log([1.0, 0.5, 0.2])
    factor, best = rescale(model.at(theta))
    shifts = np.linspace(-0.3, 0.3, 7) + np.log(factor)
    values = [model.at(theta + shift * np.array([1.0, 0.0, 1.0])).elbo for shift in shifts]
    assert max(values) == pytest.approx(values[3]) == pytest.approx(best)


def test_maximise_ends_where_the_gradient_vanishes_with_or_without_curvature():
    model = _model(1, ColumnBasis(20, 3), *_data(300, 2))
    plain, closed = maximise(model, np.log([1.0, 0.5, 0.2]))
    gradient = model.pull_back(plain.theta, closed.cotangents)
    assert closed.elbo == plain.elbo
    assert plain.converged
    assert np.abs(gradient).max() < 0.2
    guided, _ = maximise(model, plain.theta + 0.1, plain.curvature)
    assert guided.elbo == pytest.approx(plain.elbo, abs=1e-3)
    assert guided.steps <= plain.steps


@pytest.mark.parametrize("p", [0, 1, 2])
@given(
    lengthscale=st.floats(-3, 3).map(lambda e: 2.0 * 10.0**e),
    noise=st.floats(-8, 2).map(lambda e: 10.0**e),
    M=st.sampled_from([3, 30, 150]),
    q=st.sampled_from([0, None]),
    seed=st.integers(0, 1000),
    N=st.sampled_from([2, 50, 2000]),
)
def test_no_lengthscale_or_noise_breaks_the_arithmetic(p, lengthscale, noise, M, q, seed, N):
    t, y, w = _data(N, seed)
    model = _model(p, ColumnBasis(M, p + 2 if q is None else q), t, y, w, "nufft")
    theta = np.log([1.0, lengthscale, noise])
    closed = model.at(theta)
    assert np.isfinite(closed.elbo)
    assert np.all(np.isfinite(model.pull_back(theta, closed.cotangents)))
    assert closed.residual >= -1e-9 * N


@pytest.mark.parametrize("reach", [1.0, 1.6])
def test_gradient_of_what_is_missed(reach):
    model = _model(1, ColumnBasis(5, 3), *_data(60, 1, reach))
    theta, h = np.log([1.3, 0.3, 0.09]), 1e-5
    gradient = model.pull_back(theta, model.at(theta).gap_cotangents)
    differences = [(model.at(theta + e).bound_gap - model.at(theta - e).bound_gap) / (2 * h) for e in h * np.eye(3)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)
