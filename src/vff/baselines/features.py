"""Two families of finite features, whitened, with their adjoints, and the closed-form model of either.

f(x) = phi(x)'c + remainder, c ~ N(0, I), |phi(x)|^2 <= k(x, x): the prior of c is the same whatever the family, and
only phi depends on the hyperparameters. Rows T, (N, C), are in half ranges of the data.

    inducing points      phi(t) = L^-1 k(z, t),  L L' = k(z, z)              remainder k(t, t') - phi(t)'phi(t')
    random frequencies   phi(t) = [cos(w t), sin(w t)] sqrt(variance / F)    no remainder

Whitening keeps log|K| and tr(K^-1 G) exact when k(z, z) is nearly singular. The jitter it may need (1e-15 to 1e-9 of
the diagonal, the least that helps, ``linalg.factorise``) acts as noise on the inducing variables: the bound stays one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm  # pyright: ignore[reportAttributeAccessIssue]

from vff.baselines.covariances import AbstractCovariance, Values, blocks, look
from vff.inference import (
    Cotangents,
    DirectLinearGaussian,
    Intercept,
    NormalEquations,
    Optimum,
    Slopes,
    maximise,
    rescale,
)
from vff.linalg import Dense, Diagonal, Factor, factorise, threads_for
from vff.parameters import PositiveVector

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


Equations = tuple[NormalEquations, Intercept | None]
"""What the rows contribute."""


@dataclass(frozen=True)
class FeatureModel:
    """Rows (T, y) under one family of features; T (N, C) in half ranges of the data, y standardised.

    With ``precision`` the rows are sites (s, l) that stand for another likelihood (natural gradients): y holds
    the pulls l, the noise is one, and b = Phi'l, G = Phi'SPhi.
    """

    kind: type[AbstractFeatures]
    covariance: AbstractCovariance
    T: np.ndarray
    y: np.ndarray
    coordinates: np.ndarray
    free: bool = False
    """Whether the coordinates are part of theta, after variances, lengthscales and noise."""
    precision: np.ndarray | None = None
    """s, (N,), of which some may be negative; None for observations with Gaussian noise."""
    intercept: float | None = None
    """Prior variance of a constant beside the features; None where there is none."""

    @property
    def parameters(self) -> PositiveVector:
        """Every entry of theta is the logarithm of a positive number; behind a coordinate c that number is exp(c)."""
        layout = self.covariance.layout
        if not self.free:
            return layout
        low, high = np.exp(self.kind.bounds)
        F = self.coordinates.size
        names = tuple(f"coordinate {i}" for i in range(F))
        return PositiveVector(layout.names + names, layout.lower + (low,) * F, layout.upper + (high,) * F)

    @property
    def _n_hyper(self) -> int:
        """How many entries of theta come before the coordinates."""
        return len(self.covariance.layout.names)

    def features(self, theta: np.ndarray) -> AbstractFeatures:
        """The features at these parameters."""
        values = self.covariance.values(theta[: self._n_hyper])
        moved = theta[self._n_hyper :].reshape(self.coordinates.shape) if self.free else self.coordinates
        return self.kind(self.covariance, values, moved)

    def equations(self, features: AbstractFeatures) -> Equations:
        """What the rows contribute, one pass in chunks."""
        b, h, G = np.zeros(features.size), np.zeros(features.size), np.zeros((features.size, features.size))
        for rows in chunks(self.y.size, features.size):
            phi = features.evaluate(self.T[rows])
            weighted = self._weighted(phi, rows)
            b += phi.T @ self.y[rows]
            h += weighted.sum(axis=0)
            G += phi.T @ weighted
        own = NormalEquations(self.weight, 0.0 if self.sites else float(self.y @ self.y), b, Dense(G))
        return own, None if self.intercept is None else Intercept(h, float(self.y.sum()), self.intercept)

    @property
    def sites(self) -> bool:
        return self.precision is not None

    @property
    def weight(self) -> float:
        """How many rows, or the sum of their precisions."""
        return float(self.y.size) if self.precision is None else float(self.precision.sum())

    def _weighted(self, phi: np.ndarray, rows: slice) -> np.ndarray:
        """S Phi, for some rows."""
        return phi if self.precision is None else self.precision[rows, None] * phi

    def closed(self, equations: Equations, values: Values) -> DirectLinearGaussian:
        """The model of whitened coefficients: their prior precision is I."""
        own, intercept = equations
        prior = Diagonal(np.ones(own.b.size))
        trace = values.variance * own.weight
        return DirectLinearGaussian.of(prior, own, trace, values.noise, sites=self.sites, intercept=intercept)

    def at(self, theta: np.ndarray) -> DirectLinearGaussian:
        features = self.features(theta)
        return self.closed(self.equations(features), features.values)

    def expands(self, closed: DirectLinearGaussian) -> bool:
        """Features move with their hyperparameters."""
        return False

    def slopes(self, theta: np.ndarray, closed: DirectLinearGaussian) -> Slopes:
        raise NotImplementedError("second derivatives of features that move are not known")

    def scales(self, closed: DirectLinearGaussian) -> np.ndarray:
        """Rough curvature in every parameter: the rows in the noise, the coefficients they determine in all others."""
        others = max(1.0, closed.cotangents.edf)
        names = self.parameters.names
        return np.array([closed.weight if name == "noise" else others for name in names])

    def pull_back(self, theta: np.ndarray, cotangents: Cotangents) -> np.ndarray:
        features = self.features(theta)
        dG, db = cotangents.gram(np.eye(features.size)), cotangents.projection
        shape = np.zeros(len(self.parameters.names) - 1)  # all of theta but the noise
        for rows in chunks(self.y.size, features.size):
            phi = features.evaluate(self.T[rows])
            weights = np.ones(len(phi)) if self.precision is None else self.precision[rows]
            cotangent = 2.0 * (self._weighted(phi, rows) @ dG) + np.multiply.outer(self.y[rows], db)
            cotangent += np.multiply.outer(weights, cotangents.features)
            shape += features.pull_back(self.T[rows], phi, cotangent, free=self.free)
        # the sum of w k(x, x) over the rows is the weight times the sum of the variances
        variances = features.values.variances
        shape[: variances.size] += cotangents.prior_trace * self.weight * variances
        hyper, moved = np.split(shape, [self._n_hyper - 1])
        return np.concatenate([hyper, [cotangents.log_noise], moved])


def learn(
    model: FeatureModel, given: Values, *, optimise: bool, release: bool, progress: Callable[[str], None]
) -> tuple[FeatureModel, Optimum, DirectLinearGaussian]:
    """Start from the data, learn the hyperparameters and then, with ``release``, the coordinates along with them."""
    with threads_for(2 * len(model.coordinates)):
        theta = start_of(model, given).theta
        if not optimise:
            closed = model.at(theta)
            return model, Optimum(theta, closed.elbo, 0, 1, True, "hyperparameters kept as given"), closed
        optimum, closed = maximise(model, theta)
        points = f"{len(model.coordinates)} coordinates"
        progress(f"{points} held: bound {optimum.elbo:.3f} nats after {optimum.steps} steps")
        if release:
            model = replace(model, free=True)
            optimum, closed = maximise(model, np.concatenate([optimum.theta, model.coordinates.ravel()]))
            progress(f"coordinates released: bound {optimum.elbo:.3f} nats after {optimum.steps} steps")
        return model, optimum, closed


def start_of(model: FeatureModel, given: Values) -> Values:
    """Where learning starts."""
    seen: dict[tuple[bytes, bytes], Equations] = {}  # which do not depend on the noise

    def score(values: Values, rescaled: bool) -> tuple[float, float]:
        key = values.variances.tobytes(), values.lengthscales.tobytes()
        if key not in seen:
            seen[key] = model.equations(model.kind(model.covariance, values, model.coordinates))
        closed = model.closed(seen[key], values)
        return rescale(closed) if rescaled else (1.0, closed.elbo)

    return look(score, given, model.covariance.first_lengthscale)
