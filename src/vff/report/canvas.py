"""Where matplotlib is met."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(width: float = 8.0, height: float = 4.6) -> Axes:
    """Axes on a new figure of this size in inches. Without a display, matplotlib draws to memory by itself."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "drawing needs matplotlib, which is not installed; install it with pip install 'vff[plot]'"
        ) from None
    _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
