"""A term: a product of factors over columns, and one variance.

A term knows its hyperparameters (in units of the domains and of the targets' variance), the prior precision of its
coefficients, the coordinates in which that is written, and the chain rule back to the logarithms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import NamedTuple

import numpy as np

from vff.basis import Basis
from vff.factors import Factor, Parameter, Prior, TermTransform
from vff.linalg import (
    AbstractInvertible,
    AbstractOperator,
    AbstractProduct,
    Kronecker,
    MatrixView,
    StructuredCotangent,
    along,
)
from vff.moments import ColumnRequest

Values = Mapping[str, float]

Product = Callable[[np.ndarray], np.ndarray]
"""With a matrix."""

_VARIANCE_BOUNDS = (1e-8, 1e6)
# Of one coefficient, data show one draw. The likeliest variance of a prior that one draw came from is zero as soon as
# the draw is within its error of zero, and then the coefficient would be known to be nothing: so it is let be wide, as
# the prior of the constant is.
_LONE_BOUNDS = (1e2, 1e6)


class TermParameter(NamedTuple):
    """A hyperparameter of one of the factors of a term."""

    name: str
    """Unique within the term."""
    d: int
    """Whose it is."""
    own: Parameter


@dataclass(frozen=True)
class Term:
    """One summand of the model: a product of factors, one per column."""

    factors: tuple[Factor, ...]
    given: bool = False
    """Whether the user has said where its variance starts."""
    limits: tuple[tuple[str, float, float], ...] = ()
    """Hyperparameters that the user holds or bounds, by name, and between which values."""

    @cached_property
    def parameters(self) -> tuple[TermParameter, ...]:
        """The hyperparameters beside the variance, factor after factor."""
        alone = len(self.factors) == 1
        return tuple(
            TermParameter(own.name if alone else f"{own.name} of factor {d}", d, own)
            for d, factor in enumerate(self.factors)
            for own in factor.parameters
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Its hyperparameters; the variance is the first."""
        return ("variance", *(name for name, _, _ in self.parameters))

    @property
    def lone(self) -> bool:
        """Whether it has one coefficient, and nobody has said how large that may be."""
        return not self.given and all(factor.lone for factor in self.factors)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of every hyperparameter: the user's, where there are some."""
        said = {name: (low, high) for name, low, high in self.limits}
        usual = [_LONE_BOUNDS if self.lone else _VARIANCE_BOUNDS, *(own.bounds for _, _, own in self.parameters)]
        return [said.get(name, bounds) for name, bounds in zip(self.names, usual, strict=True)]

    @property
    def needed(self) -> bool:
        """Whether the user has said how large its variance is, so that it cannot come to nothing."""
        return any(name == "variance" for name, _, _ in self.limits)

    def values_of(self, d: int, values: Values) -> dict[str, float]:
        """The hyperparameters of one factor, as it calls them."""
        return {own.name: values[name] for name, e, own in self.parameters if e == d}

    def prior(self, d: int, columns: Sequence[ColumnRequest], values: Values) -> Prior:
        """One factor at these values; ``columns`` are the functions of all of them."""
        return self.factors[d].prior(columns[d].domain, columns[d].basis, self.values_of(d, values))

    def priors(self, columns: Sequence[ColumnRequest], values: Values) -> tuple[Prior, ...]:
        """All factors at these values."""
        return tuple(self.prior(d, columns, values) for d in range(len(self.factors)))

    def blocks(self, columns: Sequence[ColumnRequest], values: Values) -> tuple[AbstractInvertible, ...]:
        """The precision of every factor, for unit variance."""
        return tuple(prior.K for prior in self.priors(columns, values))

    def precision(self, columns: Sequence[ColumnRequest], values: Values) -> AbstractInvertible:
        """K, the prior precision of the coefficients."""
        blocks = self.blocks(columns, values)
        return (blocks[0] if len(blocks) == 1 else Kronecker(blocks)).scaled(1.0 / values["variance"])

    def transform(self, columns: Sequence[ColumnRequest], values: Values) -> TermTransform:
        """From the functions that are summed over rows to those whose coefficients K is about."""
        return TermTransform(tuple(prior.transform for prior in self.priors(columns, values)))

    @property
    def constant_variance(self) -> bool:
        """Whether k(x, x) is the same everywhere."""
        return all(factor.constant_variance for factor in self.factors)

    def variance_sums(self, columns: Sequence[ColumnRequest], letters: np.ndarray) -> np.ndarray:
        """Sums over rows of products of the functions of which k(x, x) is made, an axis per factor.

        ``letters`` are the sums of the products of their double letters. A factor whose variance is one everywhere has
        one function, the constant, which is among its features.
        """
        for d, (factor, own) in enumerate(zip(self.factors, columns, strict=True)):
            letters = along(letters, d, partial(variance_functions, factor, own.basis))
        return letters

    def _weights(self, columns: Sequence[ColumnRequest], values: Values) -> list[np.ndarray]:
        """Of the functions of which k(x, x) is made, by factor."""
        both = enumerate(zip(self.factors, columns, strict=True))
        return [_variance_weights(factor.on(own.basis), self.values_of(d, values)) for d, (factor, own) in both]

    def variance_weights(self, columns: Sequence[ColumnRequest], values: Values) -> np.ndarray:
        """Of products of the functions of which k(x, x) is made, an axis per factor."""
        return values["variance"] * reduce(np.multiply.outer, self._weights(columns, values))

    def variance_total(self, columns: Sequence[ColumnRequest], sums: np.ndarray, values: Values) -> float:
        """sum w k(x, x) from ``variance_sums``."""
        return values["variance"] * _contracted(sums, self._weights(columns, values))

    def variance_total_slopes(
        self, columns: Sequence[ColumnRequest], sums: np.ndarray, values: Values
    ) -> dict[str, float]:
        """Its derivatives in the logarithm of every hyperparameter."""
        weights = self._weights(columns, values)
        slopes = {"variance": values["variance"] * _contracted(sums, weights)}
        for name, d, own in self.parameters:
            factor = self.factors[d].on(columns[d].basis)
            moved = {} if factor.constant_variance else factor.variance_slopes(self.values_of(d, values))
            if own.name in moved:
                changed = [*weights[:d], moved[own.name], *weights[d + 1 :]]
                slopes[name] = values["variance"] * _contracted(sums, changed)
        return slopes

    def pull_back(
        self, columns: Sequence[ColumnRequest], values: Values, K: AbstractInvertible, dK: StructuredCotangent
    ) -> dict[str, float]:
        """The derivatives <dK, dK / d log theta> for every hyperparameter.

        K is proportional to 1 / variance. The bound does not depend on coordinates, so those of the prior may be held
        at these values.
        """
        gradient = {"variance": -K.inner(dK)}
        priors = self.priors(columns, values)
        for name, d, own in self.parameters:
            gradient[name] = _inner(K, priors[d].derivative(own.name), dK, d, values["variance"])
        return gradient

    def changes(self, columns: Sequence[ColumnRequest], values: Values, K: AbstractInvertible) -> list[Product]:
        """Products with dK / d log theta, one for every hyperparameter in their order."""
        priors = self.priors(columns, values)
        products: list[Product] = [lambda v: -K.mv(v)]
        for _, d, own in self.parameters:
            change = priors[d].derivative(own.name)
            if isinstance(K, AbstractProduct):
                products.append(K.with_factor(change, d).mv)
            else:
                products.append(lambda v, change=change: change.mv(v) / values["variance"])
        return products

    def pull_back_twice(
        self, columns: Sequence[ColumnRequest], values: Values, K: AbstractInvertible, view: MatrixView
    ) -> np.ndarray:
        """<M, d2K / d log theta_i d log theta_j> of a matrix M, (R, R), the functions held."""
        dK, names, D = K.project(view), self.names, len(self.factors)
        found = np.zeros((len(names), len(names)))
        first = self.pull_back(columns, values, K, dK)
        found[0] = found[:, 0] = [-first[name] for name in names]  # K is proportional to 1 / variance
        priors = self.priors(columns, values)
        for j, (_, d, own) in enumerate(self.parameters, start=1):
            for i, (_, e, other) in enumerate(self.parameters[:j], start=1):
                if e == d:
                    change = priors[d].second_derivative(other.name, own.name)
                    found[i, j] = found[j, i] = _inner(K, change, dK, d, values["variance"])
            if isinstance(K, AbstractProduct) and d + 1 < D:
                both = K.with_factor(priors[d].derivative(own.name), d)
                across = both.project(view)
                for i, (_, e, other) in enumerate(self.parameters, start=1):
                    if e > d:
                        found[i, j] = found[j, i] = both.inner_of_factor(priors[e].derivative(other.name), across, e)
        return found


