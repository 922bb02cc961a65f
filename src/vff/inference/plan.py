"""Decisions taken before the rows are read: the most harmonics to sum."""

from collections.abc import Sequence
from math import prod

import numpy as np

from vff.basis import Basis, Domain
from vff.factors import Factor, TailRows
from vff.moments import ColumnSummary, RowBlock

_LARGEST_M = 1024
_LARGEST_SUM = 640  # harmonics of all terms of a sum together, give or take
_LEAST_M, _LEAST_SUM = 16, 256  # harmonics of a term, and of all together, that cost next to nothing
_LARGEST_PRODUCT, _LARGEST_PRODUCTS = 1600, 2000  # features of one product term, and of all together
_LEAST_PRODUCTS = 400  # features of all products together that cost next to nothing
_LEAST_IN_PRODUCT = 1


def largest_harmonic(found: ColumnSummary, resolved: int, terms: int, distinct: int, *, growing: bool) -> int:
    """The most harmonics worth summing for one of several terms.

    ``distinct`` is the largest number of distinct values in any column, a measure of the rows that repeated rows do not
    change. About one feature per distinct value, not many more than rows in all, at most 1024 (640 shared among several
    terms), and what is ``resolved``. But a few rows may lie close together and far from others, and what harmonics the
    bound has no use for are not taken: as many as cost next to nothing are always summed.
    """
    most = _LARGEST_M if terms == 1 else max(_LEAST_M, _LARGEST_SUM // terms)
    least = max(_LEAST_M, _LEAST_SUM // terms)
    wanted = most if growing else np.clip(min(found.n_distinct // 2, distinct // terms) + 1, least, most)
    return int(min(wanted, resolved))


def harmonics_in_product(
    factors: Sequence[tuple[ColumnSummary, Basis]], products: int, rows: float, *, growing: bool
) -> list[int | None]:
    """The harmonics to sum for every factor of a product term: alike, but none more than its column has values for.

    ``factors`` has what is known of every column, and the least basis for it; ``products`` is how many product terms
    there are, ``rows`` how many different rows there may be. The features of all products share a number that a
    Cholesky factor handles in a fraction of a second, and are not many more than rows, or than cost next to nothing;
    when more rows are to come (``growing``), the first ones do not limit them.
    """
    budget = max(4.0, min(_LARGEST_PRODUCT, _LARGEST_PRODUCTS / products))
    if not growing:
        budget = max(4.0, min(budget, max(rows, _LEAST_PRODUCTS / products)))
    M = [None if basis.detail is None else _LEAST_IN_PRODUCT for _, basis in factors]
    most = [int(budget) if growing else max(_LEAST_IN_PRODUCT, found.n_distinct // 2 + 1) for found, _ in factors]

    def size(trial: Sequence[int | None]) -> int:
        return prod(basis.resized(m).size if m else basis.size for (_, basis), m in zip(factors, trial, strict=True))

    open_ended = [d for d, m in enumerate(M) if m is not None]
    while open_ended:
        d = min(open_ended, key=lambda e: M[e] or 0)
        grown = [m if m is None or e != d else m + 1 for e, m in enumerate(M)]
        if size(grown) > budget or (grown[d] or 0) > most[d]:
            open_ended.remove(d)
        else:
            M = grown
    return M


def rows_beyond(
    factor: Factor, domain: Domain, source: RowBlock, offset: float, piece: int = 2**20
) -> tuple[TailRows, ...]:
    """The rows of a single column that lie outside its domain, y measured from the offset."""
    tails: list[TailRows] = []
    for start in range(0, source.n, piece):
        rows = slice(start, min(start + piece, source.n))
        tails += factor.tails(domain, source.column(0, rows), source.y[rows] - offset, source.w[rows])
    return tuple(tails)
