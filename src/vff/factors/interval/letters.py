"""Letters of harmonics and edge functions."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from vff.basis import HarmonicBlock, TrigonometricLetters
from vff.factors.interval.bernoulli import bernoulli_rows, harmonic_part


@dataclass(frozen=True)
class EdgeLetters(TrigonometricLetters):
    """Blocks of harmonics times products of R_1 ... R_q, what harmonics up to M leave of B_1 ... B_q.

    Without edges, q = 0, they are harmonics and nothing else.
    """

    M: int
    q: int
    blocks: tuple[HarmonicBlock, ...]

    @property
    def multipliers(self) -> tuple[int, int]:
        return self.M, self.q

    def polynomials(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        return bernoulli_rows(t, self.q, derivative)

    def harmonics(self) -> np.ndarray:
        return harmonic_part(self.M, self.q)


@cache
def single_letters(M: int, q: int) -> EdgeLetters:
    """The features themselves."""
    edges = (HarmonicBlock((n,), 0) for n in range(1, q + 1))
    return EdgeLetters(M, q, (HarmonicBlock((), M), *edges))


@cache
def double_letters(M: int, q: int) -> EdgeLetters:
    """A spanning set of all products of two features."""
    crossed = (HarmonicBlock((n,), M) for n in range(1, q + 1))
    pairs = (HarmonicBlock(pair, 0) for pair in combinations_with_replacement(range(1, q + 1), 2))
    return EdgeLetters(M, q, (HarmonicBlock((), 2 * M), *crossed, *pairs))
