"""Columns of levels (categories): one indicator per level, and codes instead of coordinates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from vff.basis import Basis, Change, Domain, Letters, Products, Same
from vff.linalg import Diagonal, EntryView


@dataclass(frozen=True)
class Codes(Domain):
    """The domain of a column that holds codes 0, 1, 2, ... already; -1 stands for a level never seen."""

    discrete: ClassVar[bool] = True

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return x

    def contains(self, t: np.ndarray) -> np.ndarray:
        """Which rows hold a known level."""
        return t >= 0.0

    def describe(self) -> str:
        return "levels"

    def outside_text(self, label: str) -> str:
        return f"hold a level of column {label} that the fit has not seen"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.integers(size, size=n).astype(float)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        return np.arange(float(size))

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        return np.arange(float(share.size)) % size


@dataclass(frozen=True)
class Indicators(Letters):
    """Letters that are one on one level and zero on the others."""

    levels: int

    @property
    def size(self) -> int:
        return self.levels

    @property
    def local(self) -> int:
        return 1

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """All letters at codes t, (N, size); a level never seen has none."""
        return (t[:, None] == np.arange(self.size)).astype(float)


@dataclass(frozen=True)
class LevelBasis(Basis):
    """The levels of a column. A product of two different indicators is zero, so single and double letters agree."""

    levels: tuple[Hashable, ...]
    family: ClassVar[str] = "levels"

    @property
    def size(self) -> int:
        """P, the number of levels."""
        return len(self.levels)

    @property
    def single(self) -> Indicators:
        return Indicators(self.size)

    @property
    def double(self) -> Indicators:
        return Indicators(self.size)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Every feature at codes t, (N, P); there is no slope."""
        return self.single.evaluate(t) if derivative == 0 else np.zeros((t.size, self.size))

    def products(self) -> Products:
        return _diagonal_products(self.size)

    @property
    def orthogonal(self) -> bool:
        return True

    def gram(self, sums: np.ndarray) -> Diagonal:
        return Diagonal(sums)

    def project(self, S: EntryView) -> np.ndarray:
        return S.diagonal()

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return sums

    def extended(self, values: Sequence[Any]) -> tuple["LevelBasis", Change]:
        levels = tuple(values)
        if levels == self.levels:
            return self, Same()
        positions = {level: position for position, level in enumerate(levels)}
        return LevelBasis(levels), MoreLevels(np.array([positions[level] for level in self.levels], int), len(levels))

    @property
    def node_count(self) -> int:
        return self.size

    def nodes(self) -> np.ndarray:
        return np.arange(float(self.size))

    def suits(self, domain: Domain) -> bool:
        return domain.discrete

    def check(self) -> None:
        if not 0 < len(set(self.levels)) == len(self.levels):
            raise ValueError(f"different levels were expected, found {self.levels[:5]!r:.120}")


@dataclass(frozen=True)
class MoreLevels(Change):
    """Levels that came later, of which the rows so far have none."""

    position: np.ndarray
    """Where the old levels stand among the new."""
    size: int

    def single(self, values: np.ndarray) -> np.ndarray:
        new = np.zeros((self.size, *values.shape[1:]))
        new[self.position] = values
        return new

    def single_transpose(self, values: np.ndarray) -> np.ndarray:
        return values[self.position]

    double, double_transpose = single, single_transpose


@lru_cache(maxsize=16)
def _diagonal_products(size: int) -> Products:
    every = np.arange(size)
    return Products.of(size, size, (every, every, every, np.ones(size)), everywhere=False)
