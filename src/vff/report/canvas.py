"""Where matplotlib is met."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.words import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEAN, BAND = "#0b4f8a", "#2f7fc1"
"""The colours of a posterior mean and of the intervals around it."""
UNKNOWN = "0.82"
"""The grey of places about which the data say nothing."""


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "drawing needs matplotlib, which is not installed; install it with pip install 'vff[plot]'"
        ) from None
    return pyplot


def new_axes(width: float = 8.0, height: float = 4.6) -> Axes:
    """Axes on a new figure of this size in inches. Without a display, matplotlib draws to memory by itself."""
    _, ax = _pyplot().subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_panels(count: int, ncols: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels, row by row, each of this size in inches."""
    ncols = min(ncols, count)
    nrows = -(-count // ncols)
    # a single panel would be too narrow for the legend below it
    size = (max(width * ncols, 5.0), height * nrows + 0.4)
    figure, grid = _pyplot().subplots(nrows, ncols, figsize=size, layout="constrained", squeeze=False)
    panels = list(np.ravel(grid))
    for ax in panels[count:]:
        ax.remove()
    for ax in panels[:count]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize="small")
    return figure, panels[:count]


def legend_below(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """A legend below all panels, in as many columns as there is room for; none without handles."""
    if handles:
        ncols = min(len(handles), max(1, int(figure.get_figwidth() // 2.5)))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=ncols, fontsize="small")


def half_width(level: float) -> float:
    """Standard deviations on each side of the mean that hold this share of a normal law."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {shown(level)}; 0.95 draws 95 % intervals")
    return NormalDist().inv_cdf(0.5 + 0.5 * level)
