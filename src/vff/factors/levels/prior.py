"""The prior of exchangeable levels; one never seen has nothing in common with the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from vff.factors.levels.basis import Codes, LevelBasis
from vff.factors.protocol import Beyond, Prior, Values
from vff.linalg import Diagonal

if TYPE_CHECKING:
    from vff.factors.levels.factor import LevelFactor


@dataclass(frozen=True)
class LevelPrior(Prior[Codes, LevelBasis]):
    """Independent effects of unit variance."""

    stored_as: ClassVar[str] = "LevelFactor"  # what files of all versions call it
    basis: LevelBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    @property
    def factor(self) -> "LevelFactor":
        from vff.factors.levels.factor import LevelFactor

        return LevelFactor()

    @property
    def values(self) -> Values:
        return {}

    @property
    def domain(self) -> Codes:
        return Codes()

    @property
    def K(self) -> Diagonal:
        return Diagonal(np.ones(self.basis.size))

    def derivative(self, name: str) -> NoReturn:
        raise KeyError(name)

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        return self.basis.evaluate(x)

    def beyond(self, x: np.ndarray) -> Sequence[Beyond]:
        """A level never seen has no features."""
        return ()

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Two rows of levels never seen are taken to be of different levels, unless they are the same row."""
        same = (x[:, None] == z) & (x[:, None] >= 0.0)
        if x is z:
            same |= np.diag(x < 0.0)
        return same.astype(float)
