"""What the user writes: effects of the levels of a column."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vff.factors.expression import Leaf
from vff.factors.levels.factor import LevelFactor


@dataclass(frozen=True, repr=False)
class Categorical(Leaf):
    """Exchangeable effects of the levels of a column: k(x, z) = variance * [x == z].

    Each level has a Gaussian effect of its own, and none is closer to one than to another. Missing (None or NaN) is a
    level like the others.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data.

    Examples
    --------
    >>> vff.Categorical("carrier", variance=2.0)(["UA", "AA"], ["AA"])
    array([[0.],
           [2.]])
    """

    nickname: ClassVar[str] = "cat"
    reads: ClassVar[str] = "levels"
    default_for: ClassVar[frozenset[str]] = frozenset({"text"})

    @property
    def factor(self) -> LevelFactor:
        return LevelFactor()

    def clash(self, other: Leaf) -> str:
        return "levels are told apart once"

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.equal.outer(_levels(x), _levels(z)).astype(float)


def _levels(values: Any) -> np.ndarray:
    """Values that can be compared one by one, NaN and NaT as None."""
    array = np.array(values, dtype=object)
    array[array != array] = None
    return array
