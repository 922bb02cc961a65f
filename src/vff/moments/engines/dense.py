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
    ColumnAccumulator,
    Columns,
    Cost,
    Engine,
    Job,
    Jobs,
    Kept,
    Work,
)
from vff.moments.rows import ColumnRows

_CHUNK_NUMBERS = 2**21  # 16 MiB of letters at a time
WRITTEN = 2**22  # letters of several columns written out at a time


class DenseEngine(Engine):
    """Any letters, at any rows."""

    name: ClassVar[str] = "dense"
    parallel: ClassVar[bool] = True

    def cost(self, work: Work) -> Cost:
        if work.alone is not None:
            return _cost_alone(work.n, work.alone)
        shape = " x ".join(str(size) for size in max((job.shape for job in work.jobs), key=prod))
        return Cost(work.n * per_row_written(work.jobs), f"{shape} letters in {work.n} rows are little work")

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return ColumnAccumulator(jobs, _summed) if len(columns) == 1 else _Written(jobs)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        if len(columns) == 1:
            return _evaluated(columns[0], [job.letters[0] for job in jobs], coefficients)
        return [_products(columns, job, own) for job, own in zip(jobs, coefficients, strict=True)]


def _cost_alone(n: int, column: ColumnRows) -> Cost:
    if column.request.domain.discrete:
        return Cost(None, "levels are counted")
    letters = column.basis.double.size
    if n == 0:
        return Cost(0.0, "no rows", only=True)
    return Cost(n * letters * PER_LETTER, f"{n} rows x {letters} letters is little work")


def _chunks(N: int, every: Sequence[Letters]) -> list[slice]:
    step = max(64, _CHUNK_NUMBERS // max(letters.size for letters in every))
    return [slice(start, start + step) for start in range(0, N, step)]


def _summed(column: ColumnRows, every: Sequence[Letters], strengths: Arrays) -> list[np.ndarray]:
    chunks = _chunks(column.x.size, every)
    if len(chunks) <= 1:
        return [own @ column.written(letters) for letters, own in zip(every, strengths, strict=True)]
    totals = [np.zeros(letters.size) for letters in every]
    for rows in chunks:
        for total, letters, own in zip(totals, every, strengths, strict=True):
            total += own[rows] @ letters.evaluate(column.t[rows])
    return totals


def _evaluated(column: ColumnRows, every: Sequence[Letters], coefficients: Arrays) -> list[np.ndarray]:
    chunks = _chunks(column.x.size, every)
    if len(chunks) <= 1:
        return [column.written(letters) @ own for letters, own in zip(every, coefficients, strict=True)]
    values = [np.empty(column.x.size) for _ in every]
    for rows in chunks:
        for value, letters, own in zip(values, every, coefficients, strict=True):
            value[rows] = letters.evaluate(column.t[rows]) @ own
    return values


class _Written(Accumulator):
    """All letters written out, and one matrix product per job: half of the axes against the other half."""

    def __init__(self, jobs: Jobs):
        super().__init__(jobs)
        self.totals = [np.zeros(halves(job)) for job in self.jobs]

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        for rows in _stretches(w.size, self.jobs):
            written = WrittenLetters(columns, rows)
            for total, job in zip(self.totals, self.jobs, strict=True):
                left, right = written.halves(job)
                total += (left * (weighted if job.targets else w)[rows, None]).T @ right

    def read(self) -> list[np.ndarray]:
        return [total.reshape(job.shape) for total, job in zip(self.totals, self.jobs, strict=True)]


def _products(columns: Columns, job: Job, coefficients: np.ndarray) -> np.ndarray:
    N = columns[0].t.size
    values = np.empty(N)
    for rows in _stretches(N, [job]):
        left, right = WrittenLetters(columns, rows).halves(job)
        values[rows] = np.einsum("np,np->n", left @ coefficients.reshape(left.shape[1], -1), right)
    return values


def _split(job: Job) -> int:
    """How many axes go to the left half: so that its size is closest to that of the right."""
    sizes = job.shape
    return min(range(1, len(sizes)), key=lambda k: prod(sizes[:k]) + prod(sizes[k:]))


def halves(job: Job) -> tuple[int, int]:
    """Letters of the two halves of the axes."""
    k = _split(job)
    return prod(job.shape[:k]), prod(job.shape[k:])


def _stretches(N: int, jobs: Jobs) -> Iterator[slice]:
    step = max(64, WRITTEN // max(sum(halves(job)) for job in jobs))
    return (slice(start, min(start + step, N)) for start in range(0, N, step))


class WrittenLetters:
    """Letters of a stretch of rows, each of each axis once."""

    def __init__(self, columns: Columns, rows: slice | np.ndarray):
        self.columns, self.rows = columns, rows
        self.whole = isinstance(rows, slice) and rows == slice(0, columns[0].x.size)
        self.found: dict[tuple[int, Letters], np.ndarray] = {}

    def column(self, d: int, letters: Letters) -> np.ndarray:
        if self.whole:
            return self.columns[d].written(letters)
        if (d, letters) not in self.found:
            self.found[d, letters] = letters.evaluate(self.columns[d].t[self.rows])
        return self.found[d, letters]

    def halves(self, job: Job) -> tuple[np.ndarray, np.ndarray]:
        columns, k = [self.column(d, letters) for d, letters in enumerate(job.letters)], _split(job)
        return product_rows(columns[:k]), product_rows(columns[k:])


def per_row_written(jobs: Jobs) -> float:
    """Seconds per row to write letters out and multiply them."""
    every = {(d, letters) for job in jobs for d, letters in enumerate(job.letters)}
    written = sum(letters.size for _, letters in every) * PER_LETTER
    if len(jobs[0].letters) == 1:
        return written + sum(job.shape[0] for job in jobs) * PER_PRODUCT
    sides = [halves(job) for job in jobs]
    return written + sum(sum(side) * PER_PRODUCT + prod(side) * PER_FLOP for side in sides)
