"""Straight lines: one feature, the column itself, and a constant beside it where intercepts follow slopes (§17)."""

from vff.factors.line.basis import Line, LineBasis, Powers
from vff.factors.line.factor import Linear, LineFactor, LinePrior
from vff.factors.registry import Kind

KIND = Kind("line", (Linear,), LineFactor, LinePrior, LineBasis, Line, (Powers,))

__all__ = ["KIND"]
