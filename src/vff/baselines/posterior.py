"""Posterior processes of the baselines, in standardised targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from vff.baselines.covariances import AbstractCovariance, Values
from vff.baselines.design import to_unit
from vff.baselines.evidence import Evidence
from vff.baselines.features import AbstractFeatures, chunks
from vff.basis import Domain
from vff.inference import DirectLinearGaussian, InterceptPosterior
from vff.linalg import factorise


def _unseen(domains: Sequence[Domain], x: np.ndarray) -> np.ndarray:
    """Which rows hold a level that the fit has not seen, (N, C).

    Numbers are never outside, as kernels and features are defined everywhere.
    All unseen levels of a column are one level to the joint distribution, as their codes are the same.
    """
    x = x.reshape(len(x), -1)
    flags = [
        ~domain.contains(x[:, c]) if domain.discrete else np.zeros(len(x), bool) for c, domain in enumerate(domains)
    ]
    return np.column_stack(flags)


def _draw(
    mean: np.ndarray, covariance: np.ndarray, variance: float, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    # A floor well below anything visible keeps the factor defined where f is known to rounding.
    covariance[np.diag_indices_from(covariance)] += 1e-12 * variance
    white = rng.standard_normal((mean.size, n_samples))
    return mean[:, None] + factorise(covariance).lower @ white


def _draw_distinct(posterior: "AnyPosterior", x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Joint draws of f, (N, n_samples); rows that are the same get the same draw."""
    distinct, codes = np.unique(x.reshape(len(x), -1), axis=0, return_inverse=True)
    return _draw(*posterior.joint(distinct), posterior.variance, n_samples, rng)[codes.ravel()]


@dataclass(frozen=True)
class FeaturePosterior:
    """f(x) | y ~ GP( phi'm, remainder + phi' A^-1 phi ), and what a constant beside the features adds."""

    domains: tuple[Domain, ...]
    features: AbstractFeatures
    mean: np.ndarray
    """m, (P,)."""
    lower: np.ndarray
    """Cholesky factor of A, (P, P)."""
    intercept: InterceptPosterior | None = None

    @classmethod
    def from_form(
        cls, domains: tuple[Domain, ...], features: AbstractFeatures, closed: DirectLinearGaussian
    ) -> "FeaturePosterior":
        return cls(domains, features, closed.mean, closed.factor.lower, closed.intercept_posterior)

    @property
    def variance(self) -> float:
        """k(x, x)."""
        return self.features.values.variance

    def outside(self, x: np.ndarray) -> np.ndarray:
        """No row is outside: the features are defined everywhere."""
        return _unseen(self.domains, x)

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, without its variance."""
        T = to_unit(self.domains, x)
        parts = [self.features.evaluate(T[rows]) @ self.mean for rows in chunks(len(T), self.features.size)]
        return np.concatenate(parts) + (0.0 if self.intercept is None else self.intercept.mean)

    def _of_constant(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Its mean, and how far f moves with its standard deviation at rows with these features."""
        if self.intercept is None:
            return 0.0, np.zeros(len(phi))
        return self.intercept.mean, np.sqrt(self.intercept.variance) * (1.0 - phi @ self.intercept.answer)

    def _whitened(self, phi: np.ndarray) -> np.ndarray:
        """W (P, N) with W'W = Phi A^-1 Phi'."""
        return solve_triangular(self.lower, phi.T, lower=True, check_finite=False)

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(N P^2)."""
        return self.inside(to_unit(self.domains, x))

    def inside(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of rows in half ranges."""
        mean, variance = np.empty(len(T)), np.empty(len(T))
        for rows in chunks(len(T), self.features.size):
            phi = self.features.evaluate(T[rows])
            whitened = self._whitened(phi)
            level, moved = self._of_constant(phi)
            mean[rows] = level + phi @ self.mean
            variance[rows] = self.features.remainder(phi) + np.einsum("pn,pn->n", whitened, whitened) + moved**2
        return mean, variance

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        T = to_unit(self.domains, x)
        phi = self.features.evaluate(T)
        whitened = self._whitened(phi)
        level, moved = self._of_constant(phi)
        covariance = self.features.remainder_covariance(T, phi) + whitened.T @ whitened
        return level + phi @ self.mean, covariance + np.multiply.outer(moved, moved)

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples)."""
        return _draw_distinct(self, x, n_samples, rng)


@dataclass(frozen=True)
class ExactPosterior:
    """f(x) | y ~ GP( k(x, T) alpha, k(x, x') - k(x, T) C^-1 k(T, x') ) (Rasmussen & Williams, eqs 2.25-2.26)."""

    domains: tuple[Domain, ...]
    covariance: AbstractCovariance
    values: Values
    T: np.ndarray
    """The rows of the fit, (N, C)."""
    alpha: np.ndarray
    lower: np.ndarray
    """Cholesky factor of C, (N, N)."""
    intercept: float = 0.0
    """Prior variance of the constant, which is in k(x, x') here."""

    @classmethod
    def from_evidence(cls, evidence: Evidence, domains: tuple[Domain, ...]) -> "ExactPosterior":
        own = evidence.covariance, evidence.values, evidence.T, evidence.alpha
        return cls(domains, *own, evidence.factor.lower, evidence.intercept)

    @property
    def variance(self) -> float:
        """k(x, x)."""
        return self.values.variance + self.intercept

    def _matrix(self, S: np.ndarray, T: np.ndarray) -> np.ndarray:
        """k(S, T)."""
        return self.covariance.matrix(self.values, S, T) + self.intercept

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Rows with a level that the fit has not seen."""
        return _unseen(self.domains, x)

    def _cross(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """k(T, rows) alpha (n,) and L^-1 k(rows, T) (N, n)."""
        cross = self._matrix(self.T, T)
        return self.alpha @ cross, solve_triangular(self.lower, cross, lower=True, check_finite=False)

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, O(n N): no triangular solve."""
        T = to_unit(self.domains, x)
        pieces = chunks(len(T), len(self.T))
        return np.concatenate([self._matrix(T[rows], self.T) @ self.alpha for rows in pieces])

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(n N^2)."""
        T = to_unit(self.domains, x)
        mean, variance = np.empty(len(T)), np.empty(len(T))
        for rows in chunks(len(T), len(self.T)):
            mean[rows], whitened = self._cross(T[rows])
            variance[rows] = self.variance - np.einsum("nr,nr->r", whitened, whitened)
        # The difference is a variance; only rounding can carry it below zero.
        return mean, np.maximum(variance, 0.0)

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n,) and covariance (n, n) of f at all rows together."""
        T = to_unit(self.domains, x)
        mean, whitened = self._cross(T)
        return mean, self._matrix(T, T) - whitened.T @ whitened

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (n, n_samples)."""
        return _draw_distinct(self, x, n_samples, rng)


AnyPosterior = FeaturePosterior | ExactPosterior
