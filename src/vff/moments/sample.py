"""Some of the rows, chosen by what is in them: the same ones whatever their order, their partition and their format.

A row is kept when a hash of what is in it is small. Equal rows share a hash, so they are taken together, as one row
with the sum of their weights. When more different rows are kept than there is room for, the bound on the hash is
halved; the last bound depends on the set of rows alone. Two samples merge into the sample of all their rows. Where
all columns have few distinct values, equal rows are taken together by counting, and none is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from typing import Any, NamedTuple

import numpy as np

from vff.moments.distinct import DistinctValues, distinct_values_of
from vff.moments.plan import RowBlock

_BLOCK = 2**15  # rows that are hashed at once, within a cache
_PIECE = 2**20
LARGEST_SAMPLE = 2**17  # different rows
_CELLS_PER_ROW = 4  # combinations worth counting, relative to rows
_WORTH_SORTING = 2**14  # rows
_HALVINGS, _TIES = 4, 2.0  # of the rows that are looked at for ties; rows per different one that are worth sorting
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # odd, with bits all over
_DOWN, _LESS = np.uint64(32), np.uint64(29)


class Profile(NamedTuple):
    """One column beside y: rows, or the values of the column with the mean of y at each; (N,) all."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray
    within: np.ndarray
    """sum w (y - mean)^2 over the rows that an entry stands for; zero for a row."""

    @property
    def numbers(self) -> "Profile":
        """Without what is missing."""
        there = ~np.isnan(self.x)
        return self if there.all() else Profile(*(part[there] for part in self))


@dataclass(frozen=True)
class Sample:
    """Different rows with the sums of their weights."""

    columns: tuple[np.ndarray, ...]
    y: np.ndarray
    extra: np.ndarray
    """What a likelihood takes from every row beside y."""
    w: np.ndarray
    hashes: np.ndarray
    """As int64, for files; the order of unsigned numbers is the one that counts."""
    halvings: int = 0
    """Rows are here whose hash is below 2^(64 - halvings)."""
    offset: np.ndarray | None = None
    """What is added to the function at every row, where something is."""

    @property
    def complete(self) -> bool:
        """Whether all rows are here."""
        return self.halvings == 0

    @property
    def source(self) -> RowBlock:
        """The rows, to be read."""
        return RowBlock(self.y.size, lambda c, rows: self.columns[c][rows], self.y, self.w)

    def profile(self, c: int) -> Profile:
        """The rows of one column."""
        return Profile(self.columns[c], self.y, self.w, np.zeros(self.y.size))

    def merged(self, other: "Sample") -> "Sample":
        """The sample of the rows of both."""
        halvings = max(self.halvings, other.halvings)
        parts = [part._thinned(halvings) for part in (self, other)]
        columns = tuple(np.concatenate(pair) for pair in zip(*(part.columns for part in parts), strict=True))
        y, extra, w, hashes = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "extra", "w", "hashes")
        )
        offsets = [part.offset for part in parts if part.offset is not None]
        offset = np.concatenate(offsets) if offsets else None
        return _fitted(Sample(columns, y, extra, w, hashes, halvings, offset))

    def _taken(self, rows: np.ndarray) -> "Sample":
        own = (self.y[rows], self.extra[rows], self.w[rows], self.hashes[rows])
        offset = None if self.offset is None else self.offset[rows]
        return Sample(tuple(column[rows] for column in self.columns), *own, self.halvings, offset)

    def _thinned(self, halvings: int) -> "Sample":
        if halvings == self.halvings:
            return self
        return replace(self._taken(_below(self.hashes, halvings)), halvings=halvings)


def sample_of(
    source: RowBlock, extra: np.ndarray, levels: Sequence[Sequence[Any] | None], offset: np.ndarray | None = None
) -> Sample:
    """A sample of the rows of a source, by a hash of y, of what is beside it and of every column.

    ``levels`` are those of every column, None for one of numbers. Codes of levels may be renumbered when samples merge,
    so the levels themselves are hashed.
    """
    marks = [None if known is None else np.array([_mark(level) for level in known]) for known in levels]
    beside = (extra,) if offset is None else (extra, offset)
    whole = _piece_of(source, beside, marks, slice(0, min(_PIECE, source.n)), 0)
    for start in range(_PIECE, source.n, _PIECE):
        rows = slice(start, min(start + _PIECE, source.n))
        whole = whole.merged(_piece_of(source, beside, marks, rows, whole.halvings))
    return whole


def _mark(level: Any) -> float:
    """A number for a level, the same in every process; 1, 1.0 and True are one level."""
    try:
        text = repr(level.as_integer_ratio())
    except (AttributeError, OverflowError, ValueError):  # no number, or no finite one
        text = repr(level)
    return float(int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 11)


def _piece_of(
    source: RowBlock, beside: Sequence[np.ndarray], marks: Sequence[np.ndarray | None], rows: slice, halvings: int
) -> Sample:
    """The sample of a stretch of rows, thinned as far as is known to be needed."""
    columns = [source.column(c, rows) for c in range(len(marks))]
    y, others, w = source.y[rows], [own[rows] for own in beside], source.w[rows]
    both = zip(columns, marks, strict=True)
    numbers = [y, *others, *(column if own is None else _marks_of(column, own) for column, own in both)]
    hashes = np.concatenate(
        [_hash([column[at : at + _BLOCK] for column in numbers]) for at in range(0, max(y.size, 1), _BLOCK)]
    )
    halvings = _enough(hashes, halvings)
    few = _below(hashes, halvings)
    kept = tuple(column[few] for column in columns)
    extra, *offset = (own[few] for own in others)
    return _fitted(Sample(kept, y[few], extra, w[few], hashes[few], halvings, *offset))


