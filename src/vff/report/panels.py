"""Effects on a panel: a curve, dots for levels, a curve per level, or an image.

Images have colours around zero, are hatched where zero is likely, and grey where the data say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.report import canvas
from vff.report.views import Effect, View, density_along, grid_along, levels_of, order_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import QuadMesh
    from matplotlib.patches import Patch

_MANY_DOTS = 30
_MANY_TURNS = 40
_STRIP = 0.06  # of the height of a panel
DENSITY = "density of the rows"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")
_HATCH, _HATCH_COLOUR = "/////", (0.0, 0.0, 0.0, 0.35)

Lattice = Mapping[int, np.ndarray]
"""Where an effect is drawn, by column."""


def draw_lines(ax: Axes, model: AdditiveModel, view: View, lattice: Lattice, effect: Effect, z: float) -> None:
    """Of numbers, a line with a band, or one for every level of another column; of levels, dots with bars."""
    c, x = next(iter(lattice.items()))
    kind, (mean, std, _) = canvas.drawn_kind(model, c), effect
    if view.shape == "dots":
        order = order_of(model, c, mean)
        _draw_dots(ax, x, mean[order], std[order], z)
        canvas.tick_levels(ax.xaxis, [levels_of(model, c)[code] for code in order], mean[order])
        return
    if view.shape == "curves":
        _draw_curves(ax, model, view.over[1], canvas.on_axis(kind, x), effect, z)
    elif x.size == 1:
        _draw_dots(ax, canvas.on_axis(kind, x), mean, std, z)
    else:
        at = canvas.on_axis(kind, x)
        ax.plot(at, mean, color=canvas.MEAN, lw=_width(mean), zorder=4)
        ax.fill_between(at, mean - z * std, mean + z * std, facecolor=(canvas.BAND, 0.4), lw=0.0, zorder=3)
        ax.margins(x=0.02)
    if x.size > 1:
        _draw_density(ax, kind, density_along(model, view))
    canvas.tick(ax.xaxis, kind)


def _width(mean: np.ndarray) -> float:
    """Of a line, thin for a series that turns often."""
    turns = np.count_nonzero(np.diff(np.sign(np.diff(mean))))
    return 1.4 if turns <= _MANY_TURNS else 0.6


def _draw_density(ax: Axes, kind: str, density: tuple[np.ndarray, np.ndarray] | None) -> None:
    """A strip along the x axis, as high as the rows are dense; the vertical scale is that of the panel."""
    if density is not None:
        edges, heights = density
        at, heights = np.repeat(canvas.on_axis(kind, edges), 2)[1:-1], _STRIP * np.repeat(heights, 2)
        across = ax.get_xaxis_transform()
        strip = ax.fill_between(at, 0.0, heights, transform=across, facecolor="0.6", lw=0.0, zorder=2)
        strip.set_label(DENSITY)


def _draw_dots(ax: Axes, x: np.ndarray, mean: np.ndarray, std: np.ndarray, z: float) -> None:
    size = 4.0 if x.size <= _MANY_DOTS else 2.0
    ax.errorbar(
        x, mean, yerr=z * std, fmt="o", ms=size, color=canvas.MEAN, ecolor=(canvas.BAND, 0.7), elinewidth=1.5, zorder=4
    )


def draw_missing(ax: Axes, effect: Effect, z: float) -> None:
    """A dot with a bar to the right of a line: the effect where the column is missing."""
    (mean,), (std,), _ = effect
    low, high = ax.get_xlim()
    at = high + 0.04 * (high - low)
    ax.errorbar(at, mean, z * std, fmt="o", ms=4.0, color=canvas.MEAN, lw=1.0, zorder=4)
    ax.annotate("missing", (at, mean), (4.0, 4.0), textcoords="offset points", fontsize="x-small", ha="right")
    ax.set_xlim(low, high + 0.08 * (high - low))


def _draw_curves(ax: Axes, model: AdditiveModel, by: int, at: np.ndarray, effect: Effect, z: float) -> None:
    """Dotted, and without a band, where the data tell nothing."""
    for number, colour in zip(order_of(model, by), _COLOURS, strict=False):
        level, (mean, std, known) = levels_of(model, by)[number], (field[:, number] for field in effect)
        ax.plot(
            at, np.where(known, mean, np.nan), color=colour, lw=_width(mean), zorder=4, label=canvas.level_text(level)
        )
        if not known.all():
            ax.plot(at, np.where(known, np.nan, mean), color=colour, lw=0.8, ls=":", zorder=4)
        ax.fill_between(
            at, mean - z * std, mean + z * std, where=known.tolist(), facecolor=(colour, 0.18), lw=0.0, zorder=3
        )
    ax.margins(x=0.02)
    legend = ax.legend(
        title=canvas.column_label(model, by),
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        fontsize="x-small",
        frameon=False,
    )
    legend.get_title().set_fontsize("small")


def draw_surface(ax: Axes, model: AdditiveModel, view: View, lattice: Lattice, effect: Effect, z: float) -> QuadMesh:
    """The effect as an image with limits symmetric about zero, in the units of y."""
    largest = float(np.max(np.abs(effect.mean), where=effect.known, initial=0.0)) or float(np.abs(effect.mean).max())
    kinds = [canvas.drawn_kind(model, c) for c in lattice]
    for axis, (c, kind) in enumerate(zip(lattice, kinds, strict=True)):
        if kind == "levels":
            effect = Effect(*(np.take(field, order_of(model, c), axis) for field in effect))
    x, y = (canvas.on_axis(kind, at) for kind, at in zip(kinds, lattice.values(), strict=True))
    image = draw_image(ax, x, y, effect.mean, "RdBu_r", (-largest, largest), zorder=1)
    stepped = [kind == "levels" for kind in kinds]
    doubtful = z * effect.std - np.abs(effect.mean)
    hatched = _fill_positive(ax, x, y, doubtful, stepped, hatches=[_HATCH], colors="none", zorder=1.5)
    if hatched is not None:
        hatched.set(edgecolor=_HATCH_COLOUR, linewidth=0.0, label="interval")
    hide_unknown(ax, x, y, effect.known, stepped)
    frame_surface(ax, model, view)
    return image


def draw_image(
    ax: Axes, x: np.ndarray, y: np.ndarray, field: np.ndarray, cmap: str, limits: Sequence[float | None], **more: Any
) -> QuadMesh:
    """A field (X, Y) in colours between two limits."""
    colours = dict(zip(("vmin", "vmax"), limits, strict=True)) | {"cmap": cmap}
    return ax.pcolormesh(x, y, field.T, shading="nearest", rasterized=True, **colours, **more)


def hide_unknown(
    ax: Axes, x: np.ndarray, y: np.ndarray, known: np.ndarray, stepped: Sequence[bool] = (False, False)
) -> None:
    """Cover what the data have not told, (X, Y), with grey."""
    hidden = _fill_positive(ax, x, y, np.where(known, -1.0, 1.0), stepped, colors=canvas.UNKNOWN, zorder=2)
    if hidden is not None:
        hidden.set(label="unknown")


def _fill_positive(
    ax: Axes, x: np.ndarray, y: np.ndarray, field: np.ndarray, stepped: Sequence[bool], **options: Any
) -> Any | None:
    """Fill where a field (X, Y) is positive; along columns of levels it has steps. None when it nowhere is."""
    highest = float(field.max())
    if highest <= 0.0:
        return None
    for axis, steps in enumerate(stepped):
        field = np.repeat(field, 2, axis=axis) if steps else field
    x, y = (_edges(at) if steps else at for at, steps in zip((x, y), stepped, strict=True))
    return ax.contourf(x, y, field.T, levels=[0.0, 2.0 * highest], **options)


def _edges(at: np.ndarray) -> np.ndarray:
    """Both edges of every level."""
    return (at[:, None] + [-0.5, 0.5]).ravel()


def frame_surface(ax: Axes, model: AdditiveModel, view: View) -> None:
    """Ticks, and limits that are those of the data; levels are read from the top."""
    across, up = view.over
    ax.set_xlim(_frame(ax.xaxis, model, across))
    ax.set_ylim(_frame(ax.yaxis, model, up))
    ax.yaxis.set_inverted(canvas.drawn_kind(model, up) == "levels")
    if canvas.compass(model, across) and canvas.compass(model, up):
        ax.set_aspect("equal")


def _frame(axis: Axis, model: AdditiveModel, c: int) -> tuple[float, float]:
    kind = canvas.drawn_kind(model, c)
    if kind == "levels":
        levels = [levels_of(model, c)[number] for number in order_of(model, c)]
        canvas.tick_levels(axis, levels)
        return -0.5, len(levels) - 0.5
    canvas.tick(axis, kind)
    canvas.tick_globe(axis, model, c)
    low, high = canvas.on_axis(kind, grid_along(model, c, 2))
    return float(low), float(high)


def add_bar(ax: Axes, image: QuadMesh, label: str, *, extend: str = "neither") -> None:
    """A colour bar beside a panel, as high as it and part of it."""
    bar = canvas.figure_of(ax).colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)), extend=extend)
    bar.ax.tick_params(labelsize="small")
    bar.ax.ticklabel_format(useOffset=False)
    bar.set_label(label, fontsize="small")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def share_limits(images: Sequence[QuadMesh]) -> None:
    """One colour scale for all."""
    largest = max((image.get_clim()[1] or 0.0 for image in images), default=0.0)
    for image in images:
        image.set_clim(-largest, largest)


def surface_handles(panels: Sequence[Axes], interval: str = "") -> dict[str, Patch]:
    """What the legend has to say of the marks on the images, by its words."""
    from matplotlib.patches import Patch

    marks = {item.get_label() for ax in panels for item in ax.collections}
    handles = {}
    if "interval" in marks:
        handles[f"{interval} holds 0"] = Patch(facecolor="none", edgecolor=_HATCH_COLOUR, hatch=_HATCH, lw=0.0)
    if "unknown" in marks:
        handles["nearly as uncertain as without data"] = Patch(facecolor=canvas.UNKNOWN, lw=0.0)
    return handles
