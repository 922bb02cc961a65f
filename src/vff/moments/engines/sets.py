"""Several columns at once: sums over rows of products of letters, one letter per column, and the transpose.

What is asked for is a list of ``Job``: an alphabet per column, and whether the weights or the weighted targets are
summed. A *tally* takes rows chunk by chunk and answers at the end; a *reader* is its transpose, coefficients to rows.

``table`` counts rows per combination of distinct values and meets the letters when all rows are read; ``nufft`` spreads
rows on a lattice instead and then does the same (``spreading``); ``grouped`` takes the rows of every value of one
column together and writes out the letters of the others; ``dense`` writes all letters out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from vff.basis import Letters, TrigonometricLetters
from vff.linalg import product_rows
from vff.moments.engines.nufft import interpolate, spread
from vff.moments.engines.spreading import Ruler
from vff.moments.rows import ColumnRows

EPSILON = 1e-12  # of the spreading
_WRITTEN = 2**22  # letters written out at a time


@dataclass(frozen=True)
class Job:
    """Letters of every column, and what is summed against their products."""

    alphabets: tuple[Letters, ...]
    targets: bool = False
    """Whether the weighted targets are summed, or the weights."""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(alphabet.size for alphabet in self.alphabets)


class SetTally(ABC):
    """Sums for the jobs of one set of columns."""

    def __init__(self, jobs: Sequence[Job]):
        self.jobs = tuple(jobs)
        self.both = any(job.targets for job in jobs)

    @abstractmethod
    def add(self, columns: Sequence[ColumnRows], w: np.ndarray, weighted: np.ndarray) -> None:
        """Take in a chunk of rows, with their weights and weighted targets."""

    @abstractmethod
    def read(self) -> list[np.ndarray]:
        """The sums, one tensor per job."""


def contract(tensor: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Apply a matrix (to, from) along every axis, those that shrink it most first."""
    order = sorted(range(len(matrices)), key=lambda d: matrices[d].shape[0] / matrices[d].shape[1])
    for d in order:
        tensor = np.moveaxis(np.tensordot(matrices[d], tensor, axes=(1, d)), 0, d)
    return tensor


class TableTally(SetTally):
    """Weights per combination of distinct values."""

    def __init__(self, jobs: Sequence[Job], columns: Sequence[ColumnRows]):
        super().__init__(jobs)
        self.columns = columns
        self.shape = tuple(column.codebook.size for column in columns)
        self.tables = [np.zeros(prod(self.shape)) for _ in range(1 + self.both)]

    def add(self, columns: Sequence[ColumnRows], w: np.ndarray, weighted: np.ndarray) -> None:
        cells = _cells(columns)
        for table, strengths in zip(self.tables, (w, weighted), strict=False):
            _tally(table, cells, strengths)

    def read(self) -> list[np.ndarray]:
        tables = [table.reshape(self.shape) for table in self.tables]
        return [
            contract(tables[int(job.targets)], [letters.T for letters in letters_of(self.columns, job)])
            for job in self.jobs
        ]


def letters_of(columns: Sequence[ColumnRows], job: Job) -> list[np.ndarray]:
    """Letters of every column at its values, (D, size) each."""
    return [column.letters(alphabet) for column, alphabet in zip(columns, job.alphabets, strict=True)]


def _cells(columns: Sequence[ColumnRows]) -> np.ndarray:
    """Number of every row's combination of values, (N,)."""
    cells = columns[0].codes
    for column in columns[1:]:
        cells = cells * column.codebook.size + column.codes
    return cells


def _tally(table: np.ndarray, cells: np.ndarray, strengths: np.ndarray) -> None:
    """Add strengths to the cells of a flat table."""
    same = strengths.strides == (0,) and strengths.size
    if table.size > 4 * cells.size:
        np.add.at(table, cells, strengths[0] if same else strengths)
    elif same:
        table += strengths[0] * np.bincount(cells, minlength=table.size)
    else:
        table += np.bincount(cells, strengths, table.size)


