"""Spherical harmonics of degrees up to L: values, products of two of them, and series in both angles (theory §20).

Y_lm stands in place l (l + 1) + m: cos(m phi) for m >= 0, sin(|m| phi) for m < 0, times the Legendre function of the
colatitude. The mean of Y^2 over the sphere is one, so that sum_m Y_lm(x) Y_lm(z) = (2l + 1) P_l(cos of the angle).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy import sparse


def places(L: int) -> tuple[np.ndarray, np.ndarray]:
    """Degree l and order m of every harmonic, ((L + 1)^2,) each."""
    degree = np.repeat(np.arange(L + 1), 2 * np.arange(L + 1) + 1)
    return degree, np.arange(degree.size) - degree * (degree + 1)


def _middles(m: int, L: int) -> np.ndarray:
    """The places l (l + 1) of order zero of degrees m ... L."""
    return np.arange(m, L + 1) * np.arange(m + 1, L + 2)


def legendre(L: int, theta: np.ndarray) -> list[np.ndarray]:
    """P_lm(cos theta) for m <= l <= L, an (L + 1 - m, N) array for every m; any theta, where it is a trigonometric sum.

    By the recurrence in l from l = m, which is stable (Holmes & Featherstone 2002).
    """
    cosine, sine = np.cos(theta), np.sin(theta)
    top, found = np.ones_like(theta), []
    for m in range(L + 1):
        if m:
            top = top * sine * (np.sqrt(3.0) if m == 1 else np.sqrt((2 * m + 1) / (2 * m)))
        own = np.empty((L + 1 - m, theta.size))
        own[0] = top
        for n in range(1, L + 1 - m):
            k = m + n
            own[n] = np.sqrt((2 * k - 1) * (2 * k + 1) / (n * (k + m))) * cosine * own[n - 1]
            if n > 1:
                own[n] -= np.sqrt((2 * k + 1) * (k + m - 1) * (n - 1) / ((2 * k - 3) * n * (k + m))) * own[n - 2]
        found.append(own)
    return found


def at_angles(L: int, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """All harmonics at colatitudes and longitudes in radians, (N, (L + 1)^2)."""
    written = np.empty(((L + 1) ** 2, theta.size))
    for m, own in enumerate(legendre(L, theta)):
        middle = _middles(m, L)
        written[middle + m] = own * np.cos(m * phi)
        if m:
            written[middle - m] = own * np.sin(m * phi)
    return np.ascontiguousarray(written.T)


@lru_cache(maxsize=8)
def series(L: int) -> sparse.csr_array:
    """Every harmonic as a sum of products of waves in colatitude and longitude, ((L + 1)^2, (2L + 1)^2).

    Waves are cosines 0 ... L, then sines 1 ... L, those of the longitude run fastest. Of even m the series in
    colatitude has cosines alone, of odd m sines alone.
    """
    n, H = 2 * L + 2, 2 * L + 1
    rows, columns, factors = [], [], []
    for m, own in enumerate(legendre(L, 2.0 * np.pi * np.arange(n) / n)):
        waves = np.fft.rfft(own, axis=1)[:, : L + 1] / n
        waves[:, 1:] *= 2.0
        degree, k = np.meshgrid(np.arange(m, L + 1), np.arange(L + 1), indexing="ij")
        # of degree l, waves l, l - 2, ... are there
        kept = (k <= degree) & ((degree - k) % 2 == 0) & ((k > 0) | (m % 2 == 0))
        values, degree, k = (-waves.imag if m % 2 else waves.real)[kept], degree[kept], k[kept]
        wave = k + L if m % 2 else k
        for sign in (1, -1) if m else (1,):
            rows.append(degree * (degree + 1) + sign * m)
            columns.append(wave * H + (m if sign > 0 else L + m))
            factors.append(values)
    entries = (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_array((np.concatenate(factors), entries), shape=((L + 1) ** 2, H**2))


def rule(L: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre colatitudes, and weights that sum to one: exact for products of harmonics up to 4L in degree."""
    cosine, weights = leggauss(2 * L + 1)
    return np.arccos(cosine), 0.5 * weights


class _Quadrature(NamedTuple):
    """What products of harmonics up to L are integrated with."""

    weights: np.ndarray
    """Of colatitudes, (J,)."""
    features: list[np.ndarray]
    """Legendre functions up to L by order, (L + 1 - m, J)."""
    letters: list[np.ndarray]
    """The same up to 2L."""


