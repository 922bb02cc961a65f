"""Rows to a posterior: passes over the rows of a fit, wherever they are, and what is learnt of their answers.

Estimators, commands and tests come through here.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vff.data import NEEDS_REVISITS, Checkpoint, PassState, Source, check_same_rows
from vff.data.checks import check_target, check_weights
from vff.data.conversion import is_grouped
from vff.estimators.binding import BoundColumn, BoundTerm, check_levels, joined
from vff.estimators.options import FitSpec, check_sampling_size, check_size
from vff.estimators.progress import lines_of_rows, plan_text
from vff.estimators.statistics import (
    Statistics,
    check_ranges,
    engines_used,
    extended,
    few_over,
    resolved,
    rows_to_visit,
    with_levels,
    with_sums,
)
from vff.estimators.table_summary import Batch, TableSummary, check_enough
from vff.estimators.tasks import ChunkedRows, Gather, Gathered, Look, Reader, Sum
from vff.estimators.tried import TriedInteractions
from vff.factors import normal_form
from vff.inference import (
    Fit,
    FitTask,
    MemoryRows,
    Method,
    Sums,
    TermPlan,
    Visited,
    no_sums,
    on_coverage,
    on_few_rows,
)
from vff.moments import LARGEST_SAMPLE, ColumnSummary, Place, distinct_values_for, numbers, plan_pass

_KEPT_TARGETS = 2**20  # that draws are kept with
_DOMAIN_FIRST = "the domain is to be found in the rows, which then are read twice"
_GIVE_DOMAIN = "give domain= for every column of numbers, or "


class Fitted(NamedTuple):
    """What rows became: their sums, and what was learnt from them, if anything was."""

    statistics: Statistics
    fit: Fit | None
    seconds: dict[str, float]
    """By phase."""
    interactions: TriedInteractions | None = None
    """Products that might have joined the sum, where that was asked for."""


def fit(spec: FitSpec, source: Source, before: Fitted | None = None, start: Fit | None = None) -> Fitted:
    """Rows to a posterior, on top of those that came before; or from the hyperparameters of another fit of them."""
    method, watch = spec.method(), Stopwatch()
    start = (
        start if method.needs == "sums" else None
    )  # others guess their first sites with hyperparameters of their own
    seen, last = (None, start) if before is None else (before.statistics, before.fit)
    passes = RowPasses(spec, source, watch)
    if method.needs == "sums":
        rows = passes.summed(seen)
        spec.progress(f"{rows.moments.n:,} rows summed; engine {rows.choice.reason}")
        with watch("learn"):
            found = learnt(spec, rows, Sums(rows.moments, rows.tails, rows.few), last)
    else:
        rows, data = passes.visited(seen, method)
        with watch("learn"):
            if method.samples:
                check_sampling_size(data.request, data.prepared.n, spec.chains.draws * spec.chains.chains)
            else:
                names, exchangeable = [term.key for term in rows.terms], rows.binding.exchangeable
                check_size(data.request, names, spec.covariance, n := data.prepared.n, exchangeable, n)
            if last is not None and last.memory is not None:  # over the levels that are known now
                last = replace(last, memory=replace(last.memory, sums=rows.moments))
            found = learnt(spec, rows, data, last)
        found = replace(found, notes=(*found.notes, *on_coverage(found, data.prepared, data.observed)))
        rows = _after_visits(found, rows, data)
    if found.samples is not None and not spec.growing and rows.n <= _KEPT_TARGETS:
        found = replace(found, samples=replace(found.samples, y=passes.targets()))
    return Fitted(rows, found, dict(watch))


def _widest(rows: Statistics, place: Place) -> ColumnSummary:
    """The range of the column that a factor reads, or of the widest of several."""
    return max((rows.ranges[c] for c in numbers((place,))), key=lambda own: own.high - own.low)


def learnt(spec: FitSpec, rows: Statistics, data: Sums | Visited, before: Fit | None) -> Fit:
    """Hyperparameters and posterior, from where an earlier fit left them."""
    found = spec.method().fit(task_of(spec, rows, data, before))
    return replace(found, notes=(*found.notes, *on_few_rows(found)))


def plan_of(term: BoundTerm, rows: Statistics, M: tuple[int | None, ...], highest_frequency: int = 0) -> TermPlan:
    """What is asked of a term over the columns of rows."""
    ranges = tuple(_widest(rows, place) for place in term.columns)
    labels = rows.binding.labels(term)
    return TermPlan(term.name, labels, term.inner, term.given, M, ranges, highest_frequency, term.limits)


def task_of(
    spec: FitSpec, rows: Statistics, data: Sums | Visited, before: Fit | None = None, more: Sequence[TermPlan] = ()
) -> FitTask:
    """What is asked of inference: the terms that rows were read for, and more beside them."""
    chains = spec.chains.plan() if spec.method().samples else None
    own = zip(rows.terms, rows.harmonics, rows.highest_frequencies, strict=True)
    plans = (*(plan_of(term, rows, M, detail) for term, M, detail in own), *more)
    return FitTask(
        plans, spec.likelihood, data, spec.optimizer is not None, spec.centred, spec.progress, spec.noise,
        spec.batch, spec.covariance, spec.engine, chains, spec.priors, spec.growing, before,
        noise_limits=spec.noise_limits, hyperparameters=spec.hyperparameters,
    )  # fmt: skip


def _after_visits(found: Fit, rows: Statistics, data: Visited) -> Statistics:
    """What is kept of rows that were visited: sums of their sites, or nothing but what they were visited for."""
    if found.memory is None:
        return replace(rows, moments=no_sums(found.posterior.request), choice=found.engine or rows.choice, few=None)
    prepared = (data.all.in_memory or data).prepared
    choice = engines_used(prepared.choices, prepared.plan, rows)
    return replace(rows, moments=found.memory.sums, choice=choice, few=None)


class Stopwatch(dict[str, float]):
    """Seconds by phase."""

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self[phase] = self.get(phase, 0.0) + time.perf_counter() - started


@dataclass
class RowPasses:
    """A source and what is to be made of it."""

    spec: FitSpec
    source: Source
    """With roles."""
    watch: Stopwatch
    checkpoint: Checkpoint | None = None

    @property
    def reader(self) -> Reader:
        assert self.source.roles is not None
        word, spec = self.source.options.missing or self.spec.missing, self.spec
        return Reader(spec.kernel, self.source.roles, spec.likelihood, spec.offset, word == "effect")

    def targets(self) -> np.ndarray | None:
        """y of the rows that count, where it is in memory."""
        table = self.source.whole
        if table is None:
            return None
        chunk = next(next(self.source.parts()).chunks())
        y, w = check_target(chunk.y, table.n_rows), check_weights(chunk.w, table.n_rows)
        return y[w > 0.0]

    def summed(self, seen: Statistics | None) -> Statistics:
        """The sums of these rows on top of those seen."""
        self.checkpoint = self._checkpoint(seen)
        if not self.source.expensive_pass or (seen is None and not self._domains_are_given()):
            return self._in_two_passes(seen)
        with self.watch("pass"):
            if seen is not None:
                return self._gathered_onto(seen)
            return self._gather().rows if self.spec.growing else self._gathered()

    def _checkpoint(self, seen: Statistics | None) -> Checkpoint | None:
        """The state of these sums, for these chunks on top of these rows, and of no others."""
        spec, roles = self.spec, self.reader.roles
        identity = f"{spec.kernel!r} on {roles.features}, target {roles.target}, weights {roles.weight}, "
        identity += f"offset {spec.offset!r}, {spec.options}, engine {spec.engine}"
        if seen is not None:
            sums = seen.moments
            identity += f", on top of {sums.n:,} rows with {sums.weight!r}, {sums.target!r} and {sums.offset!r}"
        return self.source.checkpoint(identity + (", more to come" if spec.growing else ""))

    def _in_two_passes(self, seen: Statistics | None) -> Statistics:
        spec, whole = self.spec, self.source.whole
        with self.watch("survey"):
            summary, state = self._look(seen)
            rows = extended(seen or resolved(summary, spec.options, growing=spec.growing), summary)
        with self.watch("pass"):
            request, beyond = rows.moments.request, check_ranges(rows)
            # where rows are at hand, values of a column may be listed that are too many for a look
            block = None if whole is None else self._batch(summary).source
            distinct_values = distinct_values_for(spec.engine, request, summary.summaries, block)
            plan = plan_pass(summary.n, request, distinct_values, spec.engine)
            needs = plan_text(request, summary.n, summary.binding.exchangeable)
            spec.progress(f"{needs}{self._chunk_text(len(plan.distinct_values))}")
            report = None if whole is None else lines_of_rows(summary.n, spec.progress)
            task = Sum(self.reader, summary.binding, plan, rows.moments.offset, beyond, whole is None, report)
            second = self._reduced(task, state.skipped)
            check_same_rows(state, second)
            return with_sums(replace(rows, left_out=rows.left_out + state.dropped), plan, self._found(second))

    def _look(self, seen: Statistics | None, *, always_sampled: bool = False) -> tuple[TableSummary, PassState]:
        """A look at all rows."""
        if not self.source.repeatable:
            why, instead = (NEEDS_REVISITS, "") if always_sampled else (_DOMAIN_FIRST, _GIVE_DOMAIN)
            raise ValueError(
                f"{why}, and an iterator gives them once; {instead}pass a function that returns a new iterator"
            )
        offset = None if seen is None else seen.moments.offset
        state = self._reduced(Look(self.reader, always_sampled, offset))
        summary = self._found(state)
        self._check_seen(summary, state, first=seen is None)
        return summary if seen is None else summary.over(joined(seen.binding, summary.binding)), state

    def _check_seen(self, summary: TableSummary, state: PassState, first: bool) -> None:
        check_enough(summary.n, first=first, weighed=summary.n < state.rows)
        if self.spec.kernel is None and first:
            check_levels(summary.binding, summary.n, self._is_declared)

    def _batch(self, summary: TableSummary) -> Batch:
        """All rows, where they are in memory."""
        return self.reader.batch(next(next(self.source.parts()).chunks()), summary.binding)

    def _gathered_onto(self, seen: Statistics) -> Statistics:
        """The sums of all rows, on top of those of an earlier fit, in one pass."""
        state = self._reduced(Gather(self.reader, self.spec.options, self.spec.engine, seen.emptied()))
        seen = replace(seen, left_out=seen.left_out + state.dropped)
        return seen if state.committed is None else seen.merged(state.committed.rows)

    def _gathered(self) -> Statistics:
        """One pass, and then the functions that a look at all rows would have settled on."""
        summary, rows = self._gather()
        settled = resolved(summary, self.spec.options, growing=False)
        there, wanted = rows.moments.request.harmonics, settled.moments.request.harmonics
        fewest = [
            [None if a is None or b is None else min(a, b) for a, b in zip(*pair, strict=True)]
            for pair in zip(there, wanted, strict=True)
        ]
        moments = with_levels(rows.moments, summary.binding).restricted(fewest)
        kept = {name: getattr(rows, name) for name in ("tails", "ranges", "choice", "n", "left_out")}
        return replace(settled, moments=moments, few=few_over(rows, summary.binding), **kept)

    def _gather(self) -> Gathered:
        state = self._reduced(Gather(self.reader, self.spec.options, self.spec.engine))
        found = self._found(state)
        self._check_seen(found.summary, state, first=True)
        request = found.rows.moments.request
        needs = plan_text(request, found.summary.n, found.summary.binding.exchangeable)
        self.spec.progress(f"{needs}{self._chunk_text(request.n_columns)}")
        return found._replace(rows=replace(found.rows, left_out=state.dropped))

    def visited(self, seen: Statistics | None, method: Method) -> tuple[Statistics, Visited]:
        """The rows, to be visited many times; where they are many, with a sample of them, if that may be."""
        return replace(self, source=self.source.revisitable())._visited(seen, method)

    def _visited(self, seen: Statistics | None, method: Method) -> tuple[Statistics, Visited]:
        spec, source, whole, inner = self.spec, self.source, self.source.whole, method.needs == "rows"
        sampled = not inner and spec.batch is None
        some = whole is None or (sampled and whole.n_rows > LARGEST_SAMPLE)
        with self.watch("survey"):
            summary, state = self._look(seen, always_sampled=some)
            rows = seen or resolved(summary, spec.options, growing=spec.growing)
            rows = replace(rows, left_out=rows.left_out + state.dropped)
        with self.watch("learn"):
            if whole is not None and not some:
                return self._visit(rows, self._batch(summary), summary, quiet=inner)
            sample = summary.sample
            assert sample is not None
            batch = Batch(summary.binding, sample.source, sample.extra, sample.offset)
            known, found = self._visit(rows, batch, summary, quiet=inner or whole is not None)
            if sample.complete:
                return known, found
            if whole is not None:
                known, every = self._visit(rows, self._batch(summary), summary, quiet=inner)
                oracle = MemoryRows(every.prepared, every.observed)
                return known, replace(found, everywhere=oracle, targets=summary.targets.values)
        if not sampled:
            raise ValueError(
                "rows that come in chunks, more different ones than fit in memory, are fitted with "
                "inference='variational', covariance='full' and batch_size=None; choose these, or give a sample"
            )
        distinct_values = distinct_values_for(spec.engine, found.request, summary.summaries, None)
        plan = plan_pass(summary.n, found.request, distinct_values, spec.engine)
        oracle = ChunkedRows(source, self.reader, summary.binding, plan, summary.n, summary.weight, state)
        return known, replace(found, everywhere=oracle, targets=summary.targets.values)

    def _visit(
        self, rows: Statistics, batch: Batch, summary: TableSummary, *, quiet: bool
    ) -> tuple[Statistics, Visited]:
        known, found = rows_to_visit(rows, batch, summary, self.spec.engine)
        if not quiet:
            self.spec.progress(plan_text(found.request, found.n, summary.binding.exchangeable))
        return known, Visited(found.prepared, found.observed)

    def _chunk_text(self, columns: int) -> str:
        """What rows take in memory, however many there are: every column, its codes, y, weights and what is beside."""
        if not self.source.expensive_pass:
            return ""
        held = 8 * self.source.options.chunk_rows * (2 * columns + 3) / 2**20
        return f"; a chunk of rows takes about {held:,.0f} MiB"

    def _domains_are_given(self) -> bool:
        """Whether every column of numbers has a domain."""
        domain, kernel = self.spec.options.domain, self.spec.kernel
        if isinstance(domain, str):
            return False
        if not isinstance(domain, dict):
            return True
        if kernel is None:  # columns of text have none: the first rows tell which these are
            return not self.source.repeatable or all(name in domain for name in self.reader.roles.features or ())
        leaves = [leaf for term in normal_form(kernel) for leaf in term.factors if "domain" in leaf.factor.options]
        return all(domain.get(column) is not None for leaf in leaves for column in leaf.columns)

    def _is_declared(self, column: BoundColumn) -> bool:
        """Whether a column was opened as text on purpose, or its type says that it is a category."""
        if any(name in column.aliases and kind == "text" for name, kind in self.source.declared.items()):
            return True
        first = (part.chunks() for part in self.source.parts()) if self.source.repeatable else iter(())
        some = next((chunk for chunks in first for chunk in chunks), None)
        return some is not None and is_grouped(self.reader.roles.split(some)[0].raw(column.index))

    def _reduced(self, task: Any, without: tuple[str, ...] = ()) -> PassState:
        state = self.source.reduce(task, self.checkpoint, without)
        if state.dropped:
            every = state.dropped + state.rows
            self.spec.progress(f"{state.dropped:,} of {every:,} rows left out: a value is missing")
        return state

    def _found(self, state: PassState) -> Any:
        if state.committed is None and self.source.whole is not None:
            check_enough(0, first=True, weighed=False)
        if state.committed is None:
            raise ValueError("the source has no rows that can be used; at least two are needed")
        return state.committed
