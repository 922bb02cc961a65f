"""Posterior processes of the baselines, in standardised targets."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from vff.baselines.design import to_unit
from vff.baselines.features import AbstractFeatures, chunks
from vff.basis import Domain
from vff.inference import DirectLinearGaussian, InterceptPosterior
from vff.linalg import factorise


@dataclass(frozen=True)
class AbstractPosterior(ABC):
    """What every one answers about rows x, (N, C), in the columns' units; T are the same in half ranges."""

    domains: tuple[Domain, ...]

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers a row needs."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """k(x, x)."""

    @abstractmethod
    def _mean(self, T: np.ndarray) -> np.ndarray:
        """Mean of f at every row."""

    @abstractmethod
    def _moments(self, T: np.ndarray, *, joint: bool) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and variance (N,) of f at every row, or covariance (N, N) of all of them."""

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows hold a level that the fit has not seen, (N, C).

        Numbers are never outside, as kernels and features are defined everywhere.
        All unseen levels of a column are one level to the joint distribution, as their codes are the same.
        """
        x = x.reshape(len(x), -1)
        return np.column_stack([own.discrete & ~own.contains(x[:, c]) for c, own in enumerate(self.domains)])

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, without its variance: no triangular solve."""
        T = to_unit(self.domains, x)
        return np.concatenate([self._mean(T[rows]) for rows in chunks(len(T), self.width)])

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row."""
        return self.inside(to_unit(self.domains, x))

    def inside(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of rows in half ranges."""
        parts = [self._moments(T[rows], joint=False) for rows in chunks(len(T), self.width)]
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, variance

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        return self._moments(to_unit(self.domains, x), joint=True)

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples); rows that are the same get the same draw."""
        distinct, codes = np.unique(x.reshape(len(x), -1), axis=0, return_inverse=True)
        mean, covariance = self.joint(distinct)
        # A floor well below anything visible keeps the factor defined where f is known to rounding.
        covariance[np.diag_indices_from(covariance)] += 1e-12 * self.variance
        white = rng.standard_normal((mean.size, n_samples))
        return (mean[:, None] + factorise(covariance).lower @ white)[codes.ravel()]


@dataclass(frozen=True)
class FeaturePosterior(AbstractPosterior):
    """f(x) | y ~ GP( phi'm, remainder + phi' A^-1 phi ), and what a constant beside the features adds."""

    features: AbstractFeatures
    mean: np.ndarray
    """m, (P,)."""
    lower: np.ndarray
    """Cholesky factor of A, (P, P)."""
    intercept: InterceptPosterior | None

    @classmethod
    def from_form(
        cls, domains: tuple[Domain, ...], features: AbstractFeatures, closed: DirectLinearGaussian
    ) -> "FeaturePosterior":
        return cls(domains, features, closed.mean, closed.factor.lower, closed.intercept_posterior)

    @property
    def width(self) -> int:
        return self.features.size

    @property
    def variance(self) -> float:
        return self.features.values.variance

    def _mean(self, T: np.ndarray) -> np.ndarray:
        return self.features.evaluate(T) @ self.mean + (0.0 if self.intercept is None else self.intercept.mean)

    def _moments(self, T: np.ndarray, *, joint: bool) -> tuple[np.ndarray, np.ndarray]:
        phi = self.features.evaluate(T)
        root = solve_triangular(self.lower, phi.T, lower=True, check_finite=False)
        mean, spread = phi @ self.mean, self.features.remainder(T, phi, joint=joint)
        spread = spread + (root.T @ root if joint else np.einsum("pn,pn->n", root, root))
        if self.intercept is None:
            return mean, spread
        # f moves with the standard deviation of the constant
        moved = np.sqrt(self.intercept.variance) * (1.0 - phi @ self.intercept.answer)
        return mean + self.intercept.mean, spread + (np.multiply.outer(moved, moved) if joint else moved**2)
