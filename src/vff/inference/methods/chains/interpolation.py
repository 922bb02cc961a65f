"""Cells of one column with Chebyshev nodes: a function of M harmonics is a polynomial on each, to rounding.

On cells no longer than half of the shortest wave, sixteen nodes carry exp(i omega x) to 1e-15, and exp(f) to 1e-9 where
f has an amplitude of four up to half of the highest frequency. It is the spreading step of a non-uniform Fourier
transform, with polynomials for a kernel. Nodes carry functions to rows (``blocks``); or rows are carried to nodes once
and for all (``compressed``): sums of smooth functions over rows, without the rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.inference.methods.chains.points import Interpolated
from vff.inference.methods.natural.row_sites import Observed

NODES = 16
_PER_WAVE, _FEWEST = 2, 4
_ANGLE = np.pi * (np.arange(NODES) + 0.5) / NODES
_CHEBYSHEV = -np.cos(_ANGLE)
_BARYCENTRIC = (-1.0) ** np.arange(NODES) * np.sin(_ANGLE)
_WORTH = 4.0  # rows per node, below which rows are as good
_CHUNK, _BLOCK = 2**18, 128  # rows


@dataclass(frozen=True)
class Cells:
    """Equal cells over a part of [-1, 1]."""

    low: float
    high: float
    count: int

    @classmethod
    def of(cls, M: int, t: np.ndarray) -> "Cells | None":
        """For M harmonics where the rows are; None where they are all at one place."""
        low, high = float(t.min()), float(t.max())
        if not high > low:
            return None
        return cls(low, high, max(_FEWEST, int(np.ceil(_PER_WAVE * M * 0.5 * (high - low)))))

    @cached_property
    def _edges(self) -> np.ndarray:
        return np.linspace(self.low, self.high, self.count + 1)

    @property
    def size(self) -> int:
        """Nodes of all cells."""
        return self.count * NODES

    @property
    def nodes(self) -> np.ndarray:
        """Cell after cell, (size,)."""
        half = 0.5 * np.diff(self._edges)[:, None]
        return (self._edges[:-1, None] + half * (1.0 + _CHEBYSHEV)).reshape(-1)

    def cell_of(self, t: np.ndarray) -> np.ndarray:
        """The cell of every row."""
        return np.clip(np.searchsorted(self._edges, t, side="right") - 1, 0, self.count - 1)

    def weights(self, t: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """Of the nodes of its cell, for every row, (J, N): g(t) = sum_j weight_j g(node_j)."""
        low, high = self._edges[cell], self._edges[cell + 1]
        gap = 2.0 * (t - low) / (high - low) - 1.0 - _CHEBYSHEV[:, None]
        hit = gap == 0.0
        terms = _BARYCENTRIC[:, None] / np.where(hit, 1.0, gap)
        return np.where(hit.any(axis=0), hit.astype(float), terms / terms.sum(axis=0))

    def blocks(self, t: np.ndarray) -> Interpolated:
        """Rows sorted by cell, in blocks."""
        cell = self.cell_of(t)
        order = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=self.count)
        blocks = -(-counts // _BLOCK)
        # the first place of every cell, and from there on its rows one after another
        first = _BLOCK * np.concatenate([[0], np.cumsum(blocks)[:-1]])
        before = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place, total = np.empty(t.size, int), int(blocks.sum())
        place[order] = first[cell[order]] + np.arange(t.size) - before[cell[order]]
        weights, row = np.zeros((total * _BLOCK, NODES)), np.full(total * _BLOCK, t.size)
        weights[place] = self.weights(t, cell).T
        row[place] = np.arange(t.size)
        return Interpolated(weights.reshape(total, _BLOCK, NODES), np.repeat(np.arange(self.count), blocks), place, row)

    def sums(self, t: np.ndarray, strengths: list[np.ndarray]) -> list[np.ndarray]:
        """sum_n strength_n l_j(t_n) of every node, (nodes,) each."""
        totals = [np.zeros((NODES, self.count)) for _ in strengths]
        for start in range(0, t.size, _CHUNK):
            rows = slice(start, start + _CHUNK)
            cell = self.cell_of(t[rows])
            for j, weight in enumerate(self.weights(t[rows], cell)):
                for total, strength in zip(totals, strengths, strict=True):
                    total[j] += np.bincount(cell, strength[rows] * weight, self.count)
        return [total.T.reshape(-1) for total in totals]


def compressed(M: int, t: np.ndarray, observed: Observed) -> tuple[np.ndarray, Observed] | None:
    """Nodes for rows at t in [-1, 1], and two rows at every node, node after node; None where that would not be fewer.

    Where log p = y A(f) + extra B(f) + a constant, as of counts and labels, sum_n s_n g(x_n) = sum_nodes S g(node) with
    S_j = sum_n s_n l_j(x_n). Two sums per node, of w y and of w extra, stand as rows (1, 1) and (0, 1), whose log p are
    A + B and B; some weights are negative, as polynomials are. The log p of Student's t turns too sharply for that.
    """
    cells = Cells.of(M, t)
    if cells is None or t.size < _WORTH * cells.size:
        return None
    both = cells.sums(t, [observed.w * observed.y, observed.w * observed.extra])
    w = np.stack([both[0], both[1] - both[0]], axis=1).reshape(-1)
    return cells.nodes, Observed(np.tile([1.0, 0.0], cells.size), np.ones(2 * cells.size), w)
