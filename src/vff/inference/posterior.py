"""The posterior process of one column: mean, variance, joint covariance, samples and derivatives, inside and outside.

f(x) | y ~ GP( phi(x)' m,  k(x, x') - phi(x)' S phi(x') ),      S = K^-1 - A^-1
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vff.basis import Interval
from vff.features import ColumnPrior, outward_state, tail_features
from vff.inference.collapsed import ClosedForm
from vff.kernels import HalfInteger
from vff.linalg import factorise
from vff.moments import ENGINES, choose_engine, evaluate_and_quad, gram_adjoint


@dataclass(frozen=True)
class ColumnPosterior:
    """q(f) for one column, in the units of the targets that were fitted and the coordinates of the prior."""

    interval: Interval
    prior: ColumnPrior
    """Unit variance; its rate is per half domain."""
    variance: float
    mean: np.ndarray
    """m, (P,)."""
    explained: np.ndarray
    """S = K^-1 - A^-1, (P, P): what the data took away from the prior."""
    centre: np.ndarray
    """Average of the features over the rows of the fit, (P,)."""
    centre_covariance: np.ndarray
    """A^-1 centre, (P,)."""

    @classmethod
    def from_closed_form(
        cls, closed: ClosedForm, interval: Interval, prior: ColumnPrior, variance: float, centre: np.ndarray
    ) -> "ColumnPosterior":
        explained = closed.prior.solve(np.eye(centre.size)) - closed.factor.inverse()
        symmetric = 0.5 * (explained + explained.T)
        return cls(interval, prior, variance, closed.mean, symmetric, centre, closed.factor.solve(centre))

    @cached_property
    def _kernel(self) -> HalfInteger:
        return HalfInteger(self.prior.p, self.prior.rate)

    @cached_property
    def _explained_letters(self) -> np.ndarray:
        T = self.prior.transform
        return gram_adjoint(self.prior.basis, T.transpose(T.transpose(self.explained).T))

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie beyond [a, b] by more than a tenth of a lengthscale; there the data lose their say."""
        lengthscale = np.sqrt(2 * self.prior.p + 1) / self.prior.rate
        return np.abs(self.interval.to_unit(x)) > 1.0 + 0.1 * lengthscale

    def marginals(self, x: np.ndarray, engine: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row, O(P^2 + N)."""
        t = self.interval.to_unit(x)
        inside = np.abs(t) <= 1.0
        mean, explained = np.empty(t.size), np.empty(t.size)
        mean[inside], explained[inside] = self._inside(t if inside.all() else t[inside], engine)
        mean[~inside], explained[~inside] = self._beyond(t[~inside])
        # The difference is a variance; only rounding can carry it below zero.
        return mean, np.maximum(self.variance - explained, 0.0)

    def centred(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f minus its average over the rows of the fit.

        With f = phi'c + h, the average of the remainder h over many rows is negligible and is left out:
        var = k(0) - phi'K^-1 phi + (phi - centre)' A^-1 (phi - centre).
        """
        mean, variance = self.marginals(x)
        cross, _ = replace(self, mean=self.centre_covariance).marginals(x)
        spread = variance - 2.0 * cross + float(self.centre @ self.centre_covariance)
        return mean - float(self.centre @ self.mean), np.maximum(spread, 0.0)

    def _inside(self, t: np.ndarray, engine: str) -> tuple[np.ndarray, np.ndarray]:
        if t.size == 0:
            return np.empty(0), np.empty(0)
        basis = self.prior.basis
        name = choose_engine(t, basis).name if engine == "auto" else engine
        coefficients = self.prior.transform.transpose(self.mean)
        return evaluate_and_quad(ENGINES[name], basis, t, coefficients, self._explained_letters)

    def _beyond(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows outside see the features through the p + 1 states of an edge."""
        mean, explained = np.empty(t.size), np.empty(t.size)
        for side in (-1, 1):
            rows = side * t > 1.0
            weights, Z = self._kernel.tail(np.abs(t[rows]) - 1.0), outward_state(self.prior, side)
            mean[rows] = weights @ (Z.T @ self.mean)
            explained[rows] = np.einsum("ni,ij,nj->n", weights, Z.T @ self.explained @ Z, weights)
        return mean, explained

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The features, or a derivative of them in the column's own units, written out: (N, P)."""
        t, basis = self.interval.to_unit(x), self.prior.basis
        inside = np.abs(t) <= 1.0
        features = np.empty((t.size, basis.size))
        features[inside] = self.prior.transform.forward(basis.evaluate(t[inside], derivative).T).T
        features[~inside] = tail_features(self.prior, t[~inside], derivative)
        return features / self.interval.half_length**derivative

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        features = self.features(x)
        lag = np.subtract.outer(x, x) / self.interval.half_length
        prior = self.variance * self._kernel.covariance(lag)
        return features @ self.mean, prior - features @ self.explained @ features.T

    def derivative(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f'(x) in the column's own units."""
        if self.prior.p == 0:
            raise ValueError("a Matérn-1/2 process has no derivative; use Matern32 or Matern52 to ask for one")
        features = self.features(x, derivative=1)
        prior = self.variance * self._kernel.state_covariance()[1, 1] / self.interval.half_length**2
        explained = np.einsum("np,np->n", features @ self.explained, features)
        return features @ self.mean, np.maximum(prior - explained, 0.0)

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples)."""
        distinct, codes = np.unique(x, return_inverse=True)
        mean, covariance = self.joint(distinct)
        white = rng.standard_normal((distinct.size, n_samples))
        return (mean[:, None] + factorise(covariance).sqrt_mv(white))[codes]
