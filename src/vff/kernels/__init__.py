"""Covariance functions: half-integer Matérns, effects of levels, their sums and products, and their texts.

A kernel is an *expression* the user writes (``Matern32("month") + Matern32("day") * Matern32("time")``). In normal
form it is a sum of terms, each a product of one-column factors with one variance. What a kind of factor is, is written
in ``vff.factors``; here are the names that users know, and their texts. ``grammar`` writes an expression, exact to the
last bit; ``formula`` reads it back, and with it the formulas of others.
"""

from typing import Any

from vff.factors import KINDS as _KINDS
from vff.factors import Kernel, Product, Sum, Term, normal_form
from vff.factors import Leaf as Factor
from vff.factors.circle.factor import Periodic
from vff.factors.graph.leaf import Areas, Ordered
from vff.factors.interval.leaf import Matern12, Matern32, Matern52, Matern72, Matern92
from vff.factors.interval.matern import HalfInteger
from vff.factors.levels.factor import Categorical
from vff.factors.line.factor import Linear
from vff.factors.oscillator.factor import Oscillator
from vff.factors.sphere.factor import Sphere
from vff.factors.trend.leaf import Trend
from vff.kernels.grammar import write_kernel
from vff.kernels.reading import parse_kernel

__all__ = [
    "Areas",
    "Categorical",
    "Factor",
    "HalfInteger",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Matern72",
    "Matern92",
    "Ordered",
    "Oscillator",
    "Periodic",
    "Product",
    "Sphere",
    "Sum",
    "Term",
    "Trend",
    "normal_form",
    "parse_kernel",
    "write_kernel",
]


def __getattr__(name: str) -> Any:
    """What else there is to write, of kinds that came later."""
    if name in _KINDS.leaves:
        return _KINDS.leaves[name]
    raise AttributeError(f"module 'vff.kernels' has no attribute {name!r}; it has {', '.join(__all__)}")
