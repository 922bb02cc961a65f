"""Effects over one column, or over one column by the levels of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.report.canvas import BAND, MEAN
from vff.report.columns import column_kind, column_label, level_text, on_axis, tick, tick_levels
from vff.report.drawn import Data, effect_data
from vff.report.views import View, effect_on, levels_of, places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 600
_MANY_DOTS = 30
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")


def draw_curve(ax: Axes, model: AdditiveModel, view: View, z: float) -> Data:
    """A line with a band; a dot when the column holds one value."""
    (c,) = view.over
    kind, x = column_kind(model, c), places(model, c, _GRID)
    effect = effect_on(model, view, {c: x})
    at, (mean, std, _) = on_axis(kind, x), effect
    if x.size == 1:
        _draw_dots(ax, at, mean, std, z)
    else:
        ax.plot(at, mean, color=MEAN, lw=1.4, zorder=4)
        ax.fill_between(at, mean - z * std, mean + z * std, facecolor=(BAND, 0.4), lw=0.0, zorder=3)
        ax.margins(x=0.02)
    tick(ax.xaxis, kind)
    return effect_data(model, view, {c: x}, effect, z)


def draw_levels(ax: Axes, model: AdditiveModel, view: View, z: float) -> Data:
    """Dots with bars, sorted by their effect."""
    (c,) = view.over
    levels, x = levels_of(model, c), places(model, c, 0)
    effect = effect_on(model, view, {c: x})
    order = np.argsort(effect.mean, kind="stable")
    _draw_dots(ax, x, effect.mean[order], effect.std[order], z)
    tick_levels(ax.xaxis, [levels[code] for code in order])
    return effect_data(model, view, {c: x}, effect, z)


def _draw_dots(ax: Axes, x: np.ndarray, mean: np.ndarray, std: np.ndarray, z: float) -> None:
    size = 4.0 if x.size <= _MANY_DOTS else 2.0
    ax.errorbar(x, mean, yerr=z * std, fmt="o", ms=size, color=MEAN, ecolor=(BAND, 0.7), elinewidth=1.5, zorder=4)


def draw_curves(ax: Axes, model: AdditiveModel, view: View, z: float) -> Data:
    """A line with a band for every level; dotted, and without its band, where the data tell nothing."""
    c, by = view.over
    kind, x = column_kind(model, c), places(model, c, _GRID)
    lattice = {c: x, by: places(model, by, 0)}
    effect = effect_on(model, view, lattice)
    at = on_axis(kind, x)
    for level, colour, mean, std, known in zip(
        levels_of(model, by), _COLOURS, effect.mean.T, effect.std.T, effect.known.T, strict=False
    ):
        ax.plot(at, np.where(known, mean, np.nan), color=colour, lw=1.4, zorder=4, label=level_text(level))
        if not known.all():
            ax.plot(at, np.where(known, np.nan, mean), color=colour, lw=0.8, ls=":", zorder=4)
        ax.fill_between(
            at, mean - z * std, mean + z * std, where=known.tolist(), facecolor=(colour, 0.18), lw=0.0, zorder=3
        )
    ax.margins(x=0.02)
    tick(ax.xaxis, kind)
    legend = ax.legend(
        title=column_label(model, by), loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="x-small", frameon=False
    )
    legend.get_title().set_fontsize("small")
    return effect_data(model, view, lattice, effect, z)
