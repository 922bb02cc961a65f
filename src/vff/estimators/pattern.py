"""Point patterns: the points, the window they were looked for in, and the cells that they are counted in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from vff.data.checks import as_finite
from vff.data.conversion import Origin, finite_floats
from vff.data.table import Column, Table
from vff.estimators.arguments import is_whole
from vff.factors import Factor
from vff.kernels import Kernel, normal_form
from vff.words import listed, shown

MOST_COLUMNS = 3
_AUTO = {1: (256,), 2: (64, 64), 3: (16, 16, 16)}
_LARGEST_ASPECT = 4.0
_MOST_CELLS = 10**7
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

    def origin(self, index: int, what: str) -> Origin:
        """Where an option speaks of a column; times are taken where the column holds some."""
        times = self.kinds[index] in ("datetime", "duration")
        return Origin(f"{what} for {self.label(index)}", column=repr(self.columns[index]) if times else None)

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
    return tuple(_pair(pairs[index], space.origin(index, what)) for index in range(space.size))


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


def _pair(value: Any, origin: Origin) -> tuple[float, float]:
    ends = finite_floats(list(value), origin) if np.ndim(value) == 1 and len(value) == 2 else np.empty(0)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ValueError(f"{origin.what} must be a pair (low, high) with low < high, got {shown(value)}")
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
            for index in space.by_column(dict.fromkeys(factor.columns), "the kernel"):
                used.setdefault(index, factor.factor)
    return used


@dataclass(frozen=True)
class Grid:
    """Equal cells over a window; arrays over it have one axis per column."""

    edges: tuple[np.ndarray, ...]
    """Where the cells of every column begin and end, ascending, one more than cells."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per column."""
        return tuple(edge.size - 1 for edge in self.edges)

    @property
    def cell_volume(self) -> float:
        """Length, area or volume of a cell, in the units of the columns."""
        return float(np.prod([(edge[-1] - edge[0]) / (edge.size - 1) for edge in self.edges]))

    @cached_property
    def centres(self) -> np.ndarray:
        """The middle of every cell, (cells, d); the last column runs fastest."""
        middles = [0.5 * (edge[1:] + edge[:-1]) for edge in self.edges]
        return np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, len(self.edges))

    def cells_of(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """The cell of every point (N, d) inside the window, an index per column; the upper end is in the last cell."""
        return tuple(
            np.clip(np.searchsorted(edge, column, side="right") - 1, 0, edge.size - 2)
            for edge, column in zip(self.edges, x.T, strict=True)
        )

    def counts(self, x: np.ndarray) -> np.ndarray:
        """Points per cell."""
        counts = np.zeros(self.shape)
        np.add.at(counts, self.cells_of(x), 1.0)
        return counts

    def overlap(self, box: Box) -> np.ndarray:
        """Volume that every cell has in common with a box."""
        total = np.ones(())
        for edge, (low, high) in zip(self.edges, box, strict=True):
            common = np.minimum(edge[1:], high) - np.maximum(edge[:-1], low)
            total = np.multiply.outer(total, np.maximum(common, 0.0))
        return total


def make_grid(value: Any, window: Box, space: Space) -> Grid:
    """The cells that were asked for."""
    if isinstance(value, str) and value == "auto":
        cells: Any = _automatic(window)
    elif isinstance(value, dict):
        found = space.by_column(value, "grid")
        cells = [found.get(index, one) for index, one in enumerate(_automatic(window))]
    elif isinstance(value, Integral):
        cells = (value,) * space.size
    else:
        cells = value
    if not isinstance(cells, tuple | list) or len(cells) != space.size or not all(is_whole(one, 2) for one in cells):
        raise ValueError(
            f"grid must be 'auto' or whole numbers of cells from 2 on, one for all {space.size} column(s) or one for "
            f"each; got {shown(value)}"
        )
    if np.prod([float(one) for one in cells]) > _MOST_CELLS:
        raise ValueError(f"grid={shown(value)} makes more than {_MOST_CELLS:g} cells; ask for fewer per column")
    return Grid(tuple(np.linspace(low, high, int(one) + 1) for (low, high), one in zip(window, cells, strict=True)))


def _automatic(window: Box) -> tuple[int, ...]:
    """256 cells in one column, about 4096 in two or three; in two, about square ones up to an aspect of four."""
    cells = _AUTO[len(window)]
    if len(window) != 2:
        return cells
    lengths = [high - low for low, high in window]
    root = np.sqrt(np.clip(lengths[0] / lengths[1], 1.0 / _LARGEST_ASPECT, _LARGEST_ASPECT))
    return round(cells[0] * root), round(cells[1] / root)


def exposure_on(grid: Grid, requested: Any) -> np.ndarray:
    """Exposure of every cell, in the shape of the grid, from an array or a function of the centres."""
    if requested is None:
        return np.ones(grid.shape)
    if isinstance(requested, Callable):
        size = len(grid.centres)
        found = as_finite(requested(grid.centres.copy()), "what exposure returned")
        if found.shape != (size,):
            raise ValueError(
                f"exposure was called with the {size} centres of the cells and must return one number for each; it "
                f"returned an array of shape {found.shape}"
            )
        found = found.reshape(grid.shape)
    else:
        found = as_finite(requested, "exposure")
    if found.shape != grid.shape:
        raise ValueError(
            f"exposure has shape {found.shape} and the grid {grid.shape}; give one number per cell, a function of "
            "the centres, or grid= another shape"
        )
    if found.min() < 0.0:
        raise ValueError(f"exposure is {found.min():g} in some cell and must not be negative; 0 is not observed")
    if np.count_nonzero(found) < 2:
        raise ValueError(
            f"exposure is positive in {np.count_nonzero(found)} cell(s) and a minimum of 2 is required; give it in "
            "those cells that were looked at"
        )
    return np.array(found, float)


def check_exposed(x: np.ndarray, grid: Grid, exposure: np.ndarray) -> None:
    """Refuse points in cells that were not looked at."""
    hidden = exposure[grid.cells_of(x)] == 0.0
    if hidden.any():
        first = ", ".join(f"{value:g}" for value in x[np.argmax(hidden)])
        raise ValueError(
            f"{np.count_nonzero(hidden)} of {len(x)} points lie in cells of zero exposure, the first at ({first}); "
            "leave these points out, use a finer grid, or give these cells an exposure"
        )


def region_volumes(region: Any, grid: Grid, window: Box, space: Space) -> np.ndarray:
    """Volume of every cell that is part of a region: a box, a boolean array of the grid's shape, or None for all."""
    if region is None:
        return np.full(grid.shape, grid.cell_volume)
    if isinstance(region, np.ndarray) and region.dtype == bool:
        if region.shape != grid.shape:
            raise ValueError(
                f"the region has shape {region.shape} and the grid {grid.shape}; give one truth value per cell"
            )
        return region * grid.cell_volume
    box = as_box(region, space, "region", window)
    for index, ((low, high), (least, most)) in enumerate(zip(box, window, strict=True)):
        if low < least or high > most:
            raise ValueError(
                f"the region goes from {low:g} to {high:g} in {space.label(index)} and the window from {least:g} to "
                f"{most:g}; nothing is known beyond it: cut the region, or fit a wider window"
            )
    return grid.overlap(box)
