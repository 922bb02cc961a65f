"""The effects of a sum of terms as a picture: one panel per term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.estimators import GPRegressor
from vff.report.canvas import BAND, MEAN, half_width, new_panels
from vff.report.columns import column_kind, column_name, on_axis, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GRID = 600
_WIDEST = 4  # panels side by side
_MOST_LABELS = 30
_LONGEST_LABEL = 16


def effects(
    model: GPRegressor,
    terms: Sequence[str] | str | None = None,
    *,
    level: float = 0.95,
    ylabel: str | None = None,
    xlabels: Mapping[str, str] | None = None,
    ncols: int | None = None,
    sharey: bool = False,
) -> Figure:
    """Draw the effect of every term of a fitted model, or of those named, over the range of its data.

    An effect is the term's part of the prediction, centred on the rows of the fit, in the units of y; the band is its
    posterior interval of the given level, from the joint posterior of all terms. Levels of a category are dots with
    bars, sorted by their effect. Titles give the variance of the effect over the rows, relative to that of y; effects
    that offset one another can have more than all of it. Each panel has its own vertical scale unless ``sharey``.

    ``xlabels`` gives labels by the name of the term. The panels are ``figure.axes`` in the order of the terms; each
    bears its term's name, ``ax.get_label()``. Returns the figure.
    """
    if not isinstance(model, GPRegressor):
        raise TypeError(
            f"plot.effects draws the terms of a GPRegressor, got {type(model).__name__}; plot.fit draws any regressor "
            "of one column"
        )
    check_is_fitted(model, "posterior_")
    z, chosen = half_width(level), _places(model, [terms] if isinstance(terms, str) else terms, "terms")
    _places(model, list(xlabels or ()), "xlabels")
    if ncols is not None and ncols < 1:
        raise ValueError(f"ncols must be 1 or more, got {ncols!r}; it counts the panels side by side")
    figure, panels = new_panels(len(chosen), ncols or _side_by_side(len(chosen)), sharey=sharey)
    for ax, number in zip(panels, chosen, strict=True):
        name = model.rows_.terms[number].name
        ax.set_label(name)
        ax.axhline(0.0, color="0.6", lw=0.8, zorder=1)
        ax.set_xlabel((xlabels or {}).get(name) or _label(model, number), fontsize="small")
        (_draw_levels if column_kind(model, number) == "levels" else _draw_curve)(ax, model, number, z)
        _say_share(ax, model, number, sharey=sharey)
    figure.supylabel(ylabel or "effect on y", fontsize="medium")
    _explain(figure, panels, f"{100 * level:g} % interval")
    return figure


def _places(model: GPRegressor, names: Sequence[str] | None, what: str) -> list[int]:
    """Where the named terms stand; all of them when none are named."""
    known = [term.name for term in model.rows_.terms]
    unknown = [name for name in names or () if name not in known]
    if unknown or (what == "terms" and names is not None and not names):
        found = f"got {', '.join(map(repr, unknown))}" if unknown else "got none"
        raise ValueError(f"{what} must name terms of the model, {found}; its terms are {', '.join(map(repr, known))}")
    return list(range(len(known))) if names is None else [known.index(name) for name in names]


def _side_by_side(count: int) -> int:
    """As many as leave the last row full, or nearly."""
    rows = -(-count // _WIDEST)
    return -(-count // rows)


def _label(model: GPRegressor, number: int) -> str:
    """The column, with its unit if the reading of the table gave it one, and the term if the column has several."""
    name, kind = column_name(model, number), column_kind(model, number)
    several = model.column_indices_.count(model.column_indices_[number]) > 1
    unit = " (days)" if kind == "duration" else ""
    return f"{name}{unit}, term {model.rows_.terms[number].name!r}" if several else f"{name}{unit}"


def _effect(model: GPRegressor, number: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a centred term in the units of y."""
    mean, variance = model.fit_.posterior.terms[number].centred(x)
    return model.target_.scale * mean, model.target_.scale * np.sqrt(variance)


def _draw_curve(ax: Axes, model: GPRegressor, number: int, z: float) -> None:
    extent, kind = model.rows_.extents[number], column_kind(model, number)
    if extent.constant:
        x = np.array([extent.low])
        _draw_dots(ax, on_axis(kind, x), *_effect(model, number, x), z)
    else:
        x = np.linspace(extent.low, extent.high, _GRID)
        mean, std = _effect(model, number, x)
        x = on_axis(kind, x)
        ax.plot(x, mean, color=MEAN, lw=1.4, zorder=4)
        ax.fill_between(x, mean - z * std, mean + z * std, facecolor=(BAND, 0.4), lw=0.0, zorder=3)
        ax.margins(x=0.02)
    tick(ax, kind)


def _draw_levels(ax: Axes, model: GPRegressor, number: int, z: float) -> None:
    levels = model.rows_.terms[number].levels or ()
    mean, std = _effect(model, number, np.arange(len(levels), dtype=float))
    order, places = np.argsort(mean, kind="stable"), np.arange(len(levels))
    _draw_dots(ax, places, mean[order], std[order], z)
    step = -(-len(levels) // _MOST_LABELS)
    named = [_level_name(levels[code]) for code in order[::step]]
    upright = len(named) > 6 or sum(map(len, named)) > 30
    ax.set_xticks(places[::step], named, rotation=90 if upright else 0, fontsize="x-small" if upright else "small")
    if step > 1:
        ax.set_xlabel(f"{ax.get_xlabel()}: {len(levels)} levels, one in {step} named", fontsize="small")


def _draw_dots(ax: Axes, x: np.ndarray, mean: np.ndarray, std: np.ndarray, z: float) -> None:
    size = 4.0 if x.size <= _MOST_LABELS else 2.0
    ax.errorbar(x, mean, yerr=z * std, fmt="o", ms=size, color=MEAN, ecolor=(BAND, 0.7), elinewidth=1.5, zorder=4)


def _level_name(level: object) -> str:
    text = "missing" if level is None else str(level)
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _say_share(ax: Axes, model: GPRegressor, number: int, *, sharey: bool) -> None:
    term = model.fit_.terms[number]
    if term.supported:
        ax.set_title(_share_text(term.share), fontsize="small")
        return
    ax.set_title("no effect", fontsize="small")
    ax.text(0.5, 0.6, "the data do not support\nan effect", transform=ax.transAxes, ha="center", fontsize="small")
    if not sharey:
        # what is left of the term is rounding, and ticks of its own would give it a meaning
        ax.set_ylim(-model.target_.scale, model.target_.scale)
        ax.set_yticks([0.0])


def _share_text(share: float) -> str:
    if share < 0.001:
        return "less than 0.1 % of the variance of y"
    return f"{100 * share:.2g} % of the variance of y" if share < 0.995 else f"{share:.1f} times the variance of y"


def _explain(figure: Figure, panels: Sequence[Axes], interval: str) -> None:
    """One legend below all panels, for whichever marks were drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    curves = any(ax.collections and not ax.containers for ax in panels)
    mean = Line2D([], [], color=MEAN, lw=1.4 if curves else 0.0, marker="" if curves else "o")
    handles = [mean, Patch(facecolor=(BAND, 0.4))]
    figure.legend(handles, ["posterior mean", interval], loc="outside lower center", ncols=2, fontsize="small")
