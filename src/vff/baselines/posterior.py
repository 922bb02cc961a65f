"""Posterior processes of the baselines, in standardised targets."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from vff.baselines.evidence import Evidence
from vff.baselines.features import AbstractFeatures, chunks
from vff.basis import Interval
from vff.inference import ClosedForm
from vff.kernels import HalfInteger
from vff.linalg import factorise


def _draw(
    mean: np.ndarray, covariance: np.ndarray, variance: float, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    # A floor well below anything visible keeps the factor defined where f is known to rounding.
    covariance[np.diag_indices_from(covariance)] += 1e-12 * variance
    white = rng.standard_normal((mean.size, n_samples))
    return mean[:, None] + factorise(covariance).sqrt_mv(white)


@dataclass(frozen=True)
class FeaturePosterior:
    """f(x) | y ~ GP( phi'm, variance * remainder + phi' A^-1 phi )."""

    interval: Interval
    features: AbstractFeatures
    variance: float
    mean: np.ndarray
    """m, (P,)."""
    covariance: np.ndarray
    """A^-1, (P, P)."""

    @classmethod
    def from_closed_form(
        cls, closed: ClosedForm, interval: Interval, features: AbstractFeatures, variance: float
    ) -> "FeaturePosterior":
        return cls(interval, features, variance, closed.mean, closed.factor.inverse())

    def outside(self, x: np.ndarray) -> np.ndarray:
        """No row is outside: the features are defined everywhere."""
        return np.zeros(x.size, dtype=bool)

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(N P^2)."""
        t = self.interval.to_unit(x)
        mean, variance = np.empty(t.size), np.empty(t.size)
        for rows in chunks(t.size, self.features.size):
            phi = self.features.evaluate(t[rows])
            mean[rows] = phi @ self.mean
            spread = np.einsum("np,np->n", phi @ self.covariance, phi)
            variance[rows] = self.variance * self.features.remainder(phi) + spread
        return mean, variance

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        t = self.interval.to_unit(x)
        phi = self.features.evaluate(t)
        remainder = self.features.remainder_covariance(t, phi)
        return phi @ self.mean, self.variance * remainder + phi @ self.covariance @ phi.T

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples)."""
        distinct, codes = np.unique(x, return_inverse=True)
        return _draw(*self.joint(distinct), self.variance, n_samples, rng)[codes]


@dataclass(frozen=True)
class ExactPosterior:
    """f(x) | y ~ GP( k(x, t) alpha, k(x, x') - k(x, t) C^-1 k(t, x') ) (Rasmussen & Williams, eqs 2.25-2.26)."""

    interval: Interval
    kernel: HalfInteger
    variance: float
    t: np.ndarray
    alpha: np.ndarray
    lower: np.ndarray
    """Cholesky factor of C, (N, N)."""

    @classmethod
    def from_evidence(cls, evidence: Evidence, interval: Interval) -> "ExactPosterior":
        lower = evidence.factor.lower
        return cls(interval, evidence.kernel, evidence.variance, evidence.t, evidence.alpha, lower)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """No row is outside: the kernel is defined everywhere."""
        return np.zeros(x.size, dtype=bool)

    def _cross(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """k(t, rows) alpha (n,) and L^-1 k(rows, t) (N, n)."""
        cross = self.variance * self.kernel.covariance(np.subtract.outer(self.t, t))
        return self.alpha @ cross, solve_triangular(self.lower, cross, lower=True, check_finite=False)

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(n N^2)."""
        t = self.interval.to_unit(x)
        mean, variance = np.empty(t.size), np.empty(t.size)
        for rows in chunks(t.size, self.t.size):
            mean[rows], whitened = self._cross(t[rows])
            variance[rows] = self.variance - np.einsum("nr,nr->r", whitened, whitened)
        # The difference is a variance; only rounding can carry it below zero.
        return mean, np.maximum(variance, 0.0)

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n,) and covariance (n, n) of f at all rows together."""
        t = self.interval.to_unit(x)
        mean, whitened = self._cross(t)
        prior = self.variance * self.kernel.covariance(np.subtract.outer(t, t))
        return mean, prior - whitened.T @ whitened

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (n, n_samples)."""
        distinct, codes = np.unique(x, return_inverse=True)
        return _draw(*self.joint(distinct), self.variance, n_samples, rng)[codes]
