"""Products over columns, and sums that share columns: dense formulas with explicit Kronecker products, exact GPs."""

from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.features import ColumnPrior
from vff.inference import SumModel, Term
from vff.kernels import HalfInteger
from vff.moments import ColumnRequest, MomentRequest, TermRequest, moments_of_arrays

UNIT = Interval(-1.0, 1.0)
LEVELS = ("a", "b", "c")
STEPS = (7, 5, 4, 3)
"""Values of every column of numbers on the lattice."""
SHAPES = {
    "one": (((0, 1),),),
    "two": (((0, 1), (1, 2)),),
    "three": (((0, 0), (1, 1), (2, 2)),),
    "four": (((3, 1), (0, 0), (2, 1), (1, 2)),),
    "levels": (((4, None), (0, 1)),),
    "mains and product": (((0, 1),), ((1, 2),), ((0, 1), (1, 1))),
    "shared columns": (((0, 1), (1, 1)), ((1, 2), (2, 0)), ((2, 1),)),
    "one product twice": (((0, 1), (1, 1)), ((1, 0), (0, 2))),
    "levels and all": (((4, None),), ((0, 1), (4, None)), ((0, 1),), ((1, 1), (2, 1), (4, None))),
}
"""Terms by their factors: column and order of a Matérn, None for levels. Column 4 holds levels."""
NOISE = 0.09


def _lattice(seed: int = 0):
    """Every combination of the values once, shuffled, with levels drawn at random."""
    rng = np.random.default_rng(seed)
    values = [np.linspace(-0.9, 0.8, n) for n in STEPS]
    points = np.array(list(product(*values)))[rng.permutation(np.prod(STEPS))]
    return _with_targets([*points.T, rng.integers(0, len(LEVELS), len(points)).astype(float)], rng)


