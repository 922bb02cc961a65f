"""What a panel shows of a term: the columns it is drawn over, the values at which others are held, and the effect.

What was drawn is left as numbers in ``figure.data``, a dictionary of arrays of equal length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from vff.basis import Basis
from vff.estimators.base import AdditiveModel
from vff.report import canvas
from vff.report.levels import places

_MOST_CURVES = 8
_MOST_BARS, _SMOOTH = 61, 0.02  # of the histogram of the rows
_FEW_BARS, _EVENLY = 24, 0.2  # of one whose values are not evenly apart, and how much shorter a gap is then
_FIRST = 30.0  # how much more the mean of the rows counts there than a harmonic: few equations against many
UNINFORMED = 0.9
"""Share of the prior's standard deviation above which the data are taken to say nothing."""


class Effect(NamedTuple):
    """A centred term on a lattice of its columns, in the units of y."""

    mean: np.ndarray
    std: np.ndarray
    known: np.ndarray
    """Where the data have told something: the standard deviation is clearly less than the prior's."""


@dataclass(frozen=True)
class View:
    """A term over one or two of its columns."""

    term: int
    over: tuple[int, ...]
    """Columns along the axes; one of numbers comes before one of levels."""
    held: tuple[int, ...]
    """Columns of the term that keep one value."""
    shape: str
    """ "curve" over numbers, "dots" over levels, "curves" over numbers by level, or "surface"."""


def view_of(model: AdditiveModel, number: int) -> View:
    """How a term is drawn: over its first two columns that vary."""
    columns = _each_once(model, canvas.across_first(model, model.statistics_.terms[number].numbers))
    varying = [c for c in columns if grid_along(model, c, 2).size > 1]
    levels = {c: canvas.drawn_kind(model, c) == "levels" for c in varying[:2] or columns[:1]}
    first, *more = over = tuple(sorted(levels, key=lambda c: levels[c]))  # numbers first
    shape = "surface" if more else "dots" if levels[first] else "curve"
    if more and not levels[first] and levels[more[0]] and len(levels_of(model, more[0])) <= _MOST_CURVES:
        shape = "curves"
    return View(number, over, tuple(c for c in columns if c not in over), shape)


def _each_once(model: AdditiveModel, numbers: Sequence[int]) -> list[int]:
    """Of several that read one column of the table, the one that is drawn over: all of the data, not the phase."""
    columns, requests = model.statistics_.binding.columns, model.statistics_.moments.request.columns
    whole = sorted(numbers, key=lambda c: requests[c].domain.ends is None)
    first = {(columns[c].index, columns[c].levels is None): c for c in reversed(whole)}
    return [c for c in numbers if c in first.values()]


def levels_of(model: AdditiveModel, c: int) -> tuple[Any, ...]:
    """The levels of a categorical column."""
    return model.statistics_.binding.columns[c].levels or ()


def order_of(model: AdditiveModel, c: int, mean: np.ndarray | None = None) -> np.ndarray:
    """In which order the levels of a column stand: their own, else by their effect, else as they are known."""
    found = places(levels_of(model, c), model.statistics_.binding.columns[c].order)
    if found is None:
        return np.arange(len(levels_of(model, c))) if mean is None else np.argsort(mean, kind="stable")
    return found


def density_along(model: AdditiveModel, view: View) -> tuple[np.ndarray, np.ndarray] | None:
    """How densely the rows of the fit lie along the first column drawn: edges of bars, and heights of at most one.

    The averages of the features over the rows are known. The heights are those of a histogram that has these averages,
    as nearly as its bars can, is nowhere negative, and smooth where the averages do not say; where the column has a few
    dozen values, it has a bar at each. None where unknown.
    """
    term = model.fit_.posterior.terms[view.term]
    if view.over[0] not in term.columns:  # which a factor reads with others
        return None
    factor = term.factors[d := term.columns.index(view.over[0])]
    h, ends = model.fit_.posterior.feature_averages(view.term, d), grid_along(model, view.over[0], 2)
    if h is None or factor.domain.discrete or ends.size < 2:
        return None
    basis, t = factor.basis.numbers, factor.domain.to_unit
    values = model.statistics_.ranges[view.over[0]].values
    if values is not None and factor.domain.ends is not None and 1 < values.size <= basis.size:
        shares, _ = nnls(
            _with_polynomials(basis, basis.evaluate(t(values)).T), _with_polynomials(basis, h[: basis.size])
        )
        return _bars(values, shares)
    # rows stand at nodes, the ends among them, where many may be; a bar is as wide as a node reaches
    nodes = np.linspace(ends[0], ends[-1], int(min(_MOST_BARS, max(3, basis.size))))
    edges = np.concatenate([nodes[:1], 0.5 * (nodes[:-1] + nodes[1:]), nodes[-1:]])
    features = _with_polynomials(basis, basis.evaluate(t(nodes)).T)
    bends = _SMOOTH * np.diff(np.eye(nodes.size), n=2, axis=0)
    averages = np.append(_with_polynomials(basis, h[: basis.size]), np.zeros(len(bends)))
    weights, _ = nnls(np.concatenate([features, bends]), averages)
    heights = weights / np.diff(edges)
    return edges, heights / max(float(heights.max()), np.finfo(float).tiny)


