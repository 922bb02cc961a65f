"""Any of the finite features as a closed-form model, and its learning."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vff.baselines.covariances import AbstractCovariance, Values, look
from vff.baselines.features import AbstractFeatures, chunks
from vff.inference import Cotangents, DirectLinearGaussian, Intercept, NormalEquations, Optimum, maximise, rescale
from vff.linalg import Dense, Diagonal, threads_for
from vff.parameters import PositiveVector

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
