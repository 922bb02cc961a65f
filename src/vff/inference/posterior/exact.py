"""Few rows are known themselves, and so is the process given them: theory (26.3).

Features of some hundred functions miss a little of what the prior lets f do. Beside noise that is nothing; where there
is next to no noise, it is all that is not known at the rows, and the bound charges absurdly much for it. As many
dimensions as there are rows cost nothing while these are few, and nothing is missed in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from vff.inference.posterior.direct import square_root
from vff.inference.posterior.term import TermProcess, stretches
from vff.linalg import Factor, factorise


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a fit, as learning sees them."""

    x: np.ndarray
    """(n, C)."""
    y: np.ndarray
    """(n,)."""
    w: np.ndarray
    """(n,)."""
    noise: np.ndarray
    """Variances of a row that counts once, (n,)."""
    intercept: float | None
    """Prior variance of a constant beside the terms; None where there is none."""


@dataclass(frozen=True)
class ExactPosterior:
    """A sum of terms given rows, with C C' = k(x_n, x_m) + noise."""

    terms: tuple[TermProcess, ...]
    rows: TrainingRows

    def _covariance(self, x: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        """Prior covariance of f between rows."""
        first, *others = self.terms
        total = first.covariance(x, z)
        for term in others:
            total += term.covariance(x, z)
        return total

    @cached_property
    def _factor(self) -> Factor:
        return factorise(self._covariance(self.rows.x) + np.diag(self.rows.noise / self.rows.w))

    def _whitened(self, v: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """C^-1 v, or C'^-1 v."""
        return solve_triangular(self._factor.lower, v, lower=True, trans=int(transposed), check_finite=False)

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """C^-1 y and C^-1 1, (n,) each."""
        return self._whitened(self.rows.y), self._whitened(np.ones(self.rows.y.size))

    @cached_property
    def _constant(self) -> tuple[float, float]:
        """Mean and variance of the constant given the rows."""
        if self.rows.intercept is None:
            return 0.0, 0.0
        (y, one), variance = self._sides, self.rows.intercept
        precision = 1.0 / variance + float(one @ one)
        return float(one @ y) / precision, 1.0 / precision

    @cached_property
    def _weights(self) -> np.ndarray:
        """alpha, with which the mean of f is k(x, x_n) alpha plus the constant, (n,)."""
        y, one = self._sides
        return self._whitened(y - self._constant[0] * one, transposed=True)

    def _answers(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean of f at rows, C^-1 k(x_n, x) of them, and how far f there rises with the constant."""
        cross = self._covariance(self.rows.x, x)
        mean, V = self._weights @ cross + self._constant[0], self._whitened(cross)
        return mean, V, 1.0 - self._sides[1] @ V

    def _stretches(self, N: int) -> Iterator[slice]:
        return stretches(N, max(1, self.rows.y.size))

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Of f at every row."""
        found = np.empty(len(x))
        for some in self._stretches(len(x)):
            found[some] = self._weights @ self._covariance(self.rows.x, x[some]) + self._constant[0]
        return found

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row."""
        prior = sum(term.prior_variance(x) for term in self.terms)
        mean, variance = np.empty(len(x)), np.array(np.broadcast_to(prior, len(x)))
        for some in self._stretches(len(x)):
            mean[some], V, follows = self._answers(x[some])
            # the difference is a variance; only rounding can carry it below zero
            own = np.maximum(variance[some] - np.einsum("nz,nz->z", V, V), 0.0)
            variance[some] = own + self._constant[1] * follows**2
        return mean, variance

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        mean, V, follows = self._answers(x)
        covariance = self._covariance(x) - V.T @ V
        return mean, covariance + self._constant[1] * np.multiply.outer(follows, follows)

    @property
    def evidence(self) -> float:
        """log p(y), nats; a row of weight w counts as w rows."""
        rows, (y, _), (mean, variance) = self.rows, self._sides, self._constant
        quadratic, log_volume = float(y @ y), self._factor.logdet()
        if rows.intercept is not None:
            quadratic -= mean**2 / variance
            log_volume += float(np.log(rows.intercept / variance))
        again = float(np.sum((rows.w - 1.0) * np.log(2.0 * np.pi * rows.noise) + np.log(rows.w)))
        return -0.5 * (y.size * np.log(2.0 * np.pi) + log_volume + quadratic + again)


@dataclass(frozen=True)
class ExactMixture:
    """The same at settings of the hyperparameters that all count alike: the first two moments, and draws, of all."""

    parts: tuple[ExactPosterior, ...]
    each: int
    """Draws of f at every setting."""
    offset: float
    """What f is measured from."""

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Of f at every row."""
        return np.mean([part.mean(x) for part in self.parts], axis=0) - self.offset

    def _marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row and setting, (S, N) each."""
        found = [part.marginals(x) for part in self.parts]
        return np.array([mean for mean, _ in found]) - self.offset, np.array([variance for _, variance in found])

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row."""
        means, variances = self._marginals(x)
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        found = [part.joint(x) for part in self.parts]
        means = np.array([mean for mean, _ in found])
        mean = means.mean(axis=0)
        away = (means - mean) / np.sqrt(len(means))
        return mean - self.offset, np.mean([covariance for _, covariance in found], axis=0) + away.T @ away

    def values(self, x: np.ndarray, some: np.ndarray | slice) -> np.ndarray:
        """Draws of f at every row by itself, more even than chance, (N, S)."""
        means, variances = self._marginals(x)
        S = len(self.parts) * self.each
        scores = np.random.default_rng(0).permutation(ndtri((np.arange(S) + 0.5) / S))
        own = np.repeat(np.arange(len(self.parts)), self.each)[some]
        return (means[own] + np.sqrt(variances[own]) * scores[some, None]).T

    def sample(self, x: np.ndarray, some: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f at rows that are all different, (N, S)."""
        found = np.empty((len(x), len(some)))
        for number in np.unique(some // self.each):
            own = np.flatnonzero(some // self.each == number)
            mean, covariance = self.parts[number].joint(x)
            white = rng.standard_normal((len(x), own.size))
            found[:, own] = mean[:, None] - self.offset + square_root(covariance) @ white
        return found
