"""Every structured matrix obeys every law of its level, against its dense self, and so does every Gram matrix."""

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from tests.makers.operators import INVERTIBLE, blocks, grams, product, symmetric

import vff
from vff.basis import ColumnBasis
from vff.features import ColumnPrior
from vff.linalg import (
    AbstractInvertible,
    AbstractSymmetric,
    BlockDiagonal,
    BorderedLowRank,
    DenseView,
    InverseView,
    OuterView,
    factorise,
)


@pytest.fixture(params=INVERTIBLE, ids=str)
def K(request):
    return INVERTIBLE[request.param]


def test_mv_and_shape(K):
    dense = K.to_dense()
    V = np.random.default_rng(1).normal(size=(K.shape[0], 3))
    assert K.shape == dense.shape
    np.testing.assert_allclose(K.mv(V), dense @ V, rtol=1e-11, atol=1e-11 * np.abs(dense).max())
    np.testing.assert_allclose(K.mv(V[:, 0]), dense @ V[:, 0], rtol=1e-11, atol=1e-11 * np.abs(dense).max())


def test_solve_undoes_mv(K):
    v = np.random.default_rng(2).normal(size=K.shape[0])
    np.testing.assert_allclose(K.solve(K.mv(v)), v, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(K.solve(np.outer(K.mv(v), [1.0, 2.0])), np.outer(v, [1.0, 2.0]), rtol=1e-8, atol=1e-8)


def _assert_same_cotangent(found, expected, tolerance):
    """Part by part, relative to the largest number of the part."""
    assert len(found.parts) == len(expected.parts)
    for mine, theirs in zip(found.parts, expected.parts, strict=True):
        if isinstance(theirs, np.ndarray):
            size = max(np.abs(theirs).max(), 1e-300) if theirs.size else 1.0
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * size)
        else:
            _assert_same_cotangent(mine, theirs, tolerance)


def test_logdet_and_own_inverse(K):
    dense = K.to_dense()
    inverse = np.linalg.inv(dense)
    assert K.logdet() == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-9)
    _assert_same_cotangent(K.project_inverse(), K.project(DenseView(inverse)), 1e-8)
    assert K.inner(K.project_inverse()) == pytest.approx(K.shape[0], rel=1e-8)


@pytest.mark.parametrize("structure", ["dense", "diagonal", "blocks", "sparse blocks"])
def test_trace_solve_and_sandwich(K, structure):
    """With a Gram matrix of any structure."""
    sizes = tuple(block.shape[0] for block in K.blocks) if hasattr(K, "blocks") else (K.shape[0],)
    dense, gram = K.to_dense(), grams(sizes)[structure]
    G = gram.dense()
    inverse = np.linalg.inv(dense)
    assert K.trace_solve(gram) == pytest.approx(np.trace(inverse @ G), rel=1e-9)
    sandwich = inverse @ G @ inverse
    assert K.inner(K.project_sandwich(gram)) == pytest.approx(np.sum(dense * sandwich), rel=1e-8)
    _assert_same_cotangent(K.project_sandwich(gram), K.project(DenseView(sandwich)), 1e-8)


def test_views_of_the_same_matrix_are_seen_alike(K):
    rng, P = np.random.default_rng(4), K.shape[0]
    X, Z, G = rng.normal(size=(P, 3)), rng.normal(size=(P, 3)), symmetric(P) + np.eye(P)
    outer = 0.5 * (X @ Z.T + Z @ X.T)
    _assert_same_cotangent(K.project(OuterView(X, Z)), K.project(DenseView(outer)), 1e-11)
    inverse = np.linalg.inv(G)
    _assert_same_cotangent(K.project(InverseView(factorise(G))), K.project(DenseView(inverse)), 1e-8)
    dense = K.to_dense()
    assert K.inner(K.project(OuterView(X, Z))) == pytest.approx(np.sum(dense * outer), rel=1e-9, abs=1e-9)
    assert K.inner(K.project(InverseView(factorise(G)))) == pytest.approx(np.sum(dense * inverse), rel=1e-8)


def test_summaries_are_linear(K):
    rng, P = np.random.default_rng(5), K.shape[0]
    G, X = symmetric(P), rng.normal(size=(P, 2))
    both = K.project(DenseView(G)) + -2.5 * K.project(OuterView(X, X))
    _assert_same_cotangent(both, K.project(DenseView(G - 2.5 * X @ X.T)), 1e-11)
    assert K.inner(both) == pytest.approx(np.sum(K.to_dense() * (G - 2.5 * X @ X.T)), rel=1e-9, abs=1e-8)


def test_lower_plus_and_inner(K):
    dense, G = K.to_dense(), symmetric(K.shape[0])
    np.testing.assert_allclose(np.tril(K.lower_plus(G.copy())), np.tril(dense + G), rtol=1e-11, atol=1e-12)
    assert K.inner(K.project(DenseView(G))) == pytest.approx(np.sum(dense * G), rel=1e-10)


def test_indefinite_operator_obeys_the_laws_of_its_level(rng):
    Z, C = rng.normal(size=(8, 2)), np.array([[-1.0, 0.3], [0.3, 0.5]])
    corner = rng.normal(size=(2, 2))
    K = BorderedLowRank(rng.normal(size=6), rng.normal(size=(6, 2)), corner + corner.T, Z, C)
    dense, G = K.to_dense(), symmetric(8)
    np.testing.assert_allclose(np.tril(K.lower_plus(G.copy())), np.tril(dense + G), rtol=1e-11, atol=1e-12)
    assert K.inner(K.project(DenseView(G))) == pytest.approx(np.sum(dense * G), rel=1e-10)
    np.testing.assert_allclose(K.mv(np.eye(8)), dense, rtol=1e-12)


