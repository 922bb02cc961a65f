"""The posterior process of one term: mean and variance, inside and outside the places of its columns.

f(x) | y ~ GP( phi(x)' m,  k(x, x') - phi(x)' S phi(x') ),      S = K^-1 - (A^-1)_ss

In a sum, (A^-1)_ss is the term's block of the joint posterior covariance: what the other terms leave open is in it. The
features of a term are products of its factors'; a factor knows its features and correlation at any rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.basis import Codes, Interval, LevelBasis
from vff.features import ColumnPrior, TermTransform, outward_state, tail_features
from vff.kernels import HalfInteger
from vff.linalg import AbstractInvertible, DenseView, Diagonal, Kronecker, product_rows
from vff.moments import ColumnRequest, ColumnRows, LetterFunction, evaluate_letters, see_term

_WRITTEN = 2**23  # features written out at a time


@dataclass(frozen=True)
class AbstractFactor(ABC):
    """One column of a term."""

    @property
    @abstractmethod
    def request(self) -> ColumnRequest:
        """The functions that are summed over rows."""

    @property
    @abstractmethod
    def precision(self) -> AbstractInvertible:
        """K of its coefficients for unit variance."""

    @abstractmethod
    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        """The prior's functions, or a derivative of them, written out at any rows, (N, P)."""

    def carried(self, x: np.ndarray) -> np.ndarray:
        """phi'K^-1 phi at every row: the share of the prior variance that the features carry."""
        features = self.features(x)
        return np.einsum("np,pn->n", features, self.precision.solve(features.T))

    @abstractmethod
    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Prior correlation, (N, N')."""

    @abstractmethod
    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say."""


@dataclass(frozen=True)
class ColumnFactor(AbstractFactor):
    """A Matérn over an interval."""

    interval: Interval
    prior: ColumnPrior
    """Its rate is per half domain."""

    @property
    def request(self) -> ColumnRequest:
        return ColumnRequest(self.interval, self.prior.basis)

    @property
    def precision(self) -> AbstractInvertible:
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

    @property
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
    def precision(self) -> AbstractInvertible:
        return Diagonal(np.ones(self.basis.size))

    def outside(self, x: np.ndarray) -> np.ndarray:
        return x < 0.0

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        return self.basis.evaluate(x)

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Two rows of levels never seen are taken to be of different levels, unless they are the same row."""
        same = (x[:, None] == z) & (x[:, None] >= 0.0)
        if x is z:
            same |= np.diag(x < 0.0)
        return same.astype(float)


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
class TermPosterior:
    """q(f) for one term."""

    coefficients: TermCoefficients
    variance: float
    columns: tuple[int, ...]
    """Which of the modelled columns it is over."""
    factors: tuple[AbstractFactor, ...]
    transform: TermTransform

    def to_raw(self, v: np.ndarray) -> np.ndarray:
        """Coefficients of the prior's functions (P, ...) to coefficients of those that are summed over rows."""
        return self.transform.transpose(v)

    def function(self, c: np.ndarray) -> LetterFunction:
        """phi'c in the letters of its columns."""
        alphabets = tuple(factor.request.basis.single for factor in self.factors)
        return LetterFunction(self.columns, alphabets, self.to_raw(c).reshape(self.transform.shape))

    @cached_property
    def mean_function(self) -> LetterFunction:
        return self.function(self.coefficients.mean)

    @cached_property
    def explained_function(self) -> LetterFunction:
        """phi'S phi in the double letters of its columns."""
        bases = [factor.request.basis for factor in self.factors]
        S = self.to_raw(self.to_raw(self.coefficients.explained).T)
        return LetterFunction(self.columns, tuple(basis.double for basis in bases), see_term(bases, DenseView(S)))

    def features(self, x: np.ndarray, along: int | None = None) -> np.ndarray:
        """The prior's functions at any rows x (N, C), (N, P), or their slopes along one of the columns."""
        return product_rows(
            [factor.features(x[:, c], int(c == along)) for c, factor in zip(self.columns, self.factors, strict=True)]
        )

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """Prior covariance of all rows, (N, N)."""
        total = np.full((len(x), len(x)), self.variance)
        for c, factor in zip(self.columns, self.factors, strict=True):
            column = np.ascontiguousarray(x[:, c])
            total *= factor.correlation(column, column)
        return total

    def coefficient_covariance(self) -> np.ndarray:
        """(A^-1)_ss = K^-1 - S, (P, P)."""
        inverses = Kronecker(tuple(factor.precision for factor in self.factors)).inverses
        return self.variance * Kronecker.to_dense_of(inverses) - self.coefficients.explained

    def unseen(self, x: np.ndarray) -> np.ndarray:
        """k(0) - phi'K^-1 phi at every row: the variance that the features do not carry."""
        shares = [factor.carried(x[:, c]) for c, factor in zip(self.columns, self.factors, strict=True)]
        # the difference is a variance; only rounding can carry it below zero
        return self.variance * np.maximum(1.0 - np.prod(shares, axis=0), 0.0)

    def slope_variance(self, along: int) -> float:
        """Prior variance of the slope along one of its columns."""
        factor = self.factors[self.columns.index(along)]
        assert isinstance(factor, ColumnFactor)
        return self.variance * factor.slope_variance

    def inside(self, rows: Sequence[ColumnRows]) -> np.ndarray:
        """Which rows lie inside the places of all its columns."""
        places = (rows[c].request.place.contains(rows[c].t) for c in self.columns)
        return np.logical_and.reduce(list(places))

    def answers(
        self, x: np.ndarray, rows: Sequence[ColumnRows], vectors: Sequence[np.ndarray], engine: str = "auto"
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """phi'c for every vector c, and phi'S phi, at every row."""
        inside = self.inside(rows)
        functions = [*(self.function(c) for c in vectors), self.explained_function]
        if inside.all():
            *values, explained = evaluate_letters(rows, functions, engine)
            return values, explained
        values, explained = [np.empty(len(x)) for _ in vectors], np.empty(len(x))
        if inside.any():
            some = {c: ColumnRows(rows[c].request, rows[c].x[inside], rows[c].book) for c in self.columns}
            found = evaluate_letters([some.get(c, column) for c, column in enumerate(rows)], functions, engine)
            for value, part in zip([*values, explained], found, strict=True):
                value[inside] = part
        beyond = self._edge_states if len(self.factors) == 1 else self._written
        found, explained[~inside] = beyond(x[~inside], vectors)
        for value, part in zip(values, found, strict=True):
            value[~inside] = part
        return values, explained

    def _written(self, x: np.ndarray, vectors: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """The answers with the features written out."""
        values, explained = [np.empty(len(x)) for _ in vectors], np.empty(len(x))
        step = max(1, _WRITTEN // self.transform.size)
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            features = self.features(x[rows])
            for value, c in zip(values, vectors, strict=True):
                value[rows] = features @ c
            explained[rows] = np.einsum("np,np->n", features @ self.coefficients.explained, features)
        return values, explained

    def _edge_states(self, x: np.ndarray, vectors: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """The answers for a term of one column: rows outside see its features through the p + 1 states of an edge."""
        (factor,), (c,) = self.factors, self.columns
        values, explained = [np.zeros(len(x)) for _ in vectors], np.zeros(len(x))
        if not isinstance(factor, ColumnFactor):
            return values, explained
        t = factor.interval.to_unit(x[:, c])
        for side in (-1, 1):
            rows = side * t > 1.0
            weights, Z = factor.kernel.tail(np.abs(t[rows]) - 1.0), outward_state(factor.prior, side)
            for value, vector in zip(values, vectors, strict=True):
                value[rows] = weights @ (Z.T @ vector)
            explained[rows] = np.einsum("ni,ij,nj->n", weights, Z.T @ self.coefficients.explained @ Z, weights)
        return values, explained

    def means(self, x: np.ndarray, rows: Sequence[ColumnRows], engine: str = "auto") -> np.ndarray:
        """phi'm at every row."""
        return self.linear(x, rows, self.coefficients.mean, engine)

    def linear(self, x: np.ndarray, rows: Sequence[ColumnRows], c: np.ndarray, engine: str = "auto") -> np.ndarray:
        """phi'c at every row."""
        inside, values = self.inside(rows), np.empty(len(x))
        if inside.any():
            some = rows if inside.all() else [ColumnRows(one.request, one.x[inside], one.book) for one in rows]
            (values[inside],) = evaluate_letters(some, [self.function(c)], engine)
        if not inside.all():
            beyond = self._edge_states if len(self.factors) == 1 else self._written
            values[~inside] = beyond(x[~inside], [c])[0][0]
        return values

    def centred(self, x: np.ndarray, rows: Sequence[ColumnRows]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f minus its average over the rows of the fit.

        With f = phi'c + h, the average of the remainder h over many rows is negligible and is left out:
        var = k(0) - phi'K^-1 phi + (phi - centre)' A^-1 (phi - centre).
        """
        own = self.coefficients
        (mean, cross), explained = self.answers(x, rows, [own.mean, own.centre_covariance])
        # the difference is a variance; only rounding can carry it below zero
        variance = np.maximum(self.variance - explained, 0.0)
        spread = variance - 2.0 * cross + float(own.centre @ own.centre_covariance)
        return mean - float(own.centre @ own.mean), np.maximum(spread, 0.0)
