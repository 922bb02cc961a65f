"""What is asked of the rows of a fit, chunk by chunk. Tasks travel to other machines: they hold what they need.

``Look`` is the first of two passes, ``Sum`` the second, for what that look settled. Where the domain of every column is
given, one pass does both (``Gather``): it sums for as many harmonics as the look might ask for, and what the look does
ask for is read off at the end. A database answers the first two by sums over groups (``from_groups``).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vff.data import Chunk, DatabaseRows, Roles
from vff.data.checks import as_labels
from vff.estimators.binding import Binding, joined, resolve_columns
from vff.estimators.grouped import look_at_groups, sum_groups
from vff.estimators.resolve import Options
from vff.estimators.statistics import Statistics, Summed, add, resolved, summed
from vff.estimators.table_summary import (
    Batch,
    Observations,
    TableSummary,
    look_at,
    observations,
    take_batch,
    weights_of,
)
from vff.factors import Kernel
from vff.likelihoods import AbstractLikelihood
from vff.moments import PassPlan, RowBlock
from vff.moments.threads import at_most


@dataclass(frozen=True)
class Reader:
    """How chunks become rows of a model."""

    kernel: Kernel | None
    roles: Roles
    likelihood: AbstractLikelihood

    def batch(self, chunk: Chunk, binding: Binding | None = None, seen: Binding | None = None) -> Batch:
        """The rows of a chunk; ``binding`` knows all levels, ``seen`` those of earlier rows, where there are any."""
        table, observed = self._split(chunk)
        if binding is None:
            binding = resolve_columns(self.kernel, table, first=False, likelihood_column=self.likelihood.column)
            binding = binding if seen is None else joined(seen, binding)
        return take_batch(table, binding, observed)

    def _split(self, chunk: Chunk) -> tuple[Any, Observations]:
        """The table and what stands beside it, checked once."""
        if "rows" not in chunk.memo:
            table, y, w = self.roles.split(chunk)
            chunk.memo["rows"] = table, observations(table, y, w, self.likelihood)
        return chunk.memo["rows"]


class RowTask:
    """What tasks share: at a worker, which has a thread for every task that it runs at a time, they use one core."""

    @property
    def on_one_core(self) -> "OneCore":
        return OneCore(self)


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

    def merge(self, one: TableSummary, other: TableSummary) -> TableSummary:
        return one.merged(other)

    def from_groups(self, rows: DatabaseRows) -> TableSummary:
        """Every column by itself: its values, and the sums of the rows at each."""
        return look_at_groups(rows, self.reader.kernel, self.offset)


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
        if self.read_again:
            self._check_known(source)
        return summed(source, self.binding, self.plan, self.offset, self.beyond, self.report)

    def _check_known(self, source: RowBlock) -> None:
        """Refuse rows that are not those of the look: a value that nobody saw would count as another one."""
        for c, distinct in enumerate(self.plan.distinct_values):
            if distinct is not None and not distinct.holds(source.column(c, slice(0, source.n))):
                raise ValueError(
                    f"column {self.binding.columns[c].label} holds a value that the first pass over the rows did not "
                    "see; the rows must be the same in both"
                )

    def merge(self, one: Summed, other: Summed) -> Summed:
        return one.merged(other)

    def from_groups(self, rows: DatabaseRows) -> Summed:
        """By combination of values of every set of columns that terms share."""
        return sum_groups(rows, self.binding, self.plan, self.offset, self.beyond)


class Gathered(NamedTuple):
    summary: TableSummary
    rows: Statistics


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
        seen = self.seen or resolved(alike, self.options, growing=True)
        return Gathered(summary, add(seen, batch, summary, self.engine))

    def merge(self, one: Gathered, other: Gathered) -> Gathered:
        return Gathered(one.summary.merged(other.summary), one.rows.merged(other.rows))


class Labels(NamedTuple):
    found: tuple[Any, ...]


@dataclass(frozen=True)
class FindLabels:
    """The different labels of rows of positive weight."""

    roles: Roles
    phase: ClassVar[str] = "looking at the labels"
    kind: ClassVar[Any] = Labels

    def __call__(self, chunk: Chunk) -> Labels:
        _, y, w = self.roles.split(chunk)
        labels = as_labels(y)
        counted = labels if w is None else labels[weights_of(w, labels.size) > 0.0]
        return Labels(tuple(np.unique(counted).tolist()))

    def merge(self, one: Labels, other: Labels) -> Labels:
        return Labels(tuple(sorted({*one.found, *other.found})))
