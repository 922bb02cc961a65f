"""Columns of levels (categories): one indicator per level, and codes instead of coordinates."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Codes:
    """The place of a column that holds codes 0, 1, 2, ... already; -1 stands for a level never seen."""

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return x

    def contains(self, t: np.ndarray) -> np.ndarray:
        """Which rows hold a known level."""
        return t >= 0.0


@dataclass(frozen=True)
class Indicators:
    """Letters that are one on one level and zero on the others."""

    size: int

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """All letters at codes t, (N, size); a level never seen has none."""
        return (t[:, None] == np.arange(self.size)).astype(float)


@dataclass(frozen=True)
class LevelBasis:
    """The levels of a column. A product of two different indicators is zero, so single and double letters agree."""

    levels: tuple[Hashable, ...]

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

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """Every feature at codes t, (N, P)."""
        return self.single.evaluate(t)
