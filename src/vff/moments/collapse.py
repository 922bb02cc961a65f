"""Equal rows taken together: where all columns have few distinct values, counts of their combinations say it all."""

from collections.abc import Sequence
from math import prod

import numpy as np

from vff.moments.lattice import Codebook, codebook_of
from vff.moments.planning import Source

_CELLS_PER_ROW = 4  # combinations worth counting, relative to rows


def collapse(source: Source, extra: np.ndarray, books: Sequence[Codebook | None]) -> tuple[Source, np.ndarray]:
    """The different rows (columns, y and extra) with their weights summed; the same rows where most are different."""
    y_book, extra_book = codebook_of(source.y), _book_of_extra(extra)
    every = [*books, y_book, extra_book]
    if None in every:
        return source, extra
    found = [book for book in every if book is not None]
    shape = tuple(book.size for book in found)
    if prod(shape) > _CELLS_PER_ROW * source.n:
        return source, extra
    whole = slice(0, source.n)
    values = [*(source.column(c, whole) for c in range(len(books))), source.y, extra]
    cells = np.ravel_multi_index(
        [book.encode(column).astype(np.intp) for book, column in zip(found, values, strict=True)], shape
    )
    counts = np.bincount(cells, source.w, prod(shape))
    kept = np.flatnonzero(counts)
    *columns, y, extra = (book.values[codes] for book, codes in zip(found, np.unravel_index(kept, shape), strict=True))
    return Source(kept.size, lambda c, rows: columns[c][rows], y, counts[kept]), extra


def _book_of_extra(extra: np.ndarray) -> Codebook | None:
    """Distinct values; a constant has one."""
    return Codebook(extra[:1]) if extra.size and np.all(extra == extra[0]) else codebook_of(extra)
