"""Exchangeable effects of levels: one indicator per level, and no shape."""

from vff.factors.levels.basis import Codes, Indicators, LevelBasis
from vff.factors.levels.factor import Categorical, LevelFactor, LevelPrior
from vff.factors.registry import Kind

KIND = Kind("levels", (Categorical,), LevelFactor, LevelPrior, LevelBasis, Codes, (Indicators,))

__all__ = ["KIND"]
