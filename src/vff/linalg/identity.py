"""Multiples of the identity: the prior of exchangeable effects, of which one number is learnt."""

from dataclasses import dataclass

import numpy as np

from vff.linalg.operators import AbstractInvertible, AbstractSymmetric
from vff.linalg.views import MatrixView, Probes, StructuredCotangent


@dataclass(frozen=True)
class ScaledIdentity(AbstractInvertible):
    """scale * I; of another matrix it keeps the trace."""

    size: int
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size

    def scaled(self, factor: float) -> "ScaledIdentity":
        return ScaledIdentity(self.size, factor * self.scale)

    def blended(self, own: float, other: "ScaledIdentity", weight: float) -> "ScaledIdentity":
        return ScaledIdentity(self.size, own * self.scale + weight * other.scale)

    def mv(self, v: np.ndarray) -> np.ndarray:
        return self.scale * v

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        total = np.asfortranarray(dense.T)
        total[np.diag_indices_from(total)] += self.scale
        return total

    @property
    def probes(self) -> Probes:
        return np.zeros((self.size, 0))

    def project(self, view: MatrixView) -> StructuredCotangent:
        return self._kept(float(np.sum(view.diagonal())))

    def _kept(self, trace: float) -> StructuredCotangent:
        return StructuredCotangent((np.array([trace]),))

    def inner(self, other: StructuredCotangent) -> float:
        return self.scale * float(other.arrays()[0][0])

    def to_dense(self) -> np.ndarray:
        return self.scale * np.eye(self.size)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return v / self.scale

    def logdet(self) -> float:
        return self.size * float(np.log(self.scale))

    def trace_solve(self, G: AbstractSymmetric) -> float:
        return float(np.sum(G.diagonal())) / self.scale

    def project_inverse(self) -> StructuredCotangent:
        return self._kept(self.size / self.scale)

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return self._kept(float(np.sum(G.diagonal())) / self.scale**2)
