"""Columns with few distinct values: sum the strengths per value, then work on the values alone. Exact."""

from collections.abc import Sequence

import numpy as np

from vff.moments.engines.base import Engine, Job
from vff.moments.rows import ColumnRows


def _sum_letters(rows: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
    D = rows.codebook.size
    return [np.bincount(rows.codes, strengths, D) @ rows.letters(alphabet) for alphabet, strengths in jobs]


def _evaluate_letters(rows: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
    return [(rows.letters(alphabet) @ coefficients)[rows.codes] for alphabet, coefficients in jobs]


TABLE = Engine("table", _sum_letters, _evaluate_letters)
