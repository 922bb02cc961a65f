"""The effects of a sum of terms as a picture: one panel per term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vff.estimators.arguments import is_whole
from vff.estimators.base import AdditiveModel
from vff.report import canvas
from vff.report.observed import check_drawable, scale_text
from vff.report.panels import (
    DENSITY,
    add_bar,
    draw_lines,
    draw_missing,
    draw_surface,
    frame_surface,
    share_limits,
    surface_handles,
)
from vff.report.views import (
    View,
    effect_data,
    effect_of_missing,
    effect_on,
    grid_along,
    held_text,
    joined,
    supported,
    view_of,
)
from vff.words import listed, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

_WIDEST = 4  # panels side by side
_WIDEST_SURFACES = 3
_GRID, _FINEST, _LATTICE = (
    600,
    6000,
    121,
)  # places along a line and along each side of an image; odd, so that the middle is on it


def effects(
    model: AdditiveModel,
    terms: Sequence[str] | str | None = None,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    ylabel: str | None = None,
    xlabels: Mapping[str, str] | None = None,
    ncols: int | None = None,
    sharey: bool = True,
    share_colours: bool = False,
    pure: bool = True,
) -> Figure:
    """Draw the effect of every term of a fitted model, or of those named, over the range of its data.

    An effect is the term's part of the latent function, centred on the rows of the fit: in the units of y where noise
    is Gaussian or Student's, else on the scale of the link, which the label names. Products are pure interactions, as
    ``model.effects`` has them. The band is a posterior interval, from the joint posterior of all terms; the grey strip
    shows where the rows lie. With Gaussian noise, titles give shares of the variance of y, which add up.

    Levels are dots with bars, in the order of their type, of a calendar or of the numbers in their names, else sorted
    by their effect. A product of two columns is an image, hatched where the interval holds zero and grey where the term
    is nearly as uncertain as without data; of numbers and at most eight levels, a curve per level, dotted where the
    data say nothing. Of more columns the first two are drawn, and the title says where the others are held.

    Parameters
    ----------
    model : GPRegressor, or GPClassifier of two classes
    terms : names of terms, or None for all
    ax : matplotlib.axes.Axes or None, to draw one term on
    level, ylabel : float, probability of the band, and str or None
    xlabels : mapping to str, or None: labels by the name of a column, or of a term of one column
    ncols : int or None, panels side by side
    sharey, share_colours : bool, one scale for all curves and dots, and one for all images
    pure : bool; else terms are as in the prior, products with what they say of one column alone

    Returns
    -------
    matplotlib.figure.Figure
        The panels are ``figure.axes``, in the order of the terms, whose names they bear (``ax.get_label()``).
        ``figure.data`` is what was drawn, arrays by name: term, x and y (NaN for one column), mean, lower, upper, and
        known, whether the data say something there.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> figure = vff.plot.effects(vff.GPRegressor(frequencies=5).fit(X, X[:, 0] - X[:, 1]))
    >>> [panel.get_label() for panel in figure.axes]
    ['0', '1']
    """
    known = _check_model(model)
    z, views = canvas.half_width(level), [view_of(model, s) for s in _numbers_of(known, terms)]
    _check_labels(model, xlabels or {})
    axes, ncols = _axes(ax, views, ncols)
    how = _How(z, xlabels or {}, sharey and ax is None, share_colours, pure)
    panels = [_draw(own, model, view, how) for own, view in zip(axes, views, strict=True)]
    figure = canvas.finished(axes[0], joined([panel.data for panel in panels if panel.data]))
    _scale(figure if ax is None else None, panels, ncols, ylabel or f"effect on {scale_text(model)}", how)
    _explain(figure if ax is None else None, panels, f"{100 * level:g} % interval")
    return figure


class _How(NamedTuple):
    """What was asked for."""

    z: float
    xlabels: Mapping[str, str]
    sharey: bool
    share_colours: bool
    pure: bool


class _Panel(NamedTuple):
    """Axes with the term that is on them."""

    ax: Axes
    shape: str
    image: QuadMesh | None
    data: canvas.Data


def _check_model(model: AdditiveModel) -> list[str]:
    """The names of its terms."""
    if not isinstance(model, AdditiveModel):
        raise TypeError(
            f"plot.effects draws the terms of a GPRegressor, got {type(model).__name__}; those of a GPClassifier will "
            "do too; plot.fit draws any model of one column, plot.map of two"
        )
    check_drawable(model, "plot.effects")
    return [term.name for term in model.statistics_.terms]


def _axes(ax: Axes | None, views: Sequence[View], ncols: int | None) -> tuple[list[Axes], int]:
    """New ones, or the one that was given, and how many stand side by side: as many as leave the last row full."""
    if ncols is not None and not is_whole(ncols, 1):
        raise ValueError(f"ncols must be 1 or more, got {shown(ncols)}; it counts the panels side by side")
    count, roomy = len(views), any(len(view.over) == 2 for view in views)
    nrows = -(-count // (_WIDEST_SURFACES if roomy else _WIDEST))
    ncols = ncols or -(-count // nrows)
    if ax is None:
        width, height = (4.3, 3.1) if roomy else (3.6, 2.7)
        return canvas.new_panels(count, ncols, width=width, height=height), ncols
    if count > 1:
        raise ValueError(
            f"plot.effects draws a panel per term, {count} here, and ax is one; name one of the terms, or leave ax=None"
        )
    return [ax], ncols


def _numbers_of(known: list[str], names: Sequence[str] | str | None) -> list[int]:
    """Where the named terms stand among all; all of them when none are named."""
    if names is None:
        return list(range(len(known)))
    names = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        found = f"got {listed(unknown)}" if unknown else "got none"
        raise ValueError(f"terms must name terms of the model, {found}; its terms are {listed(known)}")
    return [known.index(name) for name in names]


def _check_labels(model: AdditiveModel, xlabels: Mapping[str, str]) -> None:
    alone = [term.name for term in model.statistics_.terms if len(term.numbers) == 1]
    known = dict.fromkeys([*alone, *(canvas.column_name(model, c) for c in range(len(model.column_indices_)))])
    unknown = [name for name in xlabels if name not in known]
    if unknown:
        raise ValueError(
            f"xlabels must name columns of the model or its terms of one column, got {listed(unknown)}; "
            f"name some of {listed(list(known))}"
        )


def _name_axes(ax: Axes, model: AdditiveModel, view: View, given: Mapping[str, str]) -> None:
    """The columns along the axes; the term too, if another one has the same columns."""
    term = model.statistics_.terms[view.term]
    ax.set_label(term.name)
    labels = [given.get(canvas.column_name(model, c)) or canvas.column_label(model, c) for c in view.over]
    if len(term.numbers) == 1:
        several = f", term {shown(term.name)}" if _has_twin(model, view.term) else ""
        labels[0] = given.get(term.name) or f"{labels[0]}{several}"
    ax.set_xlabel(labels[0], fontsize="small")
    if view.shape == "surface":
        ax.set_ylabel(labels[1], fontsize="small")


def _has_twin(model: AdditiveModel, number: int) -> bool:
    """Whether another term is over the same columns of the table."""
    indices = [{model.column_indices_[c] for c in term.numbers} for term in model.statistics_.terms]
    return indices.count(indices[number]) > 1


def _draw(ax: Axes, model: AdditiveModel, view: View, how: _How) -> _Panel:
    """Draw a term, its labels and its title."""
    _name_axes(ax, model, view, how.xlabels)
    term, surface = model.fit_.terms[view.term], view.shape == "surface"
    active = supported(model, view.term, how.pure)
    name = f"{term.name}: " if len(view.over) == 2 and _has_twin(model, view.term) else ""
    share = _share_text(term.variance_share) if model.fit_.from_sums and how.pure else ""
    title = f"{name}{share if active else 'no effect'}".removesuffix(": ")
    ax.set_title("\n".join(line for line in (title, held_text(model, view)) if line), fontsize="small")
    if not surface:
        ax.axhline(0.0, color="0.6", lw=0.8, zorder=1)
    image, data = None, {}
    if surface and not active:
        frame_surface(ax, model, view)
    else:
        lattice = {c: grid_along(model, c, _LATTICE if surface else _fine(model, c)) for c in view.over}
        effect = effect_on(model, view, lattice, how.pure)
        image = (draw_surface if surface else draw_lines)(ax, model, view, lattice, effect, how.z)
        missing = effect_of_missing(model, view, how.pure)
        if missing is not None:
            draw_missing(ax, missing, how.z)
        data = effect_data(model, view, lattice, effect, how.z)
    if not active:
        text = ax.text(0.5, 0.6, "the data do not support\nan effect", ha="center", fontsize="small", zorder=6)
        text.set(transform=ax.transAxes, bbox={"facecolor": "white", "lw": 0.0, "pad": 1.0})
        if not surface and not how.sharey:
            # what is left of the term is rounding, and ticks of its own would give it a meaning
            ax.set_ylim(-model.target_.scale, model.target_.scale)
            ax.set_yticks([0.0])
    return _Panel(ax, view.shape, image, data)


def _fine(model: AdditiveModel, c: int) -> int:
    """Places along a line: four for every function, so that no wiggle of a long series is lost."""
    return min(_FINEST, max(_GRID, 4 * model.statistics_.moments.request.columns[c].basis.size))


def _share_text(share: float | None) -> str:
    if share is None:
        return ""
    if abs(share) < 0.001:
        return "less than 0.1 % of the variance of y"
    text = f"{100 * share:.2g}" if share < 0.995 else "100"
    return f"{text} % of the variance of y" + (": offsets others" if share < 0.0 else "")


def _scale(figure: Figure | None, panels: Sequence[_Panel], ncols: int, label: str, how: _How) -> None:
    """The scales of the effect: vertical ones of lines, colours of images. No figure: it is the caller's."""
    lines = {number: panel.ax for number, panel in enumerate(panels) if panel.shape != "surface"}
    if len(lines) == len(panels) and figure is not None:
        figure.supylabel(label, fontsize="medium")
    first = next(iter(lines.values()), None)
    for number, ax in lines.items():
        leads = number % ncols == 0 or number - 1 not in lines
        if leads and (len(lines) < len(panels) or figure is None):
            ax.set_ylabel(label, fontsize="small")
        if how.sharey and ax is not first and first is not None:
            ax.sharey(first)
        if how.sharey and not leads:
            ax.tick_params(labelleft=False)
    images = {panel.ax: panel.image for panel in panels if panel.image is not None}
    if how.share_colours:
        share_limits(list(images.values()))
    if how.sharey:
        for ax in lines.values():
            ax.autoscale_view(scalex=False)
    for ax, image in images.items():
        add_bar(ax, image, label)


def _explain(figure: Figure | None, panels: Sequence[_Panel], interval: str) -> None:
    """One legend below all panels, for whichever marks were drawn; on the panel, where the figure is the caller's."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, axes = {}, [panel.ax for panel in panels]
    lines = [panel.ax for panel in panels if panel.shape != "surface"]
    if lines:
        curves = any(not ax.containers for ax in lines)
        coloured = all(panel.shape in ("curves", "surface") for panel in panels)
        colours = ("0.3", "0.6") if coloured else (canvas.MEAN, canvas.BAND)
        mean = Line2D([], [], color=colours[0], lw=1.4 if curves else 0.0, marker="" if curves else "o")
        handles = {"posterior mean": mean, interval: Patch(facecolor=(colours[1], 0.4))}
        if any(item.get_label() == DENSITY for ax in lines for item in ax.collections):
            handles[DENSITY] = Patch(facecolor="0.6", lw=0.0)
    handles |= surface_handles(axes, interval)
    if figure is not None:
        canvas.legend_below(figure, handles)
    elif handles and axes[0].get_legend() is None:
        canvas.legend_on(axes[0], list(handles.values()), list(handles))
