"""Alphabets: the real functions that are summed over rows, as sheets of harmonics times edge functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, combinations_with_replacement

import numpy as np

from vff.basis.bernoulli import bernoulli_rows, harmonic_part


@dataclass(frozen=True)
class Sheet:
    """prod_j R_edges[j] times cos(k theta), k = 0 ... K, then sin(k theta), k = 1 ... K; theta = pi (t + 1)."""

    edges: tuple[int, ...]
    K: int

    @property
    def size(self) -> int:
        return 2 * self.K + 1

    def multiplier(self, edge_rows: np.ndarray) -> np.ndarray | float:
        """The factor at the rows, given R_1 ... R_q there (q, N); 1.0 when there is none."""
        product: np.ndarray | float = 1.0
        for n in self.edges:
            product = product * edge_rows[n - 1]
        return product


@dataclass(frozen=True)
class Alphabet:
    """Sheets one after another; a moment vector has one entry per letter. M and q say what the R_n are."""

    M: int
    q: int
    sheets: tuple[Sheet, ...]

    @cached_property
    def size(self) -> int:
        return sum(sheet.size for sheet in self.sheets)

    @property
    def highest(self) -> int:
        """The highest harmonic in use."""
        return max(sheet.K for sheet in self.sheets)

    def slices(self) -> Iterator[tuple[Sheet, slice]]:
        """Each sheet with the places of its letters."""
        ends = list(accumulate(sheet.size for sheet in self.sheets))
        for sheet, end in zip(self.sheets, ends, strict=True):
            yield sheet, slice(end - sheet.size, end)

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """All letters at t, (N, size). The definition; engines avoid forming it."""
        angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(max(self.highest, self.M) + 1))
        cosines, sines = np.cos(angle), np.sin(angle[:, 1:])
        inner = np.concatenate([cosines[:, : self.M + 1], sines[:, : self.M]], axis=1)
        edge_rows = bernoulli_rows(t, self.q) - harmonic_part(self.M, self.q) @ inner.T
        letters = np.empty((t.size, self.size))
        for sheet, place in self.slices():
            block = np.concatenate([cosines[:, : sheet.K + 1], sines[:, : sheet.K]], axis=1)
            factor = sheet.multiplier(edge_rows)
            letters[:, place] = block * np.reshape(factor, (-1, 1))
        return letters


@cache
def single_alphabet(M: int, q: int) -> Alphabet:
    """The features themselves."""
    return Alphabet(M, q, (Sheet((), M), *(Sheet((n,), 0) for n in range(1, q + 1))))


@cache
def double_alphabet(M: int, q: int) -> Alphabet:
    """A spanning set of all products of two features."""
    edges = range(1, q + 1)
    pairs = combinations_with_replacement(edges, 2)
    return Alphabet(M, q, (Sheet((), 2 * M), *(Sheet((n,), M) for n in edges), *(Sheet(pair, 0) for pair in pairs)))