def _rows(N: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    columns = [rng.uniform(-1, 1, N) for _ in STEPS] + [rng.integers(0, len(LEVELS), N).astype(float)]
    return _with_targets(columns, rng)


def _with_targets(columns, rng):
    a, b, c, _, g = columns
    y = np.sin(3 * a) * (1 + b) + c**2 + 0.5 * (g == 2) * a + 0.3 * rng.normal(size=a.size)
    return columns, y, rng.uniform(0.3, 2.0, a.size)


def _used(shape, columns):
    """The columns that the terms are over, and the terms over these, numbered afresh."""
    used = sorted({c for term in shape for c, _ in term})
    return tuple(tuple((used.index(c), p) for c, p in term) for term in shape), [columns[c] for c in used]


def _basis(p, M, q):
    return LevelBasis(LEVELS) if p is None else ColumnBasis(M, p + 2 if q is None else q)


def _model(shape, columns, y, w, M=2, q=None, engine="dense") -> SumModel:
    requests = tuple(
        TermRequest(
            tuple(c for c, _ in term),
            tuple(ColumnRequest(Codes() if p is None else UNIT, _basis(p, M, q)) for _, p in term),
        )
        for term in shape
    )
    terms = tuple(Term(tuple(LevelFactor() if p is None else MaternFactor(p) for _, p in term)) for term in shape)
    return SumModel(terms, moments_of_arrays(MomentRequest(requests), columns, y, w, engine))


def _theta(shape, rng=None):
    """Log variance and lengthscales of every term, then log noise."""
    values = []
    for s, term in enumerate(shape):
        values.append(0.8 + 0.3 * s)
        values += [0.7 + 0.25 * d + 0.1 * s for d, (_, p) in enumerate(term) if p is not None]
    theta = np.log([*values, NOISE])
    return theta if rng is None else theta + rng.uniform(-0.8, 0.8, theta.size)


def _split(shape, theta):
    """(variance, lengthscale by factor) of every term, and the noise."""
    values, terms = iter(np.exp(theta)), []
    for term in shape:
        variance = next(values)
        terms.append((variance, [None if p is None else next(values) for _, p in term]))
    return terms, next(values)


def _written(p, M, q, lengthscale, x):
    """Features and prior precision of one factor, for unit variance."""
    if p is None:
        return (x[:, None] == np.arange(len(LEVELS))).astype(float), np.eye(len(LEVELS))
    rate, basis = np.sqrt(2 * p + 1) / lengthscale, _basis(p, M, q)
    if basis.q:
        prior = ColumnPrior(basis, p, rate)
        return prior.transform.forward(basis.evaluate(x).T).T, prior.matrix().to_dense()
    # paper, section 3.1: half the interval over the spectral density, and the state at the left edge
    kernel = HalfInteger(p, rate)
    waves = np.pi * np.arange(M + 1)
    d = 1.0 / kernel.spectral_density(np.concatenate([waves, waves[1:]]))
    d[0] *= 2.0
    angles = np.multiply.outer(x + 1.0, waves)
    features = np.concatenate([np.cos(angles), np.sin(angles[:, 1:])], axis=1)
    states = np.stack([basis.evaluate(np.array([-1.0]), j)[0] for j in range(p + 1)], axis=1)
    return features, np.diag(d) + states @ np.linalg.solve(kernel.state_covariance(), states.T)


def _term_written(term, M, q, lengthscales, columns):
    """Features of a product, row by row, and the Kronecker product of its precisions."""
    parts = [_written(p, M, q, length, columns[c]) for (c, p), length in zip(term, lengthscales, strict=True)]
    features = [phi for phi, _ in parts]
    rows = np.array([reduce(np.kron, [phi[n] for phi in features]) for n in range(len(features[0]))])
    return rows, reduce(np.kron, [K for _, K in parts])


def _all_written(shape, theta, M, q, columns):
    """Features of all terms and the precision of all coefficients."""
    terms, _ = _split(shape, theta)
    parts = [_term_written(term, M, q, lengths, columns) for term, (_, lengths) in zip(shape, terms, strict=True)]
    phi, ends = np.concatenate([part for part, _ in parts], axis=1), np.cumsum([0, *(len(K) for _, K in parts)])
    K = np.zeros((ends[-1], ends[-1]))
    for s, (variance, _) in enumerate(terms):
        K[ends[s] : ends[s + 1], ends[s] : ends[s + 1]] = parts[s][1] / variance
    return phi, K, ends


def _correlation(p, lengthscale, x, z):
    if p is None:
        return np.equal.outer(x, z).astype(float)
    return HalfInteger.from_lengthscale(p, lengthscale).covariance(np.subtract.outer(x, z))


def _covariance(shape, theta, columns, others=None):
    """Of the exact process."""
    others, total = columns if others is None else others, 0.0
    for term, (variance, lengths) in zip(shape, _split(shape, theta)[0], strict=True):
        parts = [_correlation(p, length, columns[c], others[c]) for (c, p), length in zip(term, lengths, strict=True)]
        total = total + variance * np.prod(parts, axis=0)
    return total


def _dense_elbo(shape, columns, y, w, theta, M, q):
    """log N(y | 0, Phi K^-1 Phi' + noise / w), counted as w rows each, less what the features miss."""
    terms, noise = _split(shape, theta)
    phi, K, _ = _all_written(shape, theta, M, q, columns)
    Q = phi @ np.linalg.solve(K, phi.T)
    evidence = multivariate_normal(np.zeros(y.size), 0.5 * (Q + Q.T) + np.diag(noise / w)).logpdf(y)
    counted = -0.5 * w.sum() * np.log(2 * np.pi * noise) + 0.5 * np.sum(np.log(2 * np.pi * noise / w))
    total = sum(variance for variance, _ in terms)
    return evidence + counted - 0.5 / noise * np.sum(w * (total - np.diagonal(Q)))


ON_LATTICE = [
    name for name, shape in SHAPES.items() if name == "levels" or all(c < 4 for term in shape for c, _ in term)
]
CASES = [(name, engine) for name in SHAPES for engine in ("dense", "nufft", "table", "auto")]


@pytest.mark.parametrize(("name", "engine"), [*CASES, *((name, "grid") for name in ON_LATTICE)])
def test_bound_of_the_paper_is_the_dense_formula(name, engine):
    """No edge functions: to 1e-9, whatever sums the rows."""
    columns, y, w = _lattice()
    shape, columns = _used(SHAPES[name], columns)
    if engine == "grid":  # a lattice in the columns that are used
        distinct = np.unique(np.stack(columns), axis=1, return_index=True)[1]
        columns, y, w = [x[distinct] for x in columns], y[distinct], w[distinct]
        if len(columns) == 1:
            order = np.argsort(columns[0])
            columns, y, w = [columns[0][order]], y[order], w[order]
    theta = _theta(shape)
    closed = _model(shape, columns, y, w, 2, 0, engine).at(theta)
    assert closed.elbo == pytest.approx(_dense_elbo(shape, columns, y, w, theta, 2, 0), rel=1e-9)


@pytest.mark.parametrize("engine", ["dense", "nufft", "auto"])
@pytest.mark.parametrize("name", SHAPES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=2)
def test_bound_with_edge_functions_is_the_dense_formula(name, engine, seed):
    columns, y, w = _rows(60, seed)
    shape, columns = _used(SHAPES[name], columns)
    M, theta = 1 if name == "four" else 2, _theta(shape, np.random.default_rng(seed))
    closed = _model(shape, columns, y, w, M, None, engine).at(theta)
    assert closed.elbo == pytest.approx(_dense_elbo(shape, columns, y, w, theta, M, None), rel=1e-8)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("one", "four")])
