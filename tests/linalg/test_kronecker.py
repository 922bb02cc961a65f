"""Kronecker products against np.kron and loops: tensors, partial contractions, derivatives of one factor."""

from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import ColumnBasis
from vff.features import ColumnPrior
from vff.linalg import (
    BorderedLowRank,
    Dense,
    DenseView,
    Diagonal,
    InverseView,
    Kronecker,
    OuterView,
    apply_along,
    contracted,
    factorise,
    product_rows,
)


def _factor(kind: int, seed: int):
    """A small prior, or that of levels."""
    rng = np.random.default_rng(seed)
    if kind == 0:
        return Diagonal(rng.uniform(0.3, 3.0, rng.integers(1, 5)))
    return ColumnPrior(ColumnBasis(int(rng.integers(1, 3)), kind - 1), kind - 1, float(rng.uniform(0.5, 6.0))).matrix()


@st.composite
def kronecker(draw):
    kinds = draw(st.lists(st.integers(0, 2), min_size=2, max_size=3))
    factors = tuple(_factor(kind, draw(st.integers(0, 99))) for kind in kinds)
    return Kronecker(factors, draw(st.floats(0.05, 20.0)))


def _symmetric(P: int, seed: int) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(P, P))
    return A @ A.T / P + np.eye(P)


def _contracted_by_loops(matrix, factors, d):
    """R[i, j] = sum over all indices whose d-th is i, and j, of M times the other factors' entries."""
    sizes = [len(factor) for factor in factors]
    result = np.zeros((sizes[d], sizes[d]))
    for a, left in enumerate(product(*map(range, sizes))):
        for b, right in enumerate(product(*map(range, sizes))):
            others = [factors[e][left[e], right[e]] for e in range(len(sizes)) if e != d]
            result[left[d], right[d]] += matrix[a, b] * np.prod(others)
    return result


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (3, 1), (2, 1, 3), (2, 2, 2)])
def test_contracted_is_the_loop(sizes, rng):
    factors = [_symmetric(size, size) for size in sizes]
    M = rng.normal(size=(np.prod(sizes),) * 2)
    M = M + M.T
    for d, found in enumerate(contracted(M, factors)):
        np.testing.assert_allclose(found, _contracted_by_loops(M, factors, d), rtol=1e-11, atol=1e-11)


def test_product_rows_run_fastest_in_the_last(rng):
    columns = [rng.normal(size=(6, size)) for size in (2, 3, 4)]
    found = product_rows(columns)
    for n in range(6):
        np.testing.assert_allclose(found[n], reduce(np.kron, [column[n] for column in columns]), rtol=1e-14)
    np.testing.assert_array_equal(product_rows(columns[:1]), columns[0])


def test_maps_along_axes_are_the_kronecker_product_of_their_matrices(rng):
    """Also when they change the size of an axis."""
    matrices = [rng.normal(size=shape) for shape in ((2, 3), (4, 2), (3, 3))]
    maps = [lambda v, A=A: A @ v for A in matrices]
    whole = reduce(np.kron, matrices)
    V = rng.normal(size=(18, 5))
    np.testing.assert_allclose(apply_along(V, (3, 2, 3), maps), whole @ V, atol=1e-12)
    np.testing.assert_allclose(apply_along(V[:, 0], (3, 2, 3), maps), whole @ V[:, 0], atol=1e-12)


@settings(max_examples=25)
@given(K=kronecker(), seed=st.integers(0, 10**6))
def test_every_verb_is_that_of_the_product_written_out(K, seed):
    rng, P = np.random.default_rng(seed), K.shape[0]
    dense = K.scale * reduce(np.kron, [factor.to_dense() for factor in K.factors])
    inverse, size = np.linalg.inv(dense), np.abs(dense).max()
    V, G = rng.normal(size=(P, 2)), _symmetric(P, seed)
    np.testing.assert_allclose(K.to_dense(), dense, rtol=1e-13)
    for v in (V, V[:, 0]):
        np.testing.assert_allclose(K.mv(v), dense @ v, rtol=0, atol=1e-12 * P * size)
        np.testing.assert_allclose(K.solve(v), inverse @ v, rtol=0, atol=1e-9 * np.abs(inverse).max())
    assert K.logdet() == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-9)
    assert K.trace_solve(Dense(G)) == pytest.approx(np.trace(inverse @ G), rel=1e-9)
    np.testing.assert_allclose(np.tril(K.lower_plus(G.copy())), np.tril(dense + G), rtol=1e-12, atol=1e-12 * size)


