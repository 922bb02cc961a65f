"""What a matrix can do, in two levels: applied, and solved with."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np


class Summary(NamedTuple):
    """As much of a symmetric P x P matrix M as a structured matrix needs to be contracted with it."""

    diagonal: np.ndarray
    """diag(M), (P,)."""
    image: np.ndarray
    """M V for the probes V (P, R) of the structure."""


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
    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        """The lower triangle of K + dense, in Fortran order, written into ``dense``; how A is assembled."""

    @property
    @abstractmethod
    def probes(self) -> np.ndarray:
        """V (P, R): the few directions beside the diagonal in which this structure looks at another matrix."""

    @abstractmethod
    def inner(self, other: Summary) -> float:
        """<K, M> = sum_ij K_ij M_ij for a symmetric M of which only the summary is known."""

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
    def inverse_diagonal(self) -> np.ndarray:
        """diag(K^-1), (P,)."""

    @abstractmethod
    def sandwich_diagonal(self, dense: np.ndarray) -> np.ndarray:
        """diag(K^-1 dense K^-1) for a symmetric ``dense``, (P,)."""

    @abstractmethod
    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        """R v with R R' = K; R is P x ``sqrt_size``."""

    @property
    @abstractmethod
    def sqrt_size(self) -> int:
        """How many whitened variables R takes (at least P)."""