def test_bounds_hold_and_rise_with_M(name):
    columns, y, _ = _rows(40, 3)
    shape, columns = _used(SHAPES[name], columns)
    rng = np.random.default_rng(0)
    for theta in (_theta(shape), _theta(shape, rng), _theta(shape, rng)):
        K = _covariance(shape, theta, columns) + np.exp(theta[-1]) * np.eye(y.size)
        evidence = multivariate_normal(np.zeros(y.size), K).logpdf(y)
        slack, previous = 1e-7 * max(1.0, abs(evidence)), -np.inf
        for M in (1, 2, 4):
            closed = _model(shape, columns, y, np.ones(y.size), M).at(theta)
            assert previous - slack <= closed.elbo <= evidence + slack
            assert closed.upper_bound() >= evidence - slack
            previous = closed.elbo


@pytest.mark.parametrize("name", ["two", "three", "levels", "mains and product", "shared columns", "levels and all"])
@pytest.mark.parametrize("q", [0, None])
def test_gradient_against_differences(name, q):
    """Every hyperparameter of every factor, and the noise; of the bound, and of what it misses."""
    columns, y, w = _rows(60, 5)
    shape, columns = _used(SHAPES[name], columns)
    model, h = _model(shape, columns, y, w, 2, q), 1e-5
    theta = _theta(shape, np.random.default_rng(1))
    closed = model.at(theta)
    around = [[model.at(theta + sign * step) for sign in (1, -1)] for step in h * np.eye(theta.size)]
    for quantity, cotangents in (("elbo", closed.cotangents), ("bound_gap", closed.gap_cotangents)):
        differences = [(getattr(up, quantity) - getattr(down, quantity)) / (2 * h) for up, down in around]
        gradient = model.pull_back(theta, cotangents)
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["two", "levels", "mains and product", "one product twice", "levels and all"])
def test_posterior_is_the_dense_one_on_the_features(name):
    """Marginals, joint covariance, slopes and effects, inside, from c ~ N(m, A^-1) plus what the features miss."""
    columns, y, w = _rows(70, 8)
    new, _, _ = _rows(25, 9)
    shape, columns = _used(SHAPES[name], columns)
    _, new = _used(SHAPES[name], new)
    theta, M = _theta(shape), 2
    model = _model(shape, columns, y, w, M)
    posterior = model.posterior(model.at(theta), theta)
    phi, K, ends = _all_written(shape, theta, M, None, columns)
    here, _, _ = _all_written(shape, theta, M, None, new)
    inverse, prior = np.linalg.inv(K + phi.T @ (w[:, None] * phi) / NOISE), _covariance(shape, theta, new)
    m = inverse @ phi.T @ (w * y) / NOISE
    covariance = prior - here @ (np.linalg.inv(K) - inverse) @ here.T
    x = np.stack(new, axis=1)
    mean, variance = posterior.marginals(x)
    np.testing.assert_allclose(mean, here @ m, atol=1e-8)
    np.testing.assert_allclose(variance, np.diagonal(covariance), atol=1e-8)
    mean, joint = posterior.joint(x)
    np.testing.assert_allclose(mean, here @ m, atol=1e-8)
    np.testing.assert_allclose(joint, covariance, atol=1e-8)
    np.testing.assert_allclose(posterior.mean_at(x), here @ m, atol=1e-8)
    centre = (w @ phi) / w.sum()
    for s, term in enumerate(posterior.terms):
        own = slice(ends[s], ends[s + 1])
        mean, variance = posterior.effect(s, x, posterior.rows(x))
        away = here[:, own] - centre[own]
        bound_gap = term.variance - np.einsum("np,np->n", here[:, own], np.linalg.solve(K[own, own], here[:, own].T).T)
        np.testing.assert_allclose(mean, away @ m[own], atol=1e-8)
        np.testing.assert_allclose(
            variance, np.einsum("np,pq,nq->n", away, inverse[own, own], away) + bound_gap, atol=1e-8
        )


