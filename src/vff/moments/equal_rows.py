"""Equal rows taken together: where all columns have few distinct values, counts of their combinations say it all."""

from collections.abc import Sequence
from math import prod

import numpy as np

from vff.moments.distinct import DistinctValues, distinct_values_of
from vff.moments.plan import RowBlock

_CELLS_PER_ROW = 4  # combinations worth counting, relative to rows


def merge_equal_rows(
    source: RowBlock, extra: np.ndarray, distinct_values: Sequence[DistinctValues | None]
) -> tuple[RowBlock, np.ndarray]:
    """The different rows (columns, y and extra) with their weights summed; the same rows where most are different."""
    y_values, extra_values = distinct_values_of(source.y), _distinct_extra(extra)
    every = [*distinct_values, y_values, extra_values]
    if None in every:
        return source, extra
    found = [distinct for distinct in every if distinct is not None]
    shape = tuple(distinct.size for distinct in found)
    if prod(shape) > _CELLS_PER_ROW * source.n:
        return source, extra
    whole = slice(0, source.n)
    values = [*(source.column(c, whole) for c in range(len(distinct_values))), source.y, extra]
    cells = np.ravel_multi_index(
        [distinct.encode(column).astype(np.intp) for distinct, column in zip(found, values, strict=True)], shape
    )
    counts = np.bincount(cells, source.w, prod(shape))
    kept = np.flatnonzero(counts)
    *columns, y, extra = (
        distinct.values[codes] for distinct, codes in zip(found, np.unravel_index(kept, shape), strict=True)
    )
    return RowBlock(kept.size, lambda c, rows: columns[c][rows], y, counts[kept]), extra


def _distinct_extra(extra: np.ndarray) -> DistinctValues | None:
    """Distinct values; a constant has one."""
    return DistinctValues(extra[:1]) if extra.size and np.all(extra == extra[0]) else distinct_values_of(extra)