def exchangeable_factors(terms: Sequence[Term]) -> dict[int, tuple[int, ...]]:
    """Of every term with such factors, those whose coefficients are independent a priori, with one variance."""
    every = ((s, tuple(d for d, own in enumerate(term.factors) if own.exchangeable)) for s, term in enumerate(terms))
    return {s: found for s, found in every if found}


def _inner(K: AbstractInvertible, change: AbstractOperator, dK: StructuredCotangent, d: int, variance: float) -> float:
    """<dK, what a change of one factor makes of K>."""
    if isinstance(K, AbstractProduct):
        return K.inner_of_factor(change, dK, d)
    return change.inner(dK) / variance


def variance_functions(factor: Factor, basis: Basis, letters: np.ndarray) -> np.ndarray:
    """Sums over double letters (Q, ...) to sums over the functions of which k(x, x) is made, (J, ...)."""
    if factor.constant_variance:
        one = factor.one(basis)
        if one is None:
            raise TypeError(f"{factor.title} has a constant variance, and not the function 1 that it is made of")
        return np.tensordot(one[None], basis.features_sum(letters), axes=1)
    return np.tensordot(factor.variance_letters(basis).T, letters, axes=1)


def _variance_weights(factor: Factor, values: Values) -> np.ndarray:
    return np.ones(1) if factor.constant_variance else factor.variance_weights(values)


def _contracted(sums: np.ndarray, weights: Sequence[np.ndarray]) -> float:
    for own in reversed(weights):
        sums = sums @ own
    return float(sums)
