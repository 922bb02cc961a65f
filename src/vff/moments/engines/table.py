"""Few distinct values: sums per value, or per combination of values, which meet the letters at the end. Exact."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from vff.basis.protocol import Letters
from vff.moments.engines.base import (
    LARGEST_CONTINGENCY,
    PER_LETTER,
    Accumulator,
    Arrays,
    Choice,
    Columns,
    Cost,
    Engine,
    Job,
    Jobs,
    Kept,
    Work,
    contraction,
)
from vff.moments.rows import ColumnRows

_PER_ROW = 25e-9
_PER_ROW_CELL, _PER_CELL = 5e-9, 4e-9


class TableEngine(Engine):
    """A contingency table; of one column, a count per value."""

    name: ClassVar[str] = "table"
    by_value: ClassVar[bool] = True

    def cost(self, work: Work) -> Cost:
        if work.alone is not None and work.alone.request.domain.discrete:
            return Cost(0.0, f"{work.alone.basis.size} levels in {work.n} rows", only=True)
        values = [size for size in work.values if size is not None]
        if len(values) < len(work.columns):
            return Cost(None, "some columns have too many distinct values")
        if work.alone is not None:
            letters = work.alone.basis.double.size
            seconds = work.n * _PER_ROW + values[0] * letters * PER_LETTER
            return Cost(seconds, f"{values[0]} distinct values in {work.n} rows")
        if prod(values) > work.most_cells and not all(own.local == 1 for job in work.jobs for own in job.letters):
            return Cost(None, f"{prod(values)} combinations of values are too many")
        tables = 1 + any(job.targets for job in work.jobs)
        seconds = work.n * _PER_ROW_CELL * tables + prod(values) * _PER_CELL + contraction(work.jobs, values)
        return Cost(seconds, f"a contingency table of {' x '.join(map(str, values))} cells")

    def requested(self, work: Work) -> Choice:
        cells = prod(size for size in work.values if size is not None)
        if work.alone is None and cells > LARGEST_CONTINGENCY:
            raise ValueError(
                f"engine='table' counts rows per combination of values, and {len(work.columns)} of the columns have "
                f"{cells:.3g} of them where at most {LARGEST_CONTINGENCY} fit; use engine='auto', or round these "
                "columns"
            )
        return super().requested(work)

    def cells(self, work: Work) -> int:
        return prod(size or 0 for size in work.values)

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return _Counts(jobs, columns)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        cells, tables = _cells(columns), {} if kept is None else kept
        for number, (job, own) in enumerate(zip(jobs, coefficients, strict=True)):
            if number not in tables:
                tables[number] = _at_values(columns, job, own)
        return [tables[number][cells] for number in range(len(jobs))]


def _at_values(columns: Columns, job: Job, coefficients: np.ndarray) -> np.ndarray:
    """A function of the letters at every combination of values, flat."""
    return combined(coefficients, columns, job.letters).reshape(-1)


def combined(tensor: np.ndarray, columns: Columns, letters: Sequence[Letters], *, back: bool = False) -> np.ndarray:
    """Axes of coefficients of letters to values, or ``back`` from sums over values to letters; what shrinks first."""

    def growth(d: int) -> float:
        ratio = columns[d].known_values.size / letters[d].size
        return 1.0 / ratio if back and ratio else ratio

    for d in sorted(range(len(columns)), key=growth):
        if not back:
            tensor = columns[d].at_values(letters[d], tensor, d)
        elif not columns[d].letters_are_values(letters[d]):
            tensor = columns[d].from_values(letters[d], tensor, d)
    return tensor


class _Counts(Accumulator):
    """Weights per combination of distinct values."""

    def __init__(self, jobs: Jobs, columns: Columns):
        super().__init__(jobs)
        self.columns = [ColumnRows(column.request, column.x[:0], column.distinct) for column in columns]
        self.shape = tuple(column.known_values.size for column in columns)
        self.tables = [np.zeros(prod(self.shape)) for _ in range(1 + self.both)]

    def add(self, columns: Columns, w: np.ndarray, weighted: np.ndarray) -> None:
        cells = _cells(columns)
        for table, strengths in zip(self.tables, (w, weighted), strict=False):
            _count(table, cells, strengths)

    def read(self) -> list[np.ndarray]:
        tables = [table.reshape(self.shape) for table in self.tables]
        return [self._contracted(job, tables[int(job.targets)]) for job in self.jobs]

    def _contracted(self, job: Job, table: np.ndarray) -> np.ndarray:
        return combined(table, self.columns, job.letters, back=True)


def _cells(columns: Columns) -> np.ndarray:
    """Number of every row's combination of values, (N,)."""
    cells = columns[0].codes
    for column in columns[1:]:
        cells = cells * column.known_values.size + column.codes
    return cells


def _count(table: np.ndarray, cells: np.ndarray, strengths: np.ndarray) -> None:
    """Add strengths to the cells of a flat table."""
    same = strengths.strides == (0,) and strengths.size
    if table.size > 4 * cells.size:
        np.add.at(table, cells, strengths[0] if same else strengths)
    elif same:
        table += strengths[0] * np.bincount(cells, minlength=table.size)
    else:
        table += np.bincount(cells, strengths, table.size)
