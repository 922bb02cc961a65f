"""How much memory a model will take at its peak, from its request alone, and the nearest one that fits."""

from math import prod

from vff.basis import ColumnBasis
from vff.inference.iterative import PROBES
from vff.inference.model import LARGEST_DIRECT
from vff.moments import MomentRequest, lattice_size

_NUMBER = 8  # bytes
_SQUARES = 6  # P x P matrices alive at once: Gram, in two coordinates, A, its factor, its inverse
_LATTICES, _VECTORS = 5, 10  # arrays of that many probes alive at once during the iterations


def memory_needed(request: MomentRequest) -> int:
    """Bytes, for the sums and for the solver that will be used."""
    sums = sum(3 * prod(term.double_shape) for term in request.terms)
    blocks = 3 * sum(request.sizes[s] * request.sizes[t] for s, t in request.pairs)
    if request.size <= LARGEST_DIRECT:
        return _NUMBER * (sums + blocks + _SQUARES * request.size**2)
    lattices = max(lattice_size(term) for term in request.terms)
    return _NUMBER * (sums + blocks + PROBES * (_LATTICES * lattices + _VECTORS * request.size))


def largest_that_fits(request: MomentRequest, room: float) -> MomentRequest | None:
    """The same terms with harmonics cut alike until they fit; None when even two per column do not."""
    share = 1.0
    while True:
        share *= 0.9
        smaller = _cut(request, share)
        if memory_needed(smaller) <= room:
            return smaller
        if all(M is None or M <= 2 for term in smaller.harmonics for M in term):
            return None


def _cut(request: MomentRequest, share: float) -> MomentRequest:
    terms = []
    for term in request.terms:
        for d, basis in enumerate(term.bases):
            if isinstance(basis, ColumnBasis):
                term = term.with_basis(d, ColumnBasis(max(2, int(share * basis.M)), basis.q))
        terms.append(term)
    return MomentRequest(tuple(terms))
