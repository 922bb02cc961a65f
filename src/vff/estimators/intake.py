"""Rows on their way into a model: from a table in memory, or chunk by chunk from a source."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from vff.estimators.binding import bind, joined
from vff.estimators.chunked import ChunkedTask, Reader
from vff.estimators.crowd import ChunkCrowd
from vff.estimators.named import columns_used, given, introduce, recognised
from vff.estimators.overview import Batch, Overview, check_enough, look_at, take_batch
from vff.estimators.roles import Positive, Roles, check_asked_again
from vff.estimators.rows import PATIENCE, Rows, add, begin, walk_of
from vff.estimators.settling import Options
from vff.estimators.tables import Table, check_target, check_weights
from vff.inference import AbstractCrowd, Observed, Walked
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood
from vff.moments import LARGEST_SAMPLE, Walk, books_for, plan_reading
from vff.sources import AbstractSource, Checkpoint, Progress, Spread

Say = Callable[[str], None]


def _silent(message: str) -> None:
    """Of sums that will not be taken."""


class Clock:
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


class Walkable(NamedTuple):
    """Rows that can be asked many times."""

    rows: Rows
    walk: Walk
    observed: Observed
    everywhere: AbstractCrowd | None = None
    """All rows, where these are not in memory: then ``walk`` and ``observed`` are a sample of them."""
    targets: np.ndarray | None = None
    """The different values of y, where there is a sample."""


def _walk_of_sample(rows: Rows, overview: Overview, engine: str, say: Say) -> Walkable:
    """A sample of the rows, in memory."""
    sample = overview.sample
    assert sample is not None
    batch = Batch(overview.binding, sample.source, sample.extra)
    return Walkable(*walk_of(rows, batch, overview, engine, say))


@dataclass(frozen=True)
class AbstractIntake(ABC):
    """Rows and what is to be made of them."""

    question: Question

    @abstractmethod
    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        """The sums of these rows on top of those seen."""

    @abstractmethod
    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool, sampled: bool) -> Walkable:
        """The rows, to be walked many times; where they are many, with a sample of them, if that may be."""

    @abstractmethod
    def targets(self) -> np.ndarray | None:
        """y of the rows that count, where it is in memory."""

    @abstractmethod
    def known_to(self, model: BaseEstimator, seen: Rows) -> "AbstractIntake":
        """With the columns that a model has seen where it saw them; others are refused."""

    @abstractmethod
    def introduce(self, model: BaseEstimator) -> None:
        """Tell a model how many columns there are, and what they are called."""

    @abstractmethod
    def finish(self) -> None:
        """All of it has worked."""


@dataclass(frozen=True)
class TableIntake(AbstractIntake):
    """A table in memory."""

    table: Table
    y: Any
    sample_weight: Any
    target: str | None = None
    """What y is called, where it was a column of the table."""

    @classmethod
    def of(cls, question: Question, X: Any, y: Any, sample_weight: Any) -> "TableIntake":
        """``y`` and ``sample_weight`` may be names of columns of X."""
        return cls(question, *given(X, y, sample_weight, columns_used(question.kernel, question.likelihood)))

    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        with clock("survey"):
            batch, overview, rows = self._looked(seen, growing)
        with clock("pass"):
            return add(rows, batch, overview, self.question.engine, self.question.say)

    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool, sampled: bool) -> Walkable:
        sampled = sampled and self.table.n_rows > LARGEST_SAMPLE
        with clock("survey"):
            batch, overview, rows = self._looked(seen, growing, sampled)
        say, engine = _silent if quiet else self.question.say, self.question.engine
        with clock("learn"):
            if not sampled:
                return Walkable(*walk_of(rows, batch, overview, engine, say))
            some = _walk_of_sample(rows, overview, engine, _silent)
            if overview.sample is not None and overview.sample.complete:
                return some
            whole = Walkable(*walk_of(rows, batch, overview, engine, say))
            crowd = Walked(whole.walk, whole.observed)
            return some._replace(rows=whole.rows, everywhere=crowd, targets=overview.targets.values)

    def _looked(self, seen: Rows | None, growing: bool, sampled: bool = False) -> tuple[Batch, Overview, Rows]:
        """The rows, what a look at them found, and what is to be summed."""
        question, table = self.question, self.table
        binding = bind(question.kernel, table, first=seen is None, beside=question.likelihood.column)
        if seen is not None:
            binding = joined(seen.binding, binding)
        batch = take_batch(table, binding, self.y, self.sample_weight, question.likelihood)
        check_enough(batch.source.n, first=seen is None, weighed=batch.source.n < table.n_rows)
        overview = look_at(batch, always_sampled=sampled)
        return batch, overview, seen or begin(overview, question.options, growing=growing)

    def targets(self) -> np.ndarray | None:
        y, w = check_target(self.y, self.table.n_rows), check_weights(self.sample_weight, self.table.n_rows)
        return y[w > 0.0]

    def known_to(self, model: BaseEstimator, seen: Rows) -> "TableIntake":
        modelled = [column.index for column in seen.binding.columns]
        return replace(self, table=recognised(model, self.table, modelled, self.question.likelihood.column))

    def introduce(self, model: BaseEstimator) -> None:
        introduce(model, self.table)
        if self.target is not None:
            vars(model)["target_name_"] = self.target

    def finish(self) -> None:
        """Nothing is left over."""


@dataclass(frozen=True)
class ChunkIntake(AbstractIntake):
    """A source of chunks."""

    task: ChunkedTask

    @classmethod
    def of(
        cls, question: Question, source: AbstractSource, y: Any, sample_weight: Any, known: Sequence[str] | None = None
    ) -> "ChunkIntake":
        """``known`` are the columns of an earlier fit, in their order."""
        beside = y.column if isinstance(y, Positive) else y
        source, column, sample_weight = source.with_targets(beside, sample_weight)
        y = y._replace(column=column) if isinstance(y, Positive) else column
        roles = Roles.of(source, question.kernel, y, sample_weight, question.likelihood).ordered(known)
        levels = roles.levels(question.kernel, source.kinds)
        source = source.handled(keep_missing=levels).with_integers([name for name in levels if isinstance(name, str)])
        if roles.features is not None:
            source = source.restricted(roles.all)
        if question.talks and source.handling.report is None:
            source = source.handled(report=_lines(question.say))
        reader = Reader(question.kernel, roles, question.likelihood)
        return cls(question, ChunkedTask(source, reader, question.options, question.engine, question.say))

    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        task = replace(self.task, checkpoint=self._checkpoint(seen, growing))
        with clock("pass"):
            if seen is not None:
                return task.added_to(seen)
            return task.gathered_so_far() if growing else task.summed()

    def _checkpoint(self, seen: Rows | None, growing: bool) -> Checkpoint | None:
        """The state of these sums, for these chunks on top of these rows, and of no others."""
        handling = self.task.source.handling
        if handling.checkpoint is None:
            return None
        if isinstance(self.task.source, Spread):
            raise ValueError(
                "a checkpoint is for rows that are read here; on a cluster the scheduler computes again what a dead "
                "worker took with it: leave checkpoint out"
            )
        identity = _identity(self.question, self.task.reader.roles)
        identity += f", engine {self.question.engine}, {self.task.source.identity}"
        if seen is not None:
            sums = seen.moments
            identity += f", on top of {sums.n:,} rows with {sums.weight!r}, {sums.target!r} and {sums.offset!r}"
        return Checkpoint.at(handling.checkpoint, identity + (", more to come" if growing else ""))

    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool, sampled: bool) -> Walkable:
        """In memory where the different rows are few; else a sample, and the source to be read again and again."""
        check_asked_again(self.task.source)
        question, task = self.question, self.task
        with clock("survey"):
            overview, standing = task.overview(always_sampled=True)
            if seen is not None:
                overview = overview.over(joined(seen.binding, overview.binding))
            rows = seen or begin(overview, question.options, growing=growing)
            rows = replace(rows, left_out=rows.left_out + standing.dropped)
        found = _walk_of_sample(rows, overview, question.engine, _silent if quiet else question.say)
        if overview.sample is not None and overview.sample.complete:
            return found
        if not sampled:
            raise ValueError(
                "rows that come in chunks, more different ones than fit in memory, are fitted with "
                "inference='variational', covariance='full' and batch_size=None; choose these, or give a sample"
            )
        books = books_for(question.engine, found.walk.plan.request, overview.surveys, None)
        plan = plan_reading(overview.n, found.walk.plan.request, books, question.engine)
        parts = overview.binding, plan, overview.n, overview.weight, standing
        crowd = ChunkCrowd(task.source, task.reader, *parts)
        return found._replace(everywhere=crowd, targets=overview.targets.values)

    def targets(self) -> np.ndarray | None:
        return None

    def known_to(self, model: Any, seen: Rows) -> "ChunkIntake":
        features, known = self.task.reader.roles.features, getattr(model, "feature_names_in_", None)
        if features is not None and known is not None and sorted(features) != sorted(known):
            raise ValueError(
                f"the feature names should match those that were passed during fit, which are {', '.join(known)}; "
                f"these rows have {', '.join(features)}: name columns as they were"
            )
        return self

    def introduce(self, model: Any) -> None:
        roles = self.task.reader.roles
        if roles.features is not None:
            model.feature_names_in_ = np.array(roles.features, dtype=object)
            model.n_features_in_ = len(roles.features)
        elif self.task.source.n_columns is not None:
            model.n_features_in_ = self.task.source.n_columns
        if roles.target is not None:
            model.target_name_ = roles.target

    def finish(self) -> None:
        path = self.task.source.handling.checkpoint
        if path is not None:
            Checkpoint(Path(path), "").remove()


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


def _identity(question: Question, roles: Roles) -> str:
    """What a checkpoint is a state of."""
    return f"{question.kernel!r} on {roles.features}, target {roles.target}, weights {roles.weight}, {question.options}"
