"""Point patterns: the points, the window they were looked for in, and boxes inside it. Every refusal teaches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vff.data.conversion import Place, finite_floats
from vff.data.table import Column, Table
from vff.factors import Factor
from vff.kernels import Kernel, normal_form
from vff.words import listed, shown

MOST_COLUMNS = 3
Box = tuple[tuple[float, float], ...]
"""(low, high) of every column."""


class Intensity(NamedTuple):
    """Points per unit volume and unit exposure: posterior mean, and the ends of a central interval."""

    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Count(NamedTuple):
    """The integral of the intensity over a region: posterior mean, standard deviation and a central interval."""

    mean: float
    std: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Space:
    """The columns that points have."""

    columns: tuple[Column, ...]
    """Their names, or their numbers."""
    kinds: tuple[str, ...]
    """What each holds, as ``Table.kind`` says."""
    frame: type | None
    """The class of the table that named them; None for arrays."""

    @classmethod
    def of(cls, table: Table) -> "Space":
        """The columns of a table of points, one to three of them, none of text."""
        if table.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"points must have one to {MOST_COLUMNS} columns, the coordinates, and have {table.n_columns}; leave "
                "out those that are no coordinates"
            )
        kinds = tuple(table.kind(index).value for index in range(table.n_columns))
        named = table.names if table.names and len(set(table.names)) == table.n_columns else None
        return cls(named or tuple(range(table.n_columns)), kinds, type(table.data) if named else None)

    @property
    def size(self) -> int:
        """d."""
        return len(self.columns)

    def label(self, index: int) -> str:
        """How a column is called in messages."""
        return f"column {shown(self.columns[index])}"

    def place(self, index: int, what: str) -> Place:
        """Where an option speaks of a column; times are taken where the column holds some."""
        times = self.kinds[index] in ("datetime", "duration")
        return Place(f"{what} for {self.label(index)}", column=repr(self.columns[index]) if times else None)

    def by_column(self, value: Any, what: str) -> dict[int, Any]:
        """The entries of a dictionary by the number of their column."""
        found = {}
        for key, entry in value.items():
            if key not in self.columns and (isinstance(key, str) or key not in range(self.size)):
                known = listed(self.columns)
                raise ValueError(f"{what} names column {shown(key)}, and the points have {known}; name one of them")
            found[self.columns.index(key) if key in self.columns else int(key)] = entry
        return found

    def table(self, x: np.ndarray, exposure: np.ndarray) -> Any:
        """Rows x (N, d) with a last column of exposures, as a table of the kind that the points came in."""
        if self.frame is None:
            return np.column_stack([x, exposure])
        columns = {name: np.ascontiguousarray(x[:, index]) for index, name in enumerate(self.columns)}
        columns[self.exposure] = exposure
        make: Any = getattr(self.frame, "from_pydict", self.frame)
        return make(columns)

    @property
    def exposure(self) -> Column:
        """A name that no coordinate has, or the number of the column after the last."""
        if self.frame is None:
            return self.size
        names = ("exposure", *(f"exposure_{number}" for number in range(2, 2 + MOST_COLUMNS)))
        return next(name for name in names if name not in self.columns)


def as_table(points: Any) -> Table:
    """A table of points; a flat array or list is one column."""
    if isinstance(points, np.ndarray):
        flat = points.ndim == 1 and points.dtype.names is None
    else:
        several = list | tuple | dict | np.ndarray
        flat = isinstance(points, list | tuple) and not any(isinstance(point, several) for point in points)
    return Table.of(np.reshape(points, (-1, 1)) if flat else points)


def coordinates(table: Table) -> np.ndarray:
    """The points as numbers, (N, d)."""
    return np.stack([table.numbers(index) for index in range(table.n_columns)], axis=1)


def as_box(value: Any, space: Space, what: str, default: Box | None = None) -> Box:
    """(low, high) of every column from a pair, a sequence of pairs, or a dictionary.

    A column that a dictionary leaves out has that of ``default``, and is refused where there is none.
    """
    if isinstance(value, dict):
        pairs: dict[int, Any] = {**dict(enumerate(default or ())), **space.by_column(value, what)}
    else:
        pairs = dict(enumerate(_sequence(value, space.size, what)))
    missing = [index for index in range(space.size) if index not in pairs]
    if missing:
        raise ValueError(f"{what} has no (low, high) for {space.label(missing[0])} of the points; give it one")
    return tuple(_pair(pairs[index], space.place(index, what)) for index in range(space.size))


def _sequence(value: Any, size: int, what: str) -> Sequence[Any]:
    try:
        pairs = list(value)
        alone = size == 1 and len(pairs) == 2 and all(np.ndim(end) == 0 for end in pairs)
    except TypeError:
        pairs, alone = [], False
    if alone:
        return [pairs]
    if len(pairs) != size or not all(np.ndim(pair) == 1 for pair in pairs):
        wanted = "a pair (low, high)" if size == 1 else f"{size} pairs (low, high), one per column"
        raise ValueError(f"{what} must be {wanted}, or a dictionary by column; got {shown(value)}")
    return pairs


def _pair(value: Any, place: Place) -> tuple[float, float]:
    ends = finite_floats(list(value), place) if np.ndim(value) == 1 and len(value) == 2 else np.empty(0)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ValueError(f"{place.what} must be a pair (low, high) with low < high, got {shown(value)}")
    return float(ends[0]), float(ends[1])


def range_of(x: np.ndarray, space: Space) -> Box:
    """The range of the points, where no window was given."""
    box = tuple((float(column.min()), float(column.max())) for column in x.T)
    flat = [index for index, (low, high) in enumerate(box) if low == high]
    if flat:
        raise ValueError(
            f"all points have the same value {box[flat[0]][0]:g} in {space.label(flat[0])}, so that no window can be "
            "taken from them; give fit the window in which points were looked for"
        )
    return box


def check_inside(x: np.ndarray, window: Box, space: Space, advice: str) -> None:
    """Refuse points (N, d) outside the window."""
    low, high = np.array(window).T
    beyond = (x < low) | (x > high)
    count = int(np.count_nonzero(beyond.any(axis=1)))
    if count:
        index = int(np.argmax(beyond.any(axis=0)))
        column = x[:, index]
        raise ValueError(
            f"{count} of {len(x)} points lie outside the window: {space.label(index)} goes from {column.min():g} to "
            f"{column.max():g} and its window from {low[index]:g} to {high[index]:g}; {advice}"
        )


def check_part(box: Box, window: Box, space: Space) -> None:
    """Refuse a region that leaves the window."""
    for index, ((low, high), (least, most)) in enumerate(zip(box, window, strict=True)):
        if low < least or high > most:
            raise ValueError(
                f"the region goes from {low:g} to {high:g} in {space.label(index)} and the window from {least:g} to "
                f"{most:g}; nothing is known beyond it: cut the region, or fit a wider window"
            )


def factors_of(kernel: Kernel, space: Space) -> dict[int, Factor]:
    """The first factor over every column that a kernel is over, all of them coordinates and taken as numbers."""
    used: dict[int, Factor] = {}
    for term in normal_form(kernel):
        for factor in term.factors:
            if factor.reads != "numbers":
                raise ValueError(
                    f"the kernel takes column {shown(factor.column)} for a category, and the coordinates of points are "
                    "numbers; use a Matérn"
                )
            for index in space.by_column({factor.column: None}, "the kernel"):
                used.setdefault(index, factor.factor)
    return used
