"""A dense matrix: the prior of the baselines, which has no structure to keep, and sums of products of most features."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.cholesky import Factor, factorise
from vff.linalg.operators import AbstractInvertible
from vff.linalg.symmetric import AbstractSymmetric
from vff.linalg.views import BlockView, StructuredCotangent


@dataclass(frozen=True)
class Dense(AbstractInvertible, AbstractSymmetric):
    """A symmetric matrix without structure; positive definite if it is to be solved with."""

    matrix: np.ndarray

    @cached_property
    def _factor(self) -> Factor:
        return factorise(np.tril(self.matrix))

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[0]

    def scaled(self, factor: float) -> "Dense":
        return Dense(factor * self.matrix)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self.matrix @ v

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        return np.asfortranarray(dense + self.matrix)

    @property
    def probes(self) -> None:
        return None

    def project_block(self, block_view: BlockView) -> StructuredCotangent:
        if block_view.outer is not None:
            half = block_view.outer[0] @ block_view.outer[1].T
            return StructuredCotangent((0.5 * (half + half.T),))
        assert block_view.matrix is not None
        return StructuredCotangent((block_view.matrix,))

    def inner(self, other: StructuredCotangent) -> float:
        return float(np.sum(self.matrix * other.parts[0]))

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.matrix)

    def part(self, own: slice) -> "Dense":
        return Dense(self.matrix[own, own])

    def dense(self) -> np.ndarray:
        return self.matrix

    to_dense = dense

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._factor.solve(v)

    def logdet(self) -> float:
        return self._factor.logdet()

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.trace(self.solve(G.dense())))

    def project_inverse(self) -> StructuredCotangent:
        return StructuredCotangent((self._factor.inverse(),))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return StructuredCotangent((self.solve(self.solve(G.dense()).T),))
