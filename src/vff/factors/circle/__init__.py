"""Functions that come again after a period: harmonics on a circle, with a diagonal prior (theory §15)."""

from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.circle.factor import CircleFactor, CirclePrior, Periodic
from vff.factors.registry import Kind

KIND = Kind("circle", (Periodic,), CircleFactor, CirclePrior, CircleBasis, Circle)

__all__ = ["KIND"]
