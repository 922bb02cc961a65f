"""Rows in chunks that are asked again and again, as a likelihood other than the Gaussian asks them."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from vff.data import Chunk, PassState, Source, check_same_rows
from vff.estimators.binding import Binding
from vff.estimators.table_summary import Batch
from vff.estimators.tasks import Reader, RowTask
from vff.inference import MemoryRows, Observed, RowOracle, SiteQuery, SiteSums, TargetScale
from vff.inference.methods.natural.oracle import FeatureSums
from vff.moments import MomentRequest, PassPlan, PreparedRows, merge_equal_rows


@dataclass(frozen=True)
class SiteVisit(RowTask):
    """One question to all rows."""

    reader: Reader
    binding: Binding
    plan: PassPlan
    target: TargetScale
    question: SiteQuery
    features: bool = False
    """Whether features are summed over the rows, too."""
    phase: ClassVar[str] = "asking the rows"
    kind: ClassVar[Any] = SiteSums

    def __call__(self, chunk: Chunk) -> SiteSums:
        rows = prepared_rows(self.reader.batch(chunk, self.binding), self.plan).in_units(self.target)
        return rows.sums(self.question, features=self.features)

    def merge(self, one: SiteSums, other: SiteSums) -> SiteSums:
        return one.merged(other)


def prepared_rows(batch: Batch, plan: PassPlan) -> MemoryRows:
    """The rows of a chunk, equal ones taken together."""
    source, extra = merge_equal_rows(batch.source, batch.extra, plan.distinct_values)
    return MemoryRows(PreparedRows(plan, source), Observed(source.y, extra, source.w))


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
        return self._reduced(SiteVisit(self.reader, self.binding, self.plan, self.target, query, features))

    def in_units(self, target: TargetScale) -> "ChunkedRows":
        return replace(self, target=target)

    def _reduced(self, task: Any) -> Any:
        state = self.source.reduce(task, without=self.looked.skipped)
        check_same_rows(self.looked, state)
        assert state.committed is not None  # the look found rows
        return state.committed
