"""Matrices whose eigenvectors are known: the prior of levels that know their neighbours.

Eigenvectors belong to the neighbours and eigenvalues to the hyperparameters, so a matrix at other values shares V, and
what it keeps of another matrix M are the numbers v_k' M v_k.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.operators import AbstractInvertible, AbstractSymmetric
from vff.linalg.views import MatrixView, StructuredCotangent


@dataclass(frozen=True)
class Eigen(AbstractInvertible):
    """V diag(d) V' with an orthogonal V; d > 0 if it is to be solved with."""

    V: np.ndarray
    d: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.d.size, self.d.size

    @cached_property
    def _written(self) -> np.ndarray:
        if self.d.min() >= 0.0:
            half = self.V * np.sqrt(self.d)
            return half @ half.T  # symmetric, and half the work
        matrix = (self.V * self.d) @ self.V.T
        return 0.5 * (matrix + matrix.T)

    def scaled(self, factor: float) -> "Eigen":
        return Eigen(self.V, factor * self.d)

    def blended(self, own: float, other: "Eigen", weight: float) -> "Eigen":
        return Eigen(self.V, own * self.d + weight * other.d)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self.V @ (self.d * (self.V.T @ v).T).T

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        return np.asfortranarray(dense + self._written)

    def project(self, view: MatrixView) -> StructuredCotangent:
        return StructuredCotangent((self._along(view.times(self.V)),))

    def inner(self, other: StructuredCotangent) -> float:
        return float(self.d @ other.arrays()[0])

    def to_dense(self) -> np.ndarray:
        return self._written

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self.V @ ((self.V.T @ v).T / self.d).T

    def logdet(self) -> float:
        return float(np.log(self.d).sum())

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.sum(self._along(G @ self.V) / self.d))

    def project_inverse(self) -> StructuredCotangent:
        return StructuredCotangent((1.0 / self.d,))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return StructuredCotangent((self._along(G @ self.V) / self.d**2,))

    def _along(self, image: np.ndarray) -> np.ndarray:
        """v_k' M v_k of every k, from M V."""
        return np.einsum("pk,pk->k", self.V, image)
