"""Columns with missing values: rows are taken by what is missing in them, and each such part goes where it is best.

The last letter of such an axis is one where the value is missing, and the others are zero there. So the sums are of
blocks: of the rows where some axes are missing, one entry of each of these and all letters of the others. The engines
that sum the blocks never see a missing value.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from vff.moments.engines.base import (
    Accumulator,
    Arrays,
    Columns,
    Cost,
    Engine,
    Job,
    Jobs,
    Kept,
    Strengths,
    Totals,
    Work,
)

_PER_ROW = 8e-9  # to look whether it is there, and to copy it with others like it

Cheapest = Callable[[Work], tuple[Engine, Cost]]
Pattern = tuple[bool, ...]
"""Whether every axis is missing."""


class MissingEngine(Engine):
    """Rows by what is missing in them; ``cheapest`` says who sums those of a kind."""

    name: ClassVar[str] = "missing"
    offered: ClassVar[bool] = False

    def __init__(self, cheapest: Cheapest) -> None:
        self.cheapest = cheapest

    def cost(self, work: Work) -> Cost:
        gaps = _gaps(work.jobs)
        if not any(gaps):
            return Cost(None, "no column has missing values")
        there = (False,) * len(gaps)
        empty = [column.numbers(np.zeros(column.x.size, bool)) for column in work.columns]
        engine, cost = self.cheapest(Work(work.n, _rest(work.jobs, there), empty, work.most_cells))
        seconds = (cost.seconds or 0.0) + work.n * _PER_ROW * len(gaps) * (1 + any(job.targets for job in work.jobs))
        return Cost(seconds, f"rows by what is missing in {sum(gaps)} column(s), beside {engine.name}: {cost.reason}")

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return _Patterns(jobs, columns, self.cheapest)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        values = [np.empty(columns[0].x.size) for _ in jobs]
        for pattern, rows in _patterns(columns, jobs):
            own = [coefficient[_block(pattern, job)] for job, coefficient in zip(jobs, coefficients, strict=True)]
            if all(pattern):
                found = [np.full(np.count_nonzero(rows), float(one)) for one in own]
            else:
                some, rest = _others(columns, pattern, rows), [Job(job.letters) for job in _rest(jobs, pattern)]
                engine, _ = self.cheapest(Work(some[0].x.size, rest, some))
                engine.prepare(some)
                tables = None if kept is None else kept.setdefault((pattern, engine.name), {})
                found = engine.evaluate(some, rest, own, tables)
            for value, one in zip(values, found, strict=True):
                value[rows] = one
        return values


def _gaps(jobs: Jobs) -> Pattern:
    """Which axes may be missing: the letters of every job say the same."""
    return tuple(letters.numbers is not letters for letters in jobs[0].letters)


def _patterns(columns: Columns, jobs: Jobs) -> Iterator[tuple[Pattern, np.ndarray]]:
    """What is missing in rows, and in which of them."""
    gaps = _gaps(jobs)
    code = np.zeros(columns[0].x.size, np.intp)
    for d, column in enumerate(columns):
        if gaps[d]:
            code += column.missing.astype(np.intp) << d
    for found in np.unique(code).tolist():
        yield tuple(bool(found >> d & 1) for d in range(len(gaps))), code == found


def _block(pattern: Pattern, job: Job) -> tuple[Any, ...]:
    """Where the sums of such rows stand: the last letter of what is missing, all but the last of what might be."""
    return tuple(
        -1 if gone else slice(0, letters.numbers.size) for gone, letters in zip(pattern, job.letters, strict=True)
    )


def _rest(jobs: Jobs, pattern: Pattern) -> list[Job]:
    """Jobs over the axes that are there."""
    return [
        Job(tuple(own.numbers for own, gone in zip(job.letters, pattern, strict=True) if not gone), job.targets)
        for job in jobs
    ]


def _others(columns: Columns, pattern: Pattern, rows: np.ndarray) -> Columns:
    return [column.numbers(rows) for column, gone in zip(columns, pattern, strict=True) if not gone]


class _Patterns(Accumulator):
    """An accumulator for everything that was missing together."""

    def __init__(self, jobs: Jobs, columns: Columns, cheapest: Cheapest):
        super().__init__(jobs)
        self.cheapest, self.inner = cheapest, dict[Pattern, Accumulator]()
        self.empty = columns
        self.wholes = np.zeros(2)
        """Weights and weighted targets of rows where every axis is missing."""

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        for pattern, rows in _patterns(columns, self.jobs):
            own = w[rows], weighted[rows]
            if all(pattern):
                self.wholes += [part.sum() for part in own]
                continue
            some = _others(columns, pattern, rows)
            if pattern not in self.inner:
                self.inner[pattern] = self._chosen(pattern, some)
            self.inner[pattern].add(some, *own)

    def _chosen(self, pattern: Pattern, some: Columns) -> Accumulator:
        """The best for the first rows; of one axis, for every chunk, unless sums wait for the last row."""
        jobs = _rest(self.jobs, pattern)
        work = Work(some[0].x.size, jobs, some)
        engine, _ = self.cheapest(work)
        if work.alone is None or engine.by_value:
            return engine.accumulator(jobs, _others(self.empty, pattern, np.zeros(0, bool)))
        return Totals(jobs, self._best)

    def _best(self, columns: Columns, jobs: Jobs, strengths: Sequence[Strengths]) -> list[list[np.ndarray]]:
        return self.cheapest(Work(strengths[0][0].size, jobs, columns))[0].sum_each(columns, jobs, strengths)

    def read(self) -> list[np.ndarray]:
        results = [np.zeros(job.shape) for job in self.jobs]
        for pattern, sums in self.inner.items():
            for job, total, own in zip(self.jobs, results, sums.read(), strict=True):
                total[_block(pattern, job)] += own
        if all(_gaps(self.jobs)):
            for job, total in zip(self.jobs, results, strict=True):
                total[(-1,) * total.ndim] += self.wholes[int(job.targets)]
        return results
