"""One column's interval, and its features with their derivatives."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from vff.basis.alphabet import Alphabet, double_alphabet, single_alphabet
from vff.basis.bernoulli import bernoulli_rows, harmonic_part

_FAR = 2.0**1000  # differences of such numbers are still numbers


@dataclass(frozen=True)
class Interval:
    """[a, b] in the column's own units."""

    a: float
    b: float

    @property
    def half_length(self) -> float:
        return 0.5 * (self.b - self.a)

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


@dataclass(frozen=True)
class ColumnBasis:
    """M harmonics and q edge functions on [-1, 1]."""

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
    def omega(self) -> np.ndarray:
        """Frequency of every harmonic feature, (H,): cosines (with 0), then sines."""
        m = np.pi * np.arange(self.M + 1)
        return np.concatenate([m, m[1:]])

    @property
    def single(self) -> Alphabet:
        return single_alphabet(self.M, self.q)

    @property
    def double(self) -> Alphabet:
        return double_alphabet(self.M, self.q)

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
