"""Exchangeable effects of the levels of a column: what the user writes, and their prior."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vff.factors.expression import Leaf
from vff.factors.levels.basis import Codes, LevelBasis
from vff.factors.protocol import Beyond, Block, Factor, FactorOptions, Prior, Values
from vff.linalg import ScaledIdentity


@dataclass(frozen=True)
class LevelFactor(Factor[Codes, LevelBasis]):
    """Independent effects of equal variance, one per level."""

    family: ClassVar[str] = "levels"
    exchangeable: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "effects of levels"

    def least(self, options: FactorOptions) -> LevelBasis:
        return LevelBasis(options.levels)

    def spanning(self, low: float, high: float) -> Codes:
        return Codes()

    def one(self, basis: LevelBasis) -> np.ndarray:
        """The sum of all indicators."""
        return np.ones(basis.size)

    def prior(self, domain: Codes, basis: LevelBasis, values: Values) -> "LevelPrior":
        return LevelPrior(basis)

    def variances(self, basis: LevelBasis, values: Mapping[str, Any]) -> np.ndarray:
        return np.ones(basis.size)

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        return Block(np.equal.outer(x, z).astype(float), None, list, lambda: None)


@dataclass(frozen=True)
class LevelPrior(Prior[Codes, LevelBasis]):
    """Independent effects of unit variance; a level never seen has nothing in common with the others."""

    stored_as: ClassVar[str] = "LevelFactor"  # what files of all versions call it
    basis: LevelBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    @property
    def factor(self) -> LevelFactor:
        return LevelFactor()

    @property
    def domain(self) -> Codes:
        return Codes()

    @property
    def K(self) -> ScaledIdentity:
        return ScaledIdentity(self.basis.size)

    def readable(self) -> Sequence[tuple[str, float]]:
        return [(f"[{level}]", 1.0) for level in self.basis.levels]

    def beyond(self, x: np.ndarray) -> Sequence[Beyond]:
        """A level never seen has no features."""
        return ()

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Two rows of levels never seen are taken to be of different levels, unless they are the same row."""
        same = (x[:, None] == z) & (x[:, None] >= 0.0)
        if x is z:
            same |= np.diag(x < 0.0)
        return same.astype(float)


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
