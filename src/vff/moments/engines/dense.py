"""The reference: letters written out, in chunks, and BLAS."""

from collections.abc import Sequence

import numpy as np

from vff.moments.engines.base import Engine, Job
from vff.moments.rows import ColumnRows

_CHUNK_NUMBERS = 2**21  # 16 MiB of letters at a time


def _chunks(N: int, jobs: Sequence[Job]) -> list[slice]:
    step = max(64, _CHUNK_NUMBERS // max(alphabet.size for alphabet, _ in jobs))
    return [slice(start, start + step) for start in range(0, N, step)]


def sum_at(t: np.ndarray, jobs: Sequence[Job]) -> list[np.ndarray]:
    """Sums of strengths times letters at points t of the unit interval."""
    totals = [np.zeros(alphabet.size) for alphabet, _ in jobs]
    for rows in _chunks(t.size, jobs):
        for total, (alphabet, strengths) in zip(totals, jobs, strict=True):
            total += strengths[rows] @ alphabet.evaluate(t[rows])
    return totals


def evaluate_at(t: np.ndarray, jobs: Sequence[Job]) -> list[np.ndarray]:
    """Letters times coefficients at points t of the unit interval."""
    values = [np.empty(t.size) for _ in jobs]
    for rows in _chunks(t.size, jobs):
        for value, (alphabet, coefficients) in zip(values, jobs, strict=True):
            value[rows] = alphabet.evaluate(t[rows]) @ coefficients
    return values


def _sum_letters(rows: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
    if len(_chunks(rows.x.size, jobs)) > 1:
        return sum_at(rows.t, jobs)
    return [strengths @ rows.written(alphabet) for alphabet, strengths in jobs]


def _evaluate_letters(rows: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
    if len(_chunks(rows.x.size, jobs)) > 1:
        return evaluate_at(rows.t, jobs)
    return [rows.written(alphabet) @ coefficients for alphabet, coefficients in jobs]


DENSE = Engine("dense", _sum_letters, _evaluate_letters)
