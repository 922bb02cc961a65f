"""The intensity of a point pattern as a picture: a curve with a band, or a map, and the points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.estimators.arguments import interval_level
from vff.estimators.cox import CoxProcess
from vff.report import canvas
from vff.report.panels import add_bar
from vff.report.views import lattice_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CURVE = 600
_FEW = 300  # points, up to which dots are large


def intensity(
    model: CoxProcess,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    label: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """Draw a fitted ``CoxProcess`` of one or two columns.

    One column: the mean of the intensity, its central interval, and a stroke per point. Two columns: a map of the mean
    with the points on it. Grey is what was not observed.

    Parameters
    ----------
    model : CoxProcess
    ax : matplotlib.axes.Axes or None, to draw on
    level : float, probability of the interval
    label : str or None, what the intensity is called
    xlabel, ylabel : str or None

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.data`` is what was drawn, a dictionary of arrays: of one column x, mean, lower, upper; of two x, y (the
        centres of cells), mean and observed.

    Examples
    --------
    >>> model = vff.CoxProcess(grid=32, frequencies=8).fit(np.sqrt(np.linspace(0, 1, 60)), window=(0, 1))
    >>> list(vff.plot.intensity(model).data)
    ['x', 'mean', 'lower', 'upper']
    """
    if not isinstance(model, CoxProcess):
        raise TypeError(
            f"plot.intensity draws a CoxProcess, found a {type(model).__name__}; plot.fit and plot.effects draw that"
        )
    check_is_fitted(model, "model_")
    interval_level(level)
    size = len(model.window_)
    if size > 2:
        raise ValueError(
            f"plot.intensity draws points of one or two columns, and these have {size}; draw intensity(points) along a "
            "line or a plane of your choice"
        )
    ax = canvas.new_axes(*((8.0, 4.0) if size == 1 else _map_size(model))) if ax is None else ax
    if size == 1:
        data = _curve(ax, model, level)
        ax.set_ylabel(label or _unit(model))
    else:
        data = _map(ax, model, label or _unit(model))
        canvas.tick(ax.yaxis, model.kinds_[1])
        ax.set_ylabel(ylabel or _name(model, 1))
    canvas.tick(ax.xaxis, model.kinds_[0])
    ax.set_xlabel(xlabel or _name(model, 0))
    return canvas.finished(ax, data)


def _map_size(model: CoxProcess) -> tuple[float, float]:
    """Width and height in inches: in proportion to the window where the columns are alike."""
    wide, high = (window[1] - window[0] for window in model.window_)
    return 6.4, float(np.clip(4.9 * high / wide, 2.8, 7.0)) + 0.5


def _name(model: CoxProcess, index: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return canvas.with_unit(f"column {index}" if names is None else str(names[index]), model.kinds_[index])


def _unit(model: CoxProcess) -> str:
    days = model.kinds_[0] in ("datetime", "duration")
    per = ("day" if days else f"unit of {_name(model, 0)}") if len(model.window_) == 1 else "unit area"
    alike = np.isin(model.exposure_, (0.0, 1.0)).all()
    return f"points per {per}{'' if alike else ' and exposure'}"


def _curve(ax: Axes, model: CoxProcess, level: float) -> canvas.Data:
    (low, high), (kind,) = model.window_[0], model.kinds_
    x = np.linspace(low, high, _CURVE)
    found = model._intensity_at(x[:, None], level, None)
    at = canvas.on_axis(kind, x)
    ax.plot(at, found.mean, color=canvas.MEAN, lw=1.6, label="posterior mean", zorder=4)
    band = f"{100 * level:g} % interval"
    ax.fill_between(at, found.lower, found.upper, color=canvas.BAND, alpha=0.35, lw=0, label=band, zorder=3)
    points, across = canvas.on_axis(kind, model.points_[:, 0]), ax.get_xaxis_transform()
    ax.plot(points, np.full(points.size, 0.02), "|", color="black", ms=7, mew=0.7, transform=across, label="points")
    hidden = model.exposure_ == 0.0
    if hidden.any():
        edges = canvas.on_axis(kind, model.grid_.edges[0])
        ax.fill_between(
            edges, 0, 1, where=np.append(hidden, hidden[-1]), step="post", transform=across, color=canvas.UNKNOWN, lw=0,
            zorder=0, label="not observed",
        )  # fmt: skip
    ax.set_xlim(*canvas.on_axis(kind, np.array([low, high])))
    ax.set_ylim(0.0, 1.05 * float(found.upper.max()))
    canvas.legend_on(ax)
    return {"x": canvas.as_values(kind, x), "mean": found.mean, "lower": found.lower, "upper": found.upper}


def _map(ax: Axes, model: CoxProcess, label: str) -> canvas.Data:
    x, y = (canvas.on_axis(kind, edges) for kind, edges in zip(model.kinds_, model.grid_.edges, strict=True))
    hidden = model.exposure_ == 0.0
    mean = model.intensity().mean
    shown = np.ma.masked_where(hidden, mean)
    ax.set_facecolor(canvas.UNKNOWN)
    image = ax.pcolormesh(x, y, shown.T, cmap="viridis", vmin=0.0, rasterized=True)
    n = len(model.points_)
    points = (canvas.on_axis(kind, column) for kind, column in zip(model.kinds_, model.points_.T, strict=True))
    ax.scatter(*points, s=9.0 if n <= _FEW else 3.0, color="white", edgecolor="black", lw=0.4, clip_on=False, zorder=3)
    ax.set(xlim=x[[0, -1]], ylim=y[[0, -1]])
    grey = ", grey not observed" if hidden.any() else ""
    ax.set_title(f"posterior mean and {n:,} points{grey}", fontsize="small")
    add_bar(ax, image, label)
    centres = [(edges[1:] + edges[:-1]) / 2 for edges in model.grid_.edges]
    axes = (canvas.as_values(kind, centre) for kind, centre in zip(model.kinds_, centres, strict=True))
    return lattice_data(*axes, mean=mean, observed=~hidden)
