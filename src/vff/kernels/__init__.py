"""Covariance functions: half-integer Matérns, effects of levels, their sums and products, and what the house asks.

A kernel is an *expression* the user writes (``Matern32("month") + Matern32("day") * Matern32("time")``). In normal
form it is a sum of terms, each a product of one-column factors with one variance. A Matérn factor publishes
nothing but its order p; ``matern`` holds the one formula behind all orders (design Fact D). A ``Categorical`` factor
has no shape. ``grammar`` writes an expression as text, exact to the last bit, and reads it back.
"""

from vff.kernels.expression import (
    Categorical,
    Factor,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Matern92,
    Product,
    Sum,
    Term,
    normal_form,
)
from vff.kernels.grammar import parse_kernel, write_kernel
from vff.kernels.matern import HalfInteger

__all__ = [
    "Categorical",
    "Factor",
    "HalfInteger",
    "Kernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "Matern72",
    "Matern92",
    "Product",
    "Sum",
    "Term",
    "normal_form",
    "parse_kernel",
    "write_kernel",
]