def _bars(values: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A bar at every value, where these are evenly apart; else bars of equal width over all of them."""
    gaps, top = np.diff(values), max(float(shares.max()), np.finfo(float).tiny)
    if gaps.min() < _EVENLY * gaps.max():
        heights, edges = np.histogram(values, _FEW_BARS, weights=shares)
        return edges, heights / max(float(heights.max()), np.finfo(float).tiny)
    half = 0.5 * min(float(gaps.min()), (values[-1] - values[0]) / _FEW_BARS)
    edges = np.stack([values - half, values + half], axis=1).ravel()
    return edges, np.stack([shares / top, np.zeros(shares.size)], axis=1).ravel()[:-1]


def grid_along(model: AdditiveModel, c: int, count: int) -> np.ndarray:
    """Where a column is evaluated: so many numbers over the range of its data, or all levels."""
    span, column = model.statistics_.ranges[c], model.statistics_.moments.request.columns[c]
    return column.domain.drawn(span.low, span.high, count, column.basis.size)


def _with_polynomials(basis: Basis, averages: np.ndarray) -> np.ndarray:
    """Of polynomials in place of what harmonics leave of them: harmonics alone take one end for the other."""
    letters = basis.single.trigonometric
    M, q = (0, 0) if letters is None else letters.multipliers
    if letters is None or not q or basis.size != 2 * M + 1 + q:
        return averages
    waves, edges = averages[: 2 * M + 1], averages[2 * M + 1 :]
    return np.concatenate([waves, _FIRST * (edges + letters.harmonics() @ waves)])


def supported(model: AdditiveModel, number: int, pure: bool) -> bool:
    """Whether the data support the effect of a term: it, or a product that it has a margin of."""
    parts = {part.term for part in model._pure_effects[number].parts} if pure else {number}
    return any(model.fit_.terms[t].active for t in parts)


def _middle(model: AdditiveModel, c: int) -> float:
    """A valid value of a column: the first level, False, or the middle of its range."""
    kind, span = canvas.drawn_kind(model, c), model.statistics_.ranges[c]
    held = model.statistics_.moments.request.columns[c].domain.held
    if held is not None:
        return held
    if kind == "levels":
        return 0.0
    return span.low if kind == "boolean" else 0.5 * (span.low + span.high)


def held_text(model: AdditiveModel, view: View) -> str:
    """At which values the columns that are not drawn are held; empty when there are none."""
    parts = []
    for c in view.held:
        kind = canvas.drawn_kind(model, c)
        value = (
            canvas.level_text(levels_of(model, c)[0])
            if kind == "levels"
            else canvas.value_text(kind, _middle(model, c))
        )
        parts.append(f"{canvas.column_name(model, c)} = {value}")
    return f"at {', '.join(parts)}" if parts else ""


def effect_on(model: AdditiveModel, view: View, lattice: Mapping[int, np.ndarray], pure: bool = True) -> Effect:
    """The effect of a term on the product of places of its columns, one axis of the result per column."""
    posterior, scale = model.fit_.posterior, model.target_.scale
    grids = np.meshgrid(*lattice.values(), indexing="ij")
    x = np.tile([_middle(model, c) for c in range(len(model.column_indices_))], (grids[0].size, 1))
    columns = model.statistics_.binding.columns
    for c, grid in zip(lattice, grids, strict=True):
        for other, column in enumerate(columns):  # a column may be read in several ways
            if column.index == columns[c].index and (column.levels is None) == (columns[c].levels is None):
                x[:, other] = grid.ravel()
    mean, variance, prior = model._effect(view.term, x, posterior.rows(x), pure)
    known = variance < UNINFORMED**2 * prior
    shape = grids[0].shape
    return Effect(scale * mean.reshape(shape), scale * np.sqrt(variance).reshape(shape), known.reshape(shape))


def effect_of_missing(model: AdditiveModel, view: View, pure: bool) -> Effect | None:
    """The effect of a term over one column of numbers where that is missing; None where it never was."""
    c = view.over[0]
    if len(view.over) > 1 or levels_of(model, c) or not model.statistics_.binding.gaps[c]:
        return None
    return effect_on(model, view, {c: np.array([np.nan])}, pure)


def lattice_data(x: np.ndarray, y: np.ndarray, **fields: np.ndarray) -> canvas.Data:
    """Fields (X, Y) over two columns."""
    across, up = np.meshgrid(x, y, indexing="ij")
    return {"x": across.ravel(), "y": up.ravel(), **{name: field.ravel() for name, field in fields.items()}}


def effect_data(
    model: AdditiveModel, view: View, lattice: Mapping[int, np.ndarray], effect: Effect, z: float
) -> canvas.Data:
    """A term on a lattice of its columns: numbers, times, or levels as they are written."""
    x, *more = (_axis_values(model, c, at) for c, at in lattice.items())
    half, known = z * effect.std, effect.known
    fields = {"mean": effect.mean, "lower": effect.mean - half, "upper": effect.mean + half, "known": known}
    over = lattice_data(x, *(more or [np.full(1, np.nan)]), **fields)
    return {"term": np.full(known.size, model.statistics_.terms[view.term].name, dtype=object), **over}


def _axis_values(model: AdditiveModel, c: int, at: np.ndarray) -> np.ndarray:
    kind = canvas.drawn_kind(model, c)
    if kind != "levels":
        return canvas.as_values(kind, at)
    return np.array([canvas.level_text(level) for level in levels_of(model, c)], dtype=object)


def joined(parts: Sequence[canvas.Data]) -> canvas.Data:
    """One after another; columns that hold numbers here and levels there are of objects."""
    return {name: _concatenated([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _concatenated(parts: Sequence[np.ndarray]) -> np.ndarray:
    alike = len({part.dtype.kind for part in parts}) == 1
    return np.concatenate(parts if alike else [part.astype(object) for part in parts])
