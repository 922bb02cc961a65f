"""The posterior process of one term: mean, variance and derivatives, inside and outside its place.

f(x) | y ~ GP( phi(x)' m,  k(x, x') - phi(x)' S phi(x') ),      S = K^-1 - (A^-1)_ss

In a sum, (A^-1)_ss is the term's block of the joint posterior covariance: what the other terms leave open is in it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.basis import Codes, Interval, LevelBasis
from vff.features import ColumnPrior, outward_state, tail_features
from vff.kernels import HalfInteger
from vff.moments import ColumnRequest, ColumnRows, column_rows, evaluate_and_quad, evaluate_several, gram_adjoint


@dataclass(frozen=True)
class TermCoefficients:
    """q(c) of one term, in the units of the targets that were fitted and the coordinates of the prior."""

    mean: np.ndarray
    """m, (P,)."""
    explained: np.ndarray
    """S = K^-1 - (A^-1)_ss, (P, P): what the data took away from the prior."""
    centre: np.ndarray
    """Average of the features over the rows of the fit, (P,)."""
    centre_covariance: np.ndarray
    """(A^-1)_ss centre, (P,)."""


@dataclass(frozen=True)
class AbstractTermPosterior(ABC):
    """What every term can answer; kinds of terms differ in their features and in what lies outside."""

    coefficients: TermCoefficients
    variance: float

    @property
    @abstractmethod
    def request(self) -> ColumnRequest:
        """The functions that are summed over rows."""

    @abstractmethod
    def to_raw(self, v: np.ndarray) -> np.ndarray:
        """Coefficients of the prior's functions (P, ...) to coefficients of those that are summed over rows."""

    @abstractmethod
    def features(self, x: np.ndarray) -> np.ndarray:
        """The prior's functions written out at any rows, (N, P)."""

    @abstractmethod
    def covariance(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Prior covariance, (N, N')."""

    @abstractmethod
    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say."""

    @abstractmethod
    def _beyond(self, t: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi'c and phi'S phi at rows outside the place."""

    @cached_property
    def _explained_letters(self) -> np.ndarray:
        return gram_adjoint(self.request.basis, self.to_raw(self.to_raw(self.coefficients.explained).T))

    def rows(self, x: np.ndarray) -> ColumnRows:
        return column_rows(self.request, x)

    def inside(self, rows: ColumnRows, engine: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """phi'm and phi'S phi at rows inside, O(P^2 + N)."""
        return evaluate_and_quad(rows, self.to_raw(self.coefficients.mean), self._explained_letters, engine)

    def mean_inside(self, rows: ColumnRows) -> np.ndarray:
        """phi'm at rows inside."""
        (mean,) = evaluate_several(rows, [self.to_raw(self.coefficients.mean)])
        return mean

    def _answers(
        self, x: np.ndarray, vectors: Sequence[np.ndarray], engine: str
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """phi'c for every vector c, and the variance of f, at every row."""
        t = self.request.place.to_unit(x)
        inside = self.request.place.contains(t)
        values, explained = [np.empty(t.size) for _ in vectors], np.empty(t.size)
        if inside.any():
            rows = self.rows(x if inside.all() else x[inside])
            raw = [self.to_raw(c) for c in vectors]
            *found, explained[inside] = evaluate_several(rows, raw, self._explained_letters, engine)
            for value, part in zip(values, found, strict=True):
                value[inside] = part
        if not inside.all():
            for value, c in zip(values, vectors, strict=True):
                value[~inside], explained[~inside] = self._beyond(t[~inside], c)
        # The difference is a variance; only rounding can carry it below zero.
        return values, np.maximum(self.variance - explained, 0.0)

    def marginals(self, x: np.ndarray, engine: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row."""
        (mean,), variance = self._answers(x, [self.coefficients.mean], engine)
        return mean, variance

    def centred(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f minus its average over the rows of the fit.

        With f = phi'c + h, the average of the remainder h over many rows is negligible and is left out:
        var = k(0) - phi'K^-1 phi + (phi - centre)' A^-1 (phi - centre).
        """
        own = self.coefficients
        (mean, cross), variance = self._answers(x, [own.mean, own.centre_covariance], "auto")
        spread = variance - 2.0 * cross + float(own.centre @ own.centre_covariance)
        return mean - float(own.centre @ own.mean), np.maximum(spread, 0.0)


@dataclass(frozen=True)
class ColumnPosterior(AbstractTermPosterior):
    """q(f) for a Matérn over one column."""

    interval: Interval
    prior: ColumnPrior
    """Unit variance; its rate is per half domain."""

    @property
    def request(self) -> ColumnRequest:
        return ColumnRequest(self.interval, self.prior.basis)

    def to_raw(self, v: np.ndarray) -> np.ndarray:
        return self.prior.transform.transpose(v)

    @cached_property
    def _kernel(self) -> HalfInteger:
        return HalfInteger(self.prior.p, self.prior.rate)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie beyond [a, b] by more than a tenth of a lengthscale; there the data lose their say."""
        lengthscale = np.sqrt(2 * self.prior.p + 1) / self.prior.rate
        return np.abs(self.interval.to_unit(x)) > 1.0 + 0.1 * lengthscale

    def _beyond(self, t: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows outside see the features through the p + 1 states of an edge."""
        value, explained = np.empty(t.size), np.empty(t.size)
        for side in (-1, 1):
            rows = side * t > 1.0
            weights, Z = self._kernel.tail(np.abs(t[rows]) - 1.0), outward_state(self.prior, side)
            value[rows] = weights @ (Z.T @ c)
            explained[rows] = np.einsum("ni,ij,nj->n", weights, Z.T @ self.coefficients.explained @ Z, weights)
        return value, explained

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The features, or a derivative of them in the column's own units, written out: (N, P)."""
        t, basis = self.interval.to_unit(x), self.prior.basis
        inside = np.abs(t) <= 1.0
        features = np.empty((t.size, basis.size))
        features[inside] = self.prior.transform.forward(basis.evaluate(t[inside], derivative).T).T
        features[~inside] = tail_features(self.prior, t[~inside], derivative)
        return features / self.interval.half_length**derivative

    def covariance(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        lag = np.subtract.outer(x, z) / self.interval.half_length
        return self.variance * self._kernel.covariance(lag)

    def derivative(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f'(x) in the column's own units."""
        if self.prior.p == 0:
            raise ValueError("a Matérn-1/2 process has no derivative; use Matern32 or Matern52 to ask for one")
        features = self.features(x, derivative=1)
        prior = self.variance * self._kernel.state_covariance()[1, 1] / self.interval.half_length**2
        explained = np.einsum("np,np->n", features @ self.coefficients.explained, features)
        return features @ self.coefficients.mean, np.maximum(prior - explained, 0.0)


@dataclass(frozen=True)
class LevelPosterior(AbstractTermPosterior):
    """q(f) for exchangeable effects; a level never seen has the prior, with mean zero."""

    basis: LevelBasis

    @property
    def request(self) -> ColumnRequest:
        return ColumnRequest(Codes(), self.basis)

    def to_raw(self, v: np.ndarray) -> np.ndarray:
        return v

    def outside(self, x: np.ndarray) -> np.ndarray:
        return x < 0.0

    def _beyond(self, t: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(t.size), np.zeros(t.size)

    def features(self, x: np.ndarray) -> np.ndarray:
        return self.basis.evaluate(x)

    def covariance(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Two rows of levels never seen are taken to be of different levels, unless they are the same row."""
        same = (x[:, None] == z) & (x[:, None] >= 0.0)
        if x is z:
            same |= np.diag(x < 0.0)
        return self.variance * same
