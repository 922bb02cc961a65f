"""What a picture shows, as numbers: ``figure.data``, a dictionary of arrays of equal length, one entry per point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.report.columns import column_kind, level_text, on_axis
from vff.report.views import Effect, View, levels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Data = dict[str, np.ndarray]


def finished(ax: Axes, data: Data) -> Figure:
    """The figure that axes are on, with what was drawn."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    setattr(figure, "data", data)  # noqa: B010
    return figure


def as_values(kind: str, at: np.ndarray) -> np.ndarray:
    """Places along an axis as values of the column: dates where matplotlib counts days."""
    if kind != "datetime":
        return at
    days = at - on_axis(kind, np.zeros(1))
    return np.round(days * 86_400e6).astype(np.int64).view("datetime64[us]")


def lattice_data(x: np.ndarray, y: np.ndarray, **fields: np.ndarray) -> Data:
    """Fields (X, Y) over two columns."""
    across, up = np.meshgrid(x, y, indexing="ij")
    return {"x": across.ravel(), "y": up.ravel(), **{name: field.ravel() for name, field in fields.items()}}


def effect_data(model: AdditiveModel, view: View, lattice: Mapping[int, np.ndarray], effect: Effect, z: float) -> Data:
    """A term on a lattice of its columns: numbers, times, or levels as they are written."""
    values = [_axis_values(model, c, at) for c, at in lattice.items()]
    grids = [grid.ravel() for grid in np.meshgrid(*values, indexing="ij")]
    count, mean, half = grids[0].size, effect.mean.ravel(), z * effect.std.ravel()
    return {
        "term": np.full(count, model.statistics_.terms[view.term].name, dtype=object),
        "x": grids[0],
        "y": grids[1] if len(grids) > 1 else np.full(count, np.nan),
        "mean": mean,
        "lower": mean - half,
        "upper": mean + half,
        "known": effect.known.ravel(),
    }


def _axis_values(model: AdditiveModel, c: int, at: np.ndarray) -> np.ndarray:
    kind = column_kind(model, c)
    if kind != "levels":
        return as_values(kind, on_axis(kind, at))
    return np.array([level_text(level) for level in levels_of(model, c)], dtype=object)


def joined(parts: Sequence[Data]) -> Data:
    """One after another; columns that hold numbers here and levels there are of objects."""
    return {name: _concatenated([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _concatenated(parts: Sequence[np.ndarray]) -> np.ndarray:
    alike = len({part.dtype.kind for part in parts}) == 1
    return np.concatenate(parts if alike else [part.astype(object) for part in parts])
