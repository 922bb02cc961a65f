"""One column's interval, and its features with their derivatives."""

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from typing import Self

import numpy as np

from vff.basis import Basis, Change, Domain, Products, Same
from vff.factors.interval.letters import (
    EdgeLetters,
    FewerHarmonics,
    bernoulli_rows,
    double_letters,
    harmonic_part,
    single_letters,
)
from vff.linalg import MatrixView, trigonometric_entries, trigonometric_gram, trigonometric_gram_adjoint

_MOST_EDGES, _MOST_HARMONICS = 16, 2**24  # that a file may ask for
_FAR = 2.0**1000  # differences of such numbers are still numbers


@dataclass(frozen=True)
class Interval(Domain):
    """[a, b] in the column's own units."""

    a: float
    b: float

    @property
    def half_length(self) -> float:
        return 0.5 * (self.b - self.a)

    @property
    def ends(self) -> tuple[float, float]:
        return self.a, self.b

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        """Map [a, b] to [-1, 1]. Written so that a and b themselves map to -1 and 1 exactly."""
        try:
            with np.errstate(over="raise"):
                return ((x - self.a) - (self.b - x)) / (self.b - self.a)
        except FloatingPointError:  # 2x or the quotient leaves float64: such rows are as far away as can be told
            half = ((0.5 * x - 0.5 * self.a) - (0.5 * self.b - 0.5 * x)) / 2.0
            with np.errstate(over="ignore"):
                return np.clip(half / (0.25 * self.b - 0.25 * self.a), -_FAR, _FAR)

    def contains(self, t: np.ndarray) -> np.ndarray:
        """Which rows, mapped by ``to_unit``, lie in the interval."""
        return np.abs(t) <= 1.0

    def holds(self, low: float, high: float) -> bool:
        return self.a <= low and high <= self.b

    def describe(self) -> str:
        return f"[{self.a:g}, {self.b:g}]"

    def outside_text(self, label: str) -> str:
        return f"lie outside the domain {self.describe()} of column {label} by more than a tenth of a lengthscale"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.uniform(self.a, self.b, n)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        return np.array([low]) if low == high else np.linspace(low, high, count)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        x = self.a + share * (self.b - self.a)
        x[-1] = self.b + 100.0 * (self.b - self.a)
        return x

    def check(self) -> None:
        if not (np.isfinite([self.a, self.b]).all() and self.a < self.b):
            raise ValueError(f"an interval was expected, found {self!r:.120}")


@cache
def _degrees(M: int) -> tuple[np.ndarray, np.ndarray]:
    """Degrees and frequencies of cosines 0 ... M and sines 1 ... M; every setting of the hyperparameters asks."""
    k = np.arange(M + 1)
    degrees = np.concatenate([k, k[1:]])
    omega = np.pi * degrees
    degrees.flags.writeable = omega.flags.writeable = False
    return degrees, omega


