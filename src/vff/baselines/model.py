"""Any of the finite features as a closed-form model, and its learning."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from vff.baselines.features import AbstractFeatures, chunks
from vff.baselines.start import LAYOUT, look
from vff.inference import ClosedForm, Cotangents, NormalEquations, Optimum, maximise, rescale
from vff.kernels import HalfInteger
from vff.linalg import Dense, threads_for
from vff.parameters import PositiveVector


@dataclass(frozen=True)
class FeatureModel:
    """Rows (t, y) under one family of features; t in half ranges of the data, y standardised."""

    kind: type[AbstractFeatures]
    p: int
    t: np.ndarray
    y: np.ndarray
    coordinates: np.ndarray
    free: bool = False
    """Whether the coordinates are part of theta, after variance, lengthscale and noise."""

    @property
    def parameters(self) -> PositiveVector:
        """Every entry of theta is the logarithm of a positive number; behind a coordinate c that number is exp(c)."""
        if not self.free:
            return LAYOUT
        low, high = np.exp(self.kind.bounds)
        F = self.coordinates.size
        names = tuple(f"coordinate {i}" for i in range(F))
        return PositiveVector(LAYOUT.names + names, LAYOUT.lower + (low,) * F, LAYOUT.upper + (high,) * F)

    def features(self, theta: np.ndarray) -> AbstractFeatures:
        """The features at these parameters."""
        kernel = HalfInteger.from_lengthscale(self.p, LAYOUT.unpack(theta[:3])["lengthscale"])
        return self.kind(kernel, theta[3:] if self.free else self.coordinates)

    def equations(self, features: AbstractFeatures) -> NormalEquations:
        """What the rows contribute, one pass in chunks."""
        b, G = np.zeros(features.size), np.zeros((features.size, features.size))
        for rows in chunks(self.t.size, features.size):
            phi = features.evaluate(self.t[rows])
            b += phi.T @ self.y[rows]
            G += phi.T @ phi
        return NormalEquations(float(self.t.size), float(self.y @ self.y), b, G)

    def closed(self, equations: NormalEquations, variance: float, noise: float) -> ClosedForm:
        """The model of whitened coefficients: prior precision I / variance, k(x, x) = variance."""
        prior = Dense(np.eye(equations.b.size) / variance)
        return ClosedForm(prior, equations, variance * equations.weight, noise)

    def at(self, theta: np.ndarray) -> ClosedForm:
        values = LAYOUT.unpack(theta[:3])
        return self.closed(self.equations(self.features(theta)), values["variance"], values["noise"])

    def scales(self, closed: ClosedForm) -> np.ndarray:
        """Rough curvature in every parameter: the rows in the noise, the coefficients they determine in all others."""
        others = max(1.0, closed.cotangents.effective)
        names = self.parameters.names
        return np.array([closed.equations.weight if name == "noise" else others for name in names])

    def pull_back(self, theta: np.ndarray, cotangents: Cotangents) -> np.ndarray:
        features, closed = self.features(theta), cotangents.model
        # K = I / variance and sum k(x, x) = N variance: dE / d log variance = 1/2 (m'Km - effective - tau residual)
        mKm = float(closed.mean @ closed.prior.mv(closed.mean))
        d_variance = 0.5 * (mKm - cotangents.effective - closed.tau * closed.residual)
        dG, db = cotangents.gram(np.eye(features.size)), cotangents.projection
        shape = np.zeros(1 + features.coordinates.size)
        for rows in chunks(self.t.size, features.size):
            phi = features.evaluate(self.t[rows])
            cotangent = 2.0 * (phi @ dG) + np.multiply.outer(self.y[rows], db)
            shape += features.pull_back(self.t[rows], phi, cotangent)
        gradient = np.concatenate([[d_variance, shape[0], cotangents.log_noise], shape[1:]])
        return gradient if self.free else gradient[:3]


def learn(
    model: FeatureModel,
    given: Mapping[str, float | None],
    *,
    optimise: bool,
    release: bool,
    progress: Callable[[str], None],
) -> tuple[FeatureModel, Optimum]:
    """Start from the data, learn the hyperparameters and then, with ``release``, the coordinates along with them."""
    with threads_for(2 * model.coordinates.size):
        return _learn(model, given, optimise=optimise, release=release, progress=progress)


def _learn(
    model: FeatureModel,
    given: Mapping[str, float | None],
    *,
    optimise: bool,
    release: bool,
    progress: Callable[[str], None],
) -> tuple[FeatureModel, Optimum]:
    theta = LAYOUT.pack(_start(model, given))
    if not optimise:
        return model, Optimum(theta, model.at(theta).elbo, 0, 1, True, "hyperparameters kept as given")
    optimum, _ = maximise(model, theta)
    progress(f"{model.coordinates.size} coordinates held: bound {optimum.elbo:.3f} nats after {optimum.steps} steps")
    if release:
        model = replace(model, free=True)
        optimum, _ = maximise(model, np.concatenate([optimum.theta, model.coordinates]))
        progress(f"coordinates released: bound {optimum.elbo:.3f} nats after {optimum.steps} steps")
    return model, optimum


def _start(model: FeatureModel, given: Mapping[str, float | None]) -> dict[str, float]:
    @cache
    def equations(lengthscale: float) -> NormalEquations:
        kernel = HalfInteger.from_lengthscale(model.p, lengthscale)
        return model.equations(model.kind(kernel, model.coordinates))

    def score(values: Mapping[str, float], rescaled: bool) -> tuple[float, float]:
        closed = model.closed(equations(values["lengthscale"]), values["variance"], values["noise"])
        return rescale(closed) if rescaled else (1.0, closed.elbo)

    return look(score, given)
