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
_LEAST_M, _LEAST_SUM = 16, 256  # harmonics of a term, and of all together, that cost next to nothing
_LARGEST_PRODUCT, _LARGEST_PRODUCTS = 1600, 2000  # features of one product term, and of all together
_LEAST_PRODUCTS = 400  # features of all products together that cost next to nothing
_LEAST_IN_PRODUCT = 1


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
    terms), and what float64 resolves. But a few rows may lie close together and far from others, and what harmonics the
    bound has no use for are not taken: as many as cost next to nothing are always summed.
    """
    most = _LARGEST_M if terms == 1 else max(_LEAST_M, _LARGEST_SUM // terms)
    least = max(_LEAST_M, _LEAST_SUM // terms)
    wanted = most if growing else np.clip(min(found.distinct // 2, distinct // terms) + 1, least, most)
    return int(min(wanted, largest_resolved(q)))


def harmonics_in_product(
    factors: Sequence[tuple[Survey, int] | int], products: int, rows: float, *, growing: bool
) -> list[int | None]:
    """The harmonics to sum for every factor of a product term: alike, but none more than its column has values for.

    ``factors`` has what is known of a column of numbers and its edge functions, or a number of levels; ``products`` is
    how many product terms there are, ``rows`` how many different rows there may be. The features of all products share
    a number that a Cholesky factor handles in a fraction of a second, and are not many more than rows, or than cost
    next to nothing; when more rows are to come (``growing``), the first ones do not limit them.
    """
    budget = max(4.0, min(_LARGEST_PRODUCT, _LARGEST_PRODUCTS / products))
    if not growing:
        budget = max(4.0, min(budget, max(rows, _LEAST_PRODUCTS / products)))
    enough = [None if isinstance(one, int) else one[0].distinct // 2 + 1 for one in factors]
    most = [None if cap is None else int(budget) if growing else max(_LEAST_IN_PRODUCT, cap) for cap in enough]
    M = [None if cap is None else _LEAST_IN_PRODUCT for cap in most]

    def size(trial: Sequence[int | None]) -> int:
        both = zip(factors, trial, strict=True)
        return prod(one if isinstance(one, int) else 2 * (m or 0) + 1 + one[1] for one, m in both)

    open_ended = [d for d, cap in enumerate(most) if cap is not None]
    while open_ended:
        d = min(open_ended, key=lambda e: M[e] or 0)
        grown = [m if m is None or e != d else m + 1 for e, m in enumerate(M)]
        if size(grown) > budget or (grown[d] or 0) > (most[d] or 0):
            open_ended.remove(d)
        else:
            M = grown
    return M


def rows_beyond(interval: Interval, source: Source, offset: float, piece: int = 2**20) -> tuple[TailRows, ...]:
    """The rows of a single column that lie outside its interval, y measured from the offset."""
    tails: list[TailRows] = []
    for start in range(0, source.n, piece):
        rows = slice(start, min(start + piece, source.n))
        t, y, w = interval.to_unit(source.column(0, rows)), source.y[rows] - offset, source.w[rows]
        sides = [(side, side * t > 1.0) for side in (-1, 1)]
        tails += [TailRows(side, np.abs(t[out]) - 1.0, w[out], y[out]) for side, out in sides if out.any()]
    return tuple(tails)
