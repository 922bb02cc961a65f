"""The grid of cells that points are counted in, and how long or how well each cell was looked at."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from vff.data.checks import as_finite
from vff.estimators.arguments import is_whole
from vff.estimators.pattern import Box, Space, as_box, check_part
from vff.words import shown

_AUTO = {1: (256,), 2: (64, 64), 3: (16, 16, 16)}
_LARGEST_ASPECT = 4.0
_MOST_CELLS = 10**7


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

    def places(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """The cell of every point (N, d) inside the window, an index per column; the upper end is in the last cell."""
        return tuple(
            np.clip(np.searchsorted(edge, column, side="right") - 1, 0, edge.size - 2)
            for edge, column in zip(self.edges, x.T, strict=True)
        )

    def counts(self, x: np.ndarray) -> np.ndarray:
        """Points per cell."""
        counts = np.zeros(self.shape)
        np.add.at(counts, self.places(x), 1.0)
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
    _check_exposure(found)
    return np.array(found, float)


def _check_exposure(exposure: np.ndarray) -> None:
    if exposure.min() < 0.0:
        raise ValueError(f"exposure is {exposure.min():g} in some cell and must not be negative; 0 is not observed")
    if np.count_nonzero(exposure) < 2:
        raise ValueError(
            f"exposure is positive in {np.count_nonzero(exposure)} cell(s) and a minimum of 2 is required; give it in "
            "those cells that were looked at"
        )


def check_exposed(x: np.ndarray, grid: Grid, exposure: np.ndarray) -> None:
    """Refuse points in cells that were not looked at."""
    hidden = exposure[grid.places(x)] == 0.0
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
    check_part(box, window, space)
    return grid.overlap(box)
