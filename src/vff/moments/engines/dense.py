"""The reference: letters written out, in chunks, and BLAS."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import ClassVar

import numpy as np

from vff.basis.protocol import Letters
from vff.linalg import product_rows
from vff.moments.engines.base import (
    PER_FLOP,
    PER_LETTER,
    PER_PRODUCT,
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

WRITTEN = 2**22  # letters of several columns written out at a time, and half as many of one


class DenseEngine(Engine):
    """Any letters, at any rows."""

    name: ClassVar[str] = "dense"
    parallel: ClassVar[bool] = True

    def cost(self, work: Work) -> Cost:
        if work.alone is None:
            shape = " x ".join(str(size) for size in max((job.shape for job in work.jobs), key=prod))
            return Cost(work.n * per_row_written(work.jobs), f"{shape} letters in {work.n} rows are little work")
        if work.alone.request.domain.discrete:
            return Cost(None, "levels are counted")
        if work.n == 0:
            return Cost(0.0, "no rows", only=True)
        letters = work.alone.basis.double.size
        return Cost(work.n * letters * PER_LETTER, f"{work.n} rows x {letters} letters is little work")

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return Totals(jobs, _summed)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        values = [np.empty(columns[0].x.size) for _ in jobs]
        for rows in _stretches(columns[0].x.size, jobs):
            written = WrittenLetters(columns, rows)
            for value, job, own in zip(values, jobs, coefficients, strict=True):
                left, right = written.halves(job)
                several = right is not None
                own = own.reshape(left.shape[1], -1) if several else own
                value[rows] = np.einsum("np,np->n", left @ own, right) if several else left @ own
        return values


def _summed(columns: Columns, jobs: Jobs, strengths: Sequence[Strengths]) -> list[list[np.ndarray]]:
    """All letters written out, and one matrix product per job: half of the axes against the other half."""
    totals = [[np.zeros(halves(job)) for job in jobs] for _ in strengths]
    for rows in _stretches(strengths[0][0].size, jobs):
        written = WrittenLetters(columns, rows)
        for number, job in enumerate(jobs):
            left, right = written.halves(job)
            for own, (w, weighted) in zip(totals, strengths, strict=True):
                some = (weighted if job.targets else w)[rows]
                own[number] += some @ left if right is None else (left * some[:, None]).T @ right
    return [[total.reshape(job.shape) for total, job in zip(own, jobs, strict=True)] for own in totals]


def _split(job: Job) -> int:
    """How many axes go to the left half: so that its size is closest to that of the right."""
    sizes = job.shape
    return min(range(1, len(sizes)), key=lambda k: prod(sizes[:k]) + prod(sizes[k:]), default=1)


def halves(job: Job) -> tuple[int, ...]:
    """Letters of the two halves of the axes; of one axis, its letters."""
    k = _split(job)
    return (prod(job.shape[:k]), prod(job.shape[k:])) if k < len(job.shape) else job.shape


def _stretches(N: int, jobs: Jobs) -> Iterator[slice]:
    several = len(jobs[0].letters) > 1
    step = max(64, (WRITTEN if several else WRITTEN // 2) // max(sum(halves(job)) for job in jobs))
    return (slice(start, min(start + step, N)) for start in range(0, N, step))


class WrittenLetters:
    """Letters of a stretch of rows, each of each axis once."""

    def __init__(self, columns: Columns, rows: slice | np.ndarray, *, quickly: bool = False):
        self.columns, self.rows, self.quickly = columns, rows, quickly
        self.whole = isinstance(rows, slice) and rows == slice(0, columns[0].x.size)
        self.found: dict[tuple[int, Letters], np.ndarray] = {}

    def column(self, d: int, letters: Letters) -> np.ndarray:
        if self.whole:
            return self.columns[d].written(letters)
        if (d, letters) not in self.found:
            evaluate = letters.evaluate_by_products if self.quickly else letters.evaluate
            self.found[d, letters] = evaluate(self.columns[d].t[self.rows])
        return self.found[d, letters]

    def halves(self, job: Job) -> tuple[np.ndarray, np.ndarray | None]:
        """Products of the letters of either half of the axes; of one axis there is no other half."""
        columns, k = [self.column(d, letters) for d, letters in enumerate(job.letters)], _split(job)
        return product_rows(columns[:k]), product_rows(columns[k:]) if k < len(columns) else None


def per_row_written(jobs: Jobs) -> float:
    """Seconds per row to write letters out and multiply them."""
    every = {(d, letters) for job in jobs for d, letters in enumerate(job.letters)}
    sides = [halves(job) for job in jobs]
    multiplied = sum(sum(side) * PER_PRODUCT + (len(side) > 1 and prod(side)) * PER_FLOP for side in sides)
    return sum(letters.size for _, letters in every) * PER_LETTER + multiplied
