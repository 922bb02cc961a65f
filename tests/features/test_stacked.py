"""The transforms of several columns side by side, against the matrix they stand for."""

import numpy as np
import pytest

from vff.basis import ColumnBasis
from vff.features import ColumnPrior, EdgeTransform, StackedTransform


def _edges(M: int, q: int, p: int, rate: float) -> EdgeTransform:
    return ColumnPrior(ColumnBasis(M, q), p, rate).transform


def _levels(size: int) -> EdgeTransform:
    return EdgeTransform(np.zeros((0, size)))


STACKS = {
    "one column": (_edges(4, 3, 1, 2.0),),
    "two columns": (_edges(3, 2, 0, 5.0), _edges(5, 4, 2, 0.7)),
    "levels in the middle": (_edges(2, 1, 0, 1.0), _levels(4), _edges(3, 3, 1, 9.0)),
    "nothing to do": (_levels(3), _edges(4, 0, 1, 2.0)),
}


def _matrix(transforms: tuple[EdgeTransform, ...]) -> np.ndarray:
    """diag(T_1, ..., T_S) with T = [[I, 0], [X, I]], entry by entry."""
    P = sum(sum(transform.X.shape) for transform in transforms)
    T, start = np.eye(P), 0
    for transform in transforms:
        q, H = transform.X.shape
        for n in range(q):
            for h in range(H):
                T[start + H + n, start + h] = transform.X[n, h]
        start += H + q
    return T


@pytest.fixture(params=STACKS, ids=str)
def transforms(request):
    return STACKS[request.param]


def test_forward_and_transpose_are_the_matrix(transforms, rng):
    stacked, T = StackedTransform(transforms), _matrix(transforms)
    V = rng.normal(size=(len(T), 3))
    kept = V.copy()
    np.testing.assert_allclose(stacked.forward(V), T @ V, atol=1e-13)
    np.testing.assert_allclose(stacked.forward(V[:, 0]), T @ V[:, 0], atol=1e-13)
    np.testing.assert_allclose(stacked.transpose(V), T.T @ V, atol=1e-13)
    np.testing.assert_array_equal(V, kept)


def test_forward_and_transpose_are_adjoint(transforms, rng):
    stacked, P = StackedTransform(transforms), len(_matrix(transforms))
    u, v = rng.normal(size=P), rng.normal(size=P)
    assert u @ stacked.forward(v) == pytest.approx(stacked.transpose(u) @ v, rel=1e-12)


def test_gram_is_the_congruence_and_exactly_symmetric(transforms, rng):
    stacked, T = StackedTransform(transforms), _matrix(transforms)
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
    stacked = StackedTransform((alone,))
    np.testing.assert_allclose(stacked.forward(v), alone.forward(v), atol=1e-14)
    np.testing.assert_allclose(stacked.transpose(v), alone.transpose(v), atol=1e-14)
