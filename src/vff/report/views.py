"""What a panel shows of a term: the columns it is drawn over, the values at which others are held, and the effect.

What was drawn is left as numbers in ``figure.data``, a dictionary of arrays of equal length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.report import canvas

_MOST_CURVES = 8
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
    columns = canvas.across_first(model, model.statistics_.terms[number].numbers)
    varying = [c for c in columns if grid_along(model, c, 2).size > 1]
    levels = {c: canvas.column_kind(model, c) == "levels" for c in varying[:2] or columns[:1]}
    first, *more = over = tuple(sorted(levels, key=lambda c: levels[c]))  # numbers first
    shape = "surface" if more else "dots" if levels[first] else "curve"
    if more and not levels[first] and levels[more[0]] and len(levels_of(model, more[0])) <= _MOST_CURVES:
        shape = "curves"
    return View(number, over, tuple(c for c in columns if c not in over), shape)


def levels_of(model: AdditiveModel, c: int) -> tuple[Any, ...]:
    """The levels of a categorical column."""
    return model.statistics_.binding.columns[c].levels or ()


def grid_along(model: AdditiveModel, c: int, count: int) -> np.ndarray:
    """Where a column is evaluated: so many numbers over the range of its data, or all levels."""
    span, column = model.statistics_.ranges[c], model.statistics_.moments.request.columns[c]
    return column.domain.drawn(span.low, span.high, count, column.basis.size)


def _middle(model: AdditiveModel, c: int) -> float:
    """A valid value of a column: the first level, False, or the middle of its range."""
    kind, span = canvas.column_kind(model, c), model.statistics_.ranges[c]
    if kind == "levels":
        return 0.0
    return span.low if kind == "boolean" else 0.5 * (span.low + span.high)


def held_text(model: AdditiveModel, view: View) -> str:
    """At which values the columns that are not drawn are held; empty when there are none."""
    parts = []
    for c in view.held:
        kind = canvas.column_kind(model, c)
        value = (
            canvas.level_text(levels_of(model, c)[0])
            if kind == "levels"
            else canvas.value_text(kind, _middle(model, c))
        )
        parts.append(f"{canvas.column_name(model, c)} = {value}")
    return f"at {', '.join(parts)}" if parts else ""


def effect_on(model: AdditiveModel, view: View, lattice: Mapping[int, np.ndarray]) -> Effect:
    """The effect of a term on the product of places of its columns, one axis of the result per column."""
    posterior, scale = model.fit_.posterior, model.target_.scale
    grids = np.meshgrid(*lattice.values(), indexing="ij")
    x = np.tile([_middle(model, c) for c in range(len(model.column_indices_))], (grids[0].size, 1))
    for c, grid in zip(lattice, grids, strict=True):
        x[:, c] = grid.ravel()
    rows = posterior.rows(x)
    mean, variance = posterior.effect(view.term, x, rows)
    known = variance < UNINFORMED**2 * posterior.covariance.prior_variance(view.term, x, rows)
    shape = grids[0].shape
    return Effect(scale * mean.reshape(shape), scale * np.sqrt(variance).reshape(shape), known.reshape(shape))


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
    kind = canvas.column_kind(model, c)
    if kind != "levels":
        return canvas.as_values(kind, at)
    return np.array([canvas.level_text(level) for level in levels_of(model, c)], dtype=object)


def joined(parts: Sequence[canvas.Data]) -> canvas.Data:
    """One after another; columns that hold numbers here and levels there are of objects."""
    return {name: _concatenated([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _concatenated(parts: Sequence[np.ndarray]) -> np.ndarray:
    alike = len({part.dtype.kind for part in parts}) == 1
    return np.concatenate(parts if alike else [part.astype(object) for part in parts])
