"""Posterior processes of the baselines, in standardised targets."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from vff.baselines.covariances import AbstractCovariance, Values
from vff.baselines.design import to_unit
from vff.baselines.evidence import Evidence
from vff.baselines.features import AbstractFeatures, chunks
from vff.basis import Interval
from vff.inference import ClosedForm
from vff.linalg import factorise


def _one_column(x: np.ndarray) -> np.ndarray:
    """(N,) from (N,) or (N, 1)."""
    return x.reshape(len(x))


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
        return np.zeros(len(x), dtype=bool)

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, without its variance."""
        t = self.interval.to_unit(_one_column(x))
        return np.concatenate(
            [self.features.evaluate(t[rows]) @ self.mean for rows in chunks(t.size, self.features.size)]
        )

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(N P^2)."""
        t = self.interval.to_unit(_one_column(x))
        mean, variance = np.empty(t.size), np.empty(t.size)
        for rows in chunks(t.size, self.features.size):
            phi = self.features.evaluate(t[rows])
            mean[rows] = phi @ self.mean
            spread = np.einsum("np,np->n", phi @ self.covariance, phi)
            variance[rows] = self.variance * self.features.remainder(phi) + spread
        return mean, variance

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        t = self.interval.to_unit(_one_column(x))
        phi = self.features.evaluate(t)
        remainder = self.features.remainder_covariance(t, phi)
        return phi @ self.mean, self.variance * remainder + phi @ self.covariance @ phi.T

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples)."""
        distinct, codes = np.unique(_one_column(x), return_inverse=True)
        return _draw(*self.joint(distinct), self.variance, n_samples, rng)[codes]


@dataclass(frozen=True)
class ExactPosterior:
    """f(x) | y ~ GP( k(x, T) alpha, k(x, x') - k(x, T) C^-1 k(T, x') ) (Rasmussen & Williams, eqs 2.25-2.26)."""

    intervals: tuple[Interval, ...]
    covariance: AbstractCovariance
    values: Values
    T: np.ndarray
    """The rows of the fit, (N, C)."""
    alpha: np.ndarray
    lower: np.ndarray
    """Cholesky factor of C, (N, N)."""

    @classmethod
    def from_evidence(cls, evidence: Evidence, intervals: tuple[Interval, ...]) -> "ExactPosterior":
        lower = evidence.factor.lower
        return cls(intervals, evidence.covariance, evidence.values, evidence.T, evidence.alpha, lower)

    @property
    def variance(self) -> float:
        """k(x, x)."""
        return float(self.values.variances.sum())

    def outside(self, x: np.ndarray) -> np.ndarray:
        """No row is outside: the kernel is defined everywhere."""
        return np.zeros(len(x), dtype=bool)

    def _cross(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """k(T, rows) alpha (n,) and L^-1 k(rows, T) (N, n)."""
        cross = self.covariance.matrix(self.values, self.T, T)
        return self.alpha @ cross, solve_triangular(self.lower, cross, lower=True, check_finite=False)

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, O(n N): no triangular solve."""
        T = to_unit(self.intervals, x)
        pieces = chunks(len(T), len(self.T))
        return np.concatenate([self.covariance.matrix(self.values, T[rows], self.T) @ self.alpha for rows in pieces])

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(n N^2)."""
        T = to_unit(self.intervals, x)
        mean, variance = np.empty(len(T)), np.empty(len(T))
        for rows in chunks(len(T), len(self.T)):
            mean[rows], whitened = self._cross(T[rows])
            variance[rows] = self.variance - np.einsum("nr,nr->r", whitened, whitened)
        # The difference is a variance; only rounding can carry it below zero.
        return mean, np.maximum(variance, 0.0)

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n,) and covariance (n, n) of f at all rows together."""
        T = to_unit(self.intervals, x)
        mean, whitened = self._cross(T)
        return mean, self.covariance.matrix(self.values, T, T) - whitened.T @ whitened

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (n, n_samples)."""
        distinct, codes = np.unique(x.reshape(len(x), -1), axis=0, return_inverse=True)
        return _draw(*self.joint(distinct), self.variance, n_samples, rng)[codes.ravel()]
