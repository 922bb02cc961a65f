"""Rows that are averages of a Matérn over an interval, or whose inputs have error bars (theory §24).

Users write ``Matern32("t", width="exposure")`` or ``Matern32("x", std="x_err")``: the leaves are those of the interval.
"""

from vff.factors.blurred.basis import BlurredBasis, BlurredInterval
from vff.factors.blurred.factor import BlurredFactor, BlurredPrior
from vff.factors.blurred.letters import AveragedFeatures, ScatteredLetters, WidthLetters
from vff.factors.registry import Kind

_LETTERS = (AveragedFeatures, WidthLetters, ScatteredLetters)
KIND = Kind("blurred", (), BlurredFactor, BlurredPrior, BlurredBasis, BlurredInterval, _LETTERS)

__all__ = ["KIND"]
