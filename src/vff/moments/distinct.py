"""Regularity of a column: equally spaced rows, and distinct values without sorting where a lattice allows it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

_ROUNDING = 16 * np.finfo(float).eps  # relative to the largest value
_SAMPLE_BLOCKS = 64
_LARGEST_LATTICE = 2**21  # cells of a lattice that is looked through for occupied ones
_DOZENS = 50  # values that are remembered of a column, for pictures
_MOST_VALUES = 2**14  # distinct values
_PIECE = 2**18

Pieces = Callable[[slice], np.ndarray]
"""A column, read piece by piece."""


def spacing(t: np.ndarray) -> float | None:
    """The step of rows that lie on a regular lattice, in order; None when they do not."""
    if t.size < 2:
        return None
    step = (t[-1] - t[0]) / (t.size - 1)
    if step <= 0.0:
        return None
    for start in range(0, t.size, 2**20):
        index = np.arange(start, min(start + 2**20, t.size))
        if np.abs(t[index] - (t[0] + step * index)).max() > _ROUNDING:
            return None
    return float(step)


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column, and how a value finds its code; missing values are one of them, the last.

    With ``step`` > 0 every value is the only one in its cell, the integer nearest to (value - low) / step, and
    ``compact`` turns the cell into the code. Otherwise codes come from a binary search.
    """

    values: np.ndarray
    """(D,), increasing; NaN stands for missing ones."""
    low: float = 0.0
    step: float = 0.0
    compact: np.ndarray | None = None
    """Code of every lattice cell; None when every cell is occupied."""
    remembered: dict[Any, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    """Letters at the values, which every pass over the rows needs again."""

    @property
    def size(self) -> int:
        """D."""
        return self.values.size

    @property
    def missing(self) -> bool:
        """Whether missing values are among them."""
        return bool(self.size and np.isnan(self.values[-1]))

    @cached_property
    def numbers(self) -> "DistinctValues":
        """Those that are there; the codes stay."""
        return replace(self, values=self.values[:-1], remembered={}) if self.missing else self

    @property
    def or_missing(self) -> "DistinctValues":
        """These and missing values."""
        return self if self.missing else replace(self, values=np.append(self.values, np.nan), remembered={})

    def encode(self, x: np.ndarray) -> np.ndarray:
        """The code of every row; rows must hold these values."""
        if self.missing:
            gone = np.isnan(x)
            if not gone.any():
                return self.numbers.encode(x)
            codes = np.full(x.size, self.size - 1, np.int64)
            codes[~gone] = self.numbers.encode(x[~gone])
            return codes
        if self.step == 0.0:
            return np.searchsorted(self.values, x)
        codes = _cells(x, self.low, self.step)
        return codes if self.compact is None else self.compact[codes]

    def holds(self, x: np.ndarray) -> bool:
        """Whether every row has one of these values."""
        gone = np.isnan(x)
        if gone.any():
            return self.missing and self.numbers.holds(x[~gone])
        if self.missing:
            return self.numbers.holds(x)
        if x.size == 0:
            return True
        if self.size == 0 or self.values[0] > x.min() or self.values[-1] < x.max():
            return False
        return bool(np.array_equal(self.values[self.encode(x)], x))


@dataclass(frozen=True)
class ColumnSummary:
    """What one look at a column found. Looks at different rows merge, and the order of rows leaves no trace."""

    low: float
    high: float
    values: np.ndarray | None = None
    """Its distinct values, increasing, unless there are very many."""
    n: int = 0
    """Rows, those with a missing value among them."""
    missing: int = 0
    """Rows with a missing value; what else is said is about the others."""

    @property
    def constant(self) -> bool:
        return self.low == self.high

    @property
    def n_distinct(self) -> int:
        """How many different values there are, or the number of rows when they are very many."""
        return self.n - self.missing if self.values is None else self.values.size

    @cached_property
    def distinct(self) -> DistinctValues | None:
        """The distinct values, when they are few enough to work on."""
        few = self.values is not None and 0 < 2 * self.values.size <= self.n
        if not few or self.values is None:
            return None
        return _coded(self.values).or_missing if self.missing else _coded(self.values)

    @property
    def extent(self) -> "ColumnSummary":
        """Where the rows lie, and nothing else about them but for values that are a few dozen."""
        few = self.values is not None and self.values.size <= _DOZENS
        return ColumnSummary(self.low, self.high, self.values if few else None, missing=self.missing)

    def merged(self, other: "ColumnSummary") -> "ColumnSummary":
        """What a look at the rows of both would have found."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        n, missing = self.n + other.n, self.missing + other.missing
        mine, theirs = (np.empty(0) if own.low > own.high else own.values for own in (self, other))
        if mine is None or theirs is None:
            return ColumnSummary(low, high, None, n, missing)
        values = np.union1d(mine, theirs)
        return ColumnSummary(low, high, values if values.size <= _MOST_VALUES else None, n, missing)


def summarise_column(n: int, pieces: Pieces) -> ColumnSummary:
    """Range and distinct values of a column of n rows, in one pass."""
    found = _Distinct(_numbers(_sample(n, pieces)))
    low, high, missing = np.inf, -np.inf, 0
    for every in _values_of(n, pieces):
        x = _numbers(every)
        missing += every.size - x.size
        if not x.size:
            continue
        ends = float(x.min()), float(x.max())
        low, high = min(low, ends[0]), max(high, ends[1])
        found.add(x, *ends)
    return ColumnSummary(low, high, found.values, n, missing)


def _numbers(x: np.ndarray) -> np.ndarray:
    """Those that are there."""
    return x[~np.isnan(x)] if x.size and np.isnan(x.min()) else x


def extent_of(x: np.ndarray) -> tuple[float, float]:
    """The least and the greatest of rows in memory that are there; none where all are missing."""
    there = _numbers(x)
    return float(there.min(initial=np.inf)), float(there.max(initial=-np.inf))


def distinct_values_of(x: np.ndarray) -> DistinctValues | None:
    """The distinct values of rows in memory; None when they are many."""
    return summarise_column(x.size, lambda rows: x[rows]).distinct


def _values_of(n: int, pieces: Pieces) -> Iterator[np.ndarray]:
    return (pieces(slice(start, min(start + _PIECE, n))) for start in range(0, n, _PIECE))


def _sample(n: int, pieces: Pieces) -> np.ndarray:
    """Some of the rows: short stretches at random places, fixed seed. Regular picks would alias with periods."""
    if n <= _SAMPLE_BLOCKS**2:
        return pieces(slice(0, n))
    starts = np.random.default_rng(0).integers(n - _SAMPLE_BLOCKS, size=_SAMPLE_BLOCKS)
    return np.concatenate([pieces(slice(int(start), int(start) + _SAMPLE_BLOCKS)) for start in starts])


def _step(sample: np.ndarray) -> float:
    """A step of which all differences between sorted values might be multiples."""
    if sample.size < 2:
        return 1.0
    if np.all(sample == np.rint(sample)) and np.abs(sample[[0, -1]]).max() < 2.0**53:
        return float(np.gcd.reduce(np.diff(sample).astype(np.int64)))
    return float(np.diff(sample).min())


def _cells(x: np.ndarray, low: float, step: float) -> np.ndarray:
    cells = x - low
    if step != 1.0:
        cells /= step
    return np.rint(cells, out=cells).astype(np.int64)


class _Lattice:
    """Which cells of origin + step * integer are occupied, and by which value, gathered piece by piece."""

    def __init__(self, origin: float, step: float):
        self.origin, self.step = origin, step
        self.first, self.values = 0, np.zeros(0)  # not a number where nothing was seen

    def add(self, x: np.ndarray, low: float, high: float) -> bool:
        """Note rows from low to high; False when two values share a cell, or the lattice is too large."""
        if not max(high - self.origin, self.origin - low) / self.step <= _LARGEST_LATTICE:
            return False
        self._cover(*_cells(np.array([low, high]), self.origin, self.step).tolist())
        cells = _cells(x, self.origin, self.step)
        cells -= self.first
        news = np.flatnonzero(self.values[cells] != x)
        if news.size == 0:
            return True
        cells, x = cells[news], x[news]
        if not np.isnan(self.values[cells]).all():
            return False
        self.values[cells] = x
        return np.array_equal(self.values[cells], x)

    def _cover(self, low: int, high: int) -> None:
        if self.values.size == 0:
            self.first = low
        before, after = max(0, self.first - low), max(0, high + 1 - self.first - self.values.size)
        if before or after:
            self.values = np.pad(self.values, (before, after), constant_values=np.nan)
            self.first -= before

    @property
    def occupied(self) -> np.ndarray:
        """All values so far, increasing."""
        return self.values[~np.isnan(self.values)]


class _Distinct:
    """The distinct values of rows that come piece by piece: by division while a lattice holds them, else by sorting."""

    def __init__(self, sample: np.ndarray):
        known = np.unique(sample)
        whole = bool(np.all(known == np.rint(known)))  # of integers, even many may have few cells
        worth_it = known.size and (whole or 2 * known.size <= sample.size)
        self._lattice = _Lattice(float(known[0]), _step(known)) if worth_it else None
        self._sorted: np.ndarray | None = np.zeros(0)
        """Values beside those of the lattice; None when they are too many."""

    def add(self, x: np.ndarray, low: float, high: float) -> None:
        if self._lattice is not None and not self._lattice.add(x, low, high):
            self._sorted, self._lattice = self._lattice.occupied, None
        if self._lattice is None and self._sorted is not None:
            values = np.union1d(self._sorted, x)
            self._sorted = values if values.size <= _MOST_VALUES else None

    @property
    def values(self) -> np.ndarray | None:
        """All of them, increasing; None when they are too many."""
        values = self._sorted if self._lattice is None else self._lattice.occupied
        return values if values is not None and values.size <= _MOST_VALUES else None


def _coded(values: np.ndarray) -> DistinctValues:
    """Coded by division where every value has a cell of its own, else by search."""
    low, step = float(values[0]), _step(values)
    if not (float(values[-1]) - low) / step <= _LARGEST_LATTICE:
        return DistinctValues(values)
    cells = _cells(values, low, step)
    if np.any(np.diff(cells) <= 0):
        return DistinctValues(values)
    if cells[-1] + 1 == values.size:
        return DistinctValues(values, low, step)
    compact = np.zeros(cells[-1] + 1, np.int64)
    compact[cells] = np.arange(values.size)
    return DistinctValues(values, low, step, compact)
