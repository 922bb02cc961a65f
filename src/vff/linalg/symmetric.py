"""Symmetric matrices that sums over rows make: applied and looked at, with the structure that features give them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from vff.linalg.views import EntryView


class AbstractSymmetric(ABC):
    """A symmetric P x P matrix. Only who factors it may ask for all of it."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(P, P)."""

    @abstractmethod
    def mv(self, v: np.ndarray) -> np.ndarray:
        """The matrix times v, (P,) or (P, S)."""

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

    def contract(self, view: EntryView) -> float:
        """sum_ij G_ij M_ij with another symmetric matrix."""
        return float(np.sum(self.dense() * view.written()))

    def least_eigenvalue(self, scale: np.ndarray, border: tuple[np.ndarray, float] | None = None) -> float:
        """Of D^-1 G D^-1, D = diag(scale); or of [G b; b' y] with a row and a column more."""
        matrix = self.dense()
        if border is not None:
            b, y = border
            matrix = np.block([[matrix, b[:, None]], [b[None], np.array([[y]])]])
        return float(np.linalg.eigvalsh(matrix / scale / scale[:, None])[0])

    def contracted(self, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
        """For every d, the matrix contracted with all symmetric factors (P_e, P_e) but the d-th: (P_d, P_d)."""
        return contracted(self.dense(), factors)


def contracted(matrix: np.ndarray, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For every d, (P, P) contracted with all symmetric factors (P_e, P_e) but the d-th: (P_d, P_d)."""
    D, shape = len(factors), [factor.shape[0] for factor in factors]
    if D == 1:
        return [matrix]
    results: list[np.ndarray] = [matrix] * D
    # halves: contract the last factor away, and recurse; then the first ones away, for the last
    first_size = matrix.shape[0] // shape[-1]
    tensor = matrix.reshape(first_size, shape[-1], first_size, shape[-1])
    inner = np.tensordot(tensor, factors[-1], axes=([1, 3], [0, 1]))
    results[:-1] = contracted(inner, factors[:-1])
    first = factors[0]
    for factor in factors[1:-1]:
        first = np.kron(first, factor)
    results[-1] = np.tensordot(tensor, first, axes=([0, 2], [0, 1]))
    return results
