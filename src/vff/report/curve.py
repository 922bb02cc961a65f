"""One column's fit as a picture: data, posterior mean, and two bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vff.estimators.predict import ProcessMixin
from vff.report import canvas
from vff.report.observed import check_drawable, curves, draw_rows, rows_of, target_text, visible_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GRID = 600


def fit(
    model: ProcessMixin,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """Draw a fitted model of one column, with the rows X and y when they are given.

    The line is the posterior mean of y, the dark band the interval of the function (of the mean of y that it makes),
    the light band the interval of a new observation. Of two classes the line is the probability of the second, and
    there is no light band. Counts with an exposure are drawn per unit of it, successes per trial. Dotted lines mark the
    domain [a, b] of the features. Many rows are drawn as a density.

    Parameters
    ----------
    model : fitted estimator of one column
    X, y : rows as for ``fit``, or None
    ax : matplotlib.axes.Axes or None, to draw on
    level : float, probability of the bands
    xlabel, ylabel : str or None

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.data`` is what was drawn, a dictionary of arrays: x, mean, lower and upper (of the function), y_lower
        and y_upper (of a new observation; NaN where there is no light band).

    Examples
    --------
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> list(vff.plot.fit(vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])), X, np.sin(X[:, 0])).data)
    ['x', 'mean', 'lower', 'upper', 'y_lower', 'y_upper']
    """
    check_drawable(model, "plot.fit")
    canvas.half_width(level)  # refuses what is no level
    kind, rows = _kind(model), _rows(model, X, y)
    ax = canvas.new_axes() if ax is None else ax
    grid = _grid(model, None if rows is None else rows[0])
    # a column may be read in several ways, as a trend and as a season
    x = np.repeat(grid[:, None], len(model.column_indices_), axis=1)
    for c, value in canvas.held_columns(model).items():
        x[:, c] = value
    found = curves(model, x, level)
    _draw(ax, canvas.on_axis(kind, grid), found, f"{100 * level:g} % interval", same=model.likelihood_.normal)
    outer = "" if np.isnan(found["y_lower"]).all() else "y_"
    low, high = float(found[f"{outer}lower"].min()), float(found[f"{outer}upper"].max())
    if rows is not None:
        low, high = visible_range(rows[1], low, high)
        draw_rows(ax, canvas.on_axis(kind, rows[0]), rows[1], ylim=(low, high))
    _mark_domain(ax, model, kind)
    canvas.tick(ax.xaxis, kind)
    ax.set_ylim(low, high)
    ax.set_xlabel(xlabel or canvas.column_name(model, 0))
    ax.set_ylabel(ylabel or target_text(model, y))
    canvas.legend_on(ax)
    return canvas.finished(ax, {"x": canvas.as_values(kind, grid), **found})


def _draw(ax: Axes, grid: np.ndarray, found: canvas.Data, label: str, *, same: bool) -> None:
    """The line and its bands; ``same`` where f is the mean of y."""
    ax.plot(grid, found["mean"], color=canvas.MEAN, lw=1.6, label="posterior mean" if same else "mean of y", zorder=4)
    for ends, alpha, edge, of in (("", 0.5, 0.0, "f" if same else "it"), ("y_", 0.1, 0.9, "a new y")):
        low, high = found[f"{ends}lower"], found[f"{ends}upper"]
        if not np.isnan(low).all():
            face, line = (canvas.BAND, alpha), (canvas.BAND, 0.8)
            ax.fill_between(
                grid, low, high, facecolor=face, edgecolor=line, lw=edge, label=f"{label} of {of}", zorder=3
            )


def _kind(model: ProcessMixin) -> str:
    """What the only column holds; a sentence when there are several, or when it has no order to draw along."""
    columns = [c for c in range(len(model.column_indices_)) if c not in canvas.held_columns(model)]
    count = len({model.column_indices_[c] for c in columns})
    kinds = [canvas.column_kind(model, c) for c in columns]
    if count > 1 or "levels" in kinds:
        found = f"{count} columns" if count > 1 else "a categorical column"
        raise ValueError(
            f"plot.fit draws a function of one column of numbers, and this model has {found}; "
            "vff.plot.effects(model) draws a panel for each term of a GPRegressor, vff.plot.map(model) two columns of "
            "numbers"
        )
    return kinds[0]


def _rows(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray] | None:
    if X is None and y is None:
        return None
    if X is None or y is None:
        raise ValueError(
            f"plot.fit needs both X and y to draw the rows, or neither; {'X' if X is None else 'y'} is None"
        )
    x, target = rows_of(model, X, y, "plot.fit")
    assert target is not None
    return x[:, 0], target


def _domain(model: ProcessMixin) -> tuple[float, float] | None:
    """[a, b] of the features; None for models that have none."""
    domains = getattr(model, "domain_", None)
    return next(iter(domains.values())) if domains else None


def _turn(model: ProcessMixin) -> tuple[float, ...]:
    """The ends of what there is to draw of a column without a domain of its own: one turn of a circle."""
    statistics = getattr(model, "statistics_", None)
    if statistics is None:
        return ()
    turns = (column.domain.drawn(0.0, 0.0, 2, column.basis.size) for column in statistics.moments.request.columns)
    return tuple(max(turns, key=np.ptp))


def _grid(model: ProcessMixin, x: np.ndarray | None) -> np.ndarray:
    """Where to draw: all of the domain and of the rows."""
    ends = [] if x is None else [float(x.min()), float(x.max())]
    ends += _domain(model) or (() if ends else _turn(model))
    if not ends:
        raise ValueError("this model has no domain to draw over; give plot.fit the rows, as in plot.fit(model, X, y)")
    return np.linspace(min(ends), max(ends), _GRID)


def _mark_domain(ax: Axes, model: ProcessMixin, kind: str) -> None:
    for number, end in enumerate(canvas.on_axis(kind, np.array(_domain(model) or ()))):
        ax.axvline(end, color="0.35", lw=1.0, ls=":", zorder=1, label="domain [a, b]" if number == 0 else None)