@settings(max_examples=15)
@given(K=kronecker(), seed=st.integers(0, 10**6))
def test_what_is_kept_are_the_partial_contractions(K, seed):
    """By whichever way the other matrix is seen."""
    rng, P = np.random.default_rng(seed), K.shape[0]
    written = [factor.to_dense() for factor in K.factors]
    inverse = np.linalg.inv(K.to_dense())
    X, Z, G = rng.normal(size=(P, 2)), rng.normal(size=(P, 2)), _symmetric(P, seed)
    ways = [
        (K.project(DenseView(G)), G),
        (K.project(OuterView(X, Z)), 0.5 * (X @ Z.T + Z @ X.T)),
        (K.project(InverseView(factorise(G))), np.linalg.inv(G)),
        (K.project_inverse(), inverse),
        (K.project_sandwich(Dense(G)), inverse @ G @ inverse),
    ]
    for cotangent, M in ways:
        for found, expected in zip(cotangent.parts, contracted(M, written), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * max(1e-300, np.abs(expected).max()))
        assert K.inner(cotangent) == pytest.approx(np.sum(K.to_dense() * M), rel=1e-8, abs=1e-9 * np.abs(M).sum())


def _change(factor, seed):
    """Some change of a factor, with the structure that derivatives have."""
    rng, P = np.random.default_rng(seed), factor.shape[0]
    if isinstance(factor, Diagonal):
        return Diagonal(rng.normal(size=P))
    corner, C = rng.normal(size=(1, 1)), rng.normal(size=(2, 2))
    return BorderedLowRank(
        rng.normal(size=P - 1), rng.normal(size=(P - 1, 1)), corner, rng.normal(size=(P, 2)), C + C.T
    )


@settings(max_examples=15)
@given(K=kronecker(), seed=st.integers(0, 10**6))
def test_a_change_of_one_factor_is_contracted_with_its_own_part(K, seed):
    P = K.shape[0]
    G = _symmetric(P, seed)
    inverse = np.linalg.inv(K.to_dense())
    for d, factor in enumerate(K.factors):
        change, written = _change(factor, seed), [other.to_dense() for other in K.factors]
        written[d] = change.to_dense()
        whole = K.scale * reduce(np.kron, written)
        for cotangent, M in ((K.project(DenseView(G)), G), (K.project_sandwich(Dense(G)), inverse @ G @ inverse)):
            expected = np.sum(whole * M)
            atol = 1e-9 * np.sum(np.abs(whole * M))
            assert K.inner_of_factor(change, cotangent, d) == pytest.approx(expected, abs=atol)


def test_derivatives_by_a_lengthscale_give_the_slopes_of_logdet_and_trace():
    """d log|K| and d tr(K^-1 G) through the rate of one factor, against differences along the derivative."""
    levels, column, h = Diagonal(np.arange(1.0, 6.0)), ColumnPrior(ColumnBasis(2, 2), 0, 2.0), 1e-5
    K, G, change = Kronecker((levels, column.matrix()), 0.7), _symmetric(35, 1), column.derivative("lengthscale")
    logdet = K.inner_of_factor(change, K.project_inverse(), 1)
    trace = -K.inner_of_factor(change, K.project_sandwich(Dense(G)), 1)
    direct = 0.7 * np.kron(levels.to_dense(), change.to_dense())
    moved = (K.to_dense() + h * direct, K.to_dense() - h * direct)
    assert logdet == pytest.approx(np.subtract(*[np.linalg.slogdet(A)[1] for A in moved]) / (2 * h), rel=1e-6)
    assert trace == pytest.approx(np.subtract(*[np.trace(np.linalg.solve(A, G)) for A in moved]) / (2 * h), rel=1e-6)
