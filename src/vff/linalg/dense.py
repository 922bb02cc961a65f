"""Matrices without structure, and diagonal ones: priors, and sums of products of features.

The prior of the baselines is dense, that of exchangeable effects diagonal; sums of products of indicators are, too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.cholesky import Factor, factorise
from vff.linalg.operators import AbstractInvertible, AbstractSymmetric
from vff.linalg.views import MatrixView, Probes, StructuredCotangent


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

    def blended(self, own: float, other: "Dense", weight: float) -> "Dense":
        return Dense(own * self.matrix + weight * other.matrix)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self.matrix @ v

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        return np.asfortranarray(dense + self.matrix)

    def project(self, view: MatrixView) -> StructuredCotangent:
        return StructuredCotangent((view.written(),))

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


@dataclass(frozen=True)
class Diagonal(AbstractInvertible, AbstractSymmetric):
    """diag(d); d > 0 if it is to be solved with."""

    d: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.d.size, self.d.size

    def scaled(self, factor: float) -> "Diagonal":
        return Diagonal(factor * self.d)

    def blended(self, own: float, other: "Diagonal", weight: float) -> "Diagonal":
        return Diagonal(own * self.d + weight * other.d)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return (self.d * v.T).T

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        total = np.asfortranarray(dense.T)
        total[np.diag_indices_from(total)] += self.d
        return total

    @property
    def probes(self) -> Probes:
        return np.zeros((self.d.size, 0))

    def project(self, view: MatrixView) -> StructuredCotangent:
        return StructuredCotangent((view.diagonal(),))

    def inner(self, other: StructuredCotangent) -> float:
        return float(self.d @ other.arrays()[0])

    def diagonal(self) -> np.ndarray:
        return self.d

    def part(self, own: slice) -> "Diagonal":
        return Diagonal(self.d[own])

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
