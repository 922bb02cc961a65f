"""Decisions taken before the rows are read: the interval, and the most harmonics to sum."""

from collections.abc import Sequence
from math import prod

import numpy as np

from vff.basis import Interval, largest_resolved
from vff.features import TailRows
from vff.moments import Source, Survey

_PAPER_PADDING = 0.5  # of the data's range on each side, when no edge functions correct the ends
_ROOM_TO_GROW = 0.25  # the same, when more rows are to come
_LARGEST_M = 1024
_LARGEST_SUM = 640  # harmonics of all terms of a sum together, give or take
_LEAST_M = 16
_LARGEST_PRODUCT, _LARGEST_PRODUCTS = 2000, 3000  # features of one product term, and of all together
_LEAST_IN_PRODUCT = 2


def choose_domain(found: Survey, edges: int, *, growing: bool) -> Interval:
    """Hug the data when edge functions are there; pad, as the paper advises, when not, or when more rows will come."""
    if found.constant:
        # one value: any interval around it will do, as long as it follows the units of the column
        half = 0.5 * abs(found.low) or 1.0
        return Interval(found.low - half, found.low + half)
    share = _PAPER_PADDING if edges == 0 else _ROOM_TO_GROW if growing else 0.0
    pad = share * (found.high - found.low)
    return Interval(found.low - pad, found.high + pad)


def largest_harmonic(found: Survey, q: int, terms: int, distinct: int, *, growing: bool) -> int:
    """The most harmonics worth summing for one of several terms.

    ``distinct`` is the largest number of distinct values in any column, a measure of the rows that repeated rows do not
    change. About one feature per distinct value, not many more than rows in all, at most 1024 (640 shared among several
    terms), and what float64 resolves.
    """
    most = _LARGEST_M if terms == 1 else max(_LEAST_M, _LARGEST_SUM // terms)
    wanted = most if growing else np.clip(min(found.distinct // 2, distinct // terms) + 1, _LEAST_M, most)
    return int(min(wanted, largest_resolved(q)))


def largest_in_product(found: Survey, q: int, sizes: Sequence[int | None], products: int, *, growing: bool) -> int:
    """The most harmonics worth summing for a column of numbers in a product.

    ``sizes`` has the number of levels of every factor, None for numbers; ``products`` is how many product terms there
    are. The features of a product share a number that a Cholesky factor handles in a fraction of a second.
    """
    levels = prod(size for size in sizes if size is not None)
    numbers = sum(size is None for size in sizes)
    features = max(4.0, min(_LARGEST_PRODUCT, _LARGEST_PRODUCTS / products) / levels)
    most = max(_LEAST_IN_PRODUCT, int((features ** (1.0 / numbers) - 1.0 - q) / 2.0))
    enough = most if growing else max(_LEAST_IN_PRODUCT, found.distinct // 2 + 1)
    return min(most, enough)


def rows_beyond(interval: Interval, source: Source, offset: float, piece: int = 2**20) -> tuple[TailRows, ...]:
    """The rows of a single column that lie outside its interval, y measured from the offset."""
    tails: list[TailRows] = []
    for start in range(0, source.n, piece):
        rows = slice(start, min(start + piece, source.n))
        t, y, w = interval.to_unit(source.column(0, rows)), source.y[rows] - offset, source.w[rows]
        sides = [(side, side * t > 1.0) for side in (-1, 1)]
        tails += [TailRows(side, np.abs(t[out]) - 1.0, w[out], y[out]) for side, out in sides if out.any()]
    return tuple(tails)
