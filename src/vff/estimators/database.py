"""Rows that stay in a database: a model is fitted to the sums that the database takes.

A look asks for every column by itself: its values, and the sums of the rows at each. The pass asks for the combinations
of values of every set of columns that terms share, several sets together where that makes few cells. Other likelihoods
than the Gaussian ask rows again and again, so these get the different rows with their weights, once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from vff.estimators.binding import Binding, bind, check_levels, joined
from vff.estimators.intake import AbstractIntake, Clock, Question, TableIntake, Walkable
from vff.estimators.overview import Overview, check_enough, survey_of_levels
from vff.estimators.roles import Roles
from vff.estimators.rows import Rows, begin, check_extents, met, plan_text, summary_of
from vff.estimators.tables import Table
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood
from vff.moments import Cells, Profile, Survey, Whole, books_for, plan_reading, read_cells
from vff.sources import DatabaseRows, DatabaseTable, Groups, Totals

_MOST_VALUES = 2**14  # of one column, as many as are worked on in memory
_MOST_CELLS = 2**22  # of a set of columns
_TOGETHER = 2**16  # cells that are fetched for several sets at once, rather than asking for each
_COUNTED = 20_000  # rows, among which combinations of values may be few


class _Seen(NamedTuple):
    """What a look at a database found."""

    overview: Overview
    totals: Totals
    offset: float
    """That targets are measured from."""
    groups: Mapping[str, Groups]
    """Sums by the values of every column."""


@dataclass(frozen=True)
class DatabaseIntake(AbstractIntake):
    """A table of a database."""

    rows: DatabaseRows

    @classmethod
    def of(cls, question: Question, table: DatabaseTable, y: Any, sample_weight: Any) -> "DatabaseIntake":
        return cls(question, _rows_of(question.kernel, question.likelihood, table, y, sample_weight))

    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        with clock("survey"):
            found = self._looked(seen)
            rows = seen or begin(found.overview, self.question.options, growing=growing)
        with clock("pass"):
            rows = self._added(rows, found)
            return replace(rows, left_out=rows.left_out + found.totals.dropped)

    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool, sampled: bool) -> Walkable:
        with clock("survey"):
            totals = self._totals(first=seen is None)
            X, y, w = _different(self.rows)
        found = TableIntake(self.question, Table.of(X), y, w).walk(seen, growing, clock, quiet, sampled)
        return found._replace(rows=replace(found.rows, left_out=found.rows.left_out + totals.dropped))

    def targets(self) -> np.ndarray | None:
        return None

    def known_to(self, model: BaseEstimator, seen: Rows) -> "DatabaseIntake":
        validate_data(model, self.rows.empty, reset=False, skip_check_array=True)
        return self

    def introduce(self, model: BaseEstimator) -> None:
        validate_data(model, self.rows.empty, reset=True, skip_check_array=True)
        vars(model)["target_name_"] = self.rows.target

    def finish(self) -> None:
        """Nothing is left over."""

    def _totals(self, first: bool) -> Totals:
        totals = self.rows.totals()
        if totals.dropped:
            self.question.say(f"{totals.dropped:,} of {totals.rows:,} rows left out: a value is missing")
        check_enough(totals.n, first, weighed=totals.weightless > 0)
        return totals

    def _looked(self, seen: Rows | None) -> _Seen:
        """Totals, and every column by itself."""
        totals = self._totals(first=seen is None)
        offset = totals.target / totals.weight if seen is None else seen.moments.offset
        groups = {name: self.rows.grouped((name,), offset, _MOST_VALUES) for name in self.rows.features}
        binding = bind(self.question.kernel, Table.of(_side_by_side(list(groups.values()))), first=False)
        if seen is not None:
            binding = joined(seen.binding, binding)
        elif self.question.kernel is None:
            check_levels(binding, totals.n)
        surveys, profiles = [], []
        for c, column in enumerate(binding.columns):
            found = groups[self.rows.features[column.index]]
            x = _columns(found, binding, (c,), self.rows.features)[0]
            levels = None if column.levels is None else survey_of_levels(len(column.levels), totals.n)
            surveys.append(levels or _survey(x, totals.n))
            profiles.append(_profile(x, found, offset))
        sums = totals.n, totals.weight, totals.target
        counted = {} if seen is not None or totals.n > _COUNTED else self._combinations(binding)
        nothing = Survey(np.inf, -np.inf)
        overview = Overview(binding, tuple(surveys), *sums, None, nothing, tuple(profiles), counted)
        return _Seen(overview, totals, offset, groups)

    def _combinations(self, binding: Binding) -> dict[tuple[int, ...], int]:
        """Different rows in the columns of every product, as a table in memory would have counted them."""
        products = {term.columns for term in binding.terms if len(term.columns) > 1}
        return {columns: self.rows.combinations(self._names(binding, columns)) for columns in sorted(products)}

    def _names(self, binding: Binding, columns: Sequence[int]) -> list[str]:
        return [self.rows.features[binding.columns[c].index] for c in columns]

    def _added(self, seen: Rows, found: _Seen) -> Rows:
        """The sums that the database takes, on top of those seen."""
        overview, engine, n = found.overview, self.question.engine, found.totals.n
        seen = met(seen, overview)
        binding, moments, extents = seen.binding, seen.moments, seen.extents
        if any(check_extents(seen)):
            raise ValueError(
                f"column {binding.columns[0].label} reaches [{extents[0].low:g}, {extents[0].high:g}], beyond the "
                "domain it was given, and a database gives no rows but sums; widen the domain, or filter these rows out"
            )
        plan = plan_reading(n, moments.request, books_for(engine, moments.request, overview.surveys, None), engine)
        self.question.say(plan_text(plan.request, n))
        some = found.groups[self.rows.features[0]]
        whole = Whole(n, found.totals.weight, float(some.target.sum()), float(some.squares.sum()))
        cells = self._cells([one.columns for one in plan.sets], found)
        new, choices = read_cells(plan, cells, whole, found.offset)
        summary = summary_of(choices, plan, [column.label for column in binding.columns])
        return replace(seen, moments=moments + new, choice=summary)

    def _cells(self, sets: Sequence[tuple[int, ...]], found: _Seen) -> Callable[[tuple[int, ...]], Cells]:
        """Cells by columns; a bundle of sets is asked for when the first of them is."""
        binding, sizes = found.overview.binding, [survey.distinct for survey in found.overview.surveys]
        bundles, fetched = bundled(sets, sizes, _TOGETHER), dict[tuple[int, ...], Groups]()

        def cells(columns: tuple[int, ...]) -> Cells:
            if len(columns) == 1:
                groups = found.groups[self._names(binding, columns)[0]]
            else:
                bundle = next(one for one in bundles if set(columns) <= set(one))
                if bundle not in fetched:
                    fetched[bundle] = self.rows.grouped(self._names(binding, bundle), found.offset, _MOST_CELLS)
                groups = fetched[bundle]
            return Cells(_columns(groups, binding, columns, self.rows.features), groups.w, groups.target)

        return cells


class InMemory(NamedTuple):
    """The different rows of a table."""

    X: Any
    """Features, as an Arrow table."""
    y: Any
    w: np.ndarray
    """Sums of weights."""


def with_labels(
    kernel: Kernel | None, likelihood: AbstractLikelihood, table: DatabaseTable, y: Any, sample_weight: Any
) -> InMemory:
    """The different rows where targets are labels."""
    rows = _rows_of(kernel, likelihood, table, y, sample_weight, labels=True)
    rows.totals()
    return _different(rows)


def _rows_of(
    kernel: Kernel | None,
    likelihood: AbstractLikelihood,
    table: DatabaseTable,
    y: Any,
    sample_weight: Any,
    labels: bool = False,
) -> DatabaseRows:
    """What the columns of a table are for."""
    named: Any = table  # roles ask for names alone
    roles = Roles.of(named, kernel, y, sample_weight, likelihood)
    if roles.target is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: name the column of the database that holds it"
        )
    levels = tuple(str(name) for name in roles.levels(kernel, table.kinds))
    return DatabaseRows(table, roles.features or (), roles.target, roles.weight, levels, labels)


def _different(rows: DatabaseRows) -> InMemory:
    found = rows.counted((*rows.features, rows.target), _MOST_CELLS)
    return InMemory(found.values.select(list(rows.features)), found.values.column(rows.target), found.w)


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


def _side_by_side(groups: Sequence[Groups]) -> Any:
    """One table that holds every value of every column; short columns repeat their last."""
    longest = max(one.w.size for one in groups)
    columns = [one.values.take(np.minimum(np.arange(longest), one.w.size - 1)) for one in groups]
    table = columns[0]
    for other in columns[1:]:
        table = table.append_column(other.column_names[0], other.column(0))
    return table


def _columns(
    groups: Groups, binding: Binding, columns: Sequence[int], features: Sequence[str]
) -> tuple[np.ndarray, ...]:
    """Values of bound columns as numbers, levels as codes, exactly as of a table in memory."""
    table = Table.of(groups.values)
    found = []
    for c in columns:
        bound = binding.columns[c]
        index = table.index(features[bound.index])
        found.append(table.numbers(index) if bound.levels is None else table.codes(index, bound.levels))
    return tuple(found)


def _survey(x: np.ndarray, n: int) -> Survey:
    values = np.unique(x)  # two values of the database may be one number
    return Survey(float(values[0]), float(values[-1]), values, n)


def _profile(x: np.ndarray, groups: Groups, offset: float) -> Profile:
    means = groups.target / groups.w
    return Profile(x, offset + means, groups.w, np.maximum(groups.squares - groups.target * means, 0.0))
