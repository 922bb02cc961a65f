"""One column by trigonometric sums alone: edge functions become row weights.

A pair of complex transforms is given, transposes of one another,

    type1(t, strengths, K):     F[r, k] = sum_n strengths[r, n] exp(i k theta_n),     k = -K ... K
    type2(t, coefficients, K):  f[r, n] = sum_k coefficients[r, k] exp(i k theta_n)

Two real vectors travel in one complex one: if F comes from u + i v, the sums of u and v are the Hermitian and
anti-Hermitian parts of F. That halves the work. A transform errs by a share of the norm of what it is given, so the two
are brought to norms near one first, by powers of two, which round nothing: otherwise the smaller (an edge function, or
weights beside targets in small units) would have the error of the larger. Rows are prepared in blocks that stay in the
cache.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import ClassVar

import numpy as np
from scipy.linalg import norm

from vff.basis.trigonometric import HarmonicBlock, TrigonometricLetters, pad, trim
from vff.moments.engines.base import Accumulator, Arrays, Columns, Engine, Jobs, Kept, Strengths, Totals

Transform = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
Numbered = dict[int, TrigonometricLetters]
"""Letters of jobs, by number."""
_BLOCK = 2**14


def _unpack_sums(waves: np.ndarray, K: int) -> np.ndarray:
    """(R, 2K + 1) complex to (2R, 2K + 1) real: cosine sums, then sine sums, of each packed vector."""
    mirrored = waves[:, ::-1].conj()
    pairs = np.stack([0.5 * (waves + mirrored), -0.5j * (waves - mirrored)], axis=1)[:, :, K:]
    sums = pairs.reshape(-1, K + 1)
    return np.concatenate([sums.real, sums[:, 1:].imag], axis=1)


def _pack_coefficients(rows: np.ndarray, K: int) -> np.ndarray:
    """(2R, 2K + 1) real to (R, 2K + 1) complex, so that the real and imaginary parts of type 2 are the two sums."""
    # a cos k theta + b sin k theta = Re (a - i b) exp(i k theta): half of it at k, the conjugate at -k
    half = rows[:, : K + 1].astype(complex)
    half[:, 1:] = 0.5 * (half[:, 1:] - 1j * rows[:, K + 1 :])
    hermitian = np.concatenate([half[:, :0:-1].conj(), half], axis=1)
    return hermitian[0::2] + 1j * hermitian[1::2]


def _power(size: float) -> float:
    """The power of two next to a size; one for nothing."""
    return float(np.ldexp(1.0, int(np.frexp(size)[1]))) if size > 0.0 else 1.0


def _size(values: np.ndarray) -> float:
    """About the root mean square."""
    square = float(values @ values)
    size = np.sqrt(square) if np.isfinite(square) else norm(values, check_finite=False)  # which is slower
    return float(size) / np.sqrt(max(1, values.size))


def _half(packed: np.ndarray, r: int) -> np.ndarray:
    """The r-th real vector of a packed complex array, as a view."""
    return (np.imag(packed) if r % 2 else np.real(packed))[r // 2]


def _parts(every: Numbered, *, waves: bool) -> list[tuple[int, HarmonicBlock, slice]]:
    """The blocks of letters that need a transform, or those that are edge functions alone."""
    return [(number, *own) for number, letters in every.items() for own in letters.slices if (own[0].K > 0) == waves]


def _blocks(start: int, stop: int, step: int) -> Iterator[slice]:
    return (slice(low, min(low + step, stop)) for low in range(start, stop, step))


def _edge_rows(type2: Transform, letters: TrigonometricLetters, t: np.ndarray) -> np.ndarray:
    """R_1 ... R_q at t, (q, N): the polynomials less their harmonics."""
    M, q = letters.multipliers
    rows = np.empty((q, t.size))
    if not q:
        return rows
    coefficients = np.zeros((q + q % 2, 2 * M + 1))
    coefficients[:q] = letters.harmonics()
    units = _to_units(coefficients)
    waves = type2(t, _pack_coefficients(coefficients, M), M)
    for block in _blocks(0, t.size, _BLOCK):
        rows[:, block] = letters.polynomials(t[block])
        for n in range(q):
            rows[n, block] -= units[n] * _half(waves, n)[block]
    return rows


def _to_units(vectors: np.ndarray) -> list[float]:
    """Bring every row to a size near one, in place; the factors that bring it back."""
    units = [_power(_size(row)) for row in vectors]
    vectors /= np.array(units).reshape(-1, 1)
    return units


def _unit(wave: HarmonicBlock, units: Sequence[float], size: float) -> float:
    """What brings a sum back to its size."""
    return size * prod(units[n - 1] for n in wave.edges)


def _together(jobs: Jobs) -> list[Numbered]:
    """The letters of jobs that are worked on at once: all of them, if they have the same edge functions."""
    every = {number: own for number, job in enumerate(jobs) if (own := job.letters[0].trigonometric) is not None}
    alike = len({letters.multipliers for letters in every.values()}) <= 1
    return [every] if alike else [{number: letters} for number, letters in every.items()]


class TransformEngine(Engine):
    """One column by a pair of complex transforms, at most ``chunk`` rows at a time."""

    type1: ClassVar["staticmethod[[np.ndarray, np.ndarray, int], np.ndarray]"]
    type2: ClassVar["staticmethod[[np.ndarray, np.ndarray, int], np.ndarray]"]
    chunk: ClassVar[int]

    def accumulator(self, jobs: Jobs, columns: Columns) -> Accumulator:
        return Totals(jobs, self._summed)

    def evaluate(self, columns: Columns, jobs: Jobs, coefficients: Arrays, kept: Kept = None) -> list[np.ndarray]:
        values = [np.zeros(columns[0].t.size) for _ in jobs]
        for every in _together(jobs):
            self._evaluate(columns[0].t, every, coefficients, values)
        return values

    def _summed(self, columns: Columns, jobs: Jobs, strengths: Sequence[Strengths]) -> list[list[np.ndarray]]:
        """All pairs of weights and weighted targets in one plan, as jobs of their own."""
        each = [(job, weighted if job.targets else w) for w, weighted in strengths for job in jobs]
        totals = [np.zeros(job.shape) for job, _ in each]
        for every in _together([job for job, _ in each]):
            self._sum(columns[0].t, every, [vector for _, vector in each], totals)
        return [totals[at : at + len(jobs)] for at in range(0, len(totals), len(jobs))]

    def _sum(self, t: np.ndarray, every: Numbered, vectors: Arrays, totals: Arrays) -> None:
        waves, constants = _parts(every, waves=True), _parts(every, waves=False)
        K, letters = max((wave.K for _, wave, _ in waves), default=0), next(iter(every.values()))
        packed = np.zeros(((len(waves) + 1) // 2, min(self.chunk, t.size)), complex)
        for rows in _blocks(0, t.size, self.chunk):
            packed = packed[:, : rows.stop - rows.start]  # the last may be shorter
            edges = _edge_rows(self.type2, letters, t[rows])
            units, sizes = _to_units(edges), {number: _power(_size(vectors[number][rows])) for number in every}
            for block in _blocks(0, rows.stop - rows.start, _BLOCK):
                strengths = {number: vectors[number][rows][block] / size for number, size in sizes.items()}
                for r, (number, wave, _) in enumerate(waves):
                    np.multiply(strengths[number], wave.multiplier(edges[:, block]), out=_half(packed, r)[block])
                for number, wave, place in constants:
                    some = np.sum(strengths[number] * wave.multiplier(edges[:, block]))
                    totals[number][place] += _unit(wave, units, sizes[number]) * some
            if waves:
                sums = _unpack_sums(self.type1(t[rows], packed, K), K)
                for (number, wave, place), row in zip(waves, sums, strict=False):
                    totals[number][place] += _unit(wave, units, sizes[number]) * trim(row, K, wave.K)

    def _evaluate(self, t: np.ndarray, every: Numbered, vectors: Arrays, values: Arrays) -> None:
        waves, constants = _parts(every, waves=True), _parts(every, waves=False)
        K, letters = max((wave.K for _, wave, _ in waves), default=0), next(iter(every.values()))
        coefficients = np.zeros((len(waves) + len(waves) % 2, 2 * K + 1))
        for row, (number, wave, place) in zip(coefficients, waves, strict=False):
            row[:] = pad(vectors[number][place], wave.K, K)
        units = _to_units(coefficients)
        packed = _pack_coefficients(coefficients, K)
        for rows in _blocks(0, t.size, self.chunk):
            synthesised = self.type2(t[rows], packed, K) if waves else np.empty((0, 0))
            edges = _edge_rows(self.type2, letters, t[rows])
            for block in _blocks(0, rows.stop - rows.start, _BLOCK):
                factors = edges[:, block]
                here = slice(rows.start + block.start, rows.start + block.stop)
                for r, (number, wave, _) in enumerate(waves):
                    values[number][here] += units[r] * wave.multiplier(factors) * _half(synthesised, r)[block]
                for number, wave, place in constants:
                    values[number][here] += vectors[number][place][0] * wave.multiplier(factors)
