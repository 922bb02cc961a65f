"""Two columns of many levels: the pairs of levels that rows have, and no others. Exact."""

from math import prod
from typing import ClassVar

import numpy as np
from scipy import sparse

from vff.linalg import SparseBlock
from vff.moments import gram
from vff.moments.engines.base import Accumulator, Arrays, Columns, Cost, Engine, Jobs, Kept, Work

_BUFFER = 2**21  # rows that wait at least, before they are counted
_WAITING = 0.5  # of the pairs there are, rows that may wait


class PairsEngine(Engine):
    """A contingency table of which only cells with rows are kept."""

    name: ClassVar[str] = "pairs"
    by_value: ClassVar[bool] = True
    offered: ClassVar[bool] = False

    def cost(self, work: Work) -> Cost:
        if not can(work.jobs, work.columns):
            return Cost(None, "two columns of levels are needed")
        if prod(column.known_values.size for column in work.columns) < gram.SPARSE_FROM:
            return Cost(None, "a table of all pairs of levels is small")
        sizes = " x ".join(str(column.known_values.size) for column in work.columns)
        return Cost(0.0, f"the pairs of {sizes} levels that {work.n} rows have", only=True)

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return _Pairs(jobs, columns)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        one, other = (column.codes for column in columns)
        return [own[one, other] for own in coefficients]


def can(jobs: Jobs, columns: Columns) -> bool:
    """Whether all letters are levels of two columns, and weights are all that is summed."""
    if len(columns) != 2 or any(job.targets for job in jobs):
        return False
    return all(
        column.distinct is not None
        and gram.are_levels(letters, column.request.domain)
        and letters.size == column.known_values.size
        for job in jobs
        for letters, column in zip(job.letters, columns, strict=True)
    )


class _Pairs(Accumulator):
    """Weights of pairs, by rows of a sparse matrix; rows wait until they are many."""

    def __init__(self, jobs: Jobs, columns: Columns):
        super().__init__(jobs)
        self.shape = tuple(column.known_values.size for column in columns)
        self.totals = [sparse.csr_array(self.shape) for _ in range(1 + self.both)]
        self.waiting: list[tuple[np.ndarray, ...]] = []
        self.rows = 0

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        one, other = (column.codes.astype(np.int32) for column in columns)
        self.waiting.append((one, other, *(np.array(own) for own in (w, weighted)[: len(self.totals)])))
        self.rows += w.size
        if self.rows >= max(_BUFFER, _WAITING * self.totals[0].nnz):
            self._count()

    def _count(self) -> None:
        if not self.waiting:
            return
        one, other, *strengths = (np.concatenate(parts) for parts in zip(*self.waiting, strict=True))
        self.waiting, self.rows = [], 0
        for k, own in enumerate(strengths):
            self.totals[k] = self.totals[k] + sparse.coo_array((own, (one, other)), shape=self.shape).tocsr()

    def read(self) -> list[SparseBlock]:  # pyright: ignore[reportIncompatibleMethodOverride]  # used like an array
        self._count()
        found = [SparseBlock.of(total) for total in self.totals]
        return [found[int(job.targets)] for job in self.jobs]
