"""The posterior process of one term: mean and variance, inside and outside the places of its columns.

f(x) | y ~ GP( phi(x)' m,  k(x, x') - phi(x)' S phi(x') ),      S = K^-1 - (A^-1)_ss

In a sum, (A^-1)_ss is the term's block of the joint posterior covariance: what the other terms leave open is in it. The
features of a term are products of its factors'; the prior of a factor knows its features and correlation at any rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.factors import Prior, TermTransform
from vff.linalg import DenseView, Kronecker, product_rows
from vff.moments import ColumnRows, LetterFunction, evaluate_letters, see_term

_WRITTEN = 2**23  # features written out at a time


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
    factors: tuple[Prior, ...]
    transform: TermTransform

    def to_raw(self, v: np.ndarray) -> np.ndarray:
        """Coefficients of the prior's functions (P, ...) to coefficients of those that are summed over rows."""
        return self.transform.transpose(v)

    def function(self, c: np.ndarray) -> LetterFunction:
        """phi'c in the letters of its columns."""
        alphabets = tuple(factor.basis.single for factor in self.factors)
        return LetterFunction(self.columns, alphabets, self.to_raw(c).reshape(self.transform.shape))

    @cached_property
    def mean_function(self) -> LetterFunction:
        return self.function(self.coefficients.mean)

    @cached_property
    def explained_function(self) -> LetterFunction:
        """phi'S phi in the double letters of its columns."""
        bases = [factor.basis for factor in self.factors]
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
        inverses = Kronecker(tuple(factor.K for factor in self.factors)).inverses
        return self.variance * Kronecker.to_dense_of(inverses) - self.coefficients.explained

    def unseen(self, x: np.ndarray) -> np.ndarray:
        """k(0) - phi'K^-1 phi at every row: the variance that the features do not carry."""
        shares = [factor.carried(x[:, c]) for c, factor in zip(self.columns, self.factors, strict=True)]
        # the difference is a variance; only rounding can carry it below zero
        return self.variance * np.maximum(1.0 - np.prod(shares, axis=0), 0.0)

    def slope_variance(self, along: int) -> float:
        """Prior variance of the slope along one of its columns."""
        factor = self.factors[self.columns.index(along)]
        return self.variance * factor.slope_variance()

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
        found, explained[~inside] = self._beyond(x[~inside], vectors)
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

    def _beyond(self, x: np.ndarray, vectors: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """The answers for rows outside; those of one column may see its features through few states."""
        (factor, *others), (c, *_) = self.factors, self.columns
        parts = None if others else factor.beyond(x[:, c])
        if parts is None:
            return self._written(x, vectors)
        values, explained = [np.zeros(len(x)) for _ in vectors], np.zeros(len(x))
        for rows, weights, Z in parts:
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
            values[~inside] = self._beyond(x[~inside], [c])[0][0]
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
