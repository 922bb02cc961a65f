"""A model of two columns as a map: what is predicted, how sure that is, and the rows it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.estimators.predict import ProcessMixin
from vff.report import canvas
from vff.report.observed import (
    MOST_POINTS,
    cell_means,
    check_drawable,
    latent,
    mean_of_y,
    rows_of,
    scale_text,
    target_text,
)
from vff.report.panels import add_bar, draw_image, hide_unknown, surface_handles
from vff.report.views import UNINFORMED, grid_along, lattice_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LATTICE = 121
_SAMPLE = 1500  # rows that stand for more than that
_FLAT = 1e-3  # of the scale of y
_SEED = 0


class _Map(NamedTuple):
    """The model on a lattice, (X, Y) each, and the rows that were given, as they lie on the axes."""

    x: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    """Of y."""
    std: np.ndarray
    """Of the latent function."""
    known: np.ndarray
    """Where the data have told something."""
    limits: tuple[float, float]
    """Of the colours of the mean."""
    rows: np.ndarray | None
    """(N, 2)."""
    targets: np.ndarray | None
    """(N,)."""


def map(
    model: ProcessMixin,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    *,
    equal: bool = False,
    xlabel: str | None = None,
    ylabel: str | None = None,
    label: str | None = None,
) -> Figure:
    """Draw a fitted model of two columns of numbers, whatever its terms, over the box of its data, or the globe.

    One panel is the posterior mean of the function, grey where it is nearly as uncertain as without data; the next is
    its standard deviation, without the noise. Where the likelihood has a link, as for classes and counts, the mean is
    that of y and the standard deviation that of the latent function, on its own scale.

    Parameters
    ----------
    model : fitted estimator of two columns
    X, y : rows, or None
        With X, the rows are dots (a sample of them when they are many). With X and y, a panel before the others shows
        the rows in the colours of the mean, averaged over small cells when they are many.
    ax : matplotlib.axes.Axes or None, to draw the mean alone on, with dots for the rows
    equal : bool, whether both columns have the same scale
    xlabel, ylabel, label : str or None, the last for what y is

    Returns
    -------
    matplotlib.figure.Figure
        With axes "rows" (with y), "mean" and "std". ``figure.data`` is what was drawn, arrays by name: x, y (the
        columns), mean, std, and known, whether the data say something there.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> list(vff.plot.map(vff.GPRegressor(frequencies=4).fit(X, X.sum(axis=1)), X).data)
    ['x', 'y', 'mean', 'std', 'known']
    """
    check_drawable(model, "plot.map")
    (over, kinds), (rows, targets) = _axes(model), _rows(model, X, y)
    lattice = [_range(model, c, rows) for c in over]
    field = _field(model, over, kinds, lattice, rows, targets if ax is None else None)
    equal = equal or all(canvas.compass(model, c) for c in over)
    names = ["mean"] if ax is not None else ["mean", "std"] if targets is None else ["rows", "mean", "std"]
    height = 3.2 if not equal else float(np.clip(3.0 * np.ptp(field.y) / np.ptp(field.x), 1.2, 6.0)) + 0.5
    panels = canvas.new_panels(len(names), len(names), width=4.2, height=height) if ax is None else [ax]
    for panel, name in zip(panels, names, strict=True):
        panel.set_label(name)
        latent_std = name == "std" and not model.likelihood_.standardised
        _PANELS[name](panel, field, scale_text(model) if latent_std else label or target_text(model, y))
        _tick(panel, model, over, kinds)
        panel.set(xlim=field.x[[0, -1]], ylim=field.y[[0, -1]], aspect="equal" if equal else "auto")
        panel.set_xlabel(xlabel or canvas.column_label(model, over[0]), fontsize="small")
    panels[0].set_ylabel(ylabel or canvas.column_label(model, over[1]), fontsize="small")
    axes = (canvas.as_values(kind, at) for kind, at in zip(kinds, lattice, strict=True))
    figure = canvas.finished(panels[0], lattice_data(*axes, mean=field.mean, std=field.std, known=field.known))
    if ax is None:
        canvas.legend_below(figure, surface_handles(panels))
    return figure


def _tick(panel: Axes, model: ProcessMixin, over: list[int], kinds: list[str]) -> None:
    for axis, kind, c in zip((panel.xaxis, panel.yaxis), kinds, over, strict=True):
        canvas.tick(axis, kind)
        canvas.tick_globe(axis, model, c)


def _axes(model: ProcessMixin) -> tuple[list[int], list[str]]:
    """The two columns in the order of the axes, and what they hold; a sentence when they are not two, or have no order.

    One that several factors read is drawn as the first of them has it, or as the globe does.
    """
    kinds = [canvas.column_kind(model, c) for c in range(len(model.column_indices_))]
    first = {model.column_indices_[c]: c for c in reversed(canvas.across_first(model, range(len(kinds))))}
    over = canvas.across_first(model, sorted(first.values()))
    if len(over) != 2 or "levels" in kinds:
        found = f"{len(over)} column(s)" if len(over) != 2 else "a categorical column"
        advice = "plot.fit(model) draws one" if kinds in (["number"], ["datetime"]) else "plot.effects(model) its terms"
        raise ValueError(f"plot.map draws a function of two columns of numbers, and this model has {found}; {advice}")
    return over, [kinds[c] for c in over]


def _rows(model: ProcessMixin, X: Any, y: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    if X is None and y is not None:
        raise ValueError("plot.map needs X to say where y belongs, and X is None; give both, X alone, or neither")
    return (None, None) if X is None else rows_of(model, X, y, "plot.map")


def _field(
    model: ProcessMixin,
    over: list[int],
    kinds: list[str],
    lattice: list[np.ndarray],
    rows: np.ndarray | None,
    targets: np.ndarray | None,
) -> _Map:
    points = np.stack(np.meshgrid(*lattice, indexing="ij"), axis=-1)
    axes = [model.column_indices_[c] for c in over]
    x = points.reshape(-1, 2)[:, [axes.index(index) for index in model.column_indices_]]
    function, variance = latent(model, x)
    mean, shape, scale = mean_of_y(model, function, variance), points.shape[:2], model.target_.scale
    prior = scale**2 * model.fit_.posterior.prior_variance(x) if isinstance(model, AdditiveModel) else np.inf
    known = variance < UNINFORMED**2 * prior
    # the range of the mean where it is shown; around a mean that is the same everywhere, the scale of y
    shown = mean[known] if known.any() else mean
    low, high = float(shown.min()), float(shown.max())
    scale = scale if model.likelihood_.standardised else float(np.abs(mean).max())
    limits = (low - scale, high + scale) if high - low <= _FLAT * scale else (low, high)
    x, y = (canvas.on_axis(kind, at) for kind, at in zip(kinds, lattice, strict=True))
    if rows is not None:
        rows = np.stack([canvas.on_axis(kind, own) for kind, own in zip(kinds, rows[:, over].T, strict=True)], axis=1)
    mean, std, known = (own.reshape(shape) for own in (mean, np.sqrt(variance), known))
    return _Map(x, y, mean, std, known, limits, rows, targets)


def _range(model: ProcessMixin, c: int, rows: np.ndarray | None) -> np.ndarray:
    """All of the range of the data and of the rows."""
    ends = [] if rows is None else [float(rows[:, c].min()), float(rows[:, c].max())]
    if isinstance(model, AdditiveModel):
        ends += [model.statistics_.ranges[c].low, model.statistics_.ranges[c].high]
    if canvas.compass(model, c) and isinstance(model, AdditiveModel):
        return grid_along(model, c, _LATTICE)
    if not ends:
        raise ValueError(
            f"a fitted {type(model).__name__} does not keep the range of its data; give plot.map the rows, as in "
            "plot.map(model, X)"
        )
    if min(ends) == max(ends):
        raise ValueError(
            f"plot.map draws two columns that vary, and {canvas.column_label(model, c)} is {ends[0]:g} in every row; "
            "fit the other column alone and draw it with plot.fit"
        )
    return np.linspace(min(ends), max(ends), _LATTICE)


def _draw_rows(ax: Axes, field: _Map, label: str) -> None:
    """The rows in the colours of the mean."""
    assert field.rows is not None
    assert field.targets is not None
    colours, n = {"cmap": "viridis", "vmin": field.limits[0], "vmax": field.limits[1]}, len(field.rows)
    if n <= MOST_POINTS:
        ax.scatter(*field.rows.T, c=field.targets, s=14.0 if n <= 300 else 6.0, lw=0, clip_on=False, **colours)
        ax.set_title(f"{n:,} rows", fontsize="small")
        return
    x_edges, y_edges, means = cell_means(field.rows[:, 0], field.rows[:, 1], field.targets)
    ax.pcolormesh(x_edges, y_edges, means.T, rasterized=True, **colours)
    ax.set_title(f"{n:,} rows, averages in cells", fontsize="small")


def _draw_mean(ax: Axes, field: _Map, label: str) -> None:
    image = draw_image(ax, field.x, field.y, field.mean, "viridis", field.limits)
    hide_unknown(ax, field.x, field.y, field.known)
    ax.set_title(f"posterior mean{_dotted(ax, field) if field.targets is None else ''}", fontsize="small")
    extend = "neither"
    if field.targets is not None:  # where the rows, drawn in its colours, go on beyond them
        beyond = bool(field.targets.min() < field.limits[0]), bool(field.targets.max() > field.limits[1])
        extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(beyond, "neither")
    add_bar(ax, image, label, extend=extend)


def _draw_std(ax: Axes, field: _Map, label: str) -> None:
    # from zero, so that a deviation that is the same everywhere looks so
    image = draw_image(ax, field.x, field.y, field.std, "YlOrBr", (0.0, None))
    ax.set_title(f"standard deviation of f{_dotted(ax, field)}", fontsize="small")
    add_bar(ax, image, label)


def _dotted(ax: Axes, field: _Map) -> str:
    """Draw the rows, or a sample of them, as dots; what a title says of them."""
    if field.rows is None:
        return ""
    n, x = len(field.rows), field.rows
    if n > MOST_POINTS:
        x = x[np.random.default_rng(_SEED).choice(n, _SAMPLE, replace=False)]
    ax.scatter(*x.T, s=6.0 if n <= 300 else 2.0, color="black", lw=0, clip_on=False)
    return f", {n:,} rows" if n <= MOST_POINTS else f", {_SAMPLE:,} of {n:,} rows"


_PANELS = {"rows": _draw_rows, "mean": _draw_mean, "std": _draw_std}
