"""Every structured matrix obeys every law of its level, against its dense self."""

import numpy as np
import pytest

from vff.basis import ColumnBasis
from vff.features import ColumnPrior
from vff.linalg import (
    BlockDiagonal,
    BorderedLowRank,
    Dense,
    DenseView,
    Diagonal,
    InverseView,
    Kronecker,
    OuterView,
    PositiveBorderedLowRank,
    factorise,
)


def _positive(H: int, Q: int, R: int) -> PositiveBorderedLowRank:
    rng = np.random.default_rng(H + 10 * Q + 100 * R)
    C = rng.normal(size=(R, R + 2))
    return PositiveBorderedLowRank(
        rng.uniform(0.5, 3.0, H),
        rng.normal(size=(H, Q)),
        np.tril(rng.normal(size=(Q, Q))) + 2.0 * np.eye(Q),
        rng.normal(size=(H + Q, R)),
        C @ C.T,
    )


def _dense() -> Dense:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(7, 12))
    return Dense(A @ A.T)


def _diagonal(P: int) -> Diagonal:
    return Diagonal(np.random.default_rng(P).uniform(0.2, 4.0, P))


def _blocks() -> BlockDiagonal:
    """The prior of two Matérn terms and of a column of levels."""
    first, second = ColumnPrior(ColumnBasis(3, 2), 1, 2.0), ColumnPrior(ColumnBasis(5, 0), 0, 7.0)
    return BlockDiagonal((first.matrix().scaled(0.7), _diagonal(4), second.matrix()))


def _product() -> Kronecker:
    """The prior of a product of two Matérns."""
    first, second = ColumnPrior(ColumnBasis(2, 2), 1, 2.0), ColumnPrior(ColumnBasis(1, 1), 0, 5.0)
    return Kronecker((first.matrix(), second.matrix()), 0.6)


INVERTIBLE = {
    "diagonal and low rank": _positive(9, 0, 2),
    "with border": _positive(9, 3, 2),
    "rank one": _positive(5, 1, 1),
    "prior, paper": ColumnPrior(ColumnBasis(4, 0), 1, 2.0).matrix(),
    "prior, edges": ColumnPrior(ColumnBasis(4, 4), 2, 3.0).matrix(),
    "prior, short lengthscale": ColumnPrior(ColumnBasis(8, 2), 0, 500.0).matrix(),
    "dense": _dense(),
    "diagonal": _diagonal(6),
    "one level": _diagonal(1),
    "block diagonal": _blocks(),
    "block diagonal, one block": BlockDiagonal((_positive(9, 3, 2),)),
    "block diagonal, with a dense block": BlockDiagonal((_dense(), _positive(5, 1, 1))),
    "block diagonal, levels alone": BlockDiagonal((_diagonal(3), _diagonal(2))),
    "kronecker": _product(),
    "kronecker, levels first": Kronecker((_diagonal(3), _positive(5, 1, 1)), 2.5),
    "kronecker, levels last": Kronecker((_positive(4, 2, 2), _diagonal(2))),
    "kronecker, levels alone": Kronecker((_diagonal(3), _diagonal(4)), 0.1),
    "kronecker of three": Kronecker((_positive(3, 1, 1), _diagonal(2), _positive(2, 1, 2)), 1.3),
    "kronecker of one": Kronecker((_positive(5, 2, 2),), 0.4),
    "block diagonal, with products": BlockDiagonal((_positive(5, 1, 1), _product(), _diagonal(4))),
}


def _symmetric(P: int) -> np.ndarray:
    A = np.random.default_rng(P).normal(size=(P, P))
    return A @ A.T


@pytest.fixture(params=INVERTIBLE, ids=str)
def K(request):
    return INVERTIBLE[request.param]