def table_of(columns: Sequence[ColumnRows], job: Job, coefficients: np.ndarray) -> np.ndarray:
    """A function of the letters at every combination of values, flat."""
    return contract(coefficients, letters_of(columns, job)).reshape(-1)


def look_up(columns: Sequence[ColumnRows], table: np.ndarray) -> np.ndarray:
    """Entries of such a table at the rows."""
    return table[_cells(columns)]


def table_reader(columns: Sequence[ColumnRows], job: Job, coefficients: np.ndarray) -> np.ndarray:
    return look_up(columns, table_of(columns, job, coefficients))


@lru_cache(maxsize=64)
def _ruler(K: int) -> Ruler:
    return Ruler(K, EPSILON)


@lru_cache(maxsize=64)
def _node_values(K: int, alphabet: TrigonometricLetters) -> np.ndarray:
    """Letters at the nodes of the ruler for harmonics up to K, (n, size)."""
    return _ruler(K).letters(alphabet)


def highest(alphabets: Sequence[Letters]) -> int:
    """The highest harmonic that the letters of one column hold, products with edge functions included."""
    return max(alphabet.band for alphabet in alphabets if alphabet.band is not None)


def nodes_for(K: int) -> int:
    """Nodes of the lattice along a column with harmonics up to K."""
    return _ruler(K).n


class SpreadTally(SetTally):
    """Weights and weighted targets on a lattice; two real numbers travel in one complex one."""

    def __init__(self, jobs: Sequence[Job], columns: Sequence[ColumnRows]):
        super().__init__(jobs)
        by_column = zip(*(job.alphabets for job in jobs), strict=True)
        self.degrees = [highest(alphabets) for alphabets in by_column]
        self.rulers = [_ruler(K) for K in self.degrees]
        self.lattice = np.zeros(tuple(ruler.n for ruler in self.rulers), complex)

    def add(self, columns: Sequence[ColumnRows], w: np.ndarray, weighted: np.ndarray) -> None:
        strengths = np.empty(w.size, complex)
        strengths.real, strengths.imag = w, weighted if self.both else 0.0
        points = [ruler.reach * column.t for ruler, column in zip(self.rulers, columns, strict=True)]
        self.lattice += spread(points, strengths[None], self.lattice.shape, EPSILON)[0]

    def read(self) -> list[np.ndarray]:
        parts = [np.ascontiguousarray(np.real(self.lattice)), np.ascontiguousarray(np.imag(self.lattice))]
        return [contract(parts[int(job.targets)], self._matrices(job)) for job in self.jobs]

    def _matrices(self, job: Job) -> list[np.ndarray]:
        both = zip(self.degrees, job.alphabets, strict=True)
        return [_node_values(K, own).T for K, alphabet in both if (own := alphabet.trigonometric) is not None]


def spread_reader(columns: Sequence[ColumnRows], job: Job, coefficients: np.ndarray) -> np.ndarray:
    degrees = [highest([alphabet]) for alphabet in job.alphabets]
    matrices = [
        _node_values(K, own)
        for K, alphabet in zip(degrees, job.alphabets, strict=True)
        if (own := alphabet.trigonometric) is not None
    ]
    points = [_ruler(K).reach * column.t for K, column in zip(degrees, columns, strict=True)]
    values = contract(coefficients, matrices).astype(complex)
    return interpolate(points, values[None], EPSILON)[0].real


class WrittenTally(SetTally):
    """All letters written out, and one matrix product per job: half of the columns against the other half."""

    def __init__(self, jobs: Sequence[Job], columns: Sequence[ColumnRows]):
        super().__init__(jobs)
        self.totals = [np.zeros(halves(job)) for job in self.jobs]

    def add(self, columns: Sequence[ColumnRows], w: np.ndarray, weighted: np.ndarray) -> None:
        for rows in _stretches(w.size, self.jobs):
            for total, left, right, job in self._written(columns, rows):
                strengths = (weighted if job.targets else w)[rows]
                total += (left * strengths[:, None]).T @ right

    def _written(
        self, columns: Sequence[ColumnRows], rows: slice
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, Job]]:
        written = _Written(columns, rows)
        for total, job in zip(self.totals, self.jobs, strict=True):
            yield total, *written.halves(job), job

    def read(self) -> list[np.ndarray]:
        return [total.reshape(job.shape) for total, job in zip(self.totals, self.jobs, strict=True)]