def _marks_of(codes: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Of every row; NaN where it is missing, and that is no level."""
    gone = np.isnan(codes)
    return (
        marks[codes.astype(np.intp)]
        if not gone.any()
        else np.where(gone, np.nan, marks[np.where(gone, 0, codes).astype(np.intp)])
    )


def _hash(numbers: Sequence[np.ndarray]) -> np.ndarray:
    """64 bits of every row, as int64."""
    total, spare = np.zeros(numbers[0].size, np.uint64), np.empty(numbers[0].size, np.uint64)
    for column in numbers:
        total ^= np.add(column, 0.0, out=spare.view(np.float64)).view(np.uint64)  # minus zero is zero
        total ^= np.right_shift(total, _DOWN, out=spare)  # small integers have nothing but high bits
        total *= _FIRST
    total ^= np.right_shift(total, _LESS, out=spare)
    total *= _SECOND
    total ^= np.right_shift(total, _DOWN, out=spare)
    return total.view(np.int64)


def _below(hashes: np.ndarray, halvings: int) -> np.ndarray:
    """Which hashes, as unsigned numbers, are below 2^(64 - halvings)."""
    if halvings == 0:
        return np.ones(hashes.size, bool)
    return (hashes.view(np.uint64) >> np.uint64(64 - halvings)) == 0


def _enough(hashes: np.ndarray, halvings: int) -> int:
    """The fewest halvings that leave no more different rows than there is room for; as few as can be are sorted."""
    guess = halvings + max(0, int(np.ceil(np.log2(max(1, hashes.size) / LARGEST_SAMPLE))))
    while guess > halvings and _different(hashes[_below(hashes, guess - 1)]) <= LARGEST_SAMPLE:
        guess -= 1
    return guess


def _different(hashes: np.ndarray) -> int:
    return int(np.count_nonzero(np.diff(np.sort(hashes)))) + min(1, hashes.size)


def _fitted(sample: Sample) -> Sample:
    """Equal rows taken together, and no more of them than there is room for."""
    hashes, first, which = np.unique(sample.hashes, return_index=True, return_inverse=True)
    if hashes.size < sample.hashes.size:
        sample = replace(sample._taken(first), w=np.bincount(which.reshape(-1), sample.w))
    while sample.y.size > LARGEST_SAMPLE:
        sample = sample._thinned(sample.halvings + 1)
    return sample


def merge_equal_rows(
    source: RowBlock,
    extra: np.ndarray,
    distinct_values: Sequence[DistinctValues | None],
    offset: np.ndarray | None = None,
) -> tuple[Any, ...]:
    """The different rows (columns, y, extra, offset) with their weights summed; the same where most are different.

    A row block, extra, and the offset where there is one.
    """
    beside = [extra] if offset is None else [extra, offset]
    every = [*distinct_values, distinct_values_of(source.y), *map(_distinct_extra, beside)]
    found = [distinct for distinct in every if distinct is not None]
    shape = tuple(distinct.size for distinct in found)
    if None in every or prod(shape) > _CELLS_PER_ROW * source.n:
        return _merged_by_hash(source, beside, len(distinct_values))
    whole = slice(0, source.n)
    values = [*(source.column(c, whole) for c in range(len(distinct_values))), source.y, *beside]
    cells = np.ravel_multi_index(
        [distinct.encode(column).astype(np.intp) for distinct, column in zip(found, values, strict=True)], shape
    )
    counts = np.bincount(cells, source.w, prod(shape))
    kept = np.flatnonzero(counts)
    values = [distinct.values[codes] for distinct, codes in zip(found, np.unravel_index(kept, shape), strict=True)]
    y, *others = values[len(distinct_values) :]
    return RowBlock(kept.size, lambda c, rows: values[c][rows], y, counts[kept]), *others


def _merged_by_hash(source: RowBlock, beside: Sequence[np.ndarray], columns: int) -> tuple[Any, ...]:
    """The same where combinations are too many to be counted: rows are sorted, if a share of them tells that it pays.

    The share is of what is in them, so that equal rows are in it together or not at all.
    """
    if source.n < _WORTH_SORTING:
        return source, *beside
    whole = slice(0, source.n)
    values = [*(source.column(c, whole) for c in range(columns)), source.y, *beside]
    blocks = (slice(at, at + _BLOCK) for at in range(0, source.n, _BLOCK))
    hashes = np.concatenate([np.zeros(0, np.int64), *(_hash([own[rows] for own in values]) for rows in blocks)])
    share = hashes[_below(hashes, _HALVINGS)]
    if not share.size or share.size < _TIES * _different(share):
        return source, *beside
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    kept = [own[first] for own in values]
    y, *others = kept[columns:]
    weights = np.bincount(which.reshape(-1), source.w)
    return RowBlock(first.size, lambda c, rows: kept[c][rows], y, weights), *others


def _distinct_extra(extra: np.ndarray) -> DistinctValues | None:
    """Distinct values; a constant has one."""
    return DistinctValues(extra[:1]) if extra.size and np.all(extra == extra[0]) else distinct_values_of(extra)
