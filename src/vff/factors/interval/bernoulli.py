"""The polynomials B_n behind the edge functions, and their Fourier series."""

from functools import cache

import numpy as np
from numpy.polynomial import legendre

CONSTANT = -0.5
"""The n-th derivative of B_n."""


@cache
def _legendre_series(n: int) -> np.ndarray:
    """Legendre coefficients of B_n in t."""
    if n == 1:
        return np.array([0.0, CONSTANT])
    series = legendre.legint(_legendre_series(n - 1))
    series[0] = 0.0
    return series


def _derivative(n: int, order: int) -> np.ndarray:
    if order < n:
        return _legendre_series(n - order)
    return np.array([CONSTANT if order == n else 0.0])


def bernoulli_rows(t: np.ndarray, q: int, derivative: int = 0) -> np.ndarray:
    """The given derivative of B_1 ... B_q at t, (q, N)."""
    rows = np.empty((q, t.size))
    for n in range(1, q + 1):
        rows[n - 1] = legendre.legval(t, _derivative(n, derivative))
    return rows


@cache
def bernoulli_state(side: int, q: int, p: int) -> np.ndarray:
    """Value and derivatives up to order p of B_1 ... B_q at the edge t = side, (q, p + 1); not to be written to."""
    edge = np.array([float(side)])
    return np.stack([bernoulli_rows(edge, q, j)[:, 0] for j in range(p + 1)], axis=1)


def harmonic_part(M: int, q: int, derivative: int = 0) -> np.ndarray:
    """Cosine-then-sine coefficients of the harmonics 1 ... M of the given derivative of B_1 ... B_q, (q, 2M + 1).

    Re (i omega)^(j-n) exp(i omega s) = Re a cos(omega s) - Im a sin(omega s).
    """
    wave = 1j * np.pi * np.arange(1, M + 1)
    coefficients = np.zeros((q, 2 * M + 1))
    for n in range(1, q + 1):
        a = wave ** float(derivative - n)
        coefficients[n - 1, 1 : M + 1] = a.real
        coefficients[n - 1, M + 1 :] = -a.imag
    return coefficients


def largest_resolved(q: int) -> int:
    """The largest M at which R_q, of size (pi M)^(1/2 - q), stands well above the error of B_q's harmonics."""
    return int((1e11 * np.pi**q) ** (1.0 / (q - 0.5)) / np.pi) if q > 1 else 10**9
