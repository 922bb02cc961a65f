"""Cells of one column with Chebyshev nodes: a function of M harmonics is a polynomial on each, to rounding.

On cells no longer than half of the shortest wave, sixteen nodes carry exp(i omega x) to 1e-15, and exp(f) to 1e-9 where
f has an amplitude of four up to half of the highest frequency. It is the spreading step of a non-uniform Fourier
transform, with polynomials for a kernel.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

NODES = 16
_PER_WAVE, _FEWEST = 2, 4
_ANGLE = np.pi * (np.arange(NODES) + 0.5) / NODES
_CHEBYSHEV = -np.cos(_ANGLE)
_BARYCENTRIC = (-1.0) ** np.arange(NODES) * np.sin(_ANGLE)


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

    def place(self, t: np.ndarray) -> np.ndarray:
        """The cell of every row."""
        return np.clip(np.searchsorted(self._edges, t, side="right") - 1, 0, self.count - 1)

    def weights(self, t: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Of the nodes of its cell, for every row, (J, N): g(t) = sum_j weight_j g(node_j)."""
        low, high = self._edges[place], self._edges[place + 1]
        gap = 2.0 * (t - low) / (high - low) - 1.0 - _CHEBYSHEV[:, None]
        hit = gap == 0.0
        terms = _BARYCENTRIC[:, None] / np.where(hit, 1.0, gap)
        return np.where(hit.any(axis=0), hit.astype(float), terms / terms.sum(axis=0))
