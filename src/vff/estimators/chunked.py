"""Rows that come in chunks, from a source to the sums of a model: two passes, or one when the domain is known.

The first pass looks (``Look``), the second sums for what that look settled (``Sum``). Where the domain of every column
is given, one pass does both (``Gather``): it sums for as many harmonics as the look might ask for, and what the look
does ask for is read off at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from vff.estimators.binding import Binding, BoundColumn, bind, check_levels, is_declared, joined
from vff.estimators.overview import Batch, Overview, check_enough, look_at, take_batch
from vff.estimators.roles import ASKED_AGAIN, Roles
from vff.estimators.rows import Rows, add, begin, check_extents, met, plan_text, summary_of, with_levels
from vff.estimators.settling import Options
from vff.factors import Kernel, TailRows, normal_form, tails_together
from vff.inference import rows_beyond
from vff.likelihoods import AbstractLikelihood
from vff.moments import Choice, Moments, ReadingPlan, Source, books_for, plan_reading, read
from vff.moments.cores import at_most
from vff.sources import AbstractSource, Checkpoint, Chunk, Spread, Standing, check_same_rows, reduce

Say = Callable[[str], None]
_DOMAIN_FIRST = "the domain is to be found in the rows, which then are read twice"
_GIVE_DOMAIN = "give domain= for every column of numbers, or "


@dataclass(frozen=True)
class Reader:
    """How chunks become rows of a model."""

    kernel: Kernel | None
    roles: Roles
    likelihood: AbstractLikelihood

    def batch(self, chunk: Chunk, binding: Binding | None = None, seen: Binding | None = None) -> Batch:
        """The rows of a chunk; ``binding`` knows all levels, ``seen`` those of earlier rows, where there are any."""
        table, y, w = self.roles.split(chunk)
        if binding is None:
            binding = bind(self.kernel, table, first=False, beside=self.likelihood.column)
            binding = binding if seen is None else joined(seen, binding)
        return take_batch(table, binding, y, w, self.likelihood)


@dataclass(frozen=True)
class Look:
    """The first of two passes."""

    reader: Reader
    always_sampled: bool = False
    phase: ClassVar[str] = "looking at the columns"
    kind: ClassVar[Any] = Overview

    def __call__(self, chunk: Chunk) -> Overview:
        return look_at(self.reader.batch(chunk), always_sampled=self.always_sampled)

    def merge(self, one: Overview, other: Overview) -> Overview:
        return one.merged(other)


class Summed(NamedTuple):
    """Sums over some rows, the rows beyond the domain, and the engines of the columns."""

    moments: Moments
    tails: tuple[TailRows, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Sum:
    """The second pass."""

    reader: Reader
    binding: Binding
    plan: ReadingPlan
    offset: float
    beyond: bool
    """Whether rows may lie beyond the domain."""
    phase: ClassVar[str] = "summing"
    kind: ClassVar[Any] = Summed

    def __call__(self, chunk: Chunk) -> Summed:
        source = self.reader.batch(chunk, self.binding).source
        self._check_known(source)
        moments, choices = read(self.plan, source, self.offset)
        tails: tuple[TailRows, ...] = ()
        if self.beyond:
            (factor,) = self.binding.terms[0].inner.factors
            tails = rows_beyond(factor, self.plan.request.columns[0].place, source, self.offset)
        return Summed(moments, tails, tuple(choices))

    def _check_known(self, source: Source) -> None:
        """Refuse rows that are not those of the look: a value that nobody saw would count as another one."""
        for c, book in enumerate(self.plan.books):
            if book is not None and not book.holds(source.column(c, slice(0, source.n))):
                raise ValueError(
                    f"column {self.binding.columns[c].label} holds a value that the first pass over the rows did not "
                    "see; the rows must be the same in both"
                )

    def merge(self, one: Summed, other: Summed) -> Summed:
        return Summed(
            one.moments + other.moments, tails_together((*one.tails, *other.tails)), one.choices or other.choices
        )


class Gathered(NamedTuple):
    overview: Overview
    rows: Rows


@dataclass(frozen=True)
class Gather:
    """The only pass, where the domain is known, or where rows are added to those of an earlier fit."""

    reader: Reader
    options: Options
    engine: str
    seen: Rows | None = None
    """The earlier fit, without its sums."""
    phase: ClassVar[str] = "summing"
    kind: ClassVar[Any] = Gathered

    def __call__(self, chunk: Chunk) -> Gathered:
        batch = self.reader.batch(chunk, seen=None if self.seen is None else self.seen.binding)
        overview = look_at(batch)
        # without a sample, what is summed does not depend on these rows, and chunks agree on it
        alike = replace(overview, sample=None, weight=overview.weight or 1.0)
        seen = self.seen or begin(alike, self.options, growing=True)
        return Gathered(overview, add(seen, batch, overview, self.engine, lambda message: None))

    def merge(self, one: Gathered, other: Gathered) -> Gathered:
        return Gathered(one.overview.merged(other.overview), one.rows.merged(other.rows))


@dataclass(frozen=True)
class OneCore:
    """A task that leaves the other cores to those that run beside it."""

    task: Any

    @property
    def phase(self) -> str:
        """That of the task."""
        return self.task.phase

    @property
    def kind(self) -> Any:
        """That of the task."""
        return self.task.kind

    def __call__(self, chunk: Chunk) -> Any:
        with at_most(1):
            return self.task(chunk)

    def merge(self, one: Any, other: Any) -> Any:
        return self.task.merge(one, other)


def reduced(
    source: AbstractSource, task: Any, checkpoint: Checkpoint | None = None, without: tuple[str, ...] = ()
) -> Standing:
    """All answers merged. Workers have a thread for every task that they run at a time, so a task uses one core."""
    there: Any = OneCore(task) if isinstance(source, Spread) else task
    return reduce(source, there, checkpoint, without)


@dataclass(frozen=True)
class ChunkedTask:
    """A source and what is to be made of it."""

    source: AbstractSource
    reader: Reader
    options: Options
    engine: str
    say: Say
    checkpoint: Checkpoint | None = None

    def summed(self) -> Rows:
        """The sums of all rows, for the functions that all rows settle."""
        return self._gathered() if self._domains_are_given() else self._in_two_passes()

    def added_to(self, seen: Rows) -> Rows:
        """The sums of all rows, on top of those of an earlier fit."""
        empty = seen.emptied()
        standing = self._reduced(Gather(self.reader, self.options, self.engine, empty))
        seen = replace(seen, left_out=seen.left_out + standing.dropped)
        return seen if standing.committed is None else seen.merged(standing.committed.rows)

    def gathered_so_far(self) -> Rows:
        """The sums of all rows when more are to come, which the harmonics leave room for."""
        return self._gather().rows if self._domains_are_given() else self._in_two_passes(growing=True)

    def overview(self, *, always_sampled: bool = False) -> tuple[Overview, Standing]:
        """A look at all rows."""
        if not self.source.repeatable:
            why, instead = (ASKED_AGAIN, "") if always_sampled else (_DOMAIN_FIRST, _GIVE_DOMAIN)
            raise ValueError(
                f"{why}, and an iterator gives them once; {instead}pass a function that returns a new iterator"
            )
        standing = self._reduced(Look(self.reader, always_sampled))
        overview = self._found(standing)
        check_enough(overview.n, first=True, weighed=overview.n < standing.rows)
        if self.reader.kernel is None:
            check_levels(overview.binding, overview.n, self._is_declared)
        return overview, standing

    def _in_two_passes(self, growing: bool = False) -> Rows:
        overview, standing = self.overview()
        seen = met(begin(overview, self.options, growing=growing), overview)
        request, beyond = seen.moments.request, any(check_extents(seen))
        plan = plan_reading(overview.n, request, books_for(self.engine, request, overview.surveys, None), self.engine)
        self.say(f"{plan_text(request, overview.n)}; {self._chunk_text(len(plan.books))}")
        task = Sum(self.reader, overview.binding, plan, seen.moments.offset, beyond)
        second = self._reduced(task, standing.skipped)
        check_same_rows(standing, second)
        summed = self._found(second)
        choice = summary_of(summed.choices, plan, [column.label for column in overview.binding.columns])
        sums = {"moments": summed.moments, "tails": summed.tails, "choice": choice}
        return replace(seen, left_out=seen.left_out + standing.dropped, **sums)

    def _gathered(self) -> Rows:
        """One pass, and then the functions that a look at all rows would have settled on."""
        overview, rows = self._gather()
        if self.reader.kernel is None:
            check_levels(overview.binding, overview.n, self._is_declared)
        settled = begin(overview, self.options, growing=False)
        there, wanted = rows.moments.request.harmonics, settled.moments.request.harmonics
        fewest = [
            [None if a is None or b is None else min(a, b) for a, b in zip(*pair, strict=True)]
            for pair in zip(there, wanted, strict=True)
        ]
        moments = with_levels(rows.moments, overview.binding).restricted(fewest)
        kept = {name: getattr(rows, name) for name in ("tails", "extents", "choice", "n", "left_out")}
        return replace(settled, moments=moments, **kept)

    def _gather(self) -> Gathered:
        standing = self._reduced(Gather(self.reader, self.options, self.engine))
        found = self._found(standing)
        check_enough(found.overview.n, first=True, weighed=found.overview.n < standing.rows)
        request = found.rows.moments.request
        self.say(f"{plan_text(request, found.overview.n)}; {self._chunk_text(request.n_columns)}")
        return found._replace(rows=replace(found.rows, left_out=standing.dropped))

    def _chunk_text(self, columns: int) -> str:
        """What rows take in memory, however many there are: every column, its codes, y, weights and what is beside."""
        held = 8 * self.source.handling.chunk_rows * (2 * columns + 3) / 2**20
        return f"a chunk of rows takes about {held:,.0f} MiB"

    def _domains_are_given(self) -> bool:
        """Whether every column of numbers has a domain."""
        domain, kernel = self.options.domain, self.reader.kernel
        if isinstance(domain, str):
            return False
        if not isinstance(domain, dict):
            return True
        if kernel is None:  # columns of text have none: the first rows tell which these are
            return not self.source.repeatable or all(name in domain for name in self.reader.roles.features or ())
        columns = {
            factor.column
            for term in normal_form(kernel)
            for factor in term.factors
            if "domain" in factor.factor.options
        }
        return all(domain.get(column) is not None for column in columns)

    def _is_declared(self, column: BoundColumn) -> bool:
        """Whether a column was opened as text on purpose, or its type says that it is a category."""
        if any(name in column.aliases and kind == "text" for name, kind in self.source.declared.items()):
            return True
        first = (part.chunks() for part in self.source.parts()) if self.source.repeatable else iter(())
        some = next((chunk for chunks in first for chunk in chunks), None)
        return some is not None and is_declared(self.reader.roles.split(some)[0], column)

    def _reduced(self, task: Any, without: tuple[str, ...] = ()) -> Standing:
        standing = reduced(self.source, task, self.checkpoint, without)
        if standing.dropped:
            self.say(f"{standing.dropped:,} of {standing.dropped + standing.rows:,} rows left out: a value is missing")
        return standing

    def _found(self, standing: Standing) -> Any:
        if standing.committed is None:
            raise ValueError("the source has no rows that can be used; at least two are needed")
        return standing.committed
