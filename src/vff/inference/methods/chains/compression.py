"""Rows of one column carried to nodes once and for all: sums of smooth functions over rows, without the rows.

Where log p = y A(f) + extra B(f) + a constant, as of counts and labels, sum_n s_n g(x_n) = sum_nodes S g(node) with the
polynomials of ``interpolation``, S_j = sum_n s_n l_j(x_n). Two sums per node, of w y and of w extra, stand as rows
(1, 1) and (0, 1), whose log p are A + B and B. The log p of Student's t turns too sharply for that.
"""

from typing import NamedTuple

import numpy as np

from vff.inference.methods.chains.interpolation import NODES, Cells
from vff.inference.methods.natural.row_sites import Observed

_WORTH = 4.0  # rows per node, below which rows are as good
_CHUNK = 2**18


class Compressed(NamedTuple):
    """Nodes in [-1, 1], and two rows at every node, node after node."""

    nodes: np.ndarray
    y: np.ndarray
    extra: np.ndarray
    w: np.ndarray
    """Sums of weights; some are negative, as polynomials are."""


def compressed(M: int, t: np.ndarray, observed: Observed) -> Compressed | None:
    """Nodes for rows at t in [-1, 1]; None where that would not be fewer."""
    cells = Cells.of(M, t)
    if cells is None or t.size < _WORTH * cells.size:
        return None
    both = _sums(cells, t, [observed.w * observed.y, observed.w * observed.extra])
    w = np.stack([both[0], both[1] - both[0]], axis=1).reshape(-1)
    return Compressed(cells.nodes, np.tile([1.0, 0.0], cells.size), np.ones(2 * cells.size), w)


def _sums(cells: Cells, t: np.ndarray, strengths: list[np.ndarray]) -> list[np.ndarray]:
    """sum_n strength_n l_j(t_n) of every node, (nodes,) each."""
    totals = [np.zeros((NODES, cells.count)) for _ in strengths]
    for start in range(0, t.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        place = cells.place(t[rows])
        for j, weight in enumerate(cells.weights(t[rows], place)):
            for total, strength in zip(totals, strengths, strict=True):
                total[j] += np.bincount(place, strength[rows] * weight, cells.count)
    return [total.T.reshape(-1) for total in totals]
