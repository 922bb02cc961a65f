"""Many passes over the same rows: what they are is worked out once, what is summed changes (theory §9).

Both directions meet the rows chunk by chunk, so that nothing as long as the table is kept but the table itself.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from vff.moments.engines import Choice
from vff.moments.plan import PassPlan, RowBlock, plan_pass
from vff.moments.rows import ColumnRows
from vff.moments.run import Sums, chunks_of, prepare, prepare_sets
from vff.moments.statistics import MomentRequest, Moments
from vff.moments.threads import cores, workers

_KEPT = 2**30  # bytes of prepared rows that are kept from walk to walk
_PER_CELL = 24  # bytes: the value, its place and its code

Step = Callable[[slice, Sequence[ColumnRows]], tuple[np.ndarray, np.ndarray]]
"""A stretch of rows and its columns -> weights w and weighted targets w y, (N,) each."""


class PreparedRows:
    """The rows of a source, to be walked as often as one likes. All must lie inside the places of their columns."""

    def __init__(self, plan: PassPlan, source: RowBlock):
        self.plan, self.source = plan, source
        self._keeps = source.n * len(plan.distinct_values) * _PER_CELL <= _KEPT
        self._kept: list[list[ColumnRows]] = []
        self.choices: list[Choice] = []

    @property
    def n(self) -> int:
        """Rows."""
        return self.source.n

    def taken(self, pieces: Sequence[slice], request: MomentRequest | None = None) -> "PreparedRows":
        """Some of the rows, perhaps for other features of the same columns."""
        source = self.source.taken(len(self.plan.distinct_values), pieces)
        return PreparedRows(plan_pass(source.n, request or self.plan.request, self.plan.distinct_values), source)

    def chunks(self, pool: ThreadPoolExecutor) -> Iterator[tuple[slice, list[ColumnRows]]]:
        """Stretches of rows with their columns; the same every time."""
        for number, rows in enumerate(chunks_of(self.plan, self.n)):
            if number < len(self._kept):
                yield rows, self._kept[number]
                continue
            columns = prepare(self.plan, self.source, rows, pool)
            prepare_sets(self.plan, columns, pool)
            if self._keeps:
                self._kept.append(columns)
            yield rows, columns

    def sum(self, step: Step) -> Moments:
        """One walk: the sums with the weights and weighted targets that ``step`` finds at every stretch."""
        sums = Sums(self.plan)
        with workers(cores()) as pool:
            for rows, columns in self.chunks(pool):
                w, weighted = step(rows, columns)
                sums.add(columns, w, weighted, 0.0, pool)
        self.choices = sums.choices
        return sums.moments(0.0)
