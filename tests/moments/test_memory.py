"""A pass holds a few numbers per row of a chunk, not a few per row and feature."""

import tracemalloc

import numpy as np

from vff.basis import ColumnBasis, Interval
from vff.moments import ColumnRequest, MomentRequest, read_arrays


def test_reading_tables_needs_little_beside_the_rows():
    N, rng = 2_000_000, np.random.default_rng(0)
    columns = [rng.integers(0, size, N).astype(float) for size in (24, 365, 1000)]
    request = MomentRequest.of_columns([ColumnRequest(Interval(0.0, 1000.0), ColumnBasis(20, 2)) for _ in columns])
    y, w = rng.normal(size=N), np.broadcast_to(1.0, N)
    tracemalloc.start()
    try:
        moments = read_arrays(request, columns, y, w)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert moments.n == N
    assert peak < 300 * 2**20
