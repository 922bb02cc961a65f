"""A look and the sums of a pass by sums over groups, as a database takes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from vff.data import DatabaseRows, Groups, Roles, Table
from vff.data.groups import MOST_CELLS
from vff.estimators.binding import Binding, resolve_columns
from vff.estimators.statistics import Summed
from vff.estimators.table_summary import NOWHERE, TableSummary, summary_of_levels
from vff.factors import Kernel
from vff.inference import WorkingSites
from vff.moments import Cells, ColumnSummary, PassPlan, Profile, Whole, extent_of, moments_of_cells

_MOST_VALUES = 2**14  # of one column of numbers, as many as are worked on in memory
_TOGETHER = 2**16  # cells that are fetched for several sets at once, rather than asking for each
_COUNTED = 20_000  # rows, among which combinations of values may be few


def look_at_groups(rows: DatabaseRows, kernel: Kernel | None, seen: float | None, *, admits: bool) -> TableSummary:
    """What a look at the rows would have found, but for a sample; targets are measured as those ``seen``, if any."""
    totals = rows.totals
    if not totals.n:
        return TableSummary(Binding((), ()), (), 0, 0.0, 0.0, None, NOWHERE)
    offset = totals.target / totals.weight if seen is None else seen
    groups = {name: _by_value(rows, name, offset) for name in rows.features}
    table = Table.of(_side_by_side(groups, rows.roles))
    binding = resolve_columns(kernel, table, rows.roles.unmodelled, admits=admits)
    summaries, profiles = [], []
    for c, column in enumerate(binding.columns):
        (name,) = _names(rows, binding, (c,))
        found = groups[name]
        x = _columns(found, rows, binding, (c,))[0]
        values = np.unique(x[~np.isnan(x)])  # two values of the database may be one number
        missing = rows.missing(name) if np.isnan(x).any() else 0
        range_of_values = ColumnSummary(*extent_of(values), values, totals.n, missing)
        levels = None if column.levels is None else summary_of_levels(len(column.levels), totals.n, missing)
        summaries.append(levels or range_of_values)
        means = found.target / found.w
        profiles.append(Profile(x, offset + means, found.w, np.maximum(found.squares - found.target * means, 0.0)))
    binding = binding.with_gaps([own.missing > 0 for own in summaries])
    sums = totals.n, totals.weight, totals.target
    products = sorted({term.numbers for term in binding.terms if len(term.numbers) > 1})
    few = seen is None and totals.n <= _COUNTED  # as a table in memory would have counted them
    counted = {own: rows.combinations(_names(rows, binding, own)) for own in products if few}
    return TableSummary(binding, tuple(summaries), *sums, None, NOWHERE, tuple(profiles), counted)


def sum_groups(rows: DatabaseRows, binding: Binding, plan: PassPlan, offset: float, beyond: bool) -> Summed:
    """The sums of a plan, no row that must be kept as it is, and the engines."""
    some = _by_value(rows, rows.features[0], offset)
    if beyond:
        x = _columns(some, rows, binding, (0,))[0]
        raise ValueError(
            f"column {binding.columns[0].label} reaches [{x.min():g}, {x.max():g}], beyond the domain it was given, "
            "and a database gives no rows but sums; widen the domain, or filter these rows out"
        )
    totals = rows.totals
    whole = Whole(totals.n, totals.weight, float(some.target.sum()), float(some.squares.sum()))
    moments, choices = moments_of_cells(plan, _cells(rows, binding, plan, offset), whole, offset)
    return Summed(moments, (), tuple(choices))


def _by_value(rows: DatabaseRows, name: str, offset: float) -> Groups:
    """Sums for every value of one column; of levels there may be as many as cells."""
    return rows.grouped((name,), offset, MOST_CELLS if name in rows.roles.levels else _MOST_VALUES)


def _names(rows: DatabaseRows, binding: Binding, columns: Sequence[int]) -> list[str]:
    every = rows.roles.features or ()
    return [every[binding.columns[c].index] for c in columns]


def _cells(rows: DatabaseRows, binding: Binding, plan: PassPlan, offset: float) -> Callable[[tuple[int, ...]], Cells]:
    """Cells by columns; a bundle of sets is asked for when the first of them is."""
    every = _names(rows, binding, range(len(binding.columns)))
    sizes = [_by_value(rows, name, offset).w.size for name in every]  # asked before
    bundles = bundled([one.columns for one in plan.sets], sizes, _TOGETHER)

    def cells(columns: tuple[int, ...]) -> Cells:
        if len(columns) == 1:
            groups = _by_value(rows, every[columns[0]], offset)
        else:
            bundle = next(one for one in bundles if set(columns) <= set(one))
            groups = rows.grouped(_names(rows, binding, bundle), offset, MOST_CELLS)
        return Cells(_columns(groups, rows, binding, columns), groups.w, groups.target)

    return cells


def summaries_of_groups(rows: DatabaseRows, binding: Binding, offset: float) -> list[ColumnSummary]:
    """The range and the values of every column, which a look has asked for before."""
    found = []
    for c, column in enumerate(binding.columns):
        (name,) = _names(rows, binding, (c,))
        groups = _by_value(rows, name, offset)
        values = np.unique(_columns(groups, rows, binding, (c,))[0])
        own = ColumnSummary(float(values[0]), float(values[-1]), values, rows.totals.n)
        found.append(own if column.levels is None else summary_of_levels(len(column.levels), rows.totals.n))
    return found


def residual_cells(
    rows: DatabaseRows, binding: Binding, sites: WorkingSites, offset: float
) -> Callable[[tuple[int, ...]], Cells]:
    """Residuals of a fit with Gaussian noise by combination of values of some columns (theory §25).

    A residual is y less the constant, and less a function of few columns for every term: each part is known where the
    values of the columns asked for and of its own are, and sums take them one after another.
    """
    posterior, (centre, scale), noise = sites.posterior, (sites.target.mean, sites.target.scale), sites.noise
    constant = 0.0 if posterior.intercept is None else posterior.intercept.mean

    def cells(columns: tuple[int, ...]) -> Cells:
        own = rows.grouped(_names(rows, binding, columns), offset, MOST_CELLS)
        left = (own.target + own.w * (offset - centre)) / scale - own.w * constant
        parts = [(_columns(own, rows, binding, columns), own.w / noise, left / noise)]
        for s, term in enumerate(posterior.request.terms):
            every = tuple(sorted({*columns, *term.numbers}))
            groups = rows.grouped(_names(rows, binding, every), offset, MOST_CELLS)
            x = np.zeros((groups.w.size, len(binding.columns)))
            x[:, list(every)] = np.stack(_columns(groups, rows, binding, every), axis=1)
            taken = -groups.w * posterior.term_mean(s, x) / noise
            parts.append((tuple(x[:, c] for c in columns), np.zeros(taken.size), taken))
        values, w, weighted = zip(*parts, strict=True)
        return Cells(tuple(map(np.concatenate, zip(*values, strict=True))), np.concatenate(w), np.concatenate(weighted))

    return cells


def bundled(sets: Sequence[tuple[int, ...]], sizes: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Sets of columns taken together as long as their combinations of values cannot be more than ``most``."""
    bundles: list[set[int]] = []
    for one in sorted(sets, key=lambda columns: prod(sizes[c] for c in columns)):
        small = (bundle for bundle in bundles if prod(sizes[c] for c in bundle.union(one)) <= most)
        bundle = next(small, None)
        if bundle is None:
            bundles.append(set(one))
        else:
            bundle.update(one)
    return [tuple(sorted(bundle)) for bundle in bundles]


def _side_by_side(groups: Mapping[str, Groups], roles: Roles) -> Any:
    """One table that holds every value of every column that is modelled; short columns repeat their last.

    The others stand where they stand, and hold nothing that is looked at.
    """
    longest = max(one.w.size for one in groups.values())
    held = [one.values.take(np.minimum(np.arange(longest), one.w.size - 1)) for one in groups.values()]
    columns = dict(zip(groups, held, strict=True))
    table = held[0].drop_columns(held[0].column_names)
    for name in roles.features or ():
        values = columns[name].column(0) if name in columns else [np.zeros(longest)]
        table = table.append_column(name, values)
    return table


def _columns(groups: Groups, rows: DatabaseRows, binding: Binding, columns: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Values of bound columns as numbers, levels as codes, exactly as of a table in memory."""
    table = Table.of(groups.values)
    found = []
    for c, name in zip(columns, _names(rows, binding, columns), strict=True):
        found.append(replace(binding.columns[c], index=table.index(name)).read(table))
    return tuple(found)
