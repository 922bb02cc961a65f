"""Rows on a regular lattice t_n = t_0 + n step: uniform FFTs when the lattice divides the period, else two factors.

With R = 2 / step whole, rows R apart share every harmonic: fold them and take one FFT of length R. Otherwise write
n = B i + j; exp(i k pi step n) = exp(i k pi step B i) exp(i k pi step j), and the sum is two small matrix products.
"""

from math import prod
from typing import ClassVar

import numpy as np
from scipy.fft import ifft

from vff.moments.distinct import spacing
from vff.moments.engines.base import PER_LETTER, START, Choice, Cost, Work
from vff.moments.engines.transforms import TransformEngine

_CHUNK_ROWS = 2**22
_PER_ROW, _PER_ROW_AND_HARMONIC = 60e-9, 2e-9


def _step(t: np.ndarray) -> float:
    if t.size == 1:
        return 1.0
    step = spacing(t)
    if step is None:
        raise ValueError(
            "engine='grid' needs rows that are equally spaced and in increasing order, and these are not; "
            "sort them, or use engine='auto'"
        )
    return step


def _period(step: float, N: int) -> int | None:
    """R = 2 / step when whole, to the accuracy that the last row's angle needs."""
    R = round(2.0 / step)
    whole = R >= 1 and abs(R * step - 2.0) * max(1.0, N / R) < 1e-14
    return R if whole and R <= _CHUNK_ROWS else None


def _phase(t: np.ndarray, K: int) -> np.ndarray:
    return np.exp(1j * np.pi * (t[0] + 1.0) * np.arange(-K, K + 1))


def _factors(step: float, N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """exp(i k pi step B i) (2K+1, I) and exp(i k pi step j) (2K+1, B) with I B >= N."""
    B = int(np.ceil(np.sqrt(N)))
    k = np.pi * step * np.arange(-K, K + 1)
    return np.exp(1j * np.outer(k, B * np.arange(-(-N // B)))), np.exp(1j * np.outer(k, np.arange(B)))


def _type1(t: np.ndarray, strengths: np.ndarray, K: int) -> np.ndarray:
    step, N = _step(t), t.size
    R = _period(step, N)
    if R is not None:
        folded = np.pad(strengths, ((0, 0), (0, -N % R))).reshape(len(strengths), -1, R).sum(1)
        sums = R * np.take(np.asarray(ifft(folded)), np.arange(-K, K + 1) % R, axis=1)
    else:
        coarse, fine = _factors(step, N, K)
        shape = (len(strengths), coarse.shape[1], fine.shape[1])
        table = np.pad(strengths, ((0, 0), (0, shape[1] * shape[2] - N))).reshape(shape)
        sums = np.sum((coarse @ table) * fine, axis=2)
    return sums * _phase(t, K)


def _type2(t: np.ndarray, coefficients: np.ndarray, K: int) -> np.ndarray:
    step, N = _step(t), t.size
    R = _period(step, N)
    waves = coefficients * _phase(t, K)
    if R is not None:
        bins = np.zeros((len(waves), R), complex)
        for k, wave in zip(np.arange(-K, K + 1) % R, waves.T, strict=True):
            bins[:, k] += wave
        return np.take(np.asarray(ifft(bins)), np.arange(N) % R, axis=1) * R
    coarse, fine = _factors(step, N, K)
    return ((coarse.T * waves[:, None, :]) @ fine).reshape(len(waves), -1)[:, :N]


class GridEngine(TransformEngine):
    """One column whose rows are equally spaced and in order."""

    name: ClassVar[str] = "grid"
    type1, type2, chunk = staticmethod(_type1), staticmethod(_type2), _CHUNK_ROWS

    def cost(self, work: Work) -> Cost:
        column = work.alone
        if column is None or work.bands is None or column.request.domain.discrete:
            return Cost(None, "a lattice of one column of numbers is needed")
        if column.distinct is not None:
            return Cost(None, "distinct values are few, and are counted")
        if work.n * column.basis.double.size * PER_LETTER <= START:
            return Cost(None, "so few rows are written out sooner than looked at")
        if column.x.size != work.n or spacing(column.t) is None:
            return Cost(None, "the rows are not equally spaced")
        band = column.basis.double.band or 0
        return Cost(work.n * (_PER_ROW + _PER_ROW_AND_HARMONIC * band), f"{work.n} rows equally spaced")

    def requested(self, work: Work) -> Choice:
        if work.alone is None:
            return Choice("dense", "dense: engine='grid' is for one column at a time")
        return super().requested(work)

    def requested_of_all(self, work: Work) -> Choice:
        """Rows on a lattice in several columns: every combination of values once, summed separably."""
        values = [size for size in work.values if size is not None]
        if len(values) < len(work.columns) or prod(values) != work.n:
            found = " x ".join("many" if size is None else str(size) for size in work.values)
            raise ValueError(
                f"engine='grid' in several columns needs every combination of their values exactly once, and {work.n} "
                f"rows hold {found} values; use engine='auto'"
            )
        return Choice("table", f"grid: {work.n} rows are all combinations of {' x '.join(map(str, values))} values")
