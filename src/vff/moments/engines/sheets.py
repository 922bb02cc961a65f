"""Shared by the engines that only know trigonometric sums: edge functions become row weights.

Such an engine supplies two complex transforms, transposes of one another,

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

import numpy as np
from scipy.linalg import norm

from vff.basis import HarmonicBlock, TrigonometricLetters
from vff.basis.waves import pad, trim
from vff.moments.engines.base import Engine, Job
from vff.moments.rows import ColumnRows

Transform = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
Wave = tuple[int, HarmonicBlock, slice]
"""A sheet of the alphabet of the numbered job, and its place there."""
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


def _alphabet(job: Job) -> TrigonometricLetters:
    """The letters of a job, which for these engines are trigonometric."""
    letters = job[0].trigonometric
    assert letters is not None
    return letters


def _waves(jobs: Sequence[Job]) -> list[Wave]:
    """The sheets that need a transform: (job, sheet, place)."""
    return [
        (number, sheet, place)
        for number, job in enumerate(jobs)
        for sheet, place in _alphabet(job).slices
        if sheet.K > 0
    ]


def _constants(jobs: Sequence[Job]) -> list[Wave]:
    """The sheets that are edge functions alone."""
    return [
        (number, sheet, place)
        for number, job in enumerate(jobs)
        for sheet, place in _alphabet(job).slices
        if sheet.K == 0
    ]


def _blocks(start: int, stop: int, step: int) -> Iterator[slice]:
    return (slice(low, min(low + step, stop)) for low in range(start, stop, step))


def _edge_rows(type2: Transform, alphabet: TrigonometricLetters, t: np.ndarray) -> np.ndarray:
    """R_1 ... R_q at t, (q, N): the polynomials less their harmonics."""
    M, q = alphabet.multipliers
    rows = np.empty((q, t.size))
    if not q:
        return rows
    coefficients = np.zeros((q + q % 2, 2 * M + 1))
    coefficients[:q] = alphabet.harmonics()
    units = _to_units(coefficients)
    waves = type2(t, _pack_coefficients(coefficients, M), M)
    for block in _blocks(0, t.size, _BLOCK):
        rows[:, block] = alphabet.polynomials(t[block])
        for n in range(q):
            rows[n, block] -= units[n] * _half(waves, n)[block]
    return rows


def _to_units(coefficients: np.ndarray) -> list[float]:
    """Bring every row to a norm near one, in place; the factors that bring it back."""
    units = [_power(_size(row)) for row in coefficients]
    coefficients /= np.array(units)[:, None]
    return units


def _letter_units(edges: np.ndarray) -> list[float]:
    """Bring every edge function to a size near one, in place; the factors that bring it back."""
    units = [_power(_size(edge)) for edge in edges]
    for edge, unit in zip(edges, units, strict=True):
        edge /= unit
    return units


def trigonometric_engine(name: str, type1: Transform, type2: Transform, chunk: int) -> Engine:
    """An engine from a pair of complex transforms, reading at most ``chunk`` rows at a time."""

    def sum_letters(column: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
        t = column.t
        totals = [np.zeros(alphabet.size) for alphabet, _ in jobs]
        waves, constants = _waves(jobs), _constants(jobs)
        K = max((sheet.K for _, sheet, _ in waves), default=0)
        packed = np.zeros(((len(waves) + 1) // 2, min(chunk, t.size)), complex)
        for rows in _blocks(0, t.size, chunk):
            if packed.shape[1] != rows.stop - rows.start:
                packed = np.zeros((packed.shape[0], rows.stop - rows.start), complex)
            edges = _edge_rows(type2, _alphabet(jobs[0]), t[rows])
            letters, sizes = _letter_units(edges), [_power(_size(vector[rows])) for _, vector in jobs]

            def unit(
                number: int, sheet: HarmonicBlock, letters: list[float] = letters, sizes: list[float] = sizes
            ) -> float:
                return sizes[number] * prod(letters[n - 1] for n in sheet.edges)

            for block in _blocks(0, rows.stop - rows.start, _BLOCK):
                strengths = [vector[rows][block] / size for (_, vector), size in zip(jobs, sizes, strict=True)]
                for r, (number, sheet, _) in enumerate(waves):
                    np.multiply(strengths[number], sheet.multiplier(edges[:, block]), out=_half(packed, r)[block])
                for number, sheet, place in constants:
                    some = np.sum(strengths[number] * sheet.multiplier(edges[:, block]))
                    totals[number][place] += unit(number, sheet) * some
            if waves:
                sums = _unpack_sums(type1(t[rows], packed, K), K)
                for (number, sheet, place), row in zip(waves, sums, strict=False):
                    totals[number][place] += unit(number, sheet) * trim(row, K, sheet.K)
        return totals

    def evaluate_letters(column: ColumnRows, jobs: Sequence[Job]) -> list[np.ndarray]:
        t = column.t
        values = [np.zeros(t.size) for _ in jobs]
        waves, constants = _waves(jobs), _constants(jobs)
        K = max((sheet.K for _, sheet, _ in waves), default=0)
        coefficients = np.zeros((len(waves) + len(waves) % 2, 2 * K + 1))
        for row, (number, sheet, place) in zip(coefficients, waves, strict=False):
            row[:] = pad(jobs[number][1][place], sheet.K, K)
        units = _to_units(coefficients)
        packed = _pack_coefficients(coefficients, K)
        for rows in _blocks(0, t.size, chunk):
            synthesised = type2(t[rows], packed, K) if waves else np.empty((0, 0))
            edges = _edge_rows(type2, _alphabet(jobs[0]), t[rows])
            for block in _blocks(0, rows.stop - rows.start, _BLOCK):
                factors = edges[:, block]
                here = slice(rows.start + block.start, rows.start + block.stop)
                for r, (number, sheet, _) in enumerate(waves):
                    values[number][here] += units[r] * sheet.multiplier(factors) * _half(synthesised, r)[block]
                for number, sheet, place in constants:
                    values[number][here] += jobs[number][1][place][0] * sheet.multiplier(factors)
        return values

    return Engine(name, sum_letters, evaluate_letters)
