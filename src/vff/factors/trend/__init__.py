"""A trend that goes on: a Wiener process, or an integrated one, the smoothing spline (theory §19)."""

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.registry import Kind
from vff.factors.trend.factor import TrendFactor, TrendPrior
from vff.factors.trend.leaf import Trend

KIND = Kind("trend", (Trend,), TrendFactor, TrendPrior, ColumnBasis, Interval)

__all__ = ["KIND"]
