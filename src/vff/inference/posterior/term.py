"""The process of one term, f = phi'c + rest with c ~ N(0, K^-1), at rows inside and outside its columns' domains.

The features of a term are products of its factors'; the prior of a factor knows its features and correlation at any
rows.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np

from vff.basis import Domain
from vff.factors import Prior, TermTransform, rows_may_miss
from vff.inference.model.products import evaluated
from vff.inference.model.term import variance_functions
from vff.linalg import DenseView, Kronecker, MatrixView, along, product_rows
from vff.moments import (
    ColumnRequest,
    ColumnRows,
    LetterFunction,
    Place,
    TermRequest,
    numbers,
    project_term,
    synthesise,
)

_WRITTEN = 2**23  # features written out at a time, for the rows that need it


def stretches(N: int, size: int) -> Iterator[slice]:
    """Rows a few at a time, so that ``size`` numbers for each fit in memory."""
    step = max(1, _WRITTEN // size)
    return (slice(start, min(start + step, N)) for start in range(0, N, step))


Rows = Sequence[ColumnRows]
Vectors = Sequence[np.ndarray]


def split(
    x: np.ndarray,
    rows: Rows,
    columns: Container[int],
    inside: np.ndarray,
    within: Callable[[Rows], Vectors],
    beyond: Callable[[np.ndarray], np.ndarray],
) -> Vectors:
    """Values at every row, (N,) each: by letters where a row is inside all domains, else with features written out.

    ``columns`` are those that are looked at.
    """
    if inside.all():
        return within(rows)
    values = []
    for part in beyond(x[~inside]):
        values.append(np.empty(len(x)))
        values[-1][~inside] = part
    if inside.any():
        some = [column.taken(inside) if c in columns else column for c, column in enumerate(rows)]
        for value, part in zip(values, within(some), strict=True):
            value[inside] = part
    return values


Stretch = tuple[slice | np.ndarray, np.ndarray, np.ndarray | None]
"""Some rows, weights (N, R) and Z (P, R) with features weights Z'; without Z, the features (N, P)."""


@dataclass(frozen=True)
class Written:
    """Features of a term at some rows, factor by factor, (N, P_d)."""

    factors: list[np.ndarray]

    @cached_property
    def product(self) -> np.ndarray:
        """Of all factors together, (N, P)."""
        return product_rows(self.factors)

    def dot(self, c: np.ndarray) -> np.ndarray:
        """phi'c at every row, (N,), factor by factor."""
        return evaluated(self.factors, c)


