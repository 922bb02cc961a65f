"""Rows of one column carried to nodes once and for all: sums of smooth functions over rows, without the rows.

f is a sum of M harmonics, so log p(y | f(x)) at a fixed y is a smooth function of x, and with the polynomials of
``cells``

    sum_n w_n g(x_n) = sum_nodes W g(node),      W_j = sum_n w_n l_j(x_n).

It needs rows that say one of few things: a sum of weights is kept for every pair of a node and a distinct (y, extra).
Where log p = y A(f) + extra B(f) + a constant, as of counts and labels, two sums per node are enough, sum w y and sum
w extra: they stand as rows (1, 1) and (0, 1), whose log p are A + B and B.
"""

from typing import NamedTuple

import numpy as np

from vff.inference.row_sites import Observed
from vff.inference.sampling.cells import NODES, Cells

_WORTH = 4.0  # rows per node and kind, below which rows are as good
_MOST_KINDS = 256
_CHUNK = 2**18


class Compressed(NamedTuple):
    """Nodes in [-1, 1], and what stands at every node: as many rows as there are kinds, node after node."""

    nodes: np.ndarray
    y: np.ndarray
    extra: np.ndarray
    w: np.ndarray
    """Sums of weights; some are negative, as polynomials are."""
    copies: int


def compressed(M: int, t: np.ndarray, observed: Observed, *, affine: bool) -> Compressed | None:
    """Nodes for rows at t in [-1, 1]; None where that would not be fewer."""
    cells = Cells.of(M, t)
    if cells is None or t.size < _WORTH * cells.size:
        return None
    if affine:
        both = _sums(cells, t, [observed.w * observed.y, observed.w * observed.extra])
        w = np.stack([both[0], both[1] - both[0]], axis=1).reshape(-1)
        return Compressed(cells.nodes, np.tile([1.0, 0.0], cells.size), np.ones(2 * cells.size), w, 2)
    kinds = _kinds(observed, int(t.size / (_WORTH * cells.size)))
    if kinds is None:
        return None
    (y, extra), codes = kinds
    by_kind = [_sums(cells, t[codes == kind], [observed.w[codes == kind]])[0] for kind in range(y.size)]
    w = np.stack(by_kind, axis=1).reshape(-1)
    return Compressed(cells.nodes, np.tile(y, cells.size), np.tile(extra, cells.size), w, y.size)


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


def _kinds(observed: Observed, most: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray] | None:
    """Distinct pairs of y and extra, and which of them every row has; None where they are many."""
    y, y_codes = np.unique(observed.y, return_inverse=True)
    extra, extra_codes = np.unique(observed.extra, return_inverse=True)
    if max(y.size, extra.size) > min(most, _MOST_KINDS):
        return None
    pairs, codes = np.unique(y_codes.reshape(-1) * extra.size + extra_codes.reshape(-1), return_inverse=True)
    if pairs.size > min(most, _MOST_KINDS):
        return None
    return (y[pairs // extra.size], extra[pairs % extra.size]), codes.reshape(-1)
