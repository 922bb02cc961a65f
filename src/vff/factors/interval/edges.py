"""Coordinates for the edge functions in which K_uu is known without cancellation: the E_n of theory (5.2).

    E_n = B_n + Re sum_(m=1..M) e_n(m) exp(i omega s)
    e_n(m) = -sum_(j<n)  C(p+1, j) rate^(p+1-j) (i omega)^(j-n) / (rate + i omega)^(p+1)

L E_n has a constant, C(p+1, n) rate^(p+1-n) (-1/2), and frequencies above M with coefficients
sum_k Lambda[n, k] (i omega)^-k, Lambda[n, k] = C(p+1, n-k) rate^(p+1-n+k).
Functions of the rate take a number, or one that JAX traces, and answer in its library.
"""

from functools import cache
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from scipy.special import zeta

from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.bernoulli import CONSTANT
from vff.factors.transform import EdgeTransform
from vff.linalg import namespace


@cache
def tail_root(M: int, q: int) -> np.ndarray:
    """Lower triangular root of the Gram matrix of R_1 ... R_q in L2, (q, q)."""
    k = np.arange(1, q + 1)
    total, quarter_turns = np.add.outer(k, k), np.subtract.outer(k, k)
    sign = np.where(quarter_turns % 2 == 1, 0.0, np.where(quarter_turns % 4 == 0, 1.0, -1.0))
    # scaled by (pi (M + 1))^k first, so that the factorisation sees numbers near one
    gram = sign * (M + 1.0) ** total * zeta(total, M + 1.0)
    return cholesky(gram, lower=True) / (np.pi * (M + 1.0)) ** k[:, None] if q else np.zeros((0, 0))


@cache
def _binomials(q: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """C(order, n - k) for n, k = 1 ... q, and the powers order - n + k of the rate that go with them, (q, q) each."""
    n = np.arange(q)
    steps = np.subtract.outer(n, n)
    numbers = np.array([[comb(order, step) if step >= 0 else 0 for step in row] for row in steps.tolist()], float)
    return numbers.reshape(q, q), np.maximum(order - steps, 0.0)


def remainder_matrix(q: int, order: int, rate: float) -> np.ndarray:
    """Lambda (q, q) for (D + rate)^order: what it makes of the frequencies above M."""
    numbers, powers = _binomials(q, order)
    return numbers * rate**powers


@cache
def _constant_binomials(q: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = [comb(order, n) * CONSTANT for n in range(1, q + 1)]
    return np.array(numbers), np.maximum(order - np.arange(1.0, q + 1), 0.0)


def constant_part(q: int, order: int, rate: float) -> np.ndarray:
    """The constant of (D + rate)^order E_n, (q,)."""
    numbers, powers = _constant_binomials(q, order)
    return numbers * rate**powers


@cache
def _wave_powers(M: int, q: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(i omega)^j for j = 0 ... p + 1 times C(p + 1, j), (i omega)^-n for n = 1 ... q, and i omega itself."""
    wave = 1j * np.pi * np.arange(1, M + 1)
    up = np.array([comb(p + 1, j) * wave ** float(j) for j in range(p + 2)]).reshape(p + 2, M)
    down = np.array([wave ** float(-n) for n in range(1, q + 1)]).reshape(q, M)
    return up, down, wave


def _expansion(M: int, q: int, p: int, rate: float) -> np.ndarray:
    """C(p+1, j) rate^(p+1-j) (i omega)^j / (rate + i omega)^(p+1), j = 0 ... p + 1: they sum to one, (p + 2, M)."""
    up, _, wave = _wave_powers(M, q, p)
    return up * rate ** np.arange(p + 1.0, -1.0, -1.0)[:, None] / (rate + wave) ** (p + 1)


def _cosines_and_sines(waves: Any) -> Any:
    """Real coefficients (q, H) of Re(a exp(i omega s)) = Re a cos - Im a sin, none of the constant."""
    xp = namespace(waves)
    return xp.concatenate([np.zeros((len(waves), 1)), waves.real, -waves.imag], axis=1)


def bernoulli_waves(basis: ColumnBasis, p: int, rate: float) -> np.ndarray:
    """e_n, (q, H): the harmonics of E_n beside B_n."""
    M, q = basis.M, basis.q
    if not q:
        return np.zeros((0, basis.harmonics))
    below = namespace(rate).cumsum(_expansion(M, q, p, rate), axis=0)  # row j - 1: orders below j
    orders = np.minimum(np.arange(q), p + 1)
    return _cosines_and_sines(-below[orders] * _wave_powers(M, q, p)[1])


def edge_transform(basis: ColumnBasis, p: int, rate: float) -> EdgeTransform:
    """T at this rate."""
    M, q = basis.M, basis.q
    used = min(q, p + 1)  # x_n is zero for n > p + 1
    if not used:
        return EdgeTransform(np.zeros((q, basis.harmonics)))
    xp = namespace(rate)
    above = xp.cumsum(_expansion(M, q, p, rate)[::-1], axis=0)[::-1]  # row j: orders j and above
    X = _cosines_and_sines(above[1 : used + 1] * _wave_powers(M, q, p)[1][:used])
    return EdgeTransform(xp.concatenate([X, np.zeros((q - used, basis.harmonics))]))
