"""A diagonal matrix: the prior of exchangeable effects."""

from dataclasses import dataclass

import numpy as np

from vff.linalg.operators import AbstractInvertible
from vff.linalg.views import Glimpse, Summary


@dataclass(frozen=True)
class Diagonal(AbstractInvertible):
    """diag(d), d > 0."""

    d: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.d.size, self.d.size

    def scaled(self, factor: float) -> "Diagonal":
        """factor times this matrix, factor > 0."""
        return Diagonal(factor * self.d)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return (self.d * v.T).T

    def diagonal(self) -> np.ndarray:
        return self.d

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        total = np.asfortranarray(dense.T)
        total[np.diag_indices_from(total)] += self.d
        return total

    @property
    def probes(self) -> np.ndarray:
        return np.zeros((self.d.size, 0))

    def keep(self, glimpse: Glimpse) -> Summary:
        assert glimpse.diagonal is not None
        return Summary((glimpse.diagonal,))

    def inner(self, other: Summary) -> float:
        return float(self.d @ other.arrays()[0])

    def to_dense(self) -> np.ndarray:
        return np.diag(self.d)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return (v.T / self.d).T

    def logdet(self) -> float:
        return float(np.log(self.d).sum())

    def trace_solve(self, dense: np.ndarray) -> float:
        return float(np.sum(np.diagonal(dense) / self.d))

    def see_inverse(self) -> Summary:
        return Summary((1.0 / self.d,))

    def see_sandwich(self, dense: np.ndarray) -> Summary:
        return Summary((np.diagonal(dense) / self.d**2,))

    @property
    def sqrt_size(self) -> int:
        return self.d.size

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        return (np.sqrt(self.d) * v.T).T