def _split(job: Job) -> int:
    """How many columns go to the left half: so that its size is closest to that of the right."""
    sizes = job.shape
    return min(range(1, len(sizes)), key=lambda k: prod(sizes[:k]) + prod(sizes[k:]))


def halves(job: Job) -> tuple[int, int]:
    """Letters of the two halves of the columns."""
    k = _split(job)
    return prod(job.shape[:k]), prod(job.shape[k:])


def _stretches(N: int, jobs: Sequence[Job]) -> Iterator[slice]:
    step = max(64, _WRITTEN // max(sum(halves(job)) for job in jobs))
    return (slice(start, min(start + step, N)) for start in range(0, N, step))


class _Written:
    """Letters of a stretch of rows, each alphabet of each column once."""

    def __init__(self, columns: Sequence[ColumnRows], rows: slice | np.ndarray):
        self.columns, self.rows = columns, rows
        self.whole = isinstance(rows, slice) and rows == slice(0, columns[0].x.size)
        self.letters: dict[tuple[int, Letters], np.ndarray] = {}

    def column(self, d: int, alphabet: Letters) -> np.ndarray:
        if self.whole:
            return self.columns[d].written(alphabet)
        if (d, alphabet) not in self.letters:
            self.letters[d, alphabet] = alphabet.evaluate(self.columns[d].t[self.rows])
        return self.letters[d, alphabet]

    def halves(self, job: Job) -> tuple[np.ndarray, np.ndarray]:
        columns, k = [self.column(d, alphabet) for d, alphabet in enumerate(job.alphabets)], _split(job)
        return product_rows(columns[:k]), product_rows(columns[k:])


def written_reader(columns: Sequence[ColumnRows], job: Job, coefficients: np.ndarray) -> np.ndarray:
    values, N = np.empty(columns[0].t.size), columns[0].t.size
    for rows in _stretches(N, [job]):
        left, right = _Written(columns, rows).halves(job)
        values[rows] = np.einsum("np,np->n", left @ coefficients.reshape(left.shape[1], -1), right)
    return values


class GroupedTally(SetTally):
    """The letters of all columns but one, summed for every value of that one."""

    def __init__(self, jobs: Sequence[Job], columns: Sequence[ColumnRows]):
        super().__init__(jobs)
        self.pivot = _pivot(columns, jobs)
        self.column = columns[self.pivot]
        self.rest = [without(job, self.pivot) for job in jobs]
        self.totals = [np.zeros((self.column.codebook.size, prod(rest.shape))) for rest in self.rest]

    def add(self, columns: Sequence[ColumnRows], w: np.ndarray, weighted: np.ndarray) -> None:
        column = columns[self.pivot]
        others = [other for d, other in enumerate(columns) if d != self.pivot]
        order, begins = groups(column)
        for first, last, start, stop in _runs(begins, self.rest):
            rows, ends = order[start:stop], np.clip(begins[first : last + 1], start, stop) - start
            written = _Written(others, rows)
            for total, rest in zip(self.totals, self.rest, strict=True):
                strengths = (weighted if rest.targets else w)[rows]
                _add_groups(total[first:last], written, rest, strengths, ends)

    def read(self) -> list[np.ndarray]:
        results = []
        for total, job, rest in zip(self.totals, self.jobs, self.rest, strict=True):
            letters = self.column.letters(job.alphabets[self.pivot]).T @ total
            results.append(np.moveaxis(letters.reshape(-1, *rest.shape), 0, self.pivot))
        return results


def _add_groups(total: np.ndarray, written: _Written, rest: Job, strengths: np.ndarray, ends: np.ndarray) -> None:
    """Add every group's sums, (groups, letters), rows of a group being next to one another."""
    if len(rest.alphabets) == 1:
        letters = written.column(0, rest.alphabets[0]) * strengths[:, None]
        occupied = np.flatnonzero(np.diff(ends))
        if occupied.size:
            total[occupied] += np.add.reduceat(letters, ends[occupied], axis=0)
        return
    left, right = written.halves(rest)
    left = left * strengths[:, None]
    for g, (start, stop) in enumerate(pairwise(ends.tolist())):
        if start < stop:
            total[g] += (left[start:stop].T @ right[start:stop]).reshape(-1)


def pivot(values: Sequence[int | None], jobs: Sequence[Job]) -> int:
    """The column to group by, given how many distinct values each has: levels, or the one with the most letters."""
    found = [d for d, size in enumerate(values) if size is not None]
    levels = [d for d in found if jobs[0].alphabets[d].local == 1]
    return max(levels or found, key=lambda d: (max(job.shape[d] for job in jobs), -(values[d] or 0)))


def _pivot(columns: Sequence[ColumnRows], jobs: Sequence[Job]) -> int:
    return pivot([None if column.book is None else column.book.size for column in columns], jobs)


def without(job: Job, d: int) -> Job:
    return Job((*job.alphabets[:d], *job.alphabets[d + 1 :]), job.targets)


def groups(column: ColumnRows) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of their codes, (N,), and where each code's rows begin, (D + 1,)."""
    if "order" not in column.remembered:
        codes, D = column.codes, column.codebook.size
        column.remembered["begins"] = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=D))])
        # sixteen bits are sorted by counting; last, because another thread may look for it
        column.remembered["order"] = np.argsort(codes.astype(np.uint16) if D <= 2**16 else codes, kind="stable")
    return column.remembered["order"], column.remembered["begins"]


