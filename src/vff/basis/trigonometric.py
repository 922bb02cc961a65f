"""Letters that are harmonics, and multiples of them: what transforms are for."""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.basis.protocol import Letters
from vff.linalg import slices_of

_FIRST = 8  # harmonics whose sines and cosines are computed


class HarmonicBlock(NamedTuple):
    """A product of multipliers times cos(k theta), k = 0 ... K, then sin(k theta), k = 1 ... K; theta = pi (t + 1)."""

    edges: tuple[int, ...]
    """Numbers of the multipliers, from one."""
    K: int

    @property
    def size(self) -> int:
        return 2 * self.K + 1

    def multiplier(self, rows: np.ndarray) -> np.ndarray | float:
        """The product at the rows, given all multipliers there (q, N); 1.0 when there is none."""
        product: np.ndarray | float = 1.0
        for n in self.edges:
            product = product * rows[n - 1]
        return product


def trim(waves: np.ndarray, K: int, k: int) -> np.ndarray:
    """Drop degrees above k from a trigonometric vector of degree K, cosines 0 ... K then sines 1 ... K."""
    return np.concatenate([waves[: k + 1], waves[K + 1 : K + 1 + k]])


def pad(waves: np.ndarray, k: int, K: int) -> np.ndarray:
    """The transpose of ``trim``."""
    padded = np.zeros((2 * K + 1, *waves.shape[1:]))
    padded[: k + 1] = waves[: k + 1]
    padded[K + 1 : K + 1 + k] = waves[k + 1 :]
    return padded


class TrigonometricLetters(Letters):
    """Blocks of harmonics times multipliers R_n, each a polynomial in t less its own harmonics up to some degree."""

    blocks: tuple[HarmonicBlock, ...]

    @property
    @abstractmethod
    def multipliers(self) -> tuple[int, int]:
        """(M, q): R_1 ... R_q less harmonics up to M. Letters with equal ones share them."""

    @abstractmethod
    def polynomials(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The given derivative of the polynomials of all multipliers at t, (q, N)."""

    @abstractmethod
    def harmonics(self) -> np.ndarray:
        """Cosine-then-sine coefficients of what is taken off them, (q, 2M + 1)."""

    @property
    def trigonometric(self) -> "TrigonometricLetters":
        return self

    @property
    def size(self) -> int:
        return self.slices[-1][1].stop

    @property
    def highest(self) -> int:
        """The highest harmonic of the blocks, without multipliers."""
        return max(block.K for block in self.blocks)

    @property
    def band(self) -> int:
        M, _ = self.multipliers
        return max(block.K + len(block.edges) * M for block in self.blocks)

    @cached_property
    def slices(self) -> tuple[tuple[HarmonicBlock, slice], ...]:
        """Each block with the places of its letters."""
        return tuple(zip(self.blocks, slices_of(block.size for block in self.blocks), strict=True))

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """All letters at t, (N, size). The definition; engines avoid forming it."""
        angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(self._most + 1))
        return self._from_waves(t, np.cos(angle), np.sin(angle))

    def evaluate_by_products(self, t: np.ndarray) -> np.ndarray:
        waves = harmonics_at(np.pi * (t + 1.0), self._most)
        return self._from_waves(t, np.real(waves), np.imag(waves))

    def evaluate_transposed(self, t: np.ndarray) -> np.ndarray:
        """The same as ``evaluate_by_products``, letter after letter, (size, N): each is next to itself in memory."""
        (M, q), K = self.multipliers, self._most
        waves = harmonic_rows(np.pi * (t + 1.0), K)
        rows, letters = np.empty((q, t.size)), np.empty((self.size, t.size))
        if q:
            taken = self.harmonics()
            rows = self.polynomials(t) - taken[:, : M + 1] @ waves[0, : M + 1]
            rows -= taken[:, M + 1 :] @ waves[1, 1 : M + 1]
        for block, place in self.slices:
            times, middle = block.multiplier(rows), place.start + block.K + 1
            np.multiply(waves[0, : block.K + 1], times, out=letters[place.start : middle])
            np.multiply(waves[1, 1 : block.K + 1], times, out=letters[middle : place.stop])
        return letters

    @property
    def _most(self) -> int:
        return max(self.highest, self.multipliers[0])

    def _from_waves(self, t: np.ndarray, cosines: np.ndarray, sines: np.ndarray) -> np.ndarray:
        """From cosines and sines of k theta, k = 0, 1, ..., (N, K + 1) each."""
        (M, _), taken = self.multipliers, self.harmonics()
        # few multipliers: threads of a matrix product would wait for one another
        inner = np.einsum("qk,nk->qn", taken[:, : M + 1], cosines[:, : M + 1])
        inner += np.einsum("qk,nk->qn", taken[:, M + 1 :], sines[:, 1 : M + 1])
        rows, letters = self.polynomials(t) - inner, np.empty((t.size, self.size))
        for block, place in self.slices:
            times, K, start = np.reshape(block.multiplier(rows), (-1, 1)), block.K, place.start
            np.multiply(cosines[:, : K + 1], times, out=letters[:, start : start + K + 1])
            np.multiply(sines[:, 1 : K + 1], times, out=letters[:, start + K + 1 : place.stop])
        return letters


def harmonic_rows(theta: np.ndarray, K: int) -> np.ndarray:
    """cos k theta and sin k theta, k = 0 ... K, (2, K + 1, N), by products as ``harmonics_at`` has them."""
    waves, first = np.empty((2, K + 1, theta.size)), min(_FIRST, K)
    cosines, sines = waves
    angle = np.multiply.outer(np.arange(first + 1), theta)
    np.cos(angle, out=cosines[: first + 1])
    np.sin(angle, out=sines[: first + 1])
    known = first
    while known < K:
        more = min(known, K - known)
        new, some = slice(known + 1, known + more + 1), slice(1, more + 1)
        c, s = cosines[known], sines[known]
        np.multiply(cosines[some], c, out=cosines[new])
        cosines[new] -= sines[some] * s
        np.multiply(sines[some], c, out=sines[new])
        sines[new] += cosines[some] * s
        known += more
    return waves


def harmonics_at(theta: np.ndarray, K: int) -> np.ndarray:
    """exp(i k theta), k = 0 ... K, (N, K + 1).

    The first few are sines and cosines; products of those that are there give as many again, which is several times
    faster. Their error is that of theta, k times, as that of the angle k theta is; but squares of a cosine and a sine
    add up to one less exactly than those of an angle do.
    """
    first = min(_FIRST, K)
    angle = np.multiply.outer(theta, np.arange(first + 1))
    waves = np.empty((theta.size, K + 1), complex)
    waves[:, : first + 1] = np.cos(angle) + 1j * np.sin(angle)
    known = first
    while known < K:
        more = min(known, K - known)
        last = waves[:, known : known + 1]
        np.multiply(waves[:, 1 : more + 1], last, out=waves[:, known + 1 : known + more + 1])
        known += more
    return waves
