"""What a matrix can do, in two levels: applied, and solved with."""

from abc import ABC, abstractmethod

import numpy as np


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
    def diagonal(self) -> np.ndarray:
        """The diagonal, (P,)."""

    @abstractmethod
    def add_to(self, dense: np.ndarray) -> np.ndarray:
        """K + dense as a new dense array: how the posterior precision is assembled."""

    @abstractmethod
    def inner(self, dense: np.ndarray) -> float:
        """<K, dense> = sum_ij K_ij dense_ij for a symmetric ``dense``: how gradients are contracted."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The matrix written out. For tests."""


class AbstractInvertible(AbstractOperator):
    """A symmetric positive definite matrix that can be solved with."""

    @abstractmethod
    def solve(self, v: np.ndarray) -> np.ndarray:
        """K^-1 v for v of shape (P,) or (P, S)."""

    @abstractmethod
    def logdet(self) -> float:
        """log |K|."""

    @abstractmethod
    def trace_solve(self, dense: np.ndarray) -> float:
        """tr(K^-1 dense)."""

    @abstractmethod
    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        """R v with R R' = K; R is P x ``sqrt_size``."""

    @property
    @abstractmethod
    def sqrt_size(self) -> int:
        """How many whitened variables R takes (at least P)."""
