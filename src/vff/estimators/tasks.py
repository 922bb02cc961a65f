"""What is asked of the rows of a fit, chunk by chunk. Tasks travel to other machines: they hold what they need.

``Look`` is the first of two passes, ``Sum`` the second, for what that look settled. Where the domain of every column is
given, one pass does both (``Gather``): it sums for as many harmonics as the look might ask for, and what the look does
ask for is read off at the end. A database answers the first two by sums over groups (``from_groups``): a look asks
for every column by itself, the pass for the combinations of values of every set of columns that terms share, several
sets together where that makes few cells. Another likelihood than the Gaussian asks again and again (``SiteVisit``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vff.data import Chunk, DatabaseRows, Groups, PassState, Roles, Source, Table, check_same_rows
from vff.data.checks import as_labels
from vff.data.groups import MOST_CELLS
from vff.estimators.binding import Binding, joined, resolve_columns
from vff.estimators.options import Options
from vff.estimators.statistics import Statistics, Summed, check_ranges, extended, resolved, summed, with_sums
from vff.estimators.table_summary import (
    NOWHERE,
    Batch,
    TableSummary,
    look_at,
    observations,
    summary_of_levels,
    take_batch,
    weights_of,
)
from vff.factors import Kernel
from vff.inference import RowOracle, SiteQuery, SiteSums, TargetScale
from vff.inference.methods.natural.oracle import FeatureSums
from vff.likelihoods import AbstractLikelihood
from vff.moments import (
    Cells,
    ColumnSummary,
    MomentRequest,
    PassPlan,
    Profile,
    Whole,
    distinct_values_for,
    moments_of_cells,
    plan_pass,
)
from vff.moments.threads import at_most

_MOST_VALUES = 2**14  # of one column, as many as are worked on in memory
_TOGETHER = 2**16  # cells that are fetched for several sets at once, rather than asking for each
_COUNTED = 20_000  # rows, among which combinations of values may be few


@dataclass(frozen=True)
class Reader:
    """How chunks become rows of a model."""

    kernel: Kernel | None
    roles: Roles
    likelihood: AbstractLikelihood

    def batch(self, chunk: Chunk, binding: Binding | None = None, seen: Binding | None = None) -> Batch:
        """The rows of a chunk; ``binding`` knows all levels, ``seen`` those of earlier rows, where there are any."""
        if "rows" not in chunk.memo:  # checked once
            table, y, w = self.roles.split(chunk)
            chunk.memo["rows"] = table, observations(table, y, w, self.likelihood)
        table, observed = chunk.memo["rows"]
        if binding is None:
            binding = resolve_columns(self.kernel, table, likelihood_column=self.likelihood.column)
            binding = binding if seen is None else joined(seen, binding)
        return take_batch(table, binding, observed)


class RowTask:
    """What tasks share: answers merge by themselves."""

    @property
    def on_one_core(self) -> "OneCore":
        """For a worker, which has a thread for every task that it runs at a time."""
        return OneCore(self)

    def merge(self, one: Any, other: Any) -> Any:
        return one.merged(other)


@dataclass(frozen=True)
class OneCore:
    """A task that leaves the other cores to those that run beside it."""

    task: Any

    @property
    def phase(self) -> str:
        """That of the task."""
        return self.task.phase

    def __call__(self, chunk: Chunk) -> Any:
        with at_most(1):
            return self.task(chunk)

    def merge(self, one: Any, other: Any) -> Any:
        return self.task.merge(one, other)


@dataclass(frozen=True)
class Look(RowTask):
    """The first of two passes."""

    reader: Reader
    always_sampled: bool = False
    offset: float | None = None
    """That targets of earlier rows are measured from, if there are any: these have settled what a sample would."""
    phase: ClassVar[str] = "looking at the columns"
    kind: ClassVar[Any] = TableSummary

    def __call__(self, chunk: Chunk) -> TableSummary:
        batch = self.reader.batch(chunk)
        return look_at(batch, always_sampled=self.always_sampled, sampled=self.offset is None)

    def from_groups(self, rows: DatabaseRows) -> TableSummary:
        """Every column by itself: its values, and the sums of the rows at each."""
        return _look_at_groups(rows, self.reader.kernel, self.offset)


@dataclass(frozen=True)
class Sum(RowTask):
    """The second pass."""

    reader: Reader
    binding: Binding
    plan: PassPlan
    offset: float
    beyond: bool
    """Whether rows may lie beyond the domain."""
    read_again: bool = True
    """Whether these might be other rows than those of the look."""
    report: Callable[[int], None] | None = None
    """Is told how many rows of a chunk are done, where that is heard."""
    phase: ClassVar[str] = "summing"
    kind: ClassVar[Any] = Summed

    def __call__(self, chunk: Chunk) -> Summed:
        source = self.reader.batch(chunk, self.binding).source
        for c, distinct in enumerate(self.plan.distinct_values if self.read_again else ()):
            # a value that nobody saw would count as another one
            if distinct is not None and not distinct.holds(source.column(c, slice(0, source.n))):
                raise ValueError(
                    f"column {self.binding.columns[c].label} holds a value that the first pass over the rows did not "
                    "see; the rows must be the same in both"
                )
        return summed(source, self.binding, self.plan, self.offset, self.beyond, self.report)

    def from_groups(self, rows: DatabaseRows) -> Summed:
        """By combination of values of every set of columns that terms share."""
        return _sum_groups(rows, self.binding, self.plan, self.offset, self.beyond)


class Gathered(NamedTuple):
    summary: TableSummary
    rows: Statistics

    def merged(self, other: "Gathered") -> "Gathered":
        return Gathered(self.summary.merged(other.summary), self.rows.merged(other.rows))


@dataclass(frozen=True)
class Gather(RowTask):
    """The only pass, where the domain is known, or where rows are added to those of an earlier fit."""

    reader: Reader
    options: Options
    engine: str
    seen: Statistics | None = None
    """The earlier fit, without its sums."""
    phase: ClassVar[str] = "summing"
    kind: ClassVar[Any] = Gathered

    def __call__(self, chunk: Chunk) -> Gathered:
        batch = self.reader.batch(chunk, seen=None if self.seen is None else self.seen.binding)
        summary = look_at(batch, sampled=self.seen is None)
        # without a sample, what is summed does not depend on these rows, and chunks agree on it
        alike = replace(summary, sample=None, weight=summary.weight or 1.0)
        seen = extended(self.seen or resolved(alike, self.options, growing=True), summary)
        beyond, request, source = check_ranges(seen), seen.moments.request, batch.source
        distinct_values = distinct_values_for(self.engine, request, summary.summaries, source)
        plan = plan_pass(source.n, request, distinct_values, self.engine)
        return Gathered(summary, with_sums(seen, plan, summed(source, seen.binding, plan, seen.moments.offset, beyond)))


class Labels(NamedTuple):
    found: tuple[Any, ...]

    def merged(self, other: "Labels") -> "Labels":
        return Labels(tuple(sorted({*self.found, *other.found})))


@dataclass(frozen=True)
class FindLabels(RowTask):
    """The different labels of rows of positive weight."""

    roles: Roles
    phase: ClassVar[str] = "looking at the labels"
    kind: ClassVar[Any] = Labels

    def __call__(self, chunk: Chunk) -> Labels:
        _, y, w = self.roles.split(chunk)
        labels = as_labels(y)
        counted = labels if w is None else labels[weights_of(w, labels.size) > 0.0]
        return Labels(tuple(np.unique(counted).tolist()))


@dataclass(frozen=True)
class SiteVisit(RowTask):
    """One question to all rows."""

    reader: Reader
    binding: Binding
    plan: PassPlan
    target: TargetScale
    query: SiteQuery
    features: bool = False
    """Whether features are summed over the rows, too."""
    phase: ClassVar[str] = "asking the rows"
    kind: ClassVar[Any] = SiteSums

    def __call__(self, chunk: Chunk) -> SiteSums:
        rows = self.reader.batch(chunk, self.binding).prepared(lambda _: self.plan, self.plan.distinct_values)
        return rows.in_units(self.target).sums(self.query, features=self.features)


@dataclass(frozen=True)
class ChunkedRows(RowOracle):
    """All rows of a source."""

    source: Source
    reader: Reader
    binding: Binding
    plan: PassPlan
    rows: int
    total: float
    """sum w."""
    looked: PassState = PassState()  # noqa: RUF009  a frozen record
    """The first look at the rows: which parts can be read, and how they were then."""
    target: TargetScale = TargetScale(0.0, 1.0)  # noqa: RUF009  a frozen record
    remembered: dict[str, FeatureSums] = field(default_factory=dict, compare=False)

    @property
    def n(self) -> int:
        return self.rows

    @property
    def weight(self) -> float:
        return self.total

    @property
    def request(self) -> MomentRequest:
        return self.plan.request

    def sums(self, query: SiteQuery, *, features: bool) -> SiteSums:
        task = SiteVisit(self.reader, self.binding, self.plan, self.target, query, features)
        state = self.source.reduce(task, without=self.looked.skipped)
        check_same_rows(self.looked, state)
        assert state.committed is not None  # the look found rows
        return state.committed

    def in_units(self, target: TargetScale) -> "ChunkedRows":
        return replace(self, target=target)


# --- by sums that a database takes -----------------------------------------------------------------------------------


def _look_at_groups(rows: DatabaseRows, kernel: Kernel | None, seen: float | None) -> TableSummary:
    """What a look at the rows would have found, but for a sample; targets are measured as those ``seen``, if any."""
    totals = rows.totals
    if not totals.n:
        return TableSummary(Binding((), ()), (), 0, 0.0, 0.0, None, NOWHERE)
    offset = totals.target / totals.weight if seen is None else seen
    groups = [rows.grouped((name,), offset, _MOST_VALUES) for name in rows.features]
    binding = resolve_columns(kernel, Table.of(_side_by_side(groups)))
    summaries, profiles = [], []
    for c, column in enumerate(binding.columns):
        found = groups[column.index]
        x = _columns(found, binding, (c,), rows.features)[0]
        values = np.unique(x)  # two values of the database may be one number
        range_of_values = ColumnSummary(float(values[0]), float(values[-1]), values, totals.n)
        levels = None if column.levels is None else summary_of_levels(len(column.levels), totals.n)
        summaries.append(levels or range_of_values)
        means = found.target / found.w
        profiles.append(Profile(x, offset + means, found.w, np.maximum(found.squares - found.target * means, 0.0)))
    sums = totals.n, totals.weight, totals.target
    products = sorted({term.numbers for term in binding.terms if len(term.numbers) > 1})
    few = seen is None and totals.n <= _COUNTED  # as a table in memory would have counted them
    counted = {own: rows.combinations(_names(rows, binding, own)) for own in products if few}
    return TableSummary(binding, tuple(summaries), *sums, None, NOWHERE, tuple(profiles), counted)


def _sum_groups(rows: DatabaseRows, binding: Binding, plan: PassPlan, offset: float, beyond: bool) -> Summed:
    """The sums of a plan, no row that must be kept as it is, and the engines."""
    some = rows.grouped(rows.features[:1], offset, _MOST_VALUES)
    if beyond:
        x = _columns(some, binding, (0,), rows.features)[0]
        raise ValueError(
            f"column {binding.columns[0].label} reaches [{x.min():g}, {x.max():g}], beyond the domain it was given, "
            "and a database gives no rows but sums; widen the domain, or filter these rows out"
        )
    totals = rows.totals
    whole = Whole(totals.n, totals.weight, float(some.target.sum()), float(some.squares.sum()))
    moments, choices = moments_of_cells(plan, _cells(rows, binding, plan, offset), whole, offset)
    return Summed(moments, (), tuple(choices))


def _names(rows: DatabaseRows, binding: Binding, columns: Sequence[int]) -> list[str]:
    return [rows.features[binding.columns[c].index] for c in columns]


def _cells(rows: DatabaseRows, binding: Binding, plan: PassPlan, offset: float) -> Callable[[tuple[int, ...]], Cells]:
    """Cells by columns; a bundle of sets is asked for when the first of them is."""
    every = [_names(rows, binding, (c,)) for c in range(len(binding.columns))]
    sizes = [rows.grouped(names, offset, _MOST_VALUES).w.size for names in every]  # asked before
    bundles = bundled([one.columns for one in plan.sets], sizes, _TOGETHER)

    def cells(columns: tuple[int, ...]) -> Cells:
        alone = len(columns) == 1
        bundle = columns if alone else next(one for one in bundles if set(columns) <= set(one))
        most = _MOST_VALUES if alone else MOST_CELLS
        groups = rows.grouped(_names(rows, binding, bundle), offset, most)
        return Cells(_columns(groups, binding, columns, rows.features), groups.w, groups.target)

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
