"""A pass holds a few numbers per row of a chunk, not a few per row and feature."""

import tracemalloc

import numpy as np
import pytest

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.moments import (
    ENGINES,
    ColumnRequest,
    ColumnRows,
    DistinctValues,
    Job,
    MomentRequest,
    moments_of_arrays,
)
from vff.moments.engines import dense


def test_reading_tables_needs_little_beside_the_rows():
    N, rng = 2_000_000, np.random.default_rng(0)
    columns = [rng.integers(0, size, N).astype(float) for size in (24, 365, 1000)]
    request = MomentRequest.of_columns([ColumnRequest(Interval(0.0, 1000.0), ColumnBasis(20, 2)) for _ in columns])
    y, w = rng.normal(size=N), np.broadcast_to(1.0, N)
    tracemalloc.start()
    try:
        moments = moments_of_arrays(request, columns, y, w)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert moments.n == N
    assert peak < 300 * 2**20


@pytest.mark.parametrize("more", [1, 2])
def test_a_group_of_many_rows_is_written_out_in_pieces(more, monkeypatch):
    """Two levels in 60 000 rows beside 73 letters: a group at once would take more than 100 MiB."""
    monkeypatch.setattr(dense, "WRITTEN", 2**18)
    N, rng = 60_000, np.random.default_rng(0)
    place, bases = Interval(0.0, 1.0), [ColumnBasis(35, 2), ColumnBasis(2, 1)][:more]
    levels = ColumnRequest(Codes(), LevelBasis(("a", "b")))
    columns = [ColumnRows(ColumnRequest(place, basis), rng.uniform(size=N)) for basis in bases]
    columns.append(ColumnRows(levels, (rng.random(N) < 0.3).astype(float), DistinctValues(np.arange(2.0), 0.0, 1.0)))
    job, w = Job(tuple(column.basis.single for column in columns)), np.ones(N)
    tracemalloc.start()
    try:
        (sums,) = ENGINES["grouped"].sum(columns, [job], w, w)
        (values,) = ENGINES["grouped"].evaluate(columns, [job], [np.ones(job.shape)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.sum(sums) == pytest.approx(np.sum(values), rel=1e-9)
    assert peak < 40 * 2**20
