"""Letters that are harmonics, and multiples of them: what transforms are for."""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.basis.protocol import Letters
from vff.linalg import slices_of


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
        M, _ = self.multipliers
        angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(max(self.highest, M) + 1))
        cosines, sines = np.cos(angle), np.sin(angle[:, 1:])
        inner = np.concatenate([cosines[:, : M + 1], sines[:, :M]], axis=1)
        rows = self.polynomials(t) - self.harmonics() @ inner.T
        letters = np.empty((t.size, self.size))
        for block, place in self.slices:
            waves = np.concatenate([cosines[:, : block.K + 1], sines[:, : block.K]], axis=1)
            letters[:, place] = waves * np.reshape(block.multiplier(rows), (-1, 1))
        return letters