@dataclass(frozen=True)
class TermProcess:
    """One term at its hyperparameters."""

    variance: float
    columns: tuple[Place, ...]
    """Which of the modelled columns its factors are over."""
    factors: tuple[Prior, ...]

    @cached_property
    def at_rows(self) -> tuple[Prior, ...]:
        """Its factors as they answer about rows, some of which may be missing."""
        return tuple(map(rows_may_miss, self.factors))

    @cached_property
    def transform(self) -> TermTransform:
        """From the functions that are summed over rows to those of the prior."""
        return TermTransform(tuple(factor.transform for factor in self.factors))

    @cached_property
    def request(self) -> TermRequest:
        """Its functions."""
        return TermRequest(self.columns, tuple(ColumnRequest(own.domain, own.basis) for own in self.factors))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """All columns that it reads."""
        return numbers(self.columns)

    @property
    def size(self) -> int:
        """P."""
        return self.transform.size

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Where its factors live."""
        return tuple(factor.domain for factor in self.factors)

    def to_raw(self, v: np.ndarray) -> np.ndarray:
        """Coefficients of the prior's functions (P, ...) to coefficients of those that are summed over rows."""
        return self.transform.transpose(v)

    def function(self, c: np.ndarray) -> LetterFunction:
        """phi'c in the letters of its columns."""
        letters = [factor.basis.single for factor in self.factors]
        return LetterFunction.of(self.columns, letters, self.to_raw(c).reshape(self.transform.shape), self.domains)

    def square(self, S: np.ndarray) -> LetterFunction:
        """phi'S phi in the double letters of its columns."""
        return self.square_of(DenseView(self.to_raw(self.to_raw(S).T)))

    def square_of(self, view: MatrixView) -> LetterFunction:
        """The same of a matrix in the functions that are summed over rows."""
        bases = [factor.basis for factor in self.factors]
        letters = project_term(bases, view)
        return LetterFunction.of(self.columns, [basis.double for basis in bases], letters, self.domains)

    def reads(self, along: Container[int]) -> bool:
        """Whether it reads one of some columns."""
        return any(c in along for c in self.numbers)

    def written(self, x: np.ndarray, along: Container[int] = ()) -> Written:
        """The prior's functions at any rows x (N, C), or their slopes along one of the columns, however it is read."""
        pairs = list(zip(self.columns, self.at_rows, strict=True))
        moved = [any(one in along for one in numbers((c,))) for c, _ in pairs]
        if sum(moved) > 1:
            raise ValueError(
                "a product of two functions of one column has no slope here; ask for predictions nearby, and take "
                "their difference"
            )
        return Written([own.features(x[:, c], int(here)) for (c, own), here in zip(pairs, moved, strict=True)])

    def features(self, x: np.ndarray, along: Container[int] = ()) -> np.ndarray:
        """The same of all factors together, (N, P)."""
        return self.written(x, along).product

    def covariance(self, x: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        """Prior covariance of all rows, (N, N), or between them and others, (N, N')."""
        total = np.full((len(x), len(x if z is None else z)), self.variance)
        for c, factor in zip(self.columns, self.at_rows, strict=True):
            column = np.ascontiguousarray(x[:, c])
            total *= factor.correlation(column, column if z is None else np.ascontiguousarray(z[:, c]))
        return total

    def prior_covariance(self) -> np.ndarray:
        """K^-1 of its coefficients, (P, P)."""
        return self.variance * reduce(np.kron, Kronecker(tuple(factor.K for factor in self.factors)).inverses)

    def prior_variances(self) -> np.ndarray:
        """Of its coefficients, (P,)."""
        parts = []
        for own in self.factors:
            known = own.factor.variances(own.basis, own.values)
            parts.append(np.diagonal(own.K.solve(np.eye(own.basis.size))) if known is None else known)
        return self.variance * reduce(np.multiply.outer, parts).reshape(-1)

    @property
    def constant_variance(self) -> bool:
        """Whether k(x, x) is the same everywhere."""
        return all(factor.factor.constant_variance for factor in self.factors)

    def prior_variance(self, x: np.ndarray) -> np.ndarray | float:
        """k(x, x) at every row; one number where it is the same at all."""
        if self.constant_variance:
            return self.variance
        parts = (factor.prior_variance(x[:, c]) for c, factor in zip(self.columns, self.at_rows, strict=True))
        return self.variance * prod(parts)

    @property
    def variance_shape(self) -> tuple[int, ...]:
        """How many functions k(x, x) is made of, by factor."""
        known = ((factor.factor.on(factor.basis), factor.values) for factor in self.factors)
        return tuple(1 if own.constant_variance else len(own.variance_weights(values)) for own, values in known)

    def weighted_variance(self, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The functions of which k(x, x) is made with other weights than its own, at every row."""
        total: np.ndarray = np.broadcast_to(weights, (len(x), *weights.shape))
        for c, own in zip(self.columns, self.at_rows, strict=True):
            if own.factor.constant_variance:
                total = total[:, 0]
            else:
                total = np.einsum("nj,nj...->n...", own.variance_functions(x[:, c]), total)
        return total

    def weighted_letters(self, weights: np.ndarray) -> LetterFunction:
        """The same in the double letters of its columns, for rows inside."""
        bases, letters = [own.basis for own in self.factors], weights
        for d, (own, basis) in enumerate(zip(self.factors, bases, strict=True)):
            if own.factor.constant_variance:
                functions = variance_functions(own.factor, basis, np.eye(basis.double.size)).T
            else:
                functions = own.factor.variance_letters(basis)
            letters = along(letters, d, functions.__matmul__)
        return LetterFunction.of(self.columns, [basis.double for basis in bases], letters, self.domains)

    def unseen(self, x: np.ndarray) -> np.ndarray:
        """k(x, x) - phi'K^-1 phi at every row: the variance that the features do not carry."""
        shares = [factor.carried(x[:, c]) for c, factor in zip(self.columns, self.at_rows, strict=True)]
        # the difference is a variance; only rounding can carry it below zero
        return np.maximum(self.prior_variance(x) - self.variance * np.prod(shares, axis=0), 0.0)

    def slope_variance(self, x: np.ndarray, along: Container[int]) -> np.ndarray | float:
        """Prior variance of the slope along one of its columns, at every row."""
        both = zip(self.columns, self.at_rows, strict=True)
        mine = [(own, x[:, c], any(one in along for one in numbers((c,)))) for c, own in both]
        return self.variance * prod(
            own.slope_variance(at) if here else own.prior_variance(at) for own, at, here in mine
        )

    def inside(self, rows: Rows) -> np.ndarray:
        """Which rows lie inside the places of all its columns."""
        parts = zip(self.numbers, (part for domain in self.domains for part in domain.parts), strict=True)
        return np.logical_and.reduce([rows[c].on(part).inside for c, part in parts])

    def linear(self, x: np.ndarray, rows: Rows, vectors: Vectors) -> Vectors:
        """phi'c at every row for every vector c, (N,) each."""

        def beyond(x: np.ndarray) -> np.ndarray:
            values, C = np.zeros((len(vectors), len(x))), np.stack(vectors, axis=1)
            for some, weights, Z in self.beyond(x):
                values[:, some] = (weights @ (C if Z is None else Z.T @ C)).T
            return values

        functions = [self.function(c) for c in vectors]
        return split(x, rows, self.numbers, self.inside(rows), lambda some: synthesise(some, functions), beyond)

    def beyond(self, x: np.ndarray) -> Iterator[Stretch]:
        """Features of rows anywhere, weights Z': one column may be seen through few states, others are written out."""
        parts = self.at_rows[0].beyond(x[:, self.columns[0]]) if len(self.factors) == 1 else None
        if parts is not None:
            yield from parts
            return
        for some in stretches(len(x), self.size):
            yield some, self.features(x[some]), None
