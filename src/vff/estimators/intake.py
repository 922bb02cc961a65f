"""Rows on their way into a model, wherever they are: what is asked of a source, and what is made of the answers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from vff.data import ASKED_AGAIN, Checkpoint, PassState, Progress, Source, Used, check_same_rows, open_rows
from vff.data.checks import check_target, check_weights
from vff.estimators.binding import BoundColumn, check_levels, is_declared, joined
from vff.estimators.named import columns_used, introduce, levels_used, recognised
from vff.estimators.resolve import Options
from vff.estimators.row_oracle import ChunkedRows
from vff.estimators.statistics import (
    PATIENCE,
    Statistics,
    check_ranges,
    engines_used,
    extended,
    plan_text,
    progress_of_rows,
    resolved,
    rows_to_visit,
    with_levels,
)
from vff.estimators.table_summary import Batch, TableSummary, check_enough
from vff.estimators.tasks import Gather, Gathered, Look, Reader, Sum
from vff.factors import Kernel, normal_form, tails_together
from vff.inference import AbstractCrowd, Observed, Walked
from vff.likelihoods import AbstractLikelihood
from vff.moments import LARGEST_SAMPLE, Walk, books_for, plan_reading

Say = Callable[[str], None]
_DOMAIN_FIRST = "the domain is to be found in the rows, which then are read twice"
_GIVE_DOMAIN = "give domain= for every column of numbers, or "


def _silent(message: str) -> None:
    """Of sums that will not be taken."""


class Stopwatch:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - started


@dataclass(frozen=True)
class Question:
    """What is to be made of rows."""

    kernel: Kernel | None
    likelihood: AbstractLikelihood
    options: Options
    engine: str
    say: Say
    talks: bool = False
    """Whether what is said is heard."""

    @property
    def used(self) -> Used | None:
        """The columns that the model names."""
        if self.kernel is None:
            return None
        return Used(columns_used(self.kernel, self.likelihood), levels_used(self.kernel))


class Walkable(NamedTuple):
    """Rows that can be asked many times."""

    rows: Statistics
    walk: Walk
    observed: Observed
    everywhere: AbstractCrowd | None = None
    """All rows, where these are many: then ``walk`` and ``observed`` are a sample of them."""
    targets: np.ndarray | None = None
    """The different values of y, where there is a sample."""


@dataclass(frozen=True)
class Intake:
    """A source and what is to be made of it."""

    question: Question
    source: Source
    """With roles."""
    checkpoint: Checkpoint | None = None

    @classmethod
    def of(cls, question: Question, X: Any, y: Any, sample_weight: Any, known: Any = None) -> "Intake":
        """Whatever was given for X; ``known`` are the columns of an earlier fit, in their order."""
        source = open_rows(X).assigned(question.used, y, sample_weight, known)
        if question.talks and source.dear and source.handling.report is None:
            source = source.handled(report=_lines(question.say))
        return cls(question, source)

    @property
    def reader(self) -> Reader:
        assert self.source.roles is not None
        return Reader(self.question.kernel, self.source.roles, self.question.likelihood)

    def known_to(self, model: BaseEstimator, seen: Statistics) -> "Intake":
        """With the columns that a model has seen where it saw them; others are refused."""
        if self.source.whole is not None:
            modelled = [column.index for column in seen.binding.columns]
            table = recognised(model, self.source.whole, modelled, self.question.likelihood.column)
            return replace(self, source=self.source.with_table(table))
        features, known = self.reader.roles.features, getattr(model, "feature_names_in_", None)
        if features is None or known is None or set(features) == set(known):
            return self
        if self.question.kernel is None or not set(features) <= set(known):
            raise ValueError(
                f"the feature names should match those that were passed during fit, which are {', '.join(known)}; "
                f"these rows have {', '.join(features)}: name columns as they were"
            )
        return self

    def introduce(self, model: BaseEstimator) -> None:
        """Tell a model how many columns there are, and what they and the target are called."""
        told, features = vars(model), self.reader.roles.features
        if self.source.whole is not None:
            introduce(model, self.source.whole)
        elif features is not None:
            told |= {"feature_names_in_": np.array(features, dtype=object), "n_features_in_": len(features)}
        elif self.source.n_columns is not None:
            told["n_features_in_"] = self.source.n_columns
        if self.source.target is not None:
            told["target_name_"] = self.source.target

    def finish(self) -> None:
        """All of it has worked."""
        path = self.source.handling.checkpoint
        if path is not None:
            Checkpoint(Path(path), "").remove()

    def targets(self) -> np.ndarray | None:
        """y of the rows that count, where it is in memory."""
        table = self.source.whole
        if table is None:
            return None
        chunk = next(next(self.source.parts()).chunks())
        y, w = check_target(chunk.y, table.n_rows), check_weights(chunk.w, table.n_rows)
        return y[w > 0.0]

    def summed(self, seen: Statistics | None, growing: bool, clock: Stopwatch) -> Statistics:
        """The sums of these rows on top of those seen."""
        intake = replace(self, checkpoint=self._checkpoint(seen, growing))
        if not self.source.dear or (seen is None and not self._domains_are_given()):
            return intake._in_two_passes(seen, growing, clock)
        with clock("pass"):
            if seen is not None:
                return intake._gathered_onto(seen)
            return intake._gather().rows if growing else intake._gathered()

    def _checkpoint(self, seen: Statistics | None, growing: bool) -> Checkpoint | None:
        """The state of these sums, for these chunks on top of these rows, and of no others."""
        question, roles = self.question, self.reader.roles
        identity = f"{question.kernel!r} on {roles.features}, target {roles.target}, weights {roles.weight}, "
        identity += f"{question.options}, engine {question.engine}"
        if seen is not None:
            sums = seen.moments
            identity += f", on top of {sums.n:,} rows with {sums.weight!r}, {sums.target!r} and {sums.offset!r}"
        return self.source.checkpoint(identity + (", more to come" if growing else ""))

    def _in_two_passes(self, seen: Statistics | None, growing: bool, clock: Stopwatch) -> Statistics:
        question, whole = self.question, self.source.whole
        with clock("survey"):
            summary, state = self._summary(seen)
            rows = extended(seen or resolved(summary, question.options, growing=growing), summary)
        with clock("pass"):
            moments, binding = rows.moments, summary.binding
            request, beyond = moments.request, any(check_ranges(rows))
            # where rows are at hand, a book may be made of a column that has too many values for a look
            block = None if whole is None else self._batch(binding).source
            plan = plan_reading(summary.n, request, books_for(question.engine, request, summary.surveys, block),
                                question.engine)  # fmt: skip
            question.say(f"{plan_text(request, summary.n)}{self._chunk_text(len(plan.books))}")
            report = None if whole is None else progress_of_rows(summary.n, question.say)
            task = Sum(self.reader, binding, plan, moments.offset, beyond, whole is None, report)
            second = self._reduced(task, state.skipped)
            check_same_rows(state, second)
            new = self._found(second)
            choice = engines_used(new.choices, plan, [column.label for column in binding.columns])
            tails = tails_together((*rows.tails, *new.tails)) if new.tails else rows.tails
            sums = {"moments": moments + new.moments, "tails": tails, "choice": choice}
            return replace(rows, left_out=rows.left_out + state.dropped, **sums)

    def _summary(self, seen: Statistics | None, *, always_sampled: bool = False) -> tuple[TableSummary, PassState]:
        """A look at all rows."""
        if not self.source.repeatable:
            why, instead = (ASKED_AGAIN, "") if always_sampled else (_DOMAIN_FIRST, _GIVE_DOMAIN)
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
        if self.question.kernel is None and first:
            check_levels(summary.binding, summary.n, self._is_declared)

    def _batch(self, binding: Any) -> Batch:
        """All rows, where they are in memory."""
        return self.reader.batch(next(next(self.source.parts()).chunks()), binding)

    def _gathered_onto(self, seen: Statistics) -> Statistics:
        """The sums of all rows, on top of those of an earlier fit, in one pass."""
        state = self._reduced(Gather(self.reader, self.question.options, self.question.engine, seen.emptied()))
        seen = replace(seen, left_out=seen.left_out + state.dropped)
        return seen if state.committed is None else seen.merged(state.committed.rows)

    def _gathered(self) -> Statistics:
        """One pass, and then the functions that a look at all rows would have settled on."""
        summary, rows = self._gather()
        settled = resolved(summary, self.question.options, growing=False)
        there, wanted = rows.moments.request.harmonics, settled.moments.request.harmonics
        fewest = [
            [None if a is None or b is None else min(a, b) for a, b in zip(*pair, strict=True)]
            for pair in zip(there, wanted, strict=True)
        ]
        moments = with_levels(rows.moments, summary.binding).restricted(fewest)
        kept = {name: getattr(rows, name) for name in ("tails", "ranges", "choice", "n", "left_out")}
        return replace(settled, moments=moments, **kept)

    def _gather(self) -> Gathered:
        state = self._reduced(Gather(self.reader, self.question.options, self.question.engine))
        found = self._found(state)
        self._check_seen(found.summary, state, first=True)
        request = found.rows.moments.request
        self.question.say(f"{plan_text(request, found.summary.n)}{self._chunk_text(request.n_columns)}")
        return found._replace(rows=replace(found.rows, left_out=state.dropped))

    def walk(self, seen: Statistics | None, growing: bool, clock: Stopwatch, quiet: bool, sampled: bool) -> Walkable:
        """The rows, to be walked many times; where they are many, with a sample of them, if that may be."""
        source = self.source.asked_again()
        intake, whole = replace(self, source=source), source.whole
        question, say = self.question, _silent if quiet else self.question.say
        some = whole is None or (sampled and whole.n_rows > LARGEST_SAMPLE)
        with clock("survey"):
            summary, state = intake._summary(seen, always_sampled=some)
            rows = seen or resolved(summary, question.options, growing=growing)
            rows = replace(rows, left_out=rows.left_out + state.dropped)
        with clock("learn"):
            if whole is not None and not some:
                return Walkable(*rows_to_visit(rows, intake._batch(summary.binding), summary, question.engine, say))
            found = _walk_of_sample(rows, summary, question.engine, say if whole is None else _silent)
            if summary.sample is not None and summary.sample.complete:
                return found
            if whole is not None:
                every = Walkable(*rows_to_visit(rows, intake._batch(summary.binding), summary, question.engine, say))
                crowd = Walked(every.walk, every.observed)
                return found._replace(rows=every.rows, everywhere=crowd, targets=summary.targets.values)
        if not sampled:
            raise ValueError(
                "rows that come in chunks, more different ones than fit in memory, are fitted with "
                "inference='variational', covariance='full' and batch_size=None; choose these, or give a sample"
            )
        books = books_for(question.engine, found.walk.plan.request, summary.surveys, None)
        plan = plan_reading(summary.n, found.walk.plan.request, books, question.engine)
        crowd = ChunkedRows(source, intake.reader, summary.binding, plan, summary.n, summary.weight, state)
        return found._replace(everywhere=crowd, targets=summary.targets.values)

    def _chunk_text(self, columns: int) -> str:
        """What rows take in memory, however many there are: every column, its codes, y, weights and what is beside."""
        if not self.source.dear:
            return ""
        held = 8 * self.source.handling.chunk_rows * (2 * columns + 3) / 2**20
        return f"; a chunk of rows takes about {held:,.0f} MiB"

    def _domains_are_given(self) -> bool:
        """Whether every column of numbers has a domain."""
        domain, kernel = self.question.options.domain, self.question.kernel
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

    def _reduced(self, task: Any, without: tuple[str, ...] = ()) -> PassState:
        state = self.source.reduce(task, self.checkpoint, without)
        if state.dropped:
            self.question.say(f"{state.dropped:,} of {state.dropped + state.rows:,} rows left out: a value is missing")
        return state

    def _found(self, state: PassState) -> Any:
        if state.committed is None and self.source.whole is not None:
            check_enough(0, first=True, weighed=False)
        if state.committed is None:
            raise ValueError("the source has no rows that can be used; at least two are needed")
        return state.committed


def _walk_of_sample(rows: Statistics, summary: TableSummary, engine: str, say: Say) -> Walkable:
    """A sample of the rows, in memory."""
    sample = summary.sample
    assert sample is not None
    batch = Batch(summary.binding, sample.source, sample.extra)
    return Walkable(*rows_to_visit(rows, batch, summary, engine, say))


def _lines(say: Say) -> Callable[[Progress], None]:
    """A line of progress every two seconds or so."""
    last = time.perf_counter()

    def report(done: Progress) -> None:
        nonlocal last
        if time.perf_counter() - last > PATIENCE:
            last = time.perf_counter()
            rate = (done.rows - done.resumed) / max(done.seconds, 1e-9)
            left = "" if done.n_rows is None else f" of {done.n_rows:,}"
            ahead = "" if not done.n_rows or not rate else f", {(done.n_rows - done.rows) / rate:,.0f} s left"
            say(f"{done.phase}: {done.rows:,}{left} rows, {rate:,.0f} rows/s{ahead}; {done.part}")

    return report
