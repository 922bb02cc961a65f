"""What a matrix can do, in two levels: applied, and solved with."""

from abc import ABC, abstractmethod

import numpy as np

from vff.linalg.symmetric import AbstractSymmetric
from vff.linalg.views import BlockView, MatrixView, StructuredCotangent


class AbstractOperator(ABC):
    """A symmetric P x P matrix that can be applied, added to and contracted."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(P, P)."""

    @abstractmethod
    def mv(self, v: np.ndarray) -> np.ndarray:
        """K v for v of shape (P,) or (P, S)."""

    @abstractmethod
    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        """The lower triangle of K + dense, in Fortran order, written into ``dense``; how A is assembled."""

    @property
    @abstractmethod
    def probes(self) -> np.ndarray | None:
        """V (P, R): the few directions beside the diagonal in which this structure looks at another; None for all."""

    @abstractmethod
    def project_block(self, block_view: BlockView) -> StructuredCotangent:
        """What this structure keeps of a matrix of which it was given a view."""

    def project(self, view: MatrixView) -> StructuredCotangent:
        """What this structure keeps of another matrix."""
        (block_view,) = view.blocks([slice(0, self.shape[0])], [self.probes])
        return self.project_block(block_view)

    @abstractmethod
    def inner(self, other: StructuredCotangent) -> float:
        """<K, M> = sum_ij K_ij M_ij for a symmetric M of which only the projection is known."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The matrix written out. For tests."""


class AbstractInvertible(AbstractOperator):
    """A symmetric positive definite matrix that can be solved with."""

    @abstractmethod
    def scaled(self, factor: float) -> "AbstractInvertible":
        """factor times this matrix, factor > 0."""

    @abstractmethod
    def solve(self, v: np.ndarray) -> np.ndarray:
        """K^-1 v for v of shape (P,) or (P, S)."""

    @abstractmethod
    def logdet(self) -> float:
        """log |K|."""

    @abstractmethod
    def trace_solve(self, G: AbstractSymmetric) -> float:
        """tr(K^-1 G)."""

    @abstractmethod
    def project_inverse(self) -> StructuredCotangent:
        """What this structure keeps of its own inverse K^-1."""

    @abstractmethod
    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        """What it keeps of K^-1 G K^-1."""
