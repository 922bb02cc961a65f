"""The line: t = (x - origin) / scale, and as features t itself, or one and t."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from vff.basis import Basis, Change, Domain, Letters, Products


@dataclass(frozen=True)
class Line(Domain):
    """All real numbers, in units of a scale, from an origin. It has no outside."""

    scale: float
    origin: float = 0.0

    @classmethod
    def reaching(cls, low: float, high: float, origin: float | None = 0.0) -> "Line":
        """The smallest whose scale is a power of two that no number between two exceeds, from the origin.

        A power of two, because tables that reach about as far share it then: sums over both add up. Without an origin,
        about the middle, a multiple of a power of two of the reach.
        """
        if origin is None:
            step = _power_of_two(0.25 * (high - low))
            origin = float(step * np.round(0.5 * (low + high) / step))
        return cls(_power_of_two(max(abs(low - origin), abs(high - origin))), origin)

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return (x - self.origin) / self.scale

    @property
    def variable(self) -> Hashable:
        """A line is a line wherever it crosses zero."""
        return "line"

    @property
    def half_length(self) -> float:
        return self.scale

    def unit(self, kind: str = "length") -> float:
        """A "slope" is per unit of x, and a "variance" that of a slope."""
        return {"length": self.scale, "slope": 1.0 / self.scale, "variance": self.scale**-2.0}.get(kind, 1.0)

    def describe(self) -> str:
        return f"a line in units of {self.scale:g} from {self.origin:g}"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return self.origin + rng.uniform(-self.scale, self.scale, n)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        return np.linspace(low, high, count)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        return self.origin + self.scale * (2.0 * share - 1.0)

    def check(self) -> None:
        if not 0.0 < self.scale < np.inf or not np.isfinite(self.origin):
            raise ValueError(f"a positive scale and an origin were expected, found {self.scale!r} and {self.origin!r}")


def _power_of_two(reach: float) -> float:
    """The smallest that is not less; one for nothing."""
    share, exponent = np.frexp(reach)
    return float(np.ldexp(1.0, int(exponent) - int(share == 0.5))) if share > 0.0 else 1.0


@dataclass(frozen=True)
class Powers(Letters):
    """t^low ... t^high."""

    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def keys(self) -> Sequence[Hashable]:
        return [("power", k) for k in range(self.low, self.high + 1)]

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        letters = np.empty((t.size, self.size))
        letters[:, 0] = t**self.low
        for k in range(1, self.size):
            np.multiply(letters[:, k - 1], t, out=letters[:, k])
        return letters


@dataclass(frozen=True)
class LineBasis(Basis):
    """t, or one and t.

    The double letters are those and t^2: what a line alone needs of products is t^2, but the constant beside the terms
    meets the features by themselves.
    """

    intercept: bool
    family: ClassVar[str] = "line"

    @property
    def size(self) -> int:
        return 1 + self.intercept

    @property
    def single(self) -> Powers:
        return Powers(1 - self.intercept, 1)

    @property
    def double(self) -> Powers:
        return Powers(1 - self.intercept, 2)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        if derivative == 0:
            return self.single.evaluate(t)
        slopes = [0.0, 1.0] if derivative == 1 else [0.0, 0.0]
        return np.tile(slopes[-self.size :], (t.size, 1))

    def products(self) -> Products:
        return _products(self.intercept)

    @property
    def orthogonal(self) -> bool:
        return not self.intercept

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return sums[: self.size]

    def joint(self, other: Basis) -> "LineBasis | None":
        return LineBasis(self.intercept or other.intercept) if isinstance(other, LineBasis) else None

    def to(self, smaller: Basis) -> Change:
        holds = isinstance(smaller, LineBasis) and self.intercept and not smaller.intercept
        return WithoutOne() if holds else super().to(smaller)

    @property
    def node_count(self) -> int:
        return self.double.size

    def nodes(self) -> np.ndarray:
        """As many as letters: their weights are unique, and sum to those of the rows, or to sum w t^2."""
        return np.array([-1.0, 0.0, 1.0] if self.intercept else [-1.0, 1.0])


class WithoutOne(Change):
    """From letters 1, t, ... to t, ..."""

    def single(self, values: np.ndarray) -> np.ndarray:
        return values[1:]

    double = single

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros((1, *values.shape[1:])), values])


@lru_cache(maxsize=2)
def _products(intercept: bool) -> Products:
    """(letter, row, column) of every product of two features."""
    entries: Sequence[tuple[int, int, int]] = [(1, 0, 0)]
    if intercept:
        entries = [(0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1)]
    letter, row, column = np.array(entries).T
    size = 1 + intercept
    return Products.of(size, size + 1, (letter, row, column, np.ones(letter.size)), everywhere=True)
