"""A circle, and the harmonics on it: those of an interval whose ends meet."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vff.basis import Domain
from vff.factors.interval.basis import HarmonicBasis


@dataclass(frozen=True)
class Circle(Domain):
    """Inputs that mean the same after a period. It has no outside."""

    closed: ClassVar[bool] = True
    period: float

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        """Map one turn from 0 to [-1, 1). The remainder is exact, so that rows whole periods apart are one row."""
        return 2.0 * np.mod(x, self.period) / self.period - 1.0

    @property
    def half_length(self) -> float:
        return 0.5 * self.period

    def describe(self) -> str:
        return f"a circle of period {self.period:g}"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.uniform(0.0, self.period, n)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        """One whole turn, wherever the data lie: the curve ends where it began."""
        return np.linspace(0.0, self.period, count)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        return self.period * share

    def check(self) -> None:
        if not 0.0 < self.period < np.inf:
            raise ValueError(f"a period was expected, found {self.period!r}")


@dataclass(frozen=True)
class CircleBasis(HarmonicBasis):
    """Cosines 0 ... M and sines 1 ... M of one turn."""

    M: int
    q = 0
    family = "circle"
