"""Features on an interval: their inner products, what lies outside, and those of L2. Written in ``vff.factors``."""

from vff.factors import EdgeTransform, StackedTransform, TailRows, TermTransform, tails_together, tails_without
from vff.factors.interval.l2 import L2Features
from vff.factors.interval.rkhs import ColumnPrior, PriorParts, outward_state, tail_features

__all__ = [
    "ColumnPrior",
    "EdgeTransform",
    "L2Features",
    "PriorParts",
    "StackedTransform",
    "TailRows",
    "TermTransform",
    "outward_state",
    "tail_features",
    "tails_together",
    "tails_without",
]
