"""What is asked of the rows of a fit, chunk by chunk. Tasks travel to other machines: they hold what they need.

``Look`` is the first of two passes, ``Sum`` the second, for what that look settled. Where the domain of every column is
given, one pass does both (``Gather``): it sums for as many harmonics as the look might ask for, and what the look does
ask for is read off at the end. A database answers the first two by sums over groups (``from_groups``): a look asks
for every column by itself, the pass for the combinations of values of every set of columns that terms share, several
sets together where that makes few cells. Another likelihood than the Gaussian asks again and again (``SiteVisit``).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vff.data import Chunk, DatabaseRows, PassState, Roles, Source, check_same_rows
from vff.data.checks import as_labels
from vff.estimators.binding import Binding, joined, resolve_columns
from vff.estimators.grouped import look_at_groups, sum_groups
from vff.estimators.named import beside
from vff.estimators.options import Options
from vff.estimators.statistics import Statistics, Summed, check_ranges, extended, resolved, summed, with_sums
from vff.estimators.table_summary import (
    Batch,
    TableSummary,
    look_at,
    observations,
    take_batch,
    weights_of,
)
from vff.factors import Kernel
from vff.inference import RowOracle, SiteQuery, SiteSums, TargetScale
from vff.inference.methods.natural.oracle import FeatureSums
from vff.likelihoods import AbstractLikelihood
from vff.moments import (
    MomentRequest,
    PassPlan,
    distinct_values_for,
    plan_pass,
)
from vff.moments.threads import at_most


@dataclass(frozen=True)
class Reader:
    """How chunks become rows of a model."""

    kernel: Kernel | None
    roles: Roles
    likelihood: AbstractLikelihood
    offset: str | int | None = None
    admits: bool = False
    """Whether missing numbers have an effect of their own."""

    def batch(self, chunk: Chunk, binding: Binding | None = None, seen: Binding | None = None) -> Batch:
        """The rows of a chunk; ``binding`` knows all levels, ``seen`` those of earlier rows, where there are any."""
        if "rows" not in chunk.memo:  # checked once
            table, y, w = self.roles.split(chunk)
            chunk.memo["rows"] = table, observations(table, y, w, self.likelihood, self.offset, chunk.errors)
        table, observed = chunk.memo["rows"]
        if binding is None:
            taken = beside(self.likelihood, self.offset)
            binding = resolve_columns(self.kernel, table, taken, admits=self.admits)
            binding = binding if seen is None else joined(seen, binding)
        return take_batch(table, binding, observed)

    def variances(self, batch: Batch) -> np.ndarray | None:
        """The known variances of rows; None where they have none."""
        return batch.extra**2 if self.likelihood.known_errors else None

    def refuse_groups(self) -> None:
        """A database is asked for sums by value of the columns, which error bars of rows are not among."""
        if self.likelihood.known_errors:
            raise ValueError(
                "a database is asked for sums over groups of rows, and error bars give every row a weight of its own; "
                "fetch the rows in chunks, as vff.scan of its to_pyarrow_batches or to_arrow_reader does"
            )


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
        self.reader.refuse_groups()
        return look_at_groups(rows, self.reader.kernel, self.offset, admits=self.reader.admits)


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
        batch = self.reader.batch(chunk, self.binding)
        source = batch.source
        for c, distinct in enumerate(self.plan.distinct_values if self.read_again else ()):
            # a value that nobody saw would count as another one
            if distinct is not None and not distinct.holds(source.column(c, slice(0, source.n))):
                raise ValueError(
                    f"column {self.binding.columns[c].label} holds a value that the first pass over the rows did not "
                    "see; the rows must be the same in both"
                )
        own = self.offset, self.beyond, self.report, self.reader.variances(batch)
        return summed(source, self.binding, self.plan, *own)

    def from_groups(self, rows: DatabaseRows) -> Summed:
        """By combination of values of every set of columns that terms share."""
        return sum_groups(rows, self.binding, self.plan, self.offset, self.beyond)


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
        own = seen.moments.offset, beyond, None, self.reader.variances(batch)
        return Gathered(summary, with_sums(seen, plan, summed(source, seen.binding, plan, *own)))


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

    def narrowed(self, request: MomentRequest) -> "ChunkedRows":
        return replace(self, plan=self.plan.narrowed(request), remembered={})
