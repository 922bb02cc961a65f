"""The reference: letters written out, in chunks, and BLAS."""

from collections.abc import Sequence

import numpy as np

from vff.moments.engines.base import Engine, Job

_CHUNK_NUMBERS = 2**21  # 16 MiB of letters at a time


def _chunks(t: np.ndarray, jobs: Sequence[Job]) -> list[slice]:
    step = max(64, _CHUNK_NUMBERS // max(alphabet.size for alphabet, _ in jobs))
    return [slice(start, start + step) for start in range(0, t.size, step)]


def sum_letters(t: np.ndarray, jobs: Sequence[Job]) -> list[np.ndarray]:
    totals = [np.zeros(alphabet.size) for alphabet, _ in jobs]
    for rows in _chunks(t, jobs):
        for total, (alphabet, strengths) in zip(totals, jobs, strict=True):
            total += strengths[rows] @ alphabet.evaluate(t[rows])
    return totals


def evaluate_letters(t: np.ndarray, jobs: Sequence[Job]) -> list[np.ndarray]:
    values = [np.empty(t.size) for _ in jobs]
    for rows in _chunks(t, jobs):
        for value, (alphabet, coefficients) in zip(values, jobs, strict=True):
            value[rows] = alphabet.evaluate(t[rows]) @ coefficients
    return values


DENSE = Engine("dense", sum_letters, evaluate_letters)
