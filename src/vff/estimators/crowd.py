"""Rows in chunks that are asked again and again, as a likelihood other than the Gaussian asks them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vff.data import Chunk, PassState, Source, check_same_rows
from vff.estimators.binding import Binding
from vff.estimators.overview import Batch
from vff.estimators.tasks import Reader, RowTask
from vff.inference import AbstractCrowd, Answers, Observed, Question, TargetScale, Walked, feature_sums
from vff.moments import MomentRequest, ReadingPlan, Walk, collapse


@dataclass(frozen=True)
class Asked(RowTask):
    """One question to all rows."""

    reader: Reader
    binding: Binding
    plan: ReadingPlan
    target: TargetScale
    question: Question
    phase: ClassVar[str] = "asking the rows"
    kind: ClassVar[Any] = Answers

    def __call__(self, chunk: Chunk) -> Answers:
        return walked(self.reader.batch(chunk, self.binding), self.plan).in_units(self.target).ask(self.question)

    def merge(self, one: Answers, other: Answers) -> Answers:
        return one.merged(other)


class FeatureSums(NamedTuple):
    """sum w phi of every term."""

    sums: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Averaged(RowTask):
    """Sums of features over all rows."""

    reader: Reader
    binding: Binding
    plan: ReadingPlan
    request: MomentRequest
    phase: ClassVar[str] = "averaging"
    kind: ClassVar[Any] = FeatureSums

    def __call__(self, chunk: Chunk) -> FeatureSums:
        rows = walked(self.reader.batch(chunk, self.binding), self.plan)
        return FeatureSums(feature_sums(rows.walk, self.request, rows.observed.w))

    def merge(self, one: FeatureSums, other: FeatureSums) -> FeatureSums:
        return FeatureSums(tuple(mine + theirs for mine, theirs in zip(one.sums, other.sums, strict=True)))


def walked(batch: Batch, plan: ReadingPlan) -> Walked:
    """The rows of a chunk, equal ones taken together."""
    source, extra = collapse(batch.source, batch.extra, plan.books)
    return Walked(Walk(plan, source), Observed(source.y, extra, source.w))


@dataclass(frozen=True)
class ChunkCrowd(AbstractCrowd):
    """All rows of a source."""

    source: Source
    reader: Reader
    binding: Binding
    plan: ReadingPlan
    rows: int
    total: float
    """sum w."""
    looked: PassState = PassState()  # noqa: RUF009  a frozen record
    """The first look at the rows: which parts can be read, and how they were then."""
    target: TargetScale = TargetScale(0.0, 1.0)  # noqa: RUF009  a frozen record

    @property
    def n(self) -> int:
        return self.rows

    @property
    def weight(self) -> float:
        return self.total

    @property
    def request(self) -> MomentRequest:
        return self.plan.request

    def ask(self, question: Question) -> Answers:
        task = Asked(self.reader, self.binding, self.plan, self.target, question)
        return self._reduced(task)

    def in_units(self, target: TargetScale) -> "ChunkCrowd":
        return replace(self, target=target)

    def averages(self, request: MomentRequest) -> tuple[np.ndarray, ...]:
        task = Averaged(self.reader, self.binding, self.plan, request)
        return tuple(sums / self.total for sums in self._reduced(task).sums)

    def _reduced(self, task: Any) -> Any:
        state = self.source.reduce(task, without=self.looked.skipped)
        check_same_rows(self.looked, state)
        assert state.committed is not None  # the look found rows
        return state.committed
