"""Alphabets: the real functions that are summed over rows, as sheets of harmonics times Legendre polynomials."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, combinations_with_replacement

import numpy as np
from numpy.polynomial import legendre


def legendre_rows(t: np.ndarray, q: int) -> np.ndarray:
    """P_1(t) ... P_q(t) as rows, (q, N), by the three-term recurrence."""
    rows = np.empty((q, t.size))
    previous, current = np.ones_like(t), t
    for n in range(1, q + 1):
        rows[n - 1] = current
        previous, current = current, ((2 * n + 1) * t * current - n * previous) / (n + 1)
    return rows


def legendre_derivative(degree: int, derivative: int) -> np.ndarray:
    """Legendre coefficients of the given derivative of P_degree."""
    unit = np.zeros(degree + 1)
    unit[degree] = 1.0
    return legendre.legder(unit, derivative) if derivative else unit


@dataclass(frozen=True)
class Sheet:
    """prod_j P_degrees[j](t) times cos(k theta), k = 0 ... K, then sin(k theta), k = 1 ... K; theta = pi (t + 1)."""

    degrees: tuple[int, ...]
    K: int

    @property
    def size(self) -> int:
        return 2 * self.K + 1

    def multiplier(self, polynomials: np.ndarray) -> np.ndarray | float:
        """The polynomial factor at the rows, given P_1 ... P_q there (q, N); 1.0 when there is none."""
        product: np.ndarray | float = 1.0
        for degree in self.degrees:
            product = product * polynomials[degree - 1]
        return product


@dataclass(frozen=True)
class Alphabet:
    """Sheets one after another; a moment vector has one entry per letter."""

    sheets: tuple[Sheet, ...]

    @cached_property
    def size(self) -> int:
        return sum(sheet.size for sheet in self.sheets)

    @property
    def highest_degree(self) -> int:
        """The largest Legendre degree in use."""
        return max((degree for sheet in self.sheets for degree in sheet.degrees), default=0)

    def slices(self) -> Iterator[tuple[Sheet, slice]]:
        """Each sheet with the places of its letters."""
        ends = list(accumulate(sheet.size for sheet in self.sheets))
        for sheet, end in zip(self.sheets, ends, strict=True):
            yield sheet, slice(end - sheet.size, end)

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """All letters at t, (N, size). The definition; engines avoid forming it."""
        polynomials = legendre_rows(t, self.highest_degree)
        largest = max(sheet.K for sheet in self.sheets)
        angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(largest + 1))
        cosines, sines = np.cos(angle), np.sin(angle[:, 1:])
        letters = np.empty((t.size, self.size))
        for sheet, place in self.slices():
            block = np.concatenate([cosines[:, : sheet.K + 1], sines[:, : sheet.K]], axis=1)
            factor = sheet.multiplier(polynomials)
            letters[:, place] = block if isinstance(factor, float) else block * factor[:, None]
        return letters

    def places_in(self, larger: "Alphabet") -> np.ndarray:
        """Where the letters of this alphabet stand in a larger one with the same polynomial factors (nested M)."""
        by_factor = {sheet.degrees: (sheet, place) for sheet, place in larger.slices()}
        found = []
        for sheet in self.sheets:
            host, place = by_factor[sheet.degrees]
            if sheet.K > host.K:
                raise ValueError(f"harmonics up to {sheet.K} were asked for; the sums stop at {host.K}")
            cosines = place.start + np.arange(sheet.K + 1)
            found += [cosines, place.start + host.K + 1 + np.arange(sheet.K)]
        return np.concatenate(found)


@cache
def single_alphabet(M: int, q: int) -> Alphabet:
    """The features themselves."""
    return Alphabet((Sheet((), M), *(Sheet((j,), 0) for j in range(1, q + 1))))


@cache
def double_alphabet(M: int, q: int) -> Alphabet:
    """A spanning set of all products of two features."""
    degrees = range(1, q + 1)
    pairs = combinations_with_replacement(degrees, 2)
    return Alphabet((Sheet((), 2 * M), *(Sheet((j,), M) for j in degrees), *(Sheet(pair, 0) for pair in pairs)))