def _runs(begins: np.ndarray, jobs: Sequence[Job]) -> Iterator[tuple[int, int, int, int]]:
    """Stretches of codes and of rows that can be written out at once; a long group comes in several."""
    most = max(
        64, _WRITTEN // max(max(sum(halves(job)) if len(job.alphabets) > 1 else job.shape[0], 1) for job in jobs)
    )
    first, D = 0, begins.size - 1
    while first < D:
        last = max(first + 1, int(np.searchsorted(begins, begins[first] + most, side="right")) - 1)
        last = min(last, D)
        end = int(begins[last])
        for start in range(int(begins[first]), end, most):
            yield first, last, start, min(start + most, end)
        first = last


def grouped_reader(columns: Sequence[ColumnRows], job: Job, coefficients: np.ndarray) -> np.ndarray:
    d = _pivot(columns, [job])
    column, others = columns[d], [other for e, other in enumerate(columns) if e != d]
    at_values = np.tensordot(column.letters(job.alphabets[d]), coefficients, axes=(1, d))
    rest, (order, begins) = without(job, d), groups(column)
    values = np.empty(column.t.size)
    for first, last, start, stop in _runs(begins, [rest]):
        rows, ends = order[start:stop], np.clip(begins[first : last + 1], start, stop) - start
        written = _Written(others, rows)
        alone = len(rest.alphabets) == 1
        left, right = (written.column(0, rest.alphabets[0]), None) if alone else written.halves(rest)
        for g, (low, high) in enumerate(pairwise(ends.tolist()), first):
            if low < high:
                some = left[low:high] @ at_values[g].reshape(left.shape[1], -1)
                total = some[:, 0] if right is None else np.einsum("np,np->n", some, right[low:high])
                values[rows[low:high]] = total
    return values


TALLIES: dict[str, type] = {
    "dense": WrittenTally,
    "nufft": SpreadTally,
    "table": TableTally,
    "grouped": GroupedTally,
}
READERS = {"dense": written_reader, "nufft": spread_reader, "table": table_reader, "grouped": grouped_reader}
