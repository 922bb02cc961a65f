"""Several columns, one of few values: the rows of every value are taken together, the other letters written out."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from vff.moments.engines import dense
from vff.moments.engines.base import CHUNK, PER_FLOP, Accumulator, Arrays, Columns, Cost, Engine, Job, Jobs, Kept, Work
from vff.moments.engines.dense import WrittenLetters, halves, per_row_written
from vff.moments.rows import ColumnRows

_WRITTEN = 2**19  # letters at a time, which stay in cache
_PER_ROW_SORTED, _START_GROUP = 30e-9, 3e-5


class GroupedEngine(Engine):
    """The letters of all axes but one, summed for every value of that one."""

    name: ClassVar[str] = "grouped"
    offered: ClassVar[bool] = False

    def cost(self, work: Work) -> Cost:
        if work.alone is not None:
            return Cost(None, "one column has nothing to be grouped by")
        if all(size is None for size in work.values):
            return Cost(None, "no column has few distinct values")
        d = pivot(work.values, work.jobs)
        size, rest = work.values[d] or 0, [job.without(d) for job in work.jobs]
        per_group = _START_GROUP if len(work.columns) > 2 else 0.0
        at_values = sum(size * prod(job.shape) * PER_FLOP for job in work.jobs)
        seconds = work.n * (per_row_written(rest) + _PER_ROW_SORTED) + max(1.0, work.n / CHUNK) * size * per_group
        return Cost(seconds + at_values, f"{work.n} rows in {size} groups of equal values")

    def prepare(self, columns: Columns) -> None:
        for column in columns:
            if column.distinct is not None:
                groups(column)

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return _Groups(jobs, columns)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        return [_evaluated(columns, job, own) for job, own in zip(jobs, coefficients, strict=True)]


class _Groups(Accumulator):
    def __init__(self, jobs: Jobs, columns: Columns):
        super().__init__(jobs)
        self.pivot = pivot(Work(0, jobs, columns).values, jobs)
        column = columns[self.pivot]
        self.column = ColumnRows(column.request, column.x[:0], column.distinct)
        self.rest = [job.without(self.pivot) for job in jobs]
        self.totals = [np.zeros((column.known_values.size, prod(rest.shape))) for rest in self.rest]

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        others = [other for d, other in enumerate(columns) if d != self.pivot]
        order, begins = groups(columns[self.pivot])
        for first, last, start, stop in _runs(begins, self.rest):
            rows, ends = order[start:stop], np.clip(begins[first : last + 1], start, stop) - start
            written = WrittenLetters(others, rows, quickly=True)
            for total, rest in zip(self.totals, self.rest, strict=True):
                strengths = (weighted if rest.targets else w)[rows]
                _add_groups(total[first:last], written, rest, strengths, ends)

    def read(self) -> list[np.ndarray]:
        results = []
        for total, job, rest in zip(self.totals, self.jobs, self.rest, strict=True):
            own = job.letters[self.pivot]
            sums = total if self.column.letters_are_values(own) else self.column.from_values(own, total, 0)
            results.append(np.moveaxis(sums.reshape(-1, *rest.shape), 0, self.pivot))
        return results


def _add_groups(total: np.ndarray, written: WrittenLetters, rest: Job, strengths: np.ndarray, ends: np.ndarray) -> None:
    """Add every group's sums, (groups, letters), rows of a group being next to one another."""
    left, right = written.halves(rest)
    if right is None:
        groups = csr_array((strengths, np.arange(strengths.size), ends), (len(total), strengths.size))
        total += groups @ left
        return
    left = left * strengths[:, None]
    for g, (start, stop) in enumerate(pairwise(ends.tolist())):
        if start < stop:
            total[g] += (left[start:stop].T @ right[start:stop]).reshape(-1)


def _evaluated(columns: Columns, job: Job, coefficients: np.ndarray) -> np.ndarray:
    d = pivot(Work(0, [job], columns).values, [job])
    column, others = columns[d], [other for e, other in enumerate(columns) if e != d]
    at_values = np.ascontiguousarray(np.moveaxis(column.at_values(job.letters[d], coefficients, d), d, 0))
    rest, (order, begins) = job.without(d), groups(column)
    values = np.empty(column.t.size)
    for first, last, start, stop in _runs(begins, [rest]):
        rows, ends = order[start:stop], np.clip(begins[first : last + 1], start, stop) - start
        left, right = WrittenLetters(others, rows, quickly=True).halves(rest)
        for g, (low, high) in enumerate(pairwise(ends.tolist()), first):
            if low < high:
                some = left[low:high] @ at_values[g].reshape(left.shape[1], -1)
                total = some[:, 0] if right is None else np.einsum("np,np->n", some, right[low:high])
                values[rows[low:high]] = total
    return values


def pivot(values: Sequence[int | None], jobs: Jobs) -> int:
    """The axis to group by, given how many distinct values each has: indicators, or the one with the most letters."""
    found = [d for d, size in enumerate(values) if size is not None]
    levels = [d for d in found if jobs[0].letters[d].local == 1]
    return max(levels or found, key=lambda d: (max(job.shape[d] for job in jobs), -(values[d] or 0)))


def groups(column: ColumnRows) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of their codes, (N,), and where each code's rows begin, (D + 1,)."""
    if "order" not in column.remembered:
        codes, D = column.codes, column.known_values.size
        column.remembered["begins"] = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=D))])
        # sixteen bits are sorted by counting; last, because another thread may look for it
        column.remembered["order"] = np.argsort(codes.astype(np.uint16) if D <= 2**16 else codes, kind="stable")
    return column.remembered["order"], column.remembered["begins"]


def _runs(begins: np.ndarray, jobs: Jobs) -> Iterator[tuple[int, int, int, int]]:
    """Stretches of codes and of rows that can be written out at once; a long group comes in several."""
    most = max(64, min(_WRITTEN, dense.WRITTEN) // max(sum(halves(job)) for job in jobs))
    first, D = 0, begins.size - 1
    while first < D:
        last = max(first + 1, int(np.searchsorted(begins, begins[first] + most, side="right")) - 1)
        last = min(last, D)
        end = int(begins[last])
        for start in range(int(begins[first]), end, most):
            yield first, last, start, min(start + most, end)
        first = last