def test_mv_diagonal_and_shape(K):
    dense = K.to_dense()
    V = np.random.default_rng(1).normal(size=(K.shape[0], 3))
    assert K.shape == dense.shape
    np.testing.assert_allclose(K.mv(V), dense @ V, rtol=1e-11, atol=1e-11 * np.abs(dense).max())
    np.testing.assert_allclose(K.mv(V[:, 0]), dense @ V[:, 0], rtol=1e-11, atol=1e-11 * np.abs(dense).max())
    np.testing.assert_allclose(K.diagonal(), np.diagonal(dense), rtol=1e-12)


def test_solve_undoes_mv(K):
    v = np.random.default_rng(2).normal(size=K.shape[0])
    np.testing.assert_allclose(K.solve(K.mv(v)), v, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(K.solve(np.outer(K.mv(v), [1.0, 2.0])), np.outer(v, [1.0, 2.0]), rtol=1e-8, atol=1e-8)


def _assert_same_summary(found, expected, tolerance):
    """Part by part, relative to the largest number of the part."""
    assert len(found.parts) == len(expected.parts)
    for mine, theirs in zip(found.parts, expected.parts, strict=True):
        if isinstance(theirs, np.ndarray):
            size = max(np.abs(theirs).max(), 1e-300) if theirs.size else 1.0
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * size)
        else:
            _assert_same_summary(mine, theirs, tolerance)


def test_logdet_and_own_inverse(K):
    dense = K.to_dense()
    inverse = np.linalg.inv(dense)
    assert K.logdet() == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-9)
    _assert_same_summary(K.see_inverse(), K.see(DenseView(inverse)), 1e-8)
    assert K.inner(K.see_inverse()) == pytest.approx(K.shape[0], rel=1e-8)


def test_trace_solve_and_sandwich(K):
    dense, G = K.to_dense(), _symmetric(K.shape[0])
    inverse = np.linalg.inv(dense)
    assert K.trace_solve(G) == pytest.approx(np.trace(inverse @ G), rel=1e-9)
    sandwich = inverse @ G @ inverse
    assert K.inner(K.see_sandwich(G)) == pytest.approx(np.sum(dense * sandwich), rel=1e-8)
    _assert_same_summary(K.see_sandwich(G), K.see(DenseView(sandwich)), 1e-8)


def test_views_of_the_same_matrix_are_seen_alike(K):
    rng, P = np.random.default_rng(4), K.shape[0]
    X, Z, G = rng.normal(size=(P, 3)), rng.normal(size=(P, 3)), _symmetric(P) + np.eye(P)
    outer = 0.5 * (X @ Z.T + Z @ X.T)
    _assert_same_summary(K.see(OuterView(X, Z)), K.see(DenseView(outer)), 1e-11)
    inverse = np.linalg.inv(G)
    _assert_same_summary(K.see(InverseView(factorise(G))), K.see(DenseView(inverse)), 1e-8)
    dense = K.to_dense()
    assert K.inner(K.see(OuterView(X, Z))) == pytest.approx(np.sum(dense * outer), rel=1e-9, abs=1e-9)
    assert K.inner(K.see(InverseView(factorise(G)))) == pytest.approx(np.sum(dense * inverse), rel=1e-8)


def test_summaries_are_linear(K):
    rng, P = np.random.default_rng(5), K.shape[0]
    G, X = _symmetric(P), rng.normal(size=(P, 2))
    both = K.see(DenseView(G)) + -2.5 * K.see(OuterView(X, X))
    _assert_same_summary(both, K.see(DenseView(G - 2.5 * X @ X.T)), 1e-11)
    assert K.inner(both) == pytest.approx(np.sum(K.to_dense() * (G - 2.5 * X @ X.T)), rel=1e-9, abs=1e-8)


def test_square_root(K):
    dense = K.to_dense()
    R = K.sqrt_mv(np.eye(K.sqrt_size))
    assert R.shape == (K.shape[0], K.sqrt_size)
    np.testing.assert_allclose(R @ R.T, dense, rtol=1e-11, atol=1e-12 * np.abs(dense).max())
    np.testing.assert_allclose(K.sqrt_mv(np.ones(K.sqrt_size)), R.sum(1), rtol=1e-11, atol=1e-11 * np.abs(R).max())


