"""Derivatives of the bound, and of what it misses, in everything that a linear-Gaussian model is made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vff.inference.solvers.records import Drift
from vff.linalg import AbstractSymmetric, OuterView, StructuredCotangent

if TYPE_CHECKING:
    from vff.inference.solvers.linear_gaussian import LinearGaussian

ROUNDING = 1e-12


@dataclass(frozen=True)
class Cotangents:
    """Derivatives of the objective, as far as each structure needs them."""

    log_prior: ClassVar[float] = 1.0
    """In the log prior of the hyperparameters."""
    model: "LinearGaussian"

    @cached_property
    def prior(self) -> StructuredCotangent:
        """dELBO / dK."""
        K, m = self.model.prior, self.model.mean[:, None]
        seen = self.model.projected_inverse + K.project(OuterView(m, m)) + -1.0 * K.project_inverse()
        return -0.5 * (seen + self.model.tau * self.model.projected_sandwich)

    @cached_property
    def edf(self) -> float:
        """tau tr(A^-1 G) = P - tr(A^-1 K): how many coefficients the data determine, and the constant among them."""
        model = self.model
        return model.mean.size - model.prior.inner(model.projected_inverse) + model.of_intercept.edf

    @cached_property
    def log_noise(self) -> float:
        """dELBO / d log noise."""
        model = self.model
        # tau m'Gm = tau m'b - m'Km: the structure of K again
        misfit = model.tau * (model.yy - model.pulled + model.residual) - model.penalty
        return -0.5 * (model.count - self.edf - misfit)

    def gram(self, Z: np.ndarray) -> np.ndarray:
        """Z' (dELBO / dG) Z for a few columns Z (P, R); the identity gives all of it."""
        model = self.model
        moment = Z.T @ (model.solve(Z) - model.prior.solve(Z)) + np.multiply.outer(m := Z.T @ model.mean, m)
        if (known := model.intercept_posterior) is not None:
            moment += known.variance * np.multiply.outer(u := Z.T @ known.answer, u)
        return -0.5 * model.tau * moment

    @property
    def projection(self) -> np.ndarray:
        """dELBO / db, (P,)."""
        return self.model.tau * self.model.mean

    @property
    def features(self) -> np.ndarray:
        """dELBO / dh of the constant, (P,)."""
        known = self.model.intercept_posterior
        if known is None:
            return np.zeros(self.model.b.size)
        return self.model.tau * (known.variance * known.answer - known.mean * self.model.mean)

    def along(self, drift: Drift) -> float:
        """The derivative of the bound when all that rows sum to drifts, and K does not."""
        found = self._along_gram(drift.G) + float(self.projection @ drift.b) + self.prior_trace * drift.prior_trace
        if drift.intercept is not None:
            found += float(self.features @ drift.intercept.features)
        return found + self._along_numbers(drift)

    def _along_gram(self, G: AbstractSymmetric) -> float:
        """<dELBO / dG, G>: all of A^-1 is written out."""
        model = self.model
        moment = float(np.sum(model.covariance() * G.dense())) - model.prior.trace_solve(G)
        moment += float(model.mean @ (G @ model.mean))
        if (known := model.intercept_posterior) is not None:
            moment += known.variance * float(known.answer @ (G @ known.answer))
        return -0.5 * model.tau * moment

    def _along_numbers(self, drift: Drift) -> float:
        known, tau = self.model.intercept_posterior, self.model.tau
        found = -0.5 * (tau * drift.yy + drift.log_noise)
        if known is None or drift.intercept is None:
            return found
        square = known.mean**2 + known.variance
        return found + tau * (known.mean * drift.intercept.target - 0.5 * square * drift.weight)

    @property
    def prior_trace(self) -> float:
        """dELBO / d sum w k(x, x)."""
        return -0.5 * self.model.tau * (1.0 + ROUNDING)


class GapCotangents(Cotangents):
    """Derivatives of T, answering to the same names. O(P^2)."""

    log_prior: ClassVar[float] = 0.0

    @cached_property
    def prior(self) -> StructuredCotangent:
        """dT / dK = tau/2 K^-1 G K^-1."""
        return 0.5 * self.model.tau * self.model.projected_sandwich

    @cached_property
    def log_noise(self) -> float:
        """T is proportional to 1 / noise."""
        return -0.5 * self.model.tau * self.model.residual

    def gram(self, Z: np.ndarray) -> np.ndarray:
        """Z' (dT / dG) Z = -tau/2 Z' K^-1 Z."""
        return -0.5 * self.model.tau * (Z.T @ self.model.prior.solve(Z))

    def _along_gram(self, G: AbstractSymmetric) -> float:
        """<dT / dG, G>."""
        return -0.5 * self.model.tau * self.model.prior.trace_solve(G)

    def _along_numbers(self, drift: Drift) -> float:
        return 0.0

    @property
    def projection(self) -> np.ndarray:
        """T does not see the targets."""
        return np.zeros(self.model.b.size)

    @property
    def features(self) -> np.ndarray:
        """Nor the constant."""
        return np.zeros(self.model.b.size)

    @property
    def prior_trace(self) -> float:
        """dT / d sum w k(x, x)."""
        return 0.5 * self.model.tau * (1.0 + ROUNDING)
