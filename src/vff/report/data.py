"""Rows behind a curve or on a map: as points when they are few, as densities or averages when they are many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vff.data.table import Table
from vff.estimators.named import recognised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_POINTS = 3000
_BINS = (160, 90)
_CELLS = 80  # of a map, along each side
_OUTLYING = 0.003  # share of the rows at each end that may lie out of view
_INK = "#6f604c"


def table_like_the_fit(model: Any, X: Any, caller: str) -> Table:
    """X as a table with the columns of the fit in their places, refused when it cannot be of these."""
    table, fitted = Table.of(X), model.n_features_in_
    if table.names is not None and getattr(model, "feature_names_in_", None) is not None:
        return recognised(model, table, model.column_indices_, model.likelihood_.column)
    if table.n_columns != fitted:
        raise ValueError(
            f"X has {table.n_columns} column(s) and the model was fitted to {fitted}; give {caller} a table like the "
            "one that was fitted"
        )
    return table


def visible_range(y: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Limits that hold the curves and all but the most outlying rows, with a margin."""
    ends = (y.min(), y.max()) if y.size <= _POINTS else np.quantile(y, [_OUTLYING, 1.0 - _OUTLYING])
    low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def draw_rows(ax: Axes, x: np.ndarray, y: np.ndarray, *, ylim: tuple[float, float]) -> None:
    """Draw the rows and say how many they are."""
    hidden = int(np.count_nonzero((y < ylim[0]) | (y > ylim[1])))
    label = f"{y.size:,} rows" + (f" ({hidden:,} out of view)" if hidden else "")
    if y.size <= _POINTS:
        size = 14.0 if y.size <= 300 else 5.0
        ax.scatter(x, y, s=size, color=_INK, alpha=0.55, lw=0, label=label, zorder=2)
        return
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_BINS, range=((x.min(), x.max()), ylim))
    shade = np.ma.masked_equal(np.log1p(counts.T), 0.0)
    ax.pcolormesh(x_edges, y_edges, shade, cmap=_shades(), zorder=0, rasterized=True)
    ax.fill_between([], [], color=_INK, alpha=0.6, lw=0, label=label)


def cell_means(x: np.ndarray, y: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ma.MaskedArray]:
    """Averages of values over small cells, (X, Y), masked where there are no rows; and the edges of the cells."""
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_CELLS)
    sums, _, _ = np.histogram2d(x, y, bins=(x_edges, y_edges), weights=values)
    return x_edges, y_edges, np.ma.masked_where(counts == 0.0, sums / np.maximum(counts, 1.0))


def _shades() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("rows", ["#f6f3ee", "#b3a58f", _INK])