def test_scaled(K):
    np.testing.assert_allclose(K.scaled(3.5).to_dense(), 3.5 * K.to_dense(), rtol=1e-12)
    assert K.scaled(3.5).logdet() == pytest.approx(K.logdet() + K.shape[0] * np.log(3.5), abs=1e-9)


def test_block_diagonal_is_its_blocks_and_zeros():
    K = blocks()
    dense, start = np.zeros(K.shape), 0
    for block in K.blocks:
        stop = start + block.shape[0]
        dense[start:stop, start:stop] = block.to_dense()
        start = stop
    assert [place.stop - place.start for place in K.slices] == [9, 4, 11]
    np.testing.assert_array_equal(K.to_dense(), dense)


def test_a_block_sees_its_part_of_a_summary():
    K = BlockDiagonal((*blocks().blocks, product()))
    G = symmetric(K.shape[0])
    cotangent = K.project(DenseView(G))
    for number, (block, place) in enumerate(zip(K.blocks, K.slices, strict=True)):
        own = G[place, place]
        part = K.part(cotangent, number)
        _assert_same_cotangent(part, block.project(DenseView(own)), 1e-14)
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
    size = np.sqrt(np.diagonal(prior.to_dense()))
    lower = np.tril(prior.lower_plus(np.zeros((P, P))))
    np.testing.assert_allclose(
        lower / np.outer(size, size), np.tril(prior.to_dense()) / np.outer(size, size), atol=1e-13
    )
    assert factorise(prior.lower_plus(np.zeros((P, P)))).logdet() == pytest.approx(prior.logdet(), abs=1e-8)


def test_every_structure_has_a_maker():
    made = {type(own) for K in INVERTIBLE.values() for own in (K, *getattr(K, "blocks", ()))}
    assert made == {kind for kind in leaves(AbstractInvertible) if kind.__module__.startswith("vff.")}
    made = {type(own) for own in grams((3, 2)).values()}
    assert made == {kind for kind in leaves(AbstractSymmetric) if kind.__module__.startswith("vff.linalg")}


def leaves(kind: type) -> list[type]:
    below = [leaf for own in kind.__subclasses__() for leaf in leaves(own)]
    return below or [kind]


@pytest.mark.parametrize("structure", ["dense", "diagonal", "blocks", "sparse blocks"])
@pytest.mark.parametrize("sizes", [(5,), (3, 4, 2)])
def test_a_gram_matrix_is_its_dense_self(structure, sizes, rng):
    gram, P = grams(sizes)[structure], sum(sizes)
    G = gram.dense()
    assert gram.shape == G.shape == (P, P)
    np.testing.assert_array_equal(G, G.T)
    V = rng.normal(size=(P, 3))
    np.testing.assert_allclose(gram @ V, G @ V, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(gram @ V[:, 0], G @ V[:, 0], rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(gram.diagonal(), np.diagonal(G))
    ends = np.cumsum([0, *sizes])
    for start, stop in [*itertools.pairwise(ends.tolist()), (1, P)]:
        np.testing.assert_array_equal(gram.part(slice(start, stop)).dense(), G[start:stop, start:stop])
    X = rng.normal(size=(P, 1))
    scale = rng.uniform(0.5, 2.0, P)
    assert gram.least_eigenvalue(scale) == pytest.approx(np.linalg.eigvalsh(G / np.outer(scale, scale))[0], abs=1e-12)
    bordered = np.block([[G, X], [X.T, np.array([[4.0]])]])
    found = gram.least_eigenvalue(np.ones(P + 1), (X[:, 0], 4.0))
    assert found == pytest.approx(np.linalg.eigvalsh(bordered)[0], abs=1e-12)


def test_views_show_the_same_entries_as_their_matrix(rng):
    A = symmetric(6) + np.eye(6)
    for view in (DenseView(A), OuterView(*rng.normal(size=(2, 6, 2))), InverseView(factorise(A))):
        written = view.written()
        np.testing.assert_allclose(view.diagonal(), np.diagonal(written), rtol=1e-12)
        rows, columns = rng.integers(0, 6, (2, 4, 5))
        np.testing.assert_allclose(view.at(rows, columns), written[rows, columns], rtol=1e-12, atol=1e-14)
        V = rng.normal(size=(3, 2))
        np.testing.assert_allclose(view.times(np.eye(6)), written, rtol=1e-12, atol=1e-14)
        for own, part in zip(slices := (slice(0, 3), slice(3, 6)), view.parts(slices, [V, V]), strict=True):
            np.testing.assert_allclose(part.diagonal(), np.diagonal(written)[own], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(part.times(V), written[own, own] @ V, rtol=1e-12, atol=1e-14)
        for own, part in zip(slices, view.parts(slices, [None, None]), strict=True):
            np.testing.assert_allclose(part.written(), written[own, own], rtol=1e-12, atol=1e-14)


_SOLVERS = ("cotangents", "crossed", "direct", "eliminated", "low_rank")
FACTORED = {"inference/methods/chains/density.py", *(f"inference/solvers/{name}.py" for name in _SOLVERS)}
"""The direct solver and that of few rows, how the noise beside error bars moves them, and chains that factor so."""


def test_only_who_factors_a_gram_matrix_asks_for_all_of_it():
    root, found = Path(vff.__file__).parent, set()
    for path in root.rglob("*.py"):
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(isinstance(own, ast.Attribute) and own.attr == "dense" for own in calls):
            found.add(path.relative_to(root).as_posix())
    assert {name for name in found if not name.startswith("linalg/")} == FACTORED