def test_lower_plus_and_inner(K):
    dense, G = K.to_dense(), _symmetric(K.shape[0])
    np.testing.assert_allclose(np.tril(K.lower_plus(G.copy())), np.tril(dense + G), rtol=1e-11, atol=1e-12)
    assert K.inner(K.see(DenseView(G))) == pytest.approx(np.sum(dense * G), rel=1e-10)


def test_indefinite_operator_obeys_the_laws_of_its_level(rng):
    Z, C = rng.normal(size=(8, 2)), np.array([[-1.0, 0.3], [0.3, 0.5]])
    corner = rng.normal(size=(2, 2))
    K = BorderedLowRank(rng.normal(size=6), rng.normal(size=(6, 2)), corner + corner.T, Z, C)
    dense, G = K.to_dense(), _symmetric(8)
    np.testing.assert_allclose(np.tril(K.lower_plus(G.copy())), np.tril(dense + G), rtol=1e-11, atol=1e-12)
    assert K.inner(K.see(DenseView(G))) == pytest.approx(np.sum(dense * G), rel=1e-10)
    np.testing.assert_allclose(K.mv(np.eye(8)), dense, rtol=1e-12)
    np.testing.assert_allclose(K.diagonal(), np.diagonal(dense), rtol=1e-12)


def test_scaled(K):
    np.testing.assert_allclose(K.scaled(3.5).to_dense(), 3.5 * K.to_dense(), rtol=1e-12)
    assert K.scaled(3.5).logdet() == pytest.approx(K.logdet() + K.shape[0] * np.log(3.5), abs=1e-9)


def test_block_diagonal_is_its_blocks_and_zeros():
    K = _blocks()
    dense, start = np.zeros(K.shape), 0
    for block in K.blocks:
        stop = start + block.shape[0]
        dense[start:stop, start:stop] = block.to_dense()
        start = stop
    assert [place.stop - place.start for place in K.places] == [9, 4, 11]
    np.testing.assert_array_equal(K.to_dense(), dense)


def test_a_block_sees_its_part_of_a_summary():
    K = BlockDiagonal((*_blocks().blocks, _product()))
    G = _symmetric(K.shape[0])
    summary = K.see(DenseView(G))
    for number, (block, place) in enumerate(zip(K.blocks, K.places, strict=True)):
        own = G[place, place]
        part = K.part(summary, number)
        _assert_same_summary(part, block.see(DenseView(own)), 1e-14)
        if block.probes is not None and len(part.parts) == 2:
            diagonal, image = part.arrays()
            np.testing.assert_allclose(diagonal, np.diagonal(own), rtol=1e-14)
            np.testing.assert_allclose(image, own @ block.probes, rtol=1e-11, atol=1e-11)
        assert block.inner(part) == pytest.approx(np.sum(block.to_dense() * own), rel=1e-10)


@pytest.mark.parametrize(("p", "M", "rate"), [(4, 110, 191.0), (4, 40, 2.0), (2, 300, 900.0)])
def test_a_prior_is_assembled_as_accurately_as_its_diagonal(p: int, M: int, rate: float):
    """Edge functions are tens of decades smaller than harmonics, and a factor knows of no scale but the diagonal's."""
    prior = ColumnPrior(ColumnBasis(M, p + 2), p, rate).matrix()
    P = prior.shape[0]
    size = np.sqrt(prior.diagonal())
    lower = np.tril(prior.lower_plus(np.zeros((P, P))))
    np.testing.assert_allclose(
        lower / np.outer(size, size), np.tril(prior.to_dense()) / np.outer(size, size), atol=1e-13
    )
    assert factorise(prior.lower_plus(np.zeros((P, P)))).logdet() == pytest.approx(prior.logdet(), abs=1e-8)
