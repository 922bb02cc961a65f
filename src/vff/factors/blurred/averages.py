"""Averages of harmonics and edge functions over what a row does not resolve (theory §24).

A row looks at f not at x but all around it: uniformly over an interval of width h, or with the density of a Gaussian of
standard deviation h. Both are convolutions, so that with D the derivative, an average is a power series in h D,

    width   sinh(h D / 2) / (h D / 2)       std   exp(h^2 D^2 / 2)           (24.1)

On exp(i omega t) it is a number, d(omega h); on the polynomial B_n, whose derivatives are B_(n-1), B_(n-2), ..., it is
a sum of B_n, B_(n-2), .... Everything is in units of the half domain.
"""

from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.letters import CONSTANT, bernoulli_rows, harmonic_part

WIDTH, STD = "width", "std"
KINDS = (WIDTH, STD)
ACCURACY = 1e-13  # of what polynomials in h leave out, beside one
_FEWEST = 24  # nodes, so that k(x, x) is held at lengthscales much shorter than h


def damped(kind: str, z: np.ndarray) -> np.ndarray:
    """d(z), what is left of a wave, z = omega h."""
    return np.sinc(z / (2.0 * np.pi)) if kind == WIDTH else np.exp(-0.5 * np.square(z))


def series(kind: str, j: int, h: np.ndarray | float) -> np.ndarray | float:
    """What stands before D^2j in (24.1)."""
    if kind == WIDTH:
        return np.square(0.5 * h) ** j / factorial(2 * j + 1)
    return np.square(h) ** j / (2.0**j * factorial(j))


class Damping(NamedTuple):
    """D with phi averaged = D phi: D = [[diag(d), 0], [E, A]] for harmonics and edge functions."""

    d: np.ndarray
    E: np.ndarray
    A: np.ndarray

    def forward(self, v: np.ndarray) -> np.ndarray:
        """D v, (P, ...)."""
        H = self.d.size
        waves = self.d.reshape(-1, *[1] * (v.ndim - 1)) * v[:H]
        edges = np.tensordot(self.E, v[:H], axes=1) + np.tensordot(self.A, v[H:], axes=1)
        return np.concatenate([waves, edges])

    def transpose(self, v: np.ndarray) -> np.ndarray:
        """D'v, (P, ...)."""
        H = self.d.size
        waves = self.d.reshape(-1, *[1] * (v.ndim - 1)) * v[:H] + np.tensordot(self.E.T, v[H:], axes=1)
        return np.concatenate([waves, np.tensordot(self.A.T, v[H:], axes=1)])


def damping(kind: str, plain: ColumnBasis, h: float) -> Damping:
    """D at one h.

    R_n = B_n - H_n, with H_n its harmonics; averages of B_n are sums of B_m = R_m + H_m, and H_(n-2j) is
    (-omega^2)^j H_n, so that what is left of H_n is the remainder of a power series of d.
    """
    M, q = plain.M, plain.q
    d, waves = damped(kind, plain.omega * h), harmonic_part(M, q)
    A, E = np.zeros((q, q)), -d * waves
    for n in range(1, q + 1):
        for j in range(n // 2 + 1):
            weight, m = float(series(kind, j, h)), n - 2 * j
            if m:
                A[n - 1, m - 1] = weight
                E[n - 1] += weight * waves[m - 1]
            else:
                E[n - 1, 0] += weight * CONSTANT
    return Damping(d, E, A)


def features(kind: str, plain: ColumnBasis, t: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The features averaged around t, (N, P): the definition, row by row."""
    M, q = plain.M, plain.q
    angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(M + 1))
    waves = np.concatenate([np.cos(angle), np.sin(angle[:, 1:])], axis=1) * damped(kind, np.outer(h, plain.omega))
    return np.concatenate([waves, polynomials(kind, q, t, h).T - waves @ harmonic_part(M, q).T], axis=1)


def polynomials(kind: str, q: int, t: np.ndarray, h: np.ndarray) -> np.ndarray:
    """B_1 ... B_q averaged around t, (q, N)."""
    plain, found = bernoulli_rows(t, q), np.zeros((q, t.size))
    for n in range(1, q + 1):
        for j in range(n // 2 + 1):
            found[n - 1] += series(kind, j, h) * (plain[n - 2 * j - 1] if n > 2 * j else CONSTANT)
    return found


@lru_cache(maxsize=256)
def node_count(kind: str, M: int, reach: float) -> int:
    """How many nodes on [0, reach] hold products of two features as functions of h, to ``ACCURACY``; one for none.

    Of a width the fastest is cos(omega_M h), of a standard deviation exp(-(omega_2M h)^2 / 2).
    """
    if reach == 0.0:
        return 1
    z = np.pi * M * reach
    size = 2 ** int(np.ceil(np.log2(64.0 + 2.0 * z)))
    x = 0.5 - 0.5 * np.cos(np.pi * (np.arange(size) + 0.5) / size)
    wave = np.cos(z * x) if kind == WIDTH else np.exp(-2.0 * (z * x) ** 2) * (1.0 + (z * x) ** 2)
    terms = np.abs(np.asarray(dct(wave, type=2))) / size
    return max(_FEWEST, int(np.flatnonzero(terms > ACCURACY)[-1]) + 2)
