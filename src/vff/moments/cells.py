"""Sums from cells: combinations of distinct values with the sums of their rows, where somebody else has counted.

The pass of a plan asks for every column with terms of its own and for every set of columns. Sums are linear in w and
w (y - offset), so a cell is as good as a row that carries the weight and the weighted target of all its rows.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vff.moments.engines import Choice
from vff.moments.plan import PassPlan
from vff.moments.run import Sums
from vff.moments.statistics import Moments


class Cells(NamedTuple):
    """Combinations of values of some columns."""

    columns: tuple[np.ndarray, ...]
    """(cells,) each."""
    w: np.ndarray
    weighted: np.ndarray
    """sum w (y - offset)."""


class Whole(NamedTuple):
    """What all rows sum to."""

    n: int
    weight: float
    target: float
    """sum w (y - offset)."""
    target_squared: float


def moments_of_cells(
    plan: PassPlan, cells: Callable[[tuple[int, ...]], Cells], whole: Whole, offset: float
) -> tuple[Moments, list[Choice]]:
    """The moments of rows that all lie inside, and the engine of every column.

    ``cells`` is asked for sets of columns; it may hand out a cell in several parts.
    """
    sums = Sums(plan)
    sums.n, sums.weight, sums.target, sums.target_squared = whole
    for one, own in (*sums.alone, *sums.sets):
        wanted = tuple(dict.fromkeys(one.columns))
        columns, w, weighted = cells(wanted)
        values = dict(zip(wanted, columns, strict=True))
        empty = zip(plan.empty(one), one.columns, strict=True)
        own.add([replace(column, x=values[c], remembered={}) for column, c in empty], w, weighted)
    return sums.moments(offset), sums.choices
