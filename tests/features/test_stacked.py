"""The transforms of terms of one and of several columns, side by side, against the matrix they stand for."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

from vff.basis import ColumnBasis
from vff.features import ColumnPrior, EdgeTransform, StackedTransform, TermTransform


def _edges(M: int, q: int, p: int, rate: float) -> EdgeTransform:
    return ColumnPrior(ColumnBasis(M, q), p, rate).transform


def _levels(size: int) -> EdgeTransform:
    return EdgeTransform(np.zeros((0, size)))


STACKS = {
    "one column": ((_edges(4, 3, 1, 2.0),),),
    "two columns": ((_edges(3, 2, 0, 5.0),), (_edges(5, 4, 2, 0.7),)),
    "levels in the middle": ((_edges(2, 1, 0, 1.0),), (_levels(4),), (_edges(3, 3, 1, 9.0),)),
    "nothing to do": ((_levels(3),), (_edges(4, 0, 1, 2.0),)),
    "nothing to do in a product": ((_levels(3), _edges(1, 0, 1, 2.0)), (_levels(2),)),
    "a product": ((_edges(2, 2, 0, 5.0), _edges(1, 3, 1, 0.7)),),
    "a product of three": ((_edges(1, 1, 0, 3.0), _edges(1, 2, 0, 2.0), _edges(1, 1, 1, 9.0)),),
    "a product with levels first": ((_levels(3), _edges(2, 2, 1, 4.0)),),
    "a product with levels last": ((_edges(2, 3, 1, 4.0), _levels(2)),),
    "a product with a column without edges": ((_edges(2, 0, 1, 4.0), _edges(2, 2, 0, 1.0)),),
    "mains and products": (
        (_edges(3, 2, 0, 5.0),),
        (_edges(2, 1, 0, 1.0), _edges(1, 2, 0, 3.0)),
        (_levels(4),),
        (_levels(2), _edges(1, 1, 0, 8.0), _levels(2)),
    ),
}


def _factor_matrix(transform: EdgeTransform) -> np.ndarray:
    """T = [[I, 0], [X, I]], entry by entry."""
    q, H = transform.X.shape
    T = np.eye(H + q)
    for n in range(q):
        for h in range(H):
            T[H + n, h] = transform.X[n, h]
    return T


def _term_matrix(factors: tuple[EdgeTransform, ...]) -> np.ndarray:
    """T_1 x ... x T_D."""
    return reduce(np.kron, [_factor_matrix(factor) for factor in factors])


def _matrix(terms: tuple[tuple[EdgeTransform, ...], ...]) -> np.ndarray:
    """diag of the matrices of the terms."""
    return block_diag(*[_term_matrix(factors) for factors in terms])


def _stacked(terms: tuple[tuple[EdgeTransform, ...], ...]) -> StackedTransform:
    return StackedTransform(tuple(TermTransform(factors) for factors in terms))


@pytest.fixture(params=STACKS, ids=str)
def transforms(request):
    return STACKS[request.param]


def test_forward_and_transpose_are_the_matrix(transforms, rng):
    stacked, T = _stacked(transforms), _matrix(transforms)
    V = rng.normal(size=(len(T), 3))
    kept = V.copy()
    np.testing.assert_allclose(stacked.forward(V), T @ V, atol=1e-13)
    np.testing.assert_allclose(stacked.forward(V[:, 0]), T @ V[:, 0], atol=1e-13)
    np.testing.assert_allclose(stacked.transpose(V), T.T @ V, atol=1e-13)
    np.testing.assert_array_equal(V, kept)


def test_forward_and_transpose_are_adjoint(transforms, rng):
    stacked, P = _stacked(transforms), len(_matrix(transforms))
    u, v = rng.normal(size=P), rng.normal(size=P)
    assert u @ stacked.forward(v) == pytest.approx(stacked.transpose(u) @ v, rel=1e-12)


def test_gram_is_the_congruence_and_exactly_symmetric(transforms, rng):
    stacked, T = _stacked(transforms), _matrix(transforms)
    G = rng.normal(size=(len(T), len(T)))
    G = G + G.T
    kept = G.copy()
    total = stacked.gram(G)
    np.testing.assert_allclose(total, T @ G @ T.T, atol=1e-12)
    np.testing.assert_array_equal(total, total.T)
    np.testing.assert_array_equal(G, kept)


def test_one_column_is_the_transform_of_that_column(rng):
    alone = _edges(4, 3, 1, 2.0)
    v = rng.normal(size=12)
    stacked = _stacked(((alone,),))
    np.testing.assert_allclose(stacked.forward(v), alone.forward(v), atol=1e-14)
    np.testing.assert_allclose(stacked.transpose(v), alone.transpose(v), atol=1e-14)


@st.composite
def factors_of_a_term(draw):
    """One to three columns, levels among them."""
    kinds = draw(st.lists(st.integers(-1, 2), min_size=1, max_size=3))
    return tuple(
        _levels(draw(st.integers(1, 3))) if q < 0 else _edges(draw(st.integers(1, 2)), q, 1, draw(st.floats(0.1, 30.0)))
        for q in kinds
    )


@settings(max_examples=25)
@given(factors=factors_of_a_term(), seed=st.integers(0, 10**6))
def test_a_term_is_the_kronecker_product_of_its_columns(factors, seed):
    transform, T = TermTransform(factors), _term_matrix(factors)
    V = np.random.default_rng(seed).normal(size=(len(T), 3))
    kept, atol = V.copy(), 1e-12 * np.abs(T).sum(1).max()
    assert transform.size == len(T)
    assert transform.shape == tuple(len(_factor_matrix(factor)) for factor in factors)
    for v in (V, V[:, 0], np.asfortranarray(V), V[::-1, ::2]):
        np.testing.assert_allclose(transform.forward(v), T @ v, rtol=0, atol=atol)
        np.testing.assert_allclose(transform.transpose(v), T.T @ v, rtol=0, atol=1e-12 * np.abs(T).sum(0).max())
    np.testing.assert_array_equal(V, kept)
    transform.forward_in_place(V)
    np.testing.assert_allclose(V, T @ kept, rtol=0, atol=atol)


@settings(max_examples=20)
@given(terms=st.lists(factors_of_a_term(), min_size=1, max_size=3), seed=st.integers(0, 10**6))
def test_gram_of_any_terms(terms, seed):
    stacked, T = _stacked(tuple(terms)), _matrix(tuple(terms))
    G = np.random.default_rng(seed).normal(size=(len(T), len(T)))
    G = G + G.T
    total = stacked.gram(G)
    np.testing.assert_allclose(total, T @ G @ T.T, rtol=0, atol=1e-12 * np.abs(T).sum(1).max() ** 2)
    np.testing.assert_array_equal(total, total.T)


def test_products_of_features_go_to_products_of_features(rng):
    """T phi, for phi the products of two columns' features, is the products of the columns' own T phi."""
    priors = [ColumnPrior(ColumnBasis(3, 2), 0, 4.0), ColumnPrior(ColumnBasis(2, 3), 1, 0.8)]
    t = rng.uniform(-1.0, 1.0, (2, 9))
    raw = [prior.basis.evaluate(x) for prior, x in zip(priors, t, strict=True)]
    own = [prior.transform.forward(phi.T).T for prior, phi in zip(priors, raw, strict=True)]
    both = TermTransform(tuple(prior.transform for prior in priors))
    for n in range(9):
        found = both.forward(np.kron(raw[0][n], raw[1][n]))
        np.testing.assert_allclose(found, np.kron(own[0][n], own[1][n]), rtol=0, atol=1e-13)
