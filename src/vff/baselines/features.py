"""Two families of finite features, whitened, with their adjoints.

f(x) = phi(x)'c + remainder, c ~ N(0, I), |phi(x)|^2 <= k(x, x): the prior of c is the same whatever the family, and
only phi depends on the hyperparameters. Rows T, (N, C), are in half ranges of the data.

    inducing points      phi(t) = L^-1 k(z, t),  L L' = k(z, z)              remainder k(t, t') - phi(t)'phi(t')
    random frequencies   phi(t) = [cos(w t), sin(w t)] sqrt(variance / F)    no remainder

Whitening keeps log|K| and tr(K^-1 G) exact when k(z, z) is nearly singular. The jitter it may need (1e-15 to 1e-9 of
the diagonal, the least that helps, ``linalg.factorise``) acts as noise on the inducing variables: the bound stays one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm  # pyright: ignore[reportAttributeAccessIssue]

from vff.baselines.covariances import AbstractCovariance, Values, blocks
from vff.linalg import Factor, factorise

_CHUNK = 2**22  # entries of Phi held at a time


def chunks(n: int, width: int) -> Iterator[slice]:
    """Rows 0 ... n - 1 in pieces small enough to write ``width`` numbers for each."""
    step = max(1, _CHUNK // width)
    return (slice(start, start + step) for start in range(0, max(n, 1), step))


@dataclass(frozen=True)
class AbstractFeatures(ABC):
    """P features at one setting of the hyperparameters."""

    covariance: AbstractCovariance
    values: Values
    coordinates: np.ndarray
    """The numbers that place the features, as an optimiser may move them freely."""
    bounds: ClassVar[tuple[float, float]]
    """How far each coordinate may move."""

    @property
    @abstractmethod
    def size(self) -> int:
        """P."""

    @property
    @abstractmethod
    def locations(self) -> np.ndarray:
        """What the coordinates stand for: points in half ranges, or angular frequencies per half range."""

    @abstractmethod
    def evaluate(self, T: np.ndarray) -> np.ndarray:
        """Phi, (N, P)."""

    @abstractmethod
    def pull_back(self, T: np.ndarray, phi: np.ndarray, cotangent: np.ndarray, *, free: bool) -> np.ndarray:
        """d E / d (log variances, log lengthscales) from dE/dPhi (N, P), a sum over the rows.

        With ``free`` those of the coordinates follow. For an E that does not change when Phi is rotated, as no quantity
        of this model does.
        """

    def remainder(self, T: np.ndarray, phi: np.ndarray, *, joint: bool) -> np.ndarray | float:
        """Prior variance that the features miss at every row, (N,), or the covariance, (N, N)."""
        return 0.0


@dataclass(frozen=True)
class InducingPoints(AbstractFeatures):
    """Values of the process at the points Z; the coordinates are Z, (P, C)."""

    bounds = (-3.0, 3.0)

    @property
    def size(self) -> int:
        return len(self.coordinates)

    @property
    def locations(self) -> np.ndarray:
        return self.coordinates

    @cached_property
    def _factor(self) -> Factor:
        return factorise(self.covariance.matrix(self.values, self.coordinates, self.coordinates))

    def _lower_solve(self, v: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """L^-1 v or L^-T v, written into v when that is in Fortran order."""
        return dtrsm(1.0, self._factor.lower, v, lower=1, trans_a=int(transposed), overwrite_b=1)

    def evaluate(self, T: np.ndarray) -> np.ndarray:
        # k(t, z) in C order is k(z, t) in Fortran order: BLAS solves where it stands, and nothing is copied.
        return self._lower_solve(self.covariance.matrix(self.values, T, self.coordinates).T).T

    def pull_back(self, T: np.ndarray, phi: np.ndarray, cotangent: np.ndarray, *, free: bool) -> np.ndarray:
        # Phi = k(t, z) L^-T. Rotation invariance makes S = (dE/dPhi)' Phi symmetric once all rows are in, and then
        # dE/dk(z, t) = L^-T (dE/dPhi)' and dE/dk(z, z) = -1/2 L^-T S L^-1: no derivative of a Cholesky factor.
        inner = self._lower_solve(cotangent.T @ phi, transposed=True)
        inner = -0.5 * self._lower_solve(inner.T.copy(order="F"), transposed=True)
        cross = self._lower_solve(cotangent.T.copy(order="F"), transposed=True)
        gradient = self._chain_hyper(T, cross) + self._chain_hyper(self.coordinates, inner)
        if not free:
            return gradient
        # both ends of k(z, z) move with z
        moved = self._chain_points(T, cross) + self._chain_points(self.coordinates, inner + inner.T)
        return np.concatenate([gradient, moved.ravel()])

    def _chain_hyper(self, S: np.ndarray, adjoint: np.ndarray) -> np.ndarray:
        """d E / d (log variances, log lengthscales) from dE/dk(Z, S), (P, n), a block of points at a time."""
        pieces = blocks(self.size, len(S))
        return sum(self.covariance.pull_back(self.values, self.coordinates[p], S, adjoint[p]) for p in pieces)  # pyright: ignore[reportReturnType]

    def _chain_points(self, S: np.ndarray, adjoint: np.ndarray) -> np.ndarray:
        """d E / d Z, (P, C), from dE/dk(Z, S)."""
        pieces = blocks(self.size, len(S))
        moved = [self.covariance.pull_back_rows(self.values, self.coordinates[p], S, adjoint[p]) for p in pieces]
        return np.concatenate(moved)

    def remainder(self, T: np.ndarray, phi: np.ndarray, *, joint: bool) -> np.ndarray | float:
        if joint:
            return self.covariance.matrix(self.values, T, T) - phi @ phi.T
        return np.maximum(self.values.variance - np.einsum("np,np->n", phi, phi), 0.0)


@dataclass(frozen=True)
class Frequencies(AbstractFeatures):
    """A cosine and a sine at each of F frequencies w = u / lengthscale of one column; coordinates log u, (F,)."""

    bounds = (float(np.log(1e-6)), float(np.log(1e6)))

    @property
    def size(self) -> int:
        return 2 * self.coordinates.size

    @property
    def locations(self) -> np.ndarray:
        return np.exp(self.coordinates) / self.values.lengthscales[0]

    def evaluate(self, T: np.ndarray) -> np.ndarray:
        F = self.coordinates.size
        phase = np.multiply.outer(T[:, 0], self.locations)
        phi = np.empty((len(T), 2 * F))
        np.cos(phase, out=phi[:, :F])
        np.sin(phase, out=phi[:, F:])
        phi *= np.sqrt(self.values.variance / F)
        return phi

    def pull_back(self, T: np.ndarray, phi: np.ndarray, cotangent: np.ndarray, *, free: bool) -> np.ndarray:
        F = self.coordinates.size
        cosine, sine = phi[:, :F], phi[:, F:]
        # d cos(w t) / d log w = -w t sin(w t), d sin(w t) / d log w = w t cos(w t)
        turned = self.locations * (T[:, 0] @ (cotangent[:, F:] * cosine - cotangent[:, :F] * sine))
        # Phi goes as the root of the variance
        hyper = [0.5 * np.einsum("np,np->", cotangent, phi), -turned.sum()]
        return np.concatenate([hyper, turned if free else []])
