"""Exchangeable levels: independent effects of equal variance, one per level."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vff.factors.levels.basis import Codes, LevelBasis
from vff.factors.levels.prior import LevelPrior
from vff.factors.protocol import Block, Factor, FactorOptions, Values, WhiteFactor


@dataclass(frozen=True)
class LevelFactor(Factor[Codes, LevelBasis]):
    """Independent effects of equal variance, one per level."""

    family: ClassVar[str] = "levels"
    view: ClassVar[str] = "dots"

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

    def prior(self, domain: Codes, basis: LevelBasis, values: Values) -> LevelPrior:
        return LevelPrior(basis)

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        return Block(np.equal.outer(x, z).astype(float), None, list, lambda: None)

    def white(self, basis: LevelBasis) -> WhiteFactor[LevelBasis]:
        from vff.factors.levels.white import LevelWhite

        return LevelWhite(basis)
