"""Rows on their way into a model: from a table in memory, or chunk by chunk from a source."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from vff.estimators.binding import bind, joined
from vff.estimators.chunked import ChunkedTask, Reader, Roles
from vff.estimators.overview import Batch, Overview, check_enough, look_at, take_batch
from vff.estimators.rows import Rows, add, begin, walk_of
from vff.estimators.settling import Options
from vff.estimators.tables import Table
from vff.inference import Observed
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood
from vff.moments import Walk
from vff.sources import AbstractSource, Checkpoint

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


@dataclass(frozen=True)
class AbstractIntake(ABC):
    """Rows and what is to be made of them."""

    question: Question

    @abstractmethod
    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        """The sums of these rows on top of those seen."""

    @abstractmethod
    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool) -> tuple[Rows, Walk, Observed]:
        """The rows, to be walked many times."""

    @abstractmethod
    def targets(self) -> np.ndarray | None:
        """y, where it is in memory."""

    @abstractmethod
    def check_known(self, model: BaseEstimator) -> None:
        """Refuse other columns than those that a model has seen."""

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

    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        with clock("survey"):
            batch, overview, rows = self._looked(seen, growing)
        with clock("pass"):
            return add(rows, batch, overview, self.question.engine, self.question.say)

    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool) -> tuple[Rows, Walk, Observed]:
        with clock("survey"):
            batch, overview, rows = self._looked(seen, growing)
        with clock("learn"):
            return walk_of(rows, batch, overview, self.question.engine, _silent if quiet else self.question.say)

    def _looked(self, seen: Rows | None, growing: bool) -> tuple[Batch, Overview, Rows]:
        """The rows, what a look at them found, and what is to be summed."""
        question, table = self.question, self.table
        binding = bind(question.kernel, table, first=seen is None, beside=question.likelihood.column)
        if seen is not None:
            binding = joined(seen.binding, binding)
        batch = take_batch(table, binding, self.y, self.sample_weight, question.likelihood)
        check_enough(batch.source.n, first=seen is None, weighed=batch.source.n < table.n_rows)
        overview = look_at(batch)
        return batch, overview, seen or begin(overview, question.options, growing=growing)

    def targets(self) -> np.ndarray | None:
        return np.asarray(self.y, float)

    def check_known(self, model: BaseEstimator) -> None:
        validate_data(model, self.table.data, reset=False, skip_check_array=True)

    def introduce(self, model: BaseEstimator) -> None:
        validate_data(model, self.table.data, reset=True, skip_check_array=True)

    def finish(self) -> None:
        """Nothing is left over."""


@dataclass(frozen=True)
class ChunkIntake(AbstractIntake):
    """A source of chunks."""

    task: ChunkedTask

    @classmethod
    def of(cls, question: Question, source: AbstractSource, y: Any, sample_weight: Any) -> "ChunkIntake":
        source, y, sample_weight = source.with_targets(y, sample_weight)
        roles = Roles.of(source, question.kernel, y, sample_weight, question.likelihood)
        if roles.features is not None:
            source = source.restricted(roles.all)
        source = source.handled(keep_missing=roles.levels(question.kernel, source.kinds))
        reader = Reader(question.kernel, roles, question.likelihood)
        path = source.handling.checkpoint
        checkpoint = None if path is None else Checkpoint.at(path, _identity(question, roles))
        return cls(question, ChunkedTask(source, reader, question.options, question.engine, question.say, checkpoint))

    def summed(self, seen: Rows | None, growing: bool, clock: Clock) -> Rows:
        with clock("pass"):
            if seen is not None:
                return self.task.added_to(seen)
            return self.task.gathered_so_far() if growing else self.task.summed()

    def walk(self, seen: Rows | None, growing: bool, clock: Clock, quiet: bool) -> tuple[Rows, Walk, Observed]:
        raise ValueError("chunks with another likelihood are not walked yet")

    def targets(self) -> np.ndarray | None:
        return None

    def check_known(self, model: Any) -> None:
        features, known = self.task.reader.roles.features, getattr(model, "feature_names_in_", None)
        if features is not None and known is not None and sorted(features) != sorted(known):
            raise ValueError(
                f"the feature names should match those that were passed during fit, which are {', '.join(known)}; "
                f"these rows have {', '.join(features)}: name columns as they were"
            )

    def introduce(self, model: Any) -> None:
        roles = self.task.reader.roles
        if roles.features is not None:
            model.feature_names_in_ = np.array(roles.features, dtype=object)
            model.n_features_in_ = len(roles.features)

    def finish(self) -> None:
        if self.task.checkpoint is not None:
            self.task.checkpoint.remove()


def _identity(question: Question, roles: Roles) -> str:
    """What a checkpoint is a state of."""
    return f"{question.kernel!r} on {roles.features}, target {roles.target}, weights {roles.weight}, {question.options}"
