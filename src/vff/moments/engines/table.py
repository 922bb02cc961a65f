"""Columns with few distinct values: sum the strengths per value, then work on the values alone. Exact."""

from collections.abc import Sequence

import numpy as np

from vff.moments.engines.base import Engine, Job
from vff.moments.engines.dense import evaluate_at, sum_at
from vff.moments.rows import ColumnRows


def _sum_letters(rows: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
    collapsed = [(alphabet, np.bincount(rows.codes, strengths, rows.codebook.size)) for alphabet, strengths in jobs]
    return sum_at(rows.values, collapsed)


def _evaluate_letters(rows: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
    return [at_values[rows.codes] for at_values in evaluate_at(rows.values, jobs)]


TABLE = Engine("table", _sum_letters, _evaluate_letters)