class HarmonicBasis(Basis):
    """M harmonics on [-1, 1], and q edge functions where a kind has them; M and q are fields, or known."""

    M: int
    q: int

    @property
    def harmonics(self) -> int:
        """H = 2M + 1."""
        return 2 * self.M + 1

    @property
    def size(self) -> int:
        """P = 2M + 1 + q."""
        return self.harmonics + self.q

    @property
    def degrees(self) -> np.ndarray:
        """Of every harmonic feature, (H,): cosines (with 0), then sines."""
        return _degrees(self.M)[0]

    @property
    def omega(self) -> np.ndarray:
        """Frequency of every harmonic feature, (H,)."""
        return _degrees(self.M)[1]

    @property
    def detail(self) -> int:
        return self.M

    @property
    def single(self) -> EdgeLetters:
        return single_letters(self.M, self.q)

    @property
    def double(self) -> EdgeLetters:
        return double_letters(self.M, self.q)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The given derivative (in t) of every feature at t in [-1, 1], (N, P)."""
        # d^j cos(w s) = w^j cos(w s + j pi/2), and the same for the sine: rotate by quarter turns, exactly.
        m = np.pi * np.arange(self.M + 1)
        angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(self.M + 1))
        cos, sin = np.cos(angle), np.sin(angle)
        waves = np.concatenate([cos, sin[:, 1:]], axis=1)
        edges = bernoulli_rows(t, self.q, derivative).T - waves @ harmonic_part(self.M, self.q, derivative).T
        cosines, sines = [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)][derivative % 4]
        power = m**derivative
        return np.concatenate([cosines * power, (sines * power)[:, 1:], edges], axis=1)

    def products(self) -> Products:
        return _products(self.M, self.q)

    @property
    def everywhere(self) -> bool:
        return True

    def _slices(self) -> list[slice]:
        return [part for _, part in self.double.slices]

    def pairs(self, sums: np.ndarray) -> np.ndarray:
        M, q, H, slices = self.M, self.q, self.harmonics, self._slices()
        gram = np.empty((self.size, self.size, *sums.shape[1:]))
        gram[:H, :H] = trigonometric_gram(sums[slices[0]], M)
        for j in range(q):
            gram[:H, H + j] = gram[H + j, :H] = sums[slices[1 + j]]
        for (i, j), part in zip(combinations_with_replacement(range(q), 2), slices[1 + q :], strict=True):
            gram[H + i, H + j] = gram[H + j, H + i] = sums[part][0]
        return gram

    def project(self, S: MatrixView) -> np.ndarray:
        q, H, slices, matrix = self.q, self.harmonics, self._slices(), S.written()
        letters = np.empty(self.double.size)
        letters[slices[0]] = trigonometric_gram_adjoint(matrix[:H, :H])
        for j in range(q):
            letters[slices[1 + j]] = matrix[:H, H + j] + matrix[H + j, :H]
        for (i, j), part in zip(combinations_with_replacement(range(q), 2), slices[1 + q :], strict=True):
            letters[part] = matrix[H + i, H + j] + (matrix[H + j, H + i] if i != j else 0.0)
        return letters

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        M, slices = self.M, self._slices()
        harmonics = sums[slices[0]]
        edges = [sums[part][:1] for part in slices[1 : 1 + self.q]]
        return np.concatenate([harmonics[: M + 1], harmonics[2 * M + 1 : 3 * M + 1], *edges])

    def joint(self, other: Basis) -> Self | None:
        if type(other) is not type(self):
            return None
        return type(self)(**{name: max(own, vars(other)[name]) for name, own in vars(self).items()})

    def to(self, smaller: Basis) -> Change:
        if smaller == self:
            return Same()
        if not isinstance(smaller, type(self)) or smaller.M > self.M or smaller.q > self.q:
            return super().to(smaller)
        return FewerHarmonics(self.M, self.q, smaller.M, smaller.q)

    def resized(self, detail: int) -> Self:
        return type(self)(**{**vars(self), "M": detail})

    def check(self) -> None:
        if not (1 <= self.M <= _MOST_HARMONICS and 0 <= self.q <= _MOST_EDGES):
            raise ValueError(f"harmonics and edges were expected, found {self!r:.120}")

    def harmonic_state(self, p: int) -> np.ndarray:
        """Value and derivatives up to order p of every harmonic at either edge, (H, p + 1); not to be written to."""
        return _harmonic_state(self.M, p)


@cache
def _harmonic_state(M: int, p: int) -> np.ndarray:
    # At both edges theta is a multiple of 2 pi, so there are exact zeros; do not round them.
    state = np.zeros((2 * M + 1, p + 1))
    m = np.pi * np.arange(M + 1)
    for j in range(p + 1):
        value = (-1.0) ** (j // 2) * m**j
        if j % 2 == 0:
            state[: M + 1, j] = value
        else:
            state[M + 1 :, j] = value[1:]
    return state


@dataclass(frozen=True)
class ColumnBasis(HarmonicBasis):
    """M harmonics and q edge functions."""

    M: int
    q: int
    family = "harmonics"


@lru_cache(maxsize=64)
def _products(M: int, q: int) -> Products:
    """What every letter contributes to every product of two features."""
    H, double = 2 * M + 1, double_letters(M, q)
    slices, entries = [part for _, part in double.slices], list(trigonometric_entries(M))
    harmonics = np.arange(H)
    for j in range(q):
        letters, edge, ones = slices[1 + j].start + harmonics, np.full(H, H + j), np.ones(H)
        entries += [(letters, harmonics, edge, ones), (letters, edge, harmonics, ones)]
    for (i, j), part in zip(combinations_with_replacement(range(q), 2), slices[1 + q :], strict=True):
        for row, column in {(i, j), (j, i)}:
            entries.append((np.array([part.start]), np.array([H + row]), np.array([H + column]), np.ones(1)))
    together = [np.concatenate(part) for part in zip(*entries, strict=True)]
    return Products.of(H + q, double.size, together, everywhere=True)
