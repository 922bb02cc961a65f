"""Few rows are known themselves, and so is the process given them: theory (26.3).

Features of some hundred functions miss a little of what the prior lets f do. Beside noise that is nothing; where there
is next to no noise, it is all that is not known at the rows, and the bound charges absurdly much for it. As many
dimensions as there are rows cost nothing while these are few, and nothing is missed in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from vff.inference.posterior.term import TermProcess
from vff.linalg import Factor, factorise

_LOST_IN_NOISE = 1.0  # times the noise of a row: what features miss of it may be missed


@dataclass(frozen=True)
class KnownRows:
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

    def given(self, terms: Sequence[TermProcess]) -> "GivenRows | None":
        """The process given them; None where their noise hides what features miss of it."""
        missed = np.sum([term.unseen(self.x) for term in terms], axis=0)
        return GivenRows(tuple(terms), self) if (missed * self.w > _LOST_IN_NOISE * self.noise).any() else None


@dataclass(frozen=True)
class GivenRows:
    """A sum of terms given rows, with C C' = k(x_n, x_m) + noise."""

    terms: tuple[TermProcess, ...]
    rows: KnownRows

    @cached_property
    def _factor(self) -> Factor:
        x = self.rows.x
        prior = np.sum([term.covariance(x) for term in self.terms], axis=0)
        return factorise(prior + np.diag(self.rows.noise / self.rows.w))

    def _whitened(self, v: np.ndarray) -> np.ndarray:
        """C^-1 v."""
        return solve_triangular(self._factor.lower, v, lower=True, check_finite=False)

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

    def _answers(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean of f at rows, C^-1 k(x_n, x) of them, and how far f there rises with the constant."""
        V = self._whitened(np.sum([term.covariance(self.rows.x, x) for term in self.terms], axis=0))
        y, one = self._sides
        follows = 1.0 - one @ V
        return y @ V + self._constant[0] * follows, V, follows

    def marginals(self, x: np.ndarray, prior: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, whose prior variances are known."""
        mean, V, follows = self._answers(x)
        # the difference is a variance; only rounding can carry it below zero
        variance = np.maximum(prior - np.sum(V**2, axis=0), 0.0)
        return mean, variance + self._constant[1] * follows**2

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        mean, V, follows = self._answers(x)
        covariance = np.sum([term.covariance(x) for term in self.terms], axis=0) - V.T @ V
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
