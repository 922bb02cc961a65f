"""Decisions taken before the rows are read: the most harmonics to sum, and the memory that they will take."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from vff.basis import Basis, Domain
from vff.factors import Factor, TailRows
from vff.inference.learning.levels import NONE, Exchangeable, crossing, eliminable, eliminated_axes
from vff.inference.learning.solver import choose_solver, most_probes
from vff.inference.solvers.level_sums import MOST_AT_NODES
from vff.inference.solvers.whitening import CORNER
from vff.moments import ColumnSummary, MomentRequest, RowBlock, lattice_size

_LARGEST_M = 1024
_LARGEST_SUM = 640  # harmonics of all terms of a sum together, give or take
_LEAST_M, _LEAST_SUM = 16, 256  # harmonics of a term, and of all together, that cost next to nothing
_LARGEST_PRODUCT, _LARGEST_PRODUCTS = 1600, 2000  # features of one product term, and of all together
_LEAST_PRODUCTS = 400  # features of all products together that cost next to nothing
_LEAST_IN_PRODUCT = 1
_EACH_LEVEL, _LARGEST_BY_LEVEL = 20, 2**19  # features of a product with many levels: of every level, and of all
_WIDER = 2.6  # times the features of a product, that are summed for growth to choose among
_NUMBER = 8  # bytes
_SQUARES = 6  # P x P matrices alive at once: Gram, in two coordinates, A, its factor, its inverse
_PAIR = 1.5  # numbers that a pair of levels takes: its weight, and where it stands
_VECTORS_OF_PAIRS = 160  # vectors of levels alive at once during the iterations
_SQUARES_OF_LEVELS = (
    4  # matrices of the second of two columns of levels alive at once: a factor, an inverse, what is kept
)
_MOST_ACROSS = 2**27  # numbers that levels share with other terms, a gibibyte
_LATTICES, _VECTORS = 3, 8  # arrays of that many probes alive at once during the iterations


def largest_harmonic(found: ColumnSummary, resolved: int, terms: int, distinct: int, *, growing: bool) -> int:
    """The most harmonics worth summing for one of several terms.

    ``distinct`` is the largest number of distinct values in any column, a measure of the rows that repeated rows do not
    change. About one feature per distinct value, not many more than rows in all, at most 1024 (640 shared among several
    terms), and what is ``resolved``. But a few rows may lie close together and far from others, and what harmonics the
    bound has no use for are not taken: as many as cost next to nothing are always summed.
    """
    most = _LARGEST_M if terms == 1 else max(_LEAST_M, _LARGEST_SUM // terms)
    least = least_of_few(terms)
    wanted = most if growing else np.clip(min(found.n_distinct // 2, distinct // terms) + 1, least, most)
    return int(min(wanted, resolved))


def least_of_few(terms: int) -> int:
    """Harmonics of one of several terms that cost next to nothing."""
    return max(_LEAST_M, _LEAST_SUM // terms)


def product_budget(products: int) -> float:
    """Features of one of several product terms, of all of which a Cholesky factor takes a fraction of a second."""
    return max(4.0, min(_LARGEST_PRODUCT, _LARGEST_PRODUCTS / products))


def harmonics_in_product(
    factors: Sequence[tuple[ColumnSummary, Basis]],
    products: int,
    rows: float,
    *,
    growing: bool,
    wider: Sequence[int] = (),
    levels: int = 1,
) -> list[int | None]:
    """The harmonics to sum for every factor of a product term: alike, but none more than its column has values for.

    ``factors`` has what is known of every column, and the least basis for it; ``products`` is how many product terms
    there are, ``rows`` how many different rows there may be. The features of all products share a number that a
    Cholesky factor handles in a fraction of a second, and are not many more than rows, or than cost next to nothing;
    when more rows are to come (``growing``), the first ones do not limit them. Those that are ``wider`` are summed for
    more: how a season of some shape and its drift share the features is for growth to find out, within the number.
    Where there are so many ``levels`` that they will be eliminated, each has some features of its own.
    """
    budget = max(product_budget(products), min(float(_LARGEST_BY_LEVEL), _EACH_LEVEL * levels))
    if not growing:
        budget = max(4.0, min(budget, max(rows, _LEAST_PRODUCTS / products)))
    M = [None if basis.detail is None else _LEAST_IN_PRODUCT for _, basis in factors]
    most = [int(budget) if growing else max(_LEAST_IN_PRODUCT, found.n_distinct // 2 + 1) for found, _ in factors]

    def size(trial: Sequence[int | None]) -> int:
        return prod(basis.resized(m).size if m else basis.size for (_, basis), m in zip(factors, trial, strict=True))

    M = _filled(M, most, budget, size, range(len(M)))
    return _filled(M, most, _WIDER * budget, size, wider)


def _filled(
    M: list[int | None],
    most: Sequence[int],
    budget: float,
    size: Callable[[Sequence[int | None]], int],
    which: Sequence[int],
) -> list[int | None]:
    """One more harmonic for the factor that has the fewest, as long as there is room."""
    open_ended = [d for d in which if M[d] is not None]
    while open_ended:
        d = min(open_ended, key=lambda e: M[e] or 0)
        grown = [m if m is None or e != d else m + 1 for e, m in enumerate(M)]
        if size(grown) > budget or (grown[d] or 0) > most[d]:
            open_ended.remove(d)
        else:
            M = grown
    return M


def fewer(
    request: MomentRequest, share: float, least: int, free: Sequence[Sequence[bool]] | None = None
) -> MomentRequest:
    """The same terms with a share of their harmonics, or the least there may be, where they are ``free``."""
    terms = []
    for s, term in enumerate(request.terms):
        for d, basis in enumerate(term.bases):
            if basis.detail is not None and (free is None or free[s][d]):
                term = term.with_basis(d, basis.resized(max(min(least, basis.detail), int(share * basis.detail))))
        terms.append(term)
    return MomentRequest(tuple(terms))


def rows_beyond(
    factor: Factor, domain: Domain, source: RowBlock, offset: float, piece: int = 2**20
) -> tuple[TailRows, ...]:
    """The rows of a single column that lie outside its domain, y measured from the offset."""
    tails: list[TailRows] = []
    for start in range(0, source.n, piece):
        rows = slice(start, min(start + piece, source.n))
        tails += factor.tails(domain, source.column(0, rows), source.y[rows] - offset, source.w[rows])
    return tuple(tails)


def memory_needed(request: MomentRequest, exchangeable: Exchangeable = NONE, rows: float = np.inf) -> int:
    """Bytes at the peak, for the sums and for the solver that will be used; ``rows`` are so many at most."""
    sums = sum(3 * prod(term.double_shape) for term in request.terms)
    blocks = 3.0 * sum(_between(request, s, t, rows) for s, t in request.pairs)
    chosen = choose_solver(request, None, exchangeable)
    if chosen.name == "eliminating":
        solver = _eliminating(request, exchangeable)
    elif chosen.name == "crossed":
        solver = _crossed(request, exchangeable, rows)
    else:
        solver = _SQUARES * request.size**2 if chosen.exact else _iterative(request)
    return _NUMBER * int(sums + blocks + solver)


def _between(request: MomentRequest, s: int, t: int, rows: float) -> float:
    """Numbers of the block of two terms."""
    every = request.sizes[s] * request.sizes[t]
    return min(every, _PAIR * rows) if request.pair((s, t)).sparse else every


def _crossed(request: MomentRequest, exchangeable: Exchangeable, rows: float) -> float:
    """Numbers beside the sums: pairs of levels, vectors of iterations, and the covariance of the second column."""
    one, two = crossing(request, exchangeable) or (0, 0)
    L, R = request.sizes[two], request.size - request.sizes[one] - request.sizes[two]
    pairs = _between(request, min(one, two), max(one, two), rows)
    return 3 * pairs + (request.size - R) * (4 * R + _VECTORS_OF_PAIRS) + _SQUARES_OF_LEVELS * (L + R) ** 2


def _eliminating(request: MomentRequest, exchangeable: Exchangeable) -> int:
    """Numbers beside the sums: what levels share with the other terms, in a few coordinates, and sums at nodes."""
    e, axes = eliminable(request, exchangeable), eliminated_axes(request, exchangeable)
    assert e is not None
    assert axes is not None
    L, R = request.sizes[e], request.size - request.sizes[e]
    if axes.within:  # blocks, their factors and covariances, and what the posterior keeps of the last two
        return 3 * L * R + 5 * L * axes.each + _SQUARES * R**2
    return 3 * L * R + min(MOST_AT_NODES, 100 * R**2) + _SQUARES * R**2


def beside_levels(
    request: MomentRequest, requested: Sequence[Sequence[int | None]], exchangeable: Exchangeable
) -> MomentRequest:
    """With as many harmonics as levels leave room for, where they are free: every level sums every other feature."""
    share, free = 1.0, [[M is None for M in own] for own in requested]
    smaller, solver = request, choose_solver(request, None, exchangeable)
    most = _MOST_ACROSS if solver.name in ("eliminating", "crossed") else np.inf
    while share > 1e-2:
        left = solver.factored(smaller, exchangeable)
        if (smaller.size - left) * left <= most:
            break
        share *= 0.9
        smaller = fewer(request, share, _LEAST_M // 2, free)
    return smaller


def _iterative(request: MomentRequest) -> int:
    """Numbers that iterations keep: probes, the corner, and what one column's nodes take to be found."""
    lattices = max(lattice_size(term) for term in request.terms)
    nodes = max(4 * basis.double.size * basis.node_count for term in request.terms for basis in term.bases)
    corner = sum(min(CORNER, size) for size in request.sizes)
    return most_probes(request.size) * (_LATTICES * lattices + _VECTORS * request.size) + 6 * corner**2 + nodes


def largest_that_fits(
    request: MomentRequest, room: float, exchangeable: Exchangeable = NONE, rows: float = np.inf
) -> MomentRequest | None:
    """The same terms with harmonics cut alike until they fit; None when even two per column do not."""
    share = 1.0
    while True:
        share *= 0.9
        smaller = fewer(request, share, 2)
        if memory_needed(smaller, exchangeable, rows) <= room:
            return smaller
        if all(M is None or M <= 2 for term in smaller.harmonics for M in term):
            return None
