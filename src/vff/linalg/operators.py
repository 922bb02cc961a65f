"""What a matrix can do: symmetric ones that sums over rows make, structured ones, and those that are solved with."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.linalg.views import MatrixView, Probes, StructuredCotangent

if TYPE_CHECKING:
    from vff.linalg.by_level import LevelAxes


class _Matrix(ABC):
    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(P, P)."""

    @abstractmethod
    def mv(self, v: np.ndarray) -> np.ndarray:
        """The matrix times v, (P,) or (P, S)."""


class AbstractSymmetric(_Matrix):
    """A symmetric P x P matrix. Only who factors it may ask for all of it."""

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return self.mv(v)

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """The diagonal, (P,)."""

    @abstractmethod
    def dense(self) -> np.ndarray:
        """The matrix written out, (P, P); not to be written to."""

    @abstractmethod
    def part(self, own: slice) -> "AbstractSymmetric":
        """A block on the diagonal."""

    def by_level(self, axes: "LevelAxes") -> np.ndarray:
        """The blocks on the diagonal of the levels of a product, (L, m, m)."""
        return self.dense()[axes.places[:, :, None], axes.places[:, None, :]]

    def least_eigenvalue(self, scale: np.ndarray, border: tuple[np.ndarray, float] | None = None) -> float:
        """Of D^-1 G D^-1, D = diag(scale); or of [G b; b' y] with a row and a column more."""
        matrix = self.dense()
        if border is not None:
            b, y = border
            matrix = np.block([[matrix, b[:, None]], [b[None], np.array([[y]])]])
        return float(np.linalg.eigvalsh(matrix / scale / scale[:, None])[0])


class AbstractOperator(_Matrix):
    """A symmetric P x P matrix that can be applied, added to and contracted."""

    @property
    def probes(self) -> Probes:
        """V (P, R): the few directions beside the diagonal in which this structure looks at another; None for all."""
        return None

    @abstractmethod
    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        """The lower triangle of K + dense, in Fortran order, written into ``dense``; how A is assembled."""

    @abstractmethod
    def project(self, view: MatrixView) -> StructuredCotangent:
        """What this structure keeps of another matrix."""

    @abstractmethod
    def inner(self, other: StructuredCotangent) -> float:
        """<K, M> = sum_ij K_ij M_ij for a symmetric M of which only the projection is known."""

    @abstractmethod
    def blended(self, own: float, other: Any, weight: float) -> "AbstractOperator":
        """own K + weight other, of another matrix with the same structure."""

    def sheared(self, X: np.ndarray) -> "AbstractOperator":
        """R K R' with R = [[I, 0], [X, I]]; of structures that know what the first functions are."""
        raise TypeError(f"{type(self).__name__} has no functions that take others with them")

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The matrix written out. For tests, and for factors of a product, which are small."""


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
