"""A dense prior, for the baselines: inducing points and random features have no structure to keep."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.cholesky import Factor, factorise
from vff.linalg.operators import AbstractInvertible
from vff.linalg.views import Glimpse, Summary


@dataclass(frozen=True)
class Dense(AbstractInvertible):
    """A symmetric positive definite matrix without structure."""

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

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.matrix)

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

    def to_dense(self) -> np.ndarray:
        return self.matrix

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._factor.solve(v)

    def logdet(self) -> float:
        return self._factor.logdet()

    def trace_solve(self, dense: np.ndarray) -> float:
        return float(np.trace(self.solve(dense)))

    def see_inverse(self) -> Summary:
        return Summary((self._factor.inverse(),))

    def see_sandwich(self, dense: np.ndarray) -> Summary:
        return Summary((self.solve(self.solve(dense).T),))

    @property
    def sqrt_size(self) -> int:
        return self.shape[0]

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        return self._factor.sqrt_mv(v)
