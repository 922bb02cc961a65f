"""What a picture shows of y under a likelihood: its mean and intervals, the rows, words for the scale of effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.data.memory import column_or_values
from vff.data.table import Table
from vff.estimators.named import extra_of, offset_of, recognised
from vff.estimators.predict import ProcessMixin
from vff.report.canvas import Data, half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCALES = {"y": "y", "f": "the latent function", "log": "the logarithm of the mean of y"}
MOST_POINTS = 3000
"""Rows that are drawn one by one; of more, a density, averages or a sample."""
_BINS = (160, 90)
_CELLS = 80  # of a map, along each side
_OUTLYING = 0.003  # share of the rows at each end that may lie out of view
_INK = "#6f604c"


def check_drawable(model: ProcessMixin, caller: str) -> None:
    """Refuse a model that is not fitted, and one of more than two classes, which is a model per class."""
    if len(getattr(model, "functions_", ())) > 1:
        raise ValueError(
            f"{caller} draws one function, and with more than two classes there is one per class; give it one of the "
            "classifier's estimators_"
        )
    check_is_fitted(model, "posterior_")


def latent(model: ProcessMixin, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the latent function at rows x (N, C) of the modelled columns."""
    mean, variance = model.posterior_.marginals(x)
    target = model.target_
    return target.mean + target.scale * mean, target.scale**2 * variance


def mean_of_y(model: ProcessMixin, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Of a new y where the latent function has this mean and variance."""
    return model.likelihood_.predictive(mean, variance, np.full(mean.size, model.likelihood_.extra_alone)).mean()


def curves(model: ProcessMixin, x: np.ndarray, level: float) -> Data:
    """The prediction at rows x on the scale of y (per unit of exposure, or per trial, where rows have these).

    The mean of a new y; lower and upper, the interval of that mean given the function; y_lower and y_upper, that of a
    new y. NaN where it says nothing: of zeros and ones, and where it would depend on an exposure.
    """
    mean, variance = latent(model, x)
    likelihood, half = model.likelihood_, half_width(level) * np.sqrt(variance)
    alone = np.full(mean.size, likelihood.extra_alone)
    new = likelihood.predictive(mean, variance, alone)
    # the mean of y never falls in f, so that it takes quantiles to quantiles
    lower, upper = (likelihood.conditional_mean(mean + side * half, alone) for side in (-1.0, 1.0))
    scatters = likelihood.column is None and not likelihood.binary
    ends = new.interval(level) if scatters else np.full((2, mean.size), np.nan)
    return {"mean": new.mean(), "lower": lower, "upper": upper, "y_lower": ends[0], "y_upper": ends[1]}


def rows_of(model: Any, X: Any, y: Any, caller: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The modelled columns of X, (N, C), and y as it is drawn: a number, 0 or 1 for classes, or per unit of exposure.

    X is refused when it cannot be of the columns of the fit. Rows where a column is missing have no place in a picture.
    """
    given = table = Table.of(X)
    if table.names is not None and getattr(model, "feature_names_in_", None) is not None:
        table = recognised(model, table, model.column_indices_, model._beside())
    elif table.n_columns != model.n_features_in_:
        raise ValueError(
            f"X has {table.n_columns} column(s) and the model was fitted to {model.n_features_in_}; give {caller} a "
            "table like the one that was fitted"
        )
    admits = getattr(model, "missing", None) == "effect"
    x = np.stack([table.numbers(index, missing=admits) for index in model.column_indices_], axis=1)
    there = ~np.isnan(x).any(axis=1)
    if y is None:
        return x[there], None
    target = model._as_numbers(column_or_values(given, y, "y"), table.n_rows)
    counted_by = 1.0 if model.likelihood_.known_errors else extra_of(model.likelihood_, table)
    own = _without_offset(model, target / counted_by, offset_of(model._offset, table))
    return x[there], own[there]


def _without_offset(model: ProcessMixin, y: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    """y as it would be without what is added to the function, where the link tells: curves are drawn without it."""
    if offset is None:
        return y
    if model.likelihood_.standardised:
        return y - offset
    return y * np.exp(-offset) if model.likelihood_.scale_name == "log" else y


def target_text(model: ProcessMixin, y: Any) -> str:
    """What the scale of y is called."""
    name = y if isinstance(y, str) else str(getattr(y, "name", None) or "y")
    if model.likelihood_.binary:
        return f"P({name} = {_second(model)})"
    column = model.likelihood_.column
    return name if column is None or model.likelihood_.known_errors else f"{name} / {column}"


def scale_text(model: ProcessMixin) -> str:
    """The scale on which the latent function is a sum."""
    name = model.likelihood_.scale_name
    if name in _SCALES:
        return _SCALES[name]
    return f"the {name} of " + (f"P(y = {_second(model)})" if model.likelihood_.binary else "the mean of y")


def _second(model: ProcessMixin) -> str:
    return str((model._labels or (0, 1))[1])


def visible_range(y: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Limits that hold the curves and all but the most outlying rows, with a margin."""
    ends = (y.min(), y.max()) if y.size <= MOST_POINTS else np.quantile(y, [_OUTLYING, 1.0 - _OUTLYING])
    low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def draw_rows(ax: Axes, x: np.ndarray, y: np.ndarray, *, ylim: tuple[float, float]) -> None:
    """Draw the rows and say how many they are."""
    hidden = int(np.count_nonzero((y < ylim[0]) | (y > ylim[1])))
    label = f"{y.size:,} rows" + (f" ({hidden:,} out of view)" if hidden else "")
    if y.size <= MOST_POINTS:
        size = 14.0 if y.size <= 300 else 5.0
        ax.scatter(x, y, s=size, color=_INK, alpha=0.55, lw=0, label=label, zorder=2)
        return
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("rows", ["#f6f3ee", "#b3a58f", _INK])
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_BINS, range=((x.min(), x.max()), ylim))
    shade = np.ma.masked_equal(np.log1p(counts.T), 0.0)
    ax.pcolormesh(x_edges, y_edges, shade, cmap=shades, zorder=0, rasterized=True)
    ax.fill_between([], [], color=_INK, alpha=0.6, lw=0, label=label)


def cell_means(x: np.ndarray, y: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ma.MaskedArray]:
    """Averages of values over small cells, (X, Y), masked where there are no rows; and the edges of the cells."""
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_CELLS)
    sums, _, _ = np.histogram2d(x, y, bins=(x_edges, y_edges), weights=values)
    return x_edges, y_edges, np.ma.masked_where(counts == 0.0, sums / np.maximum(counts, 1.0))
