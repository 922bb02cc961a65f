"""How much memory a model will take at its peak, from its request alone, and the nearest one that fits."""

from math import prod

from vff.inference.learning.harmonics import fewer
from vff.inference.learning.solver import choose_solver, most_probes
from vff.inference.solvers.whitening import CORNER
from vff.moments import MomentRequest, lattice_size

_NUMBER = 8  # bytes
_SQUARES = 6  # P x P matrices alive at once: Gram, in two coordinates, A, its factor, its inverse
_LATTICES, _VECTORS = 3, 8  # arrays of that many probes alive at once during the iterations


def memory_needed(request: MomentRequest) -> int:
    """Bytes, for the sums and for the solver that will be used."""
    sums = sum(3 * prod(term.double_shape) for term in request.terms)
    blocks = 3 * sum(request.sizes[s] * request.sizes[t] for s, t in request.pairs)
    solver = _SQUARES * request.size**2 if choose_solver(request).exact else _iterative(request)
    return _NUMBER * (sums + blocks + solver)


def _iterative(request: MomentRequest) -> int:
    """Numbers that iterations keep: probes, the corner, and what one column's nodes take to be found."""
    lattices = max(lattice_size(term) for term in request.terms)
    nodes = max(4 * basis.double.size * basis.node_count for term in request.terms for basis in term.bases)
    corner = sum(min(CORNER, size) for size in request.sizes)
    return most_probes(request.size) * (_LATTICES * lattices + _VECTORS * request.size) + 6 * corner**2 + nodes


def largest_that_fits(request: MomentRequest, room: float) -> MomentRequest | None:
    """The same terms with harmonics cut alike until they fit; None when even two per column do not."""
    share = 1.0
    while True:
        share *= 0.9
        smaller = fewer(request, share, 2)
        if memory_needed(smaller) <= room:
            return smaller
        if all(M is None or M <= 2 for term in smaller.harmonics for M in term):
            return None
