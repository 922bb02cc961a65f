"""What the prior of a factor knows of rows: features and correlation at any of them, inside the domain and outside."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.features import ColumnPrior, outward_state, tail_features
from vff.inference.terms import MaternFactor
from vff.kernels import HalfInteger
from vff.linalg import AbstractInvertible, Diagonal
from vff.moments import ColumnRequest


@dataclass(frozen=True)
class AbstractFactor(ABC):
    """One column of a term."""

    @property
    @abstractmethod
    def request(self) -> ColumnRequest:
        """The functions that are summed over rows."""

    @property
    @abstractmethod
    def K(self) -> AbstractInvertible:
        """Precision of its coefficients for unit variance."""

    def beyond(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]] | None:
        """Rows outside through few states, phi = weights states'; rows in none of the parts have no features."""
        return None

    @abstractmethod
    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The prior's functions, or a derivative of them, written out at any rows, (N, P)."""

    def carried(self, x: np.ndarray) -> np.ndarray:
        """phi'K^-1 phi at every row: the share of the prior variance that the features carry."""
        features = self.features(x)
        return np.einsum("np,pn->n", features, self.K.solve(features.T))

    @abstractmethod
    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Prior correlation, (N, N')."""

    @abstractmethod
    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say."""

    def slope_variance(self) -> float:
        """Prior variance of the derivative in the column's own units, for unit variance."""
        raise NotImplementedError


@dataclass(frozen=True)
class ColumnFactor(AbstractFactor):
    """A Matérn over an interval."""

    interval: Interval
    prior: ColumnPrior
    """Its rate is per half domain."""

    @property
    def basis(self) -> ColumnBasis:
        return self.prior.basis

    @property
    def request(self) -> ColumnRequest:
        return ColumnRequest(self.interval, self.prior.basis)

    @property
    def K(self) -> AbstractInvertible:
        return self.prior.matrix()

    @cached_property
    def kernel(self) -> HalfInteger:
        return HalfInteger(self.prior.p, self.prior.rate)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie beyond [a, b] by more than a tenth of a lengthscale; there the data lose their say."""
        lengthscale = np.sqrt(2 * self.prior.p + 1) / self.prior.rate
        return np.abs(self.interval.to_unit(x)) > 1.0 + 0.1 * lengthscale

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        t, basis = self.interval.to_unit(x), self.prior.basis
        inside = np.abs(t) <= 1.0
        features = np.empty((t.size, basis.size))
        features[inside] = self.prior.transform.forward(basis.evaluate(t[inside], derivative).T).T
        features[~inside] = tail_features(self.prior, t[~inside], derivative)
        return features / self.interval.half_length**derivative

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # rows that float64 cannot tell how far they are apart are far apart
            distances = np.subtract.outer(x, z) / self.interval.half_length
        return self.kernel.covariance(distances)

    def beyond(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        t, parts = self.interval.to_unit(x), []
        for side in (-1, 1):
            rows = side * t > 1.0
            parts.append((rows, self.kernel.tail(np.abs(t[rows]) - 1.0), outward_state(self.prior, side)))
        return parts

    def slope_variance(self) -> float:
        """Prior variance of the derivative in the column's own units, for unit variance."""
        if self.prior.p == 0:
            raise ValueError("a Matérn-1/2 process has no derivative; use Matern32 or Matern52 to ask for one")
        return self.kernel.state_covariance()[1, 1] / self.interval.half_length**2


@dataclass(frozen=True)
class LevelFactor(AbstractFactor):
    """Exchangeable levels; one never seen has nothing in common with the others."""

    basis: LevelBasis

    @property
    def request(self) -> ColumnRequest:
        return ColumnRequest(Codes(), self.basis)

    @property
    def K(self) -> AbstractInvertible:
        return Diagonal(np.ones(self.basis.size))

    def outside(self, x: np.ndarray) -> np.ndarray:
        return x < 0.0

    def beyond(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return []  # a level never seen has no features

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        return self.basis.evaluate(x)

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Two rows of levels never seen are taken to be of different levels, unless they are the same row."""
        same = (x[:, None] == z) & (x[:, None] >= 0.0)
        if x is z:
            same |= np.diag(x < 0.0)
        return same.astype(float)


def term_factors(model: Any, setting: Any, s: int) -> tuple[AbstractFactor, ...]:
    """The columns of a term at a setting."""
    term, bases, values = model.terms[s], model.bases[s], setting.terms[s]
    factors: list[AbstractFactor] = []
    for d, (factor, asked) in enumerate(zip(term.factors, model.moments.request.terms[s].factors, strict=True)):
        if isinstance(factor, MaternFactor):
            assert isinstance(asked.place, Interval)
            factors.append(ColumnFactor(asked.place, term.prior(d, bases, values)))
        else:
            assert isinstance(asked.basis, LevelBasis)
            factors.append(LevelFactor(asked.basis))
    return tuple(factors)