def test_slopes_are_those_of_the_dense_posterior():
    """cov of slopes = d2k/dxdz - dphi'(K^-1 - A^-1)dphi, all by differences of the written features and kernel."""
    shape = SHAPES["mains and product"]
    columns, y, w = _rows(80, 4)
    new, _, _ = _rows(12, 5)
    theta = _theta(shape)
    model = _model(shape, columns[:2], y, w, 3)
    posterior = model.posterior(model.at(theta), theta)
    phi, K, _ = _all_written(shape, theta, 3, None, columns)
    inverse = np.linalg.inv(K + phi.T @ (w[:, None] * phi) / NOISE)
    m, h = inverse @ phi.T @ (w * y) / NOISE, 1e-5
    for along in (0, 1):
        shifted = [[x + sign * h * (c == along) for c, x in enumerate(new)] for sign in (1, -1)]
        up, down = (_all_written(shape, theta, 3, None, moved)[0] for moved in shifted)
        slopes = (up - down) / (2 * h)
        terms, _ = _split(shape, theta)
        prior = 0.0
        for term, (variance, lengths) in zip(shape, terms, strict=True):
            for (c, p), length in zip(term, lengths, strict=True):
                if c == along and p is not None:  # -k''(0) of a Matérn
                    prior += variance * {1: 3.0, 2: 5.0 / 3.0}[p] / length**2
        mean, variance = posterior.slope(np.stack(new[:2], axis=1), along)
        np.testing.assert_allclose(mean, slopes @ m, atol=1e-6)
        explained = np.einsum("np,pq,nq->n", slopes, np.linalg.inv(K) - inverse, slopes)
        np.testing.assert_allclose(variance, prior - explained, rtol=1e-5, atol=1e-6)


def _tails(p, M, lengthscale, t):
    """cov(u, f(t)) of one column by its definition beyond the edges: the Matérn predicts from the state at the edge."""
    basis, kernel = ColumnBasis(M, p + 2), HalfInteger.from_lengthscale(p, lengthscale)
    prior, h = ColumnPrior(basis, p, kernel.rate), 1e-4
    rows = []
    for one in t:
        if abs(one) <= 1.0:
            rows.append(prior.transform.forward(basis.evaluate(np.array([one])).T)[:, 0])
            continue
        side = np.sign(one)
        states = [prior.transform.forward(basis.evaluate(np.array([side]), j).T)[:, 0] for j in range(p + 1)]
        # cov of f(one) with the value and the derivative at the edge, by differences of the kernel
        before, at, after = kernel.covariance(one - side - h * np.array([-1.0, 0.0, 1.0]))
        ahead = [at, (after - before) / (2 * h)][: p + 1]
        rows.append(np.stack(states, axis=1) @ np.linalg.solve(kernel.state_covariance(), ahead))
    return np.array(rows)


