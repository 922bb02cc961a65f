"""Rows spread onto a lattice by FINUFFT's kernel, and what the lattice makes of any letter, theory (3.2).

A small letter has small node values, so it is summed with small errors: R_n keeps its digits. The kernel itself is
never needed: phi_hat is measured once.
"""

from functools import lru_cache
from math import comb, factorial

import numpy as np
from numpy.polynomial import chebyshev

from vff.basis.trigonometric import HarmonicBlock, TrigonometricLetters
from vff.moments.engines.nufft import kernel_transfer, spread_width

_HIGHEST = 0.5 * np.pi
_DEGREE = 40


@lru_cache(maxsize=8)
def _reciprocal(eps: float) -> list[np.ndarray]:
    """Chebyshev series of r(xi) and of its derivatives on |xi| <= pi / 2."""
    xi = _HIGHEST * np.cos(np.pi * (np.arange(2 * _DEGREE) + 0.5) / (2 * _DEGREE))
    series = chebyshev.chebfit(xi / _HIGHEST, 1.0 / kernel_transfer(xi, eps), _DEGREE)
    series[1::2] = 0.0  # even
    derivatives = [series]
    for _ in range(16):
        derivatives.append(chebyshev.chebder(derivatives[-1]) / _HIGHEST)
    return derivatives


class Ruler:
    """Nodes along one column, close enough for harmonics up to K, and a kernel's width beyond [-1, 1]."""

    def __init__(self, K: int, eps: float):
        self.eps, width = eps, spread_width(eps)
        n = int(np.ceil(4.0 * K / 0.98)) + width + 3
        self.n = max(n + n % 2, 2 * width + 4)
        self.reach = 1.0 - (width + 2.0) / self.n
        """How much of FINUFFT's period [-1, 1] is taken up by the unit interval."""
        self.step = 2.0 / (self.n * self.reach)
        self.nodes = self.step * (np.arange(self.n) - self.n // 2)

    def waves(self, degrees: np.ndarray, order: int = 0) -> np.ndarray:
        """(-i)^m / m! r^(m)(omega) exp(i l theta) at the nodes, (n, L), for harmonics l."""
        xi = np.pi * degrees * self.step
        factor = chebyshev.chebval(xi / _HIGHEST, _reciprocal(self.eps)[order]) * self.step**order
        angle = np.multiply.outer(np.pi * (self.nodes + 1.0), degrees)
        return np.exp(1j * angle) * (factor * (-1j) ** order / factorial(order))

    def letters(self, letters: TrigonometricLetters) -> np.ndarray:
        """Node values of every letter, (n, size)."""
        values = np.empty((self.n, letters.size))
        for block, place in letters.slices:
            values[:, place] = self._block(letters, block)
        return values

    def _block(self, letters: TrigonometricLetters, block: HarmonicBlock) -> np.ndarray:
        degrees = np.arange(block.K + 1)
        if not block.edges:
            waves = self.waves(degrees)
        elif len(block.edges) == 1:
            waves = self._edge_times_waves(letters, block.edges[0], degrees)
        else:
            waves = self._two_edges(letters, *block.edges)[:, None]
        return np.concatenate([np.real(waves), np.imag(waves)[:, 1:]], axis=1)

    def _edge_times_waves(self, letters: TrigonometricLetters, edge: int, degrees: np.ndarray) -> np.ndarray:
        """R_n exp(i k theta): the polynomial's part less that of its harmonics."""
        waves = np.zeros((self.n, degrees.size), complex)
        for order in range(edge + 1):
            waves += letters.polynomials(self.nodes, order)[edge - 1][:, None] * self.waves(degrees, order)
        (M, _), K = letters.multipliers, int(degrees[-1])
        high = np.arange(-M, M + K + 1)
        shifted = np.zeros((high.size, degrees.size), complex)
        for k in degrees:
            shifted[k : k + 2 * M + 1, k] = _two_sided(letters, edge)
        return waves - self.waves(high) @ shifted

    def _two_edges(self, letters: TrigonometricLetters, one: int, other: int) -> np.ndarray:
        """R_i R_j = B_i B_j - B_i h_j - h_i B_j + h_i h_j, h the harmonics of the polynomials."""
        M, _ = letters.multipliers
        rows = [letters.polynomials(self.nodes, order) for order in range(one + other + 1)]
        constant, low = np.zeros(1), np.arange(-M, M + 1)
        total = np.zeros(self.n, complex)
        for order in range(one + other + 1):
            both = sum(comb(order, a) * rows[a][one - 1] * rows[order - a][other - 1] for a in range(order + 1))
            total += both * self.waves(constant, order)[:, 0]
            waves = self.waves(low, order)
            total -= rows[order][one - 1] * (waves @ _two_sided(letters, other))
            total -= rows[order][other - 1] * (waves @ _two_sided(letters, one))
        product_of_waves = np.convolve(_two_sided(letters, one), _two_sided(letters, other))
        return total + self.waves(np.arange(-2 * M, 2 * M + 1)) @ product_of_waves


def _two_sided(letters: TrigonometricLetters, edge: int) -> np.ndarray:
    """Coefficients of exp(i l theta), l = -M ... M, of the harmonics of B_n."""
    (M, _), packed = letters.multipliers, letters.harmonics()[edge - 1]
    half = 0.5 * (packed[1 : M + 1] - 1j * packed[M + 1 :])
    return np.concatenate([half[::-1].conj(), [0.0], half])