@lru_cache(maxsize=8)
def _quadrature(L: int) -> _Quadrature:
    theta, weights = rule(L)
    return _Quadrature(weights, legendre(L, theta), legendre(2 * L, theta))


class _Block(NamedTuple):
    """The products of the features of two orders m <= n: their places, and P_lm P_ln w at every colatitude."""

    m: int
    n: int
    left: np.ndarray
    right: np.ndarray
    """Places of order zero, to which an order is added."""
    both: np.ndarray
    """(degrees of m times degrees of n, J)."""


def _blocks(L: int) -> Iterator[_Block]:
    rule = _quadrature(L)
    for m in range(L + 1):
        for n in range(m, L + 1):
            left, right = _middles(m, L), _middles(n, L)
            both = rule.features[m][:, None] * (rule.features[n] * rule.weights)
            yield _Block(m, n, left, right, both.reshape(left.size * right.size, -1))


# Means over longitudes of two waves of orders m <= n times the waves of orders n - m and n + m: with A_k and B_k the
# cosine and sine parts of a function (halved for k > 0),
#     cos cos   (A_(n-m) + A_(n+m)) / 2        sin sin   (A_(n-m) - A_(n+m)) / 2
#     cos sin   (B_(n+m) + B_(n-m)) / 2        sin cos   (B_(n+m) - B_(n-m)) / 2
_WAVES = {(1, 1): (0, 1.0, 1.0), (-1, -1): (0, 1.0, -1.0), (1, -1): (1, 1.0, 1.0), (-1, 1): (1, -1.0, 1.0)}
"""Signs of the two orders -> cosine or sine part, and the factors of the difference and of the sum."""


def _signs(m: int, n: int) -> list[tuple[int, int]]:
    return [(a, b) for a, b in _WAVES if (m or a > 0) and (n or b > 0)]


def pairs(L: int, sums: np.ndarray) -> np.ndarray:
    """sum w Y Y' of harmonics up to L, (P, P, R), from sum w Y of those up to 2L, (Q, R): by quadrature, exactly."""
    parts = _parts(L, sums)
    found = np.empty(((L + 1) ** 2, (L + 1) ** 2, sums.shape[1]))
    for block in _blocks(L):
        m, n = block.m, block.n
        for a, b in _signs(m, n):
            part, less, more = _WAVES[a, b]
            mean = 0.5 * (less * parts[part, n - m] + more * parts[part, n + m])
            own = (block.both @ mean).reshape(block.left.size, block.right.size, -1)
            rows, columns = block.left + a * m, block.right + b * n
            found[rows[:, None], columns] = own
            found[columns[:, None], rows] = own.transpose(1, 0, 2)
    return found


def contracted(L: int, cells: np.ndarray) -> np.ndarray:
    """The transpose of ``pairs``: (P, P, R) to (Q, R)."""
    K, quadrature = 2 * L, _quadrature(L)
    parts = np.zeros((2, K + 1, quadrature.weights.size, cells.shape[2]))
    for block in _blocks(L):
        m, n = block.m, block.n
        for a, b in _signs(m, n):
            part, less, more = _WAVES[a, b]
            rows, columns = block.left + a * m, block.right + b * n
            own = cells[rows[:, None], columns]
            if m != n:
                own = own + cells[columns[:, None], rows].transpose(1, 0, 2)
            mean = 0.5 * (block.both.T @ own.reshape(-1, cells.shape[2]))
            parts[part, n - m] += less * mean
            parts[part, n + m] += more * mean
    letters = np.zeros(((K + 1) ** 2, cells.shape[2]))
    for k, own in enumerate(quadrature.letters):
        middle = _middles(k, K)
        letters[middle + k] = (0.5 if k else 1.0) * (own @ parts[0, k])
        if k:
            letters[middle - k] = 0.5 * (own @ parts[1, k])
    return letters


def _parts(L: int, sums: np.ndarray) -> np.ndarray:
    """Cosine and sine parts of sum_q sums_q Y_q on every circle of latitude, halved for k > 0, (2, 2L + 1, J, R)."""
    K, quadrature = 2 * L, _quadrature(L)
    parts = np.zeros((2, K + 1, quadrature.weights.size, sums.shape[1]))
    for k, own in enumerate(quadrature.letters):
        middle = _middles(k, K)
        parts[0, k] = (0.5 if k else 1.0) * (own.T @ sums[middle + k])
        if k:
            parts[1, k] = 0.5 * (own.T @ sums[middle - k])
    return parts
