"""Rows of one column carried to the nodes of local polynomials: sums of smooth functions over rows, without the rows.

f is a sum of M harmonics, so that log p(y | f(x)) at a fixed y is a smooth function of x. On cells no longer than
half of the shortest wave, a polynomial through a few Chebyshev nodes is that function to rounding, and

    sum_n w_n g(x_n) = sum_nodes W g(node),      W_j = sum_n w_n l_j(x_n),      l_j the Lagrange polynomials of a cell.

This is the spreading step of a non-uniform Fourier transform, taken once for all evaluations. It needs rows that say
one of few things: a sum of weights is kept for every pair of a node and a distinct (y, extra).
"""

from typing import NamedTuple

import numpy as np

from vff.inference.row_sites import Observed

_NODES = 16  # per cell: exp(i omega x) over half a wave to 1e-15, and powers of it to 1e-11
_CELLS_PER_WAVE, _FEWEST_CELLS = 2, 4
_WORTH = 4.0  # rows per node, below which rows are as good
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


def compressed(M: int, t: np.ndarray, observed: Observed) -> Compressed | None:
    """Nodes for rows at t in [-1, 1]; None where that would not be fewer."""
    low, high = float(t.min()), float(t.max())
    if not high > low:
        return None
    cells = max(_FEWEST_CELLS, int(np.ceil(_CELLS_PER_WAVE * M * 0.5 * (high - low))))
    if t.size < _WORTH * cells * _NODES:
        return None
    kinds = _kinds(observed, int(t.size / (_WORTH * cells * _NODES)))
    if kinds is None:
        return None
    (y, extra), codes = kinds
    edges = np.linspace(low, high, cells + 1)
    angle = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    cheb = -np.cos(angle)
    W = np.zeros((_NODES, cells * y.size))
    for start in range(0, t.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        place = np.clip(np.searchsorted(edges, t[rows], side="right") - 1, 0, cells - 1)
        local = 2.0 * (t[rows] - edges[place]) / (edges[place + 1] - edges[place]) - 1.0
        cell = place * y.size + codes[rows]
        for j, weight in enumerate(_lagrange(local, cheb, angle)):
            W[j] += np.bincount(cell, observed.w[rows] * weight, W.shape[1])
    half = 0.5 * np.diff(edges)[:, None]
    nodes = (edges[:-1, None] + half * (1.0 + cheb)).reshape(-1)
    w = W.reshape(_NODES, cells, y.size).transpose(1, 0, 2).reshape(-1)
    return Compressed(nodes, np.tile(y, nodes.size), np.tile(extra, nodes.size), w, y.size)


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


def _lagrange(x: np.ndarray, nodes: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Lagrange polynomials of Chebyshev nodes at x in [-1, 1], (J, N), by the barycentric formula."""
    weights = (-1.0) ** np.arange(nodes.size) * np.sin(angle)
    gap = x - nodes[:, None]
    hit = gap == 0.0
    terms = weights[:, None] / np.where(hit, 1.0, gap)
    values = terms / terms.sum(axis=0)
    return np.where(hit.any(axis=0), hit.astype(float), values)
