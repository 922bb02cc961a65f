"""A dense matrix: the prior of the baselines, which has no structure to keep, and sums of products of most features."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.cholesky import Factor, factorise
from vff.linalg.operators import AbstractInvertible
from vff.linalg.symmetric import AbstractSymmetric
from vff.linalg.views import Glimpse, Summary


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

    def keep(self, glimpse: Glimpse) -> Summary:
        if glimpse.outer is not None:
            half = glimpse.outer[0] @ glimpse.outer[1].T
            return Summary((0.5 * (half + half.T),))
        assert glimpse.matrix is not None
        return Summary((glimpse.matrix,))

    def inner(self, other: Summary) -> float:
        return float(np.sum(self.matrix * other.parts[0]))

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.matrix)

    def part(self, place: slice) -> "Dense":
        return Dense(self.matrix[place, place])

    def dense(self) -> np.ndarray:
        return self.matrix

    to_dense = dense

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._factor.solve(v)

    def logdet(self) -> float:
        return self._factor.logdet()

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.trace(self.solve(G.dense())))

    def see_inverse(self) -> Summary:
        return Summary((self._factor.inverse(),))

    def see_sandwich(self, G: AbstractSymmetric) -> Summary:
        return Summary((self.solve(self.solve(G.dense()).T),))
