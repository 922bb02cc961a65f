"""Kinds of factors, one folder each: a kernel on a column, the functions it is expanded in, and their prior.

``protocol`` says what a kind must be able to do, ``expression`` what users write and how it is added and multiplied,
``vff.kinds`` which kinds there are, and ``registry`` what belongs to one.
"""

from importlib import import_module

from vff.factors.expression import Column, Kernel, Leaf, Product, Sum
from vff.factors.outside import TailRows, tails_together, tails_without
from vff.factors.protocol import (
    Beyond,
    Block,
    ColumnRange,
    Factor,
    FactorOptions,
    Parameter,
    Prior,
    StartingPoint,
    TailSums,
    Values,
    WhiteFactor,
    by_differences,
    with_room,
)
from vff.factors.registry import KINDS, Kind
from vff.factors.terms import Term, normal_form, sum_of
from vff.factors.transform import EdgeTransform, StackedTransform, TermTransform
from vff.kinds import FACTORS

for _folder in FACTORS:
    KINDS.register(import_module(f"vff.factors.{_folder}").KIND)

from vff.factors.missing.beside import admitting, or_missing, rows_may_miss  # noqa: E402  once there are kinds

__all__ = [
    "KINDS",
    "Beyond",
    "Block",
    "Column",
    "ColumnRange",
    "EdgeTransform",
    "Factor",
    "FactorOptions",
    "Kernel",
    "Kind",
    "Leaf",
    "Parameter",
    "Prior",
    "Product",
    "StackedTransform",
    "StartingPoint",
    "Sum",
    "TailRows",
    "TailSums",
    "Term",
    "TermTransform",
    "Values",
    "WhiteFactor",
    "admitting",
    "by_differences",
    "normal_form",
    "or_missing",
    "rows_may_miss",
    "sum_of",
    "tails_together",
    "tails_without",
    "with_room",
]
