"""Effects over two columns: colours around zero, hatched where zero is likely, grey where the data say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.report.canvas import UNKNOWN
from vff.report.columns import column_kind, on_axis, tick, tick_levels
from vff.report.drawn import Data, effect_data
from vff.report.views import View, effect_on, levels_of, places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import QuadMesh
    from matplotlib.patches import Patch

_LATTICE = 121  # odd, so that the middle of a range is on it
_HATCH, _HATCH_COLOUR = "/////", (0.0, 0.0, 0.0, 0.35)


def draw_surface(ax: Axes, model: AdditiveModel, view: View, z: float) -> tuple[QuadMesh, Data]:
    """The effect as an image with limits symmetric about zero, in the units of y."""
    lattice = {c: places(model, c, _LATTICE) for c in view.over}
    effect = effect_on(model, view, lattice)
    largest = float(np.max(np.abs(effect.mean), where=effect.known, initial=0.0)) or float(np.abs(effect.mean).max())
    x, y = (on_axis(column_kind(model, c), lattice[c]) for c in view.over)
    image = ax.pcolormesh(
        x, y, effect.mean.T, cmap="RdBu_r", vmin=-largest, vmax=largest, shading="nearest", rasterized=True, zorder=1
    )
    stepped = [column_kind(model, c) == "levels" for c in view.over]
    doubtful = z * effect.std - np.abs(effect.mean)
    hatched = _fill_positive(ax, x, y, doubtful, stepped, hatches=[_HATCH], colors="none", zorder=1.5)
    if hatched is not None:
        hatched.set(edgecolor=_HATCH_COLOUR, linewidth=0.0, label="interval")
    hide_unknown(ax, x, y, effect.known, stepped)
    frame_surface(ax, model, view)
    return image, effect_data(model, view, lattice, effect, z)


def hide_unknown(
    ax: Axes, x: np.ndarray, y: np.ndarray, known: np.ndarray, stepped: Sequence[bool] = (False, False)
) -> None:
    """Cover what the data have not told, (X, Y), with grey."""
    hidden = _fill_positive(ax, x, y, np.where(known, -1.0, 1.0), stepped, colors=UNKNOWN, zorder=2)
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
    ax.yaxis.set_inverted(column_kind(model, up) == "levels")


def _frame(axis: Axis, model: AdditiveModel, c: int) -> tuple[float, float]:
    kind = column_kind(model, c)
    if kind == "levels":
        levels = levels_of(model, c)
        tick_levels(axis, levels)
        return -0.5, len(levels) - 0.5
    tick(axis, kind)
    low, high = on_axis(kind, places(model, c, 2))
    return float(low), float(high)


def add_bar(ax: Axes, image: QuadMesh, label: str, *, extend: str = "neither") -> None:
    """A colour bar beside a panel, as high as it and part of it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)), extend=extend)
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
        handles["nearly as uncertain as without data"] = Patch(facecolor=UNKNOWN, lw=0.0)
    return handles
