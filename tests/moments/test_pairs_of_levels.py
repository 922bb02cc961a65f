"""Sums between two columns of many levels: those of the dense table, whatever is done with them."""

from unittest.mock import patch

import numpy as np
import pytest

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.missing.basis import MissingBasis, MissingDomain
from vff.linalg import SparseBlock
from vff.moments import ColumnRequest, MomentRequest, Moments, TermRequest, moments_of_arrays

N = 300


def request(order: tuple[int, int], *, gaps: bool) -> MomentRequest:
    one, two = (ColumnRequest(Codes(), LevelBasis(tuple(range(size)))) for size in (9, 6))
    if gaps:
        two = ColumnRequest(MissingDomain(two.domain), MissingBasis(two.basis))
    smooth = TermRequest((2,), (ColumnRequest(Interval(-1.0, 1.0), ColumnBasis(3, 2)),))
    terms = [TermRequest((0,), (one,)), TermRequest((1,), (two,))]
    return MomentRequest((terms[order[0]], smooth, terms[order[1]]))


def moments(sparse: bool, seed: int, order=(0, 1), *, gaps: bool = False) -> Moments:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 9, N).astype(float), rng.integers(0, 6, N).astype(float), rng.uniform(-1, 1, N)]
    if gaps:
        columns[1][rng.random(N) < 0.2] = np.nan
    with patch("vff.moments.gram.SPARSE_FROM", 1 if sparse else 10**9):
        return moments_of_arrays(request(order, gaps=gaps), columns, rng.normal(size=N), rng.uniform(0, 2, N))


OPERATIONS = {
    "as they are": lambda one, other: one,
    "added": lambda one, other: one + other,
    "taken away": lambda one, other: one + other - one,
    "scaled": lambda one, other: one.scaled(np.float64(0.3)),
    "blended": lambda one, other: one.blended(other, 0.2),
    "recentred": lambda one, other: one.recentred(0.7),
    "some terms": lambda one, other: one.terms((2, 0)),
    "more levels": lambda one, other: one.with_levels(0, 0, tuple(range(-3, 12))),
    "more levels of the other": lambda one, other: one.with_levels(2, 0, (9, 8, 5, 4, 3, 2, 1, 0)),
    "fewer harmonics": lambda one, other: one.restricted(((None,), (2,), (None,))),
}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_sums_are_those_of_the_table(name, order):
    if name.startswith("more levels") and order == (1, 0):
        return
    wanted = OPERATIONS[name](*(moments(False, seed, order) for seed in (0, 1)))
    both = [moments(True, seed, order) for seed in (0, 1)]
    with patch("vff.moments.gram.SPARSE_FROM", 1):
        found = OPERATIONS[name](*both)
    assert found.request == wanted.request
    assert any(isinstance(block, SparseBlock) for block in found.blocks.values())
    for pair, block in wanted.blocks.items():
        np.testing.assert_allclose(np.asarray(found.blocks[pair]), block, atol=1e-12)


def test_missing_values_are_a_level():
    found, wanted = moments(True, 0, gaps=True), moments(False, 0, gaps=True)
    assert isinstance(found.blocks[0, 2], SparseBlock)
    np.testing.assert_allclose(np.asarray(found.blocks[0, 2]), wanted.blocks[0, 2], atol=1e-12)


def test_a_table_that_grows_large_is_kept_by_its_pairs():
    small = moments(False, 0)
    with patch("vff.moments.gram.SPARSE_FROM", 60):
        large = small.with_levels(0, 0, tuple(range(20)))
    assert isinstance(large.blocks[0, 2], SparseBlock)
    np.testing.assert_allclose(np.asarray(large.blocks[0, 2])[:9], small.blocks[0, 2])


def test_no_rows_have_no_pairs():
    with patch("vff.moments.gram.SPARSE_FROM", 1):
        none = Moments.zero(request((0, 1), gaps=False)).blocks[0, 2]
    assert isinstance(none, SparseBlock)
    assert none.shape == (9, 6)
    assert none.entries.size == 0
