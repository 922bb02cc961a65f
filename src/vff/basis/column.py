"""One column's interval, and its features with their derivatives and edge states."""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from vff.basis.alphabet import Alphabet, double_alphabet, legendre_derivative, single_alphabet


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
        return ((x - self.a) - (self.b - x)) / (self.b - self.a)


@dataclass(frozen=True)
class ColumnBasis:
    """M harmonics and q Legendre polynomials on [-1, 1]."""

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
        power = m**derivative
        cos, sin = np.cos(angle) * power, np.sin(angle) * power
        turns = [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)]
        cosines, sines = turns[derivative % 4]
        edge = [legendre.legval(t, legendre_derivative(j, derivative)) for j in range(1, self.q + 1)]
        return np.concatenate([cosines, sines[:, 1:], np.array(edge).reshape(self.q, t.size).T], axis=1)

    def edge_state(self, t: float, p: int) -> np.ndarray:
        """Value and derivatives up to order p of every feature at the edge t = -1 or 1, (P, p + 1)."""
        # At both edges theta is a multiple of 2 pi, so the harmonics have exact zeros there; do not round them.
        state = np.zeros((self.size, p + 1))
        m = np.pi * np.arange(self.M + 1)
        for j in range(p + 1):
            value = (-1.0) ** (j // 2) * m**j
            if j % 2 == 0:
                state[: self.M + 1, j] = value
            else:
                state[self.M + 1 : self.harmonics, j] = value[1:]
            for degree in range(1, self.q + 1):
                state[self.harmonics + degree - 1, j] = legendre.legval(t, legendre_derivative(degree, j))
        return state