def test_features_outside_are_products_of_tails():
    """Outside in both columns, in one only, or in none."""
    shape = (((0, 1), (1, 0)),)
    columns, y, w = _rows(80, 4)
    theta = _theta(shape)
    model = _model(shape, columns[:2], y, w, 3)
    posterior = model.posterior(model.at(theta), theta)
    x = np.array([[1.4, 0.3], [-1.2, -0.5], [0.2, 1.7], [-1.3, -2.5], [0.1, 0.2], [1.01, -1.01]])
    ((_, lengths),) = _split(shape, theta)[0]
    left, right = _tails(1, 3, lengths[0], x[:, 0]), _tails(0, 3, lengths[1], x[:, 1])
    expected = np.array([np.kron(a, b) for a, b in zip(left, right, strict=True)])
    found = posterior.terms[0].features(x)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    mean, variance = posterior.marginals(x)
    np.testing.assert_allclose(mean, found @ posterior.mean, atol=1e-9)
    spread = posterior.prior_variance(x) - np.einsum("np,pq,nq->n", found, posterior.covariance.taken[0], found)
    np.testing.assert_allclose(variance, spread, atol=1e-9)


@pytest.mark.parametrize(("name", "M"), [("two", 14), ("mains and product", 12), ("levels", 40)])
def test_posterior_closes_on_the_exact_one(name, M):
    """Inside and outside. The mean is off by at most sqrt(2 gap) deviations, a variance by a share of 2 sqrt(gap)."""
    columns, y, _ = _rows(90, 2)
    new, _, _ = _rows(40, 6)
    new[0][:10] += 1.5
    new[1][5:15] -= 1.5
    shape, columns = _used(SHAPES[name], columns)
    _, new = _used(SHAPES[name], new)
    theta = _theta(shape)
    theta[-1] = np.log(0.5)
    model = _model(shape, columns, y, np.ones(90), M)
    closed = model.at(theta)
    K = _covariance(shape, theta, columns) + 0.5 * np.eye(90)
    gap = multivariate_normal(np.zeros(90), K).logpdf(y) - closed.elbo
    assert 0.0 <= gap < 0.05
    cross = _covariance(shape, theta, new, columns)
    exact = cross @ np.linalg.solve(K, y)
    covariance = _covariance(shape, theta, new) - cross @ np.linalg.solve(K, cross.T)
    posterior, x = model.posterior(closed, theta), np.stack(new, axis=1)
    mean, variance = posterior.marginals(x)
    spread = np.diagonal(covariance)
    assert np.all(np.abs(mean - exact) <= np.sqrt(2 * gap * spread) + 1e-6)
    np.testing.assert_allclose(variance, spread, rtol=2.5 * np.sqrt(gap))
    far = np.array([[30.0, 0.0]]) if name != "levels" else np.array([[30.0, 1.0]])
    mean, variance = posterior.marginals(far)
    if name == "mains and product":  # the main effect of the column that is inside is still known
        assert variance[0] < posterior.prior_variance(far)
        far = np.array([[30.0, -30.0]])
        mean, variance = posterior.marginals(far)
    assert variance[0] == pytest.approx(posterior.prior_variance(far), rel=1e-9)
    assert mean[0] == pytest.approx(0.0, abs=1e-9)


def test_turned_products_are_the_same_model():
    columns, y, w = _rows(60, 1)
    left, right = (((0, 1), (1, 2)), ((2, 1), (0, 0))), (((1, 2), (0, 1)), ((0, 0), (2, 1)))
    theta = np.log([0.9, 0.7, 1.2, 0.4, 0.5, 0.8, NOISE])
    turned = np.log([0.9, 1.2, 0.7, 0.4, 0.8, 0.5, NOISE])
    one, other = _model(left, columns[:3], y, w, 3).at(theta), _model(right, columns[:3], y, w, 3).at(turned)
    assert one.elbo == pytest.approx(other.elbo, rel=1e-11)


def test_missed_is_a_sum_over_terms():
    columns, y, w = _rows(60, 5)
    shape, columns = _used(SHAPES["levels and all"], columns)
    theta, model = _theta(shape), _model(shape, columns, y, w, 2)
    closed = model.at(theta)
    by_term = model.bound_gap_by_term(closed, theta)
    assert by_term.sum() == pytest.approx(closed.bound_gap, rel=1e-9)
    for s, (term, (variance, lengths)) in enumerate(zip(shape, _split(shape, theta)[0], strict=True)):
        phi, K = _term_written(term, 2, None, lengths, columns)
        left = variance * (1.0 - np.einsum("np,np->n", phi, np.linalg.solve(K, phi.T).T))
        assert by_term[s] == pytest.approx(0.5 / NOISE * (w @ left), rel=1e-8, abs=1e-9)
