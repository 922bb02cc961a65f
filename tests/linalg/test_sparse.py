"""A matrix that is zero nearly everywhere is its dense self in all that is done with it."""

from dataclasses import replace

import numpy as np
import pytest

from vff.linalg import SparseBlock, entries_of


@pytest.fixture
def pair(rng):
    A, B = (rng.normal(size=(7, 5)) * (rng.random((7, 5)) < 0.3) for _ in range(2))
    return A, B


def test_arithmetic(pair, rng):
    A, B = pair
    a, b = map(SparseBlock.of, pair)
    factor = np.float64(-0.7)
    for found, wanted in (
        (a + b, A + B), (a - b, A - B), (a + -1.0 * a, 0.0 * A), (factor * a, factor * A), (a * 2, 2 * A),
        (a / 3.0, A / 3.0), (a.T, A.T), (a + B, A + B), (B + a, A + B),
    ):  # fmt: skip
        assert isinstance(found, SparseBlock)
        np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-15)
        found.check()
    v, u = rng.normal(size=(5, 2)), rng.normal(size=(3, 7))
    np.testing.assert_allclose(a @ v, A @ v, atol=1e-14)
    np.testing.assert_allclose(a @ v[:, 0], A @ v[:, 0], atol=1e-14)
    np.testing.assert_allclose(u @ a, u @ A, atol=1e-14)
    assert a.shape == (7, 5)
    assert (a - a).entries.size == 0


def test_rows_may_be_moved_among_more(pair):
    rows = np.array([8, 0, 3, 4, 1, 9, 2])
    wanted = np.zeros((10, 5))
    wanted[rows] = pair[0]
    np.testing.assert_array_equal(np.asarray(SparseBlock.of(pair[0]).placed(rows, (10, 5))), wanted)


@pytest.mark.parametrize("change", ["places", "order", "starts", "ends", "columns"])
def test_arrays_that_are_no_matrix_are_refused(change):
    good = SparseBlock.of(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    good.check()
    bad = {
        "places": replace(good, places=np.array([0, 3, 2])),
        "order": replace(good, places=np.array([1, 1, 2])),
        "starts": replace(good, starts=np.array([0, 4, 3])),
        "ends": replace(good, starts=np.array([0, 2, 2])),
        "columns": replace(good, columns=2),
    }[change]
    with pytest.raises(ValueError, match="expected"):
        bad.check()


def test_entries_of_a_block_of_another_shape_are_refused(pair):
    entries, shape = entries_of(SparseBlock.of(pair[0]), (7, 5))
    assert entries.shape == shape
    assert entries_of(pair[0], (7, 5))[0] is pair[0]
    with pytest.raises(ValueError, match="pairs of 7 and 6 levels"):
        entries_of(SparseBlock.of(pair[0]), (7, 6))
