"""Two families of finite features, whitened, with their adjoints.

f(x) = phi(x)'c + remainder, c ~ N(0, variance I), |phi(x)|^2 <= 1 and k(x, x) = variance: the prior precision of c is
I / variance whatever the family, and only phi depends on the rest. Positions t are in half ranges of the data.

    inducing points      phi(t) = L^-1 k(z, t),  L L' = k(z, z)              remainder k(t, t') - phi(t)'phi(t')
    random frequencies   phi(t) = [cos(w t), sin(w t)] / sqrt(F)             no remainder

Whitening keeps log|K| and tr(K^-1 G) exact when k(z, z) is nearly singular; the jitter it may need acts as noise on the
inducing variables, so the bound stays a bound.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from vff.kernels import HalfInteger
from vff.linalg import Factor, factorise

_CHUNK = 2**22  # entries of Phi held at a time


def chunks(n: int, width: int) -> Iterator[slice]:
    """Rows 0 ... n - 1 in pieces small enough to write ``width`` numbers for each."""
    step = max(1, _CHUNK // width)
    return (slice(start, start + step) for start in range(0, n, step))


@dataclass(frozen=True)
class AbstractFeatures(ABC):
    """P features at one lengthscale."""

    kernel: HalfInteger
    """Unit variance; its rate is per half range."""
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
    def places(self) -> np.ndarray:
        """What the coordinates stand for: points in half ranges, or angular frequencies per half range."""

    @abstractmethod
    def evaluate(self, t: np.ndarray) -> np.ndarray:
        """Phi, (N, P)."""

    @abstractmethod
    def pull_back(self, t: np.ndarray, phi: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        """d E / d (log lengthscale, coordinates) from dE/dPhi (N, P), a sum over the rows.

        For an E that does not change when Phi is rotated, as no quantity of this model does.
        """

    @abstractmethod
    def remainder(self, phi: np.ndarray) -> np.ndarray:
        """Prior variance that the features miss at every row, per unit variance, (N,)."""

    @abstractmethod
    def remainder_covariance(self, t: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """Prior covariance that the features miss, per unit variance, (N, N)."""


@dataclass(frozen=True)
class InducingPoints(AbstractFeatures):
    """Values of the process at the points z; the coordinates are z."""

    bounds = (-3.0, 3.0)

    @property
    def size(self) -> int:
        return self.coordinates.size

    @property
    def places(self) -> np.ndarray:
        return self.coordinates

    @cached_property
    def _factor(self) -> Factor:
        z = self.coordinates
        return factorise(self.kernel.covariance(np.subtract.outer(z, z)))

    def _lower_solve(self, v: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        return solve_triangular(self._factor.lower, v, lower=True, trans=int(transposed), check_finite=False)

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        return self._lower_solve(self.kernel.covariance(np.subtract.outer(self.coordinates, t))).T

    def pull_back(self, t: np.ndarray, phi: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        z = self.coordinates
        # Phi = k(t, z) L^-T. Rotation invariance makes S = (dE/dPhi)' Phi symmetric once all rows are in, and then
        # dE/dk(z, t) = L^-T (dE/dPhi)' and dE/dk(z, z) = -1/2 L^-T S L^-1: no derivative of a Cholesky factor.
        cross = self._lower_solve(cotangent.T, transposed=True)
        inner = self._lower_solve(cotangent.T @ phi, transposed=True)
        inner = -0.5 * self._lower_solve(inner.T, transposed=True)
        slopes = []
        gradient = np.zeros(z.size)
        for adjoint, other, share in ((cross, t, 1.0), (inner + inner.T, z, 0.5)):
            lag = np.subtract.outer(z, other)
            moved = adjoint * self.kernel.covariance_derivative(lag, 1)
            gradient += moved.sum(axis=1)
            # k depends on lag / lengthscale: dk / d log lengthscale = -lag k'(lag)
            slopes.append(-share * float(np.sum(moved * lag)))
        return np.concatenate([[sum(slopes)], gradient])

    def remainder(self, phi: np.ndarray) -> np.ndarray:
        return np.maximum(1.0 - np.einsum("np,np->n", phi, phi), 0.0)

    def remainder_covariance(self, t: np.ndarray, phi: np.ndarray) -> np.ndarray:
        return self.kernel.covariance(np.subtract.outer(t, t)) - phi @ phi.T


@dataclass(frozen=True)
class Frequencies(AbstractFeatures):
    """A cosine and a sine at each of F frequencies w = u / lengthscale; the coordinates are log u."""

    bounds = (float(np.log(1e-6)), float(np.log(1e6)))

    @property
    def size(self) -> int:
        return 2 * self.coordinates.size

    @property
    def places(self) -> np.ndarray:
        return np.exp(self.coordinates) * self.kernel.rate / np.sqrt(2 * self.kernel.p + 1)

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        F = self.coordinates.size
        phase = np.multiply.outer(t, self.places)
        phi = np.empty((t.size, 2 * F))
        np.cos(phase, out=phi[:, :F])
        np.sin(phase, out=phi[:, F:])
        phi /= np.sqrt(F)
        return phi

    def pull_back(self, t: np.ndarray, phi: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        F = self.coordinates.size
        cosine, sine = phi[:, :F], phi[:, F:]
        # d cos(w t) / d log w = -w t sin(w t), d sin(w t) / d log w = w t cos(w t)
        turned = self.places * (t @ (cotangent[:, F:] * cosine - cotangent[:, :F] * sine))
        return np.concatenate([[-turned.sum()], turned])

    def remainder(self, phi: np.ndarray) -> np.ndarray:
        return np.zeros(phi.shape[0])

    def remainder_covariance(self, t: np.ndarray, phi: np.ndarray) -> np.ndarray:
        return np.zeros((t.size, t.size))


def draw_frequencies(p: int, n: int, rng: np.random.RandomState) -> np.ndarray:
    """log |u| for n unit frequencies from the spectral density of the Matérn of order p.

    S(w) ~ (2p+1 + (w lengthscale)^2)^-(p+1): w times the lengthscale is Student-t with 2p + 1 degrees of freedom. A
    cosine and a sine do not see its sign.
    """
    return np.log(np.abs(rng.standard_t(2 * p + 1, size=n)))
