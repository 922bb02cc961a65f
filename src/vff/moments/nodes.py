"""Rows that stand for all rows: a lattice of nodes with weights that have the same sums (theory §11).

The letters of a column are smooth, so that Gauss-Legendre nodes a little closer than their highest harmonic asks for
are enough, and the weights of least norm stay about as large as those of the rows.
"""

from functools import lru_cache, reduce
from math import prod
from typing import NamedTuple

import numpy as np

from vff.basis.protocol import Basis
from vff.moments.engines.base import contract
from vff.moments.rows import TermRequest

_RESOLVED = 1e-13  # of the largest singular value


class _Nodes(NamedTuple):
    """Letters at nodes (Q, n) = left^-1 diag(values) right', left (R, Q), right (n, R)."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray


@lru_cache(maxsize=32)
def _nodes(basis: Basis) -> _Nodes:
    if basis.double.local == 1 and basis.node_count == basis.double.size:  # a node for every letter
        return _Nodes(np.eye(basis.double.size), np.ones(basis.double.size), np.eye(basis.double.size))
    letters = basis.double.evaluate(basis.nodes()).T
    scale = np.sqrt(np.mean(letters**2, axis=1))  # small letters are met as well as large ones
    left, values, right = np.linalg.svd(letters / scale[:, None], full_matrices=False)
    kept = values > _RESOLVED * values[0]
    return _Nodes(left[:, kept].T / scale, values[kept], right[kept].T)


def equivalent_weights(term: TermRequest, letters: np.ndarray) -> np.ndarray:
    """Weights on the lattice of nodes, an axis per column, with these sums of products of double letters.

    Of least norm; combinations of letters that all but vanish at every node are left out, in several columns together:
    they hold rounding, which would be blown up.
    """
    parts = [_nodes(basis) for basis in term.bases]
    core = contract(letters, [part.left for part in parts])
    values = reduce(np.multiply.outer, [part.values / part.values[0] for part in parts])
    kept = values > _RESOLVED
    core = np.divide(core, values, out=np.zeros_like(core), where=kept)
    core /= prod(float(part.values[0]) for part in parts)
    return contract(core, [part.right for part in parts])


def lattice_size(term: TermRequest) -> int:
    """Nodes of the whole lattice."""
    return prod(basis.node_count for basis in term.bases)
