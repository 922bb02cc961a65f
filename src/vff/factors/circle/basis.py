"""A circle, and the harmonics on it: those of an interval whose ends meet."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vff.basis import Basis, Change, Domain, Products
from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.letters import EdgeLetters


@dataclass(frozen=True)
class Circle(Domain):
    """Inputs that mean the same after a period. It has no outside."""

    period: float

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        """Map one turn from 0 to [-1, 1). The remainder is exact, so that rows whole periods apart are one row."""
        return 2.0 * np.mod(x, self.period) / self.period - 1.0

    def contains(self, t: np.ndarray) -> np.ndarray:
        return np.ones(t.shape, dtype=bool)

    def holds(self, low: float, high: float) -> bool:
        return True

    def unit(self, kind: str = "length") -> float:
        """Half a period is one length."""
        return 0.5 * self.period if kind == "length" else 1.0

    def describe(self) -> str:
        return f"a circle of period {self.period:g}"

    def outside_text(self, label: str) -> str:
        return f"lie outside the circle of column {label}"

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
class CircleBasis(Basis):
    """Cosines 0 ... M and sines 1 ... M of one turn: the harmonics of an interval, without edge functions."""

    M: int
    family: ClassVar[str] = "circle"

    @property
    def harmonics(self) -> ColumnBasis:
        """The same functions on an interval."""
        return ColumnBasis(self.M, 0)

    @property
    def size(self) -> int:
        return self.harmonics.size

    @property
    def detail(self) -> int:
        return self.M

    @property
    def single(self) -> EdgeLetters:
        return self.harmonics.single

    @property
    def double(self) -> EdgeLetters:
        return self.harmonics.double

    @property
    def everywhere(self) -> bool:
        return self.harmonics.everywhere

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        return self.harmonics.evaluate(t, derivative)

    def products(self) -> Products:
        return self.harmonics.products()

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return self.harmonics.features_sum(sums)

    def joint(self, other: Basis) -> "CircleBasis | None":
        return CircleBasis(max(self.M, other.M)) if isinstance(other, CircleBasis) else None

    def to(self, smaller: Basis) -> Change:
        if not isinstance(smaller, CircleBasis):
            return super().to(smaller)
        return self.harmonics.to(smaller.harmonics)

    def resized(self, detail: int) -> "CircleBasis":
        return CircleBasis(detail)

    def check(self) -> None:
        self.harmonics.check()
