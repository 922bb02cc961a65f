"""A diagonal matrix: the prior of exchangeable effects, and sums of products of indicators."""

from dataclasses import dataclass

import numpy as np

from vff.linalg.operators import AbstractInvertible
from vff.linalg.symmetric import AbstractSymmetric
from vff.linalg.views import BlockView, EntryView, StructuredCotangent


@dataclass(frozen=True)
class Diagonal(AbstractInvertible, AbstractSymmetric):
    """diag(d); d > 0 if it is to be solved with."""

    d: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.d.size, self.d.size

    def scaled(self, factor: float) -> "Diagonal":
        """factor times this matrix, factor > 0."""
        return Diagonal(factor * self.d)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return (self.d * v.T).T

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        total = np.asfortranarray(dense.T)
        total[np.diag_indices_from(total)] += self.d
        return total

    @property
    def probes(self) -> np.ndarray:
        return np.zeros((self.d.size, 0))

    def project_block(self, block_view: BlockView) -> StructuredCotangent:
        assert block_view.diagonal is not None
        return StructuredCotangent((block_view.diagonal,))

    def inner(self, other: StructuredCotangent) -> float:
        return float(self.d @ other.arrays()[0])

    def diagonal(self) -> np.ndarray:
        return self.d

    def part(self, own: slice) -> "Diagonal":
        return Diagonal(self.d[own])

    def contract(self, view: EntryView) -> float:
        return float(self.d @ view.diagonal())

    def dense(self) -> np.ndarray:
        return np.diag(self.d)

    to_dense = dense

    def solve(self, v: np.ndarray) -> np.ndarray:
        return (v.T / self.d).T

    def logdet(self) -> float:
        return float(np.log(self.d).sum())

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.sum(G.diagonal() / self.d))

    def project_inverse(self) -> StructuredCotangent:
        return StructuredCotangent((1.0 / self.d,))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return StructuredCotangent((G.diagonal() / self.d**2,))
