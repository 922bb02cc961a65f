"""The inner product of functions under differential operators, from which K_uu and its derivatives are made.

With a, b, ... polynomials in D, S(b, c) = int (b(D) g)(c(D) h) + (c(D) g)(b(D) h) over the domain is known for waves
and edge functions E_n from what b(D) makes of each of them (theory §16): a number per frequency for harmonics; for an
edge function a constant, frequencies above M, and those up to M, of which a(D) leaves none and b(D) (theory (16.4))

    beta_n(omega) = sum_(j<n<=k) (a_k b_j - b_k a_j) (i omega)^(j+k-n) / a(i omega).

A derivative of K_uu = S(a, a) / 2 diffusion with the functions held is a combination of a few of them.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from vff.factors.interval.basis import ColumnBasis


class Parts(NamedTuple):
    """[[diag(d), border], [border', corner]], of harmonics and edge functions."""

    d: np.ndarray
    border: np.ndarray
    corner: np.ndarray

    @classmethod
    def sum(cls, *weighted: "tuple[float, Parts]") -> "Parts":
        """A combination."""
        return cls(*(sum(weight * own[part] for weight, own in weighted) for part in range(3)))  # pyright: ignore


@cache
def _powers(M: int, most: int) -> np.ndarray:
    """(i omega)^j, j = 0 ... most, of the frequencies 1 ... M, (most + 1, M)."""
    return (1j * np.pi * np.arange(1, M + 1)) ** np.arange(most + 1.0)[:, None]


@dataclass(frozen=True)
class Image:
    """What b(D) makes of the functions of a basis."""

    first: float
    """b_0, of the constant."""
    waves: np.ndarray
    """b(i omega) of the frequencies 1 ... M."""
    edges: np.ndarray
    """beta_n of the frequencies 1 ... M, (q, M)."""
    constants: np.ndarray
    """Of edge functions, (q,)."""
    tails: np.ndarray
    """Of edge functions, the frequencies above M, in orthonormal ones, (q, q)."""

    def paired(self, other: "Image") -> Parts:
        """S of both."""
        M = self.waves.size
        waves = 2.0 * np.real(np.conj(self.waves) * other.waves)
        d = np.concatenate([[4.0 * self.first * other.first], waves, waves])  # of length 2, and of 1 = 2/2
        image = np.conj(other.waves) * self.edges + np.conj(self.waves) * other.edges
        border = np.empty((2 * M + 1, len(self.edges)))
        border[0] = 2.0 * (other.first * self.constants + self.first * other.constants)
        # cosines pair with the real part of what is left of E_n, sines with minus the imaginary part
        border[1 : M + 1], border[M + 1 :] = np.real(image).T, -np.imag(image).T
        corner = self.tails @ other.tails.T + 2.0 * np.multiply.outer(self.constants, other.constants)
        corner += np.real(self.edges @ np.conj(other.edges).T)
        return Parts(d, border, corner + corner.T)


def remaining(basis: ColumnBasis, a: np.ndarray, b: np.ndarray, response: np.ndarray) -> np.ndarray:
    """beta_n, (q, M); ``response`` is a(i omega)."""
    M, q, r = basis.M, basis.q, a.size - 1
    found = np.zeros((q, M), complex)
    for n in range(1, min(q, r) + 1):
        weights = np.zeros(2 * r, complex)
        for j in range(n):
            for k in range(n, r + 1):
                weights[j + k - n] += a[k] * b[j] - b[k] * a[j]
        found[n - 1] = weights @ _powers(M, 2 * r - 1)
    return found / response
