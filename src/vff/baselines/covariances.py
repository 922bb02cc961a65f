"""Covariance functions of several columns, as the exact process and inducing points need them: no features.

    SumOfProducts   k(x, x') = sum_t variance_t prod_f correlation_tf(x_c(tf), x'_c(tf))
    Radial          k(x, x') = variance exp(-1/2 sum_c (x_c - x'_c)^2 / lengthscale_c^2)

The first is behind every kernel expression. A factor may give its correlation as value * exp(-s), as a Matérn does, a
polynomial in s = rate |lag|; a product of them is the product of their values and one exponential of
-(s_1 + s_2 + ...): the exponential, which costs more than all the rest, is taken once per term, not once per column.
Factors are matrices over the same block of rows, multiplied in place; nothing of size N x n x C is ever written.

The squared exponential has no features of this library's kind (its spectral density is not the inverse of a
polynomial), so it lives here and not in ``vff.kernels``. Rows T, (N, C), are in half ranges of the data.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from vff.basis import Domain
from vff.factors import Block, Factor, Parameter
from vff.moments import Place
from vff.parameters import PositiveVector, Unit

_BLOCK = 2**15  # entries worked on at a time: they stay in the processor's cache

# Lengthscales in half ranges of the data, variances in units of the variance of the targets.
_VARIANCE, _LENGTHSCALE, _NOISE = (1e-8, 1e6), (2e-4, 2e4), (1e-9, 1e4)
_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02)
_NOISE_SHARES = (0.01, 0.1, 1.0)  # noise variance over signal variance


@dataclass(frozen=True)
class Values:
    """Hyperparameters as positive numbers; of what the user gave, NaN where it starts from the data."""

    variances: np.ndarray
    lengthscales: np.ndarray
    noise: float

    @property
    def every(self) -> np.ndarray:
        """All of them, in this order."""
        return np.concatenate([self.variances, self.lengthscales, [self.noise]])

    @property
    def theta(self) -> np.ndarray:
        """Their logarithms."""
        return np.log(self.every)

    def replaced(self, every: Sequence[float]) -> "Values":
        """Others, in the same order."""
        V, numbers = self.variances.size, np.array(every, float)
        return Values(numbers[:V], numbers[V:-1], float(numbers[-1]))

    @property
    def variance(self) -> float:
        """k(x, x), the same at every row."""
        return float(self.variances.sum())

    def combined(self, how: Callable[..., np.ndarray], other: "Values") -> "Values":
        """Number by number."""
        noise = float(how(self.noise, other.noise))
        return Values(how(self.variances, other.variances), how(self.lengthscales, other.lengthscales), noise)

    def completed(self, variance: float, lengthscale: float, noise: float) -> "Values":
        """What is free filled: by one variance, shared by all terms, one lengthscale for all, and the noise."""
        own = variance / self.variances.size, lengthscale, noise
        filled = Values(np.full(self.variances.size, own[0]), np.full(self.lengthscales.size, own[1]), own[2])
        return self.combined(lambda given, other: np.where(np.isnan(given), other, given), filled)


Score = Callable[[Values, bool], tuple[float, float]]
"""(values, rescaled) -> (factor on all variances, bound there); the factor is 1 unless ``rescaled`` sets it free."""


def look(score: Score, given: Values, lengthscale: float | None) -> Values:
    """Where learning starts: the user's values, and the best of a short ladder for the others.

    ``lengthscale`` is tried alone, where it is given, for those that are free.
    """
    known, noise = given.variances[~np.isnan(given.variances)], None if np.isnan(given.noise) else given.noise
    # a free variance beside given ones starts at their mean
    variance = float(given.variances.size * known.mean()) if known.size else None
    tried = _LENGTHSCALES if lengthscale is None and np.isnan(given.lengthscales).any() else (lengthscale or 1.0,)
    if variance is not None and noise is not None:
        pairs = [(variance, noise)]
    elif noise is not None:
        pairs = [(noise / share, noise) for share in _NOISE_SHARES]
    else:
        pairs = [(variance or 1.0, share * (variance or 1.0)) for share in _NOISE_SHARES]
    best, highest = given.completed(pairs[0][0], tried[0], pairs[0][1]), -np.inf
    if len(pairs) * len(tried) == 1:
        return best
    for own in tried:
        for first, second in pairs:
            factor, bound = score(given.completed(first, own, second), variance is None and noise is None)
            if bound > highest:
                best, highest = given.completed(factor * first, own, factor * second), bound
    return best


class Lengthscale(NamedTuple):
    """A hyperparameter beside the variances."""

    name: str
    """What it is called in notes."""
    column: Place
    """The column of T that it measures, or several together."""
    own: tuple[Factor, Parameter] | None = None
    """Whose it is; None for a length that is nobody's."""

    def unit(self, domain: Domain) -> Unit:
        """What it is measured in, over this domain of the column."""
        return Unit(domain.unit()) if self.own is None else self.own[0].measure(domain, self.own[1])


class AbstractCovariance(ABC):
    """A covariance function without its values."""

    first_lengthscale: float | None = None
    """Where lengthscales start, in half ranges; None when a ladder of them is tried on the data."""

    @property
    @abstractmethod
    def variance_names(self) -> tuple[str, ...]:
        """What the variances are called in notes; as many as there are variances."""

    @property
    @abstractmethod
    def columns(self) -> tuple[tuple[Place, ...], ...]:
        """Those that every variance belongs to; those together that are read together."""

    def variance_units(self, domain: Callable[[Place], Domain]) -> list[float]:
        """What every variance is measured in, beside the square of the targets' scale."""
        return [1.0] * len(self.variance_names)

    @property
    @abstractmethod
    def lengthscales(self) -> tuple[Lengthscale, ...]: ...

    @property
    def places(self) -> tuple[Place, ...]:
        """All columns of T, each once."""
        return tuple(dict.fromkeys(place for some in self.columns for place in some))

    @abstractmethod
    def block(self, values: Values, T: np.ndarray, S: np.ndarray) -> np.ndarray:
        """k(T, S), (N, n), for few rows."""

    @abstractmethod
    def pull_back(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """sum_ij weights_ij d k(T_i, S_j) / d log (variances, lengthscales), for few rows."""

    @abstractmethod
    def pull_back_rows(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """sum_j weights_ij d k(T_i, S_j) / d T_i, (N, C), for few rows; what moves inducing points."""

    @cached_property
    def layout(self) -> PositiveVector:
        """Names and bounds of theta: variances, lengthscales, noise."""
        bounds = [(name, *_VARIANCE) for name in self.variance_names]
        bounds += [(own.name, *_LENGTHSCALE) for own in self.lengthscales]
        return PositiveVector(*zip(*bounds, ("noise", *_NOISE), strict=True))

    def values(self, theta: np.ndarray) -> Values:
        """Positive numbers from their logarithms."""
        V, positive = len(self.variance_names), np.exp(theta)
        return Values(positive[:V], positive[V:-1], float(positive[-1]))

    def diagonal(self, values: Values, T: np.ndarray) -> np.ndarray | float:
        """k(T_i, T_i); one number where it is the same everywhere."""
        return values.variance

    def matrix(self, values: Values, T: np.ndarray, S: np.ndarray) -> np.ndarray:
        """k(T, S), (N, n), in C order."""
        matrix = np.empty((len(T), len(S)))
        for rows in blocks(len(T), len(S)):
            matrix[rows] = self.block(values, T[rows], S)
        return matrix


def blocks(n: int, width: int) -> Iterator[slice]:
    """Rows of an (n, width) matrix, as many at a time as stay in the cache."""
    step = max(1, _BLOCK // width)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def staircase(n: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows of an (n, n) matrix, each with its columns from the diagonal on: the upper half.

    Written row by row into an array in C order, it is the lower half of the same memory in Fortran order, which LAPACK
    factorises where it stands.
    """
    return ((rows, slice(rows.start, n)) for rows in blocks(n, n))


@dataclass(frozen=True)
class Radial(AbstractCovariance):
    """The squared exponential over all columns, a lengthscale for each."""

    labels: tuple[str, ...]
    """What the columns are called in notes."""

    @property
    def variance_names(self) -> tuple[str, ...]:
        return ("variance",)

    @property
    def columns(self) -> tuple[tuple[Place, ...], ...]:
        return (tuple(range(len(self.labels))),)

    def __post_init__(self) -> None:
        # In many columns short lengthscales isolate the rows, and outliers reward that: such a start ends on a lower
        # peak of the evidence (15 nats on 2000 flights, and a held-out MSE of 0.93 instead of 0.73).
        object.__setattr__(self, "first_lengthscale", None if len(self.labels) == 1 else 2.0)

    @property
    def lengthscales(self) -> tuple[Lengthscale, ...]:
        return tuple(Lengthscale(f"lengthscale of column {own}", c) for c, own in enumerate(self.labels))

    def block(self, values: Values, T: np.ndarray, S: np.ndarray) -> np.ndarray:
        k = cdist(T / values.lengthscales, S / values.lengthscales, "sqeuclidean")
        k *= -0.5
        np.exp(k, out=k)
        k *= values.variances[0]
        return k

    def pull_back(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        weighted = self.block(values, T, S)
        weighted *= weights
        gradient = [float(weighted.sum())]
        for c, lengthscale in enumerate(values.lengthscales):
            # dk / d log lengthscale_c = k lag_c^2 / lengthscale_c^2
            lag = np.subtract.outer(T[:, c] / lengthscale, S[:, c] / lengthscale)
            lag *= lag
            gradient.append(_dot(weighted, lag))
        return np.array(gradient)

    def pull_back_rows(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        weighted = weights * self.block(values, T, S)
        # dk / dT_ic = -k lag_c / lengthscale_c^2
        return (weighted @ S - weighted.sum(axis=1)[:, None] * T) / values.lengthscales**2


@dataclass(frozen=True)
class Column:
    """The correlation of one column, or of several together, inside a term."""

    index: Place
    """The column of T."""
    factor: Factor
    label: str
    """What it is called in notes."""


@dataclass(frozen=True)
class SumOfProducts(AbstractCovariance):
    """One variance per term, then the hyperparameters of all factors, in the order they are written.

    Columns may be shared between factors and terms.
    """

    terms: tuple[tuple[Column, ...], ...]

    @property
    def variance_names(self) -> tuple[str, ...]:
        return tuple("variance" + (f" of {_name(term)}" if len(self.terms) > 1 else "") for term in self.terms)

    @property
    def columns(self) -> tuple[tuple[Place, ...], ...]:
        return tuple(tuple(column.index for column in term) for term in self.terms)

    def variance_units(self, domain: Callable[[Place], Domain]) -> list[float]:
        return [prod(own.factor.unit(domain(own.index), "variance") for own in term) for term in self.terms]

    @property
    def lengthscales(self) -> tuple[Lengthscale, ...]:
        every = [(term, column, own) for term in self.terms for column in term for own in column.factor.parameters]
        found = []
        for term, column, own in every:
            of = f" of {column.label}" if len(every) > 1 else ""
            inside = f" in {_name(term)}" if len(term) > 1 and len(self.terms) > 1 else ""
            found.append(Lengthscale(f"{own.name}{of}{inside}", column.index, (column.factor, own)))
        return tuple(found)

    def block(self, values: Values, T: np.ndarray, S: np.ndarray) -> np.ndarray:
        total = None
        for variance, parts in zip(values.variances, self._parts(values, T, S), strict=True):
            k = parts[0].value
            for part in parts[1:]:
                k *= part.value
            decay = _decay(parts, spend=True)
            if decay is not None:
                k *= decay
            if variance != 1.0:
                k *= variance
            total = k if total is None else np.add(total, k, out=total)
        assert total is not None  # a kernel has a term
        return total

    def diagonal(self, values: Values, T: np.ndarray) -> np.ndarray | float:
        rest, total = iter(values.lengthscales), 0.0
        for variance, term in zip(values.variances, self.terms, strict=True):
            for column in term:
                own = {parameter.name: next(rest) for parameter in column.factor.parameters}
                if not column.factor.constant_variance:
                    variance = variance * column.factor.variance_at(T[:, column.index], own)
            total = total + variance
        return total

    def pull_back(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        d_variances, d_lengthscales = [], []
        for variance, parts in zip(values.variances, self._parts(values, T, S), strict=True):
            others = _all_but_one(weights, parts)
            d_variances.append(variance * _dot(others[0], parts[0].value))
            for other, part in zip(others, parts, strict=True):
                d_lengthscales += [variance * _dot(other, slope) for slope in part.slopes()]
        return np.array(d_variances + d_lengthscales)

    def pull_back_rows(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        gradient = np.zeros(T.shape)
        every = zip(values.variances, self.terms, self._parts(values, T, S), strict=True)
        for variance, term, parts in every:
            for other, column, part in zip(_all_but_one(weights, parts), term, parts, strict=True):
                moved = part.moved()
                if moved is not None:
                    gradient[:, column.index] += variance * part.speed * (other * moved).sum(axis=1)
        return gradient

    def _parts(self, values: Values, T: np.ndarray, S: np.ndarray) -> Iterator[list[Block]]:
        """The factors of every term over a block, each with arrays of its own."""
        rest = iter(values.lengthscales)
        for term in self.terms:
            parts = []
            for column in term:
                own = {parameter.name: next(rest) for parameter in column.factor.parameters}
                parts.append(column.factor.block(T[:, column.index], S[:, column.index], own))
            yield parts


def _name(term: Sequence[Column]) -> str:
    return " * ".join(factor.label for factor in term)


def _decay(parts: Sequence[Block], *, spend: bool) -> np.ndarray | None:
    """exp(-sum of all exponents), written over the first when that may be spent; None where there is none."""
    exponents = [part.exponent for part in parts if part.exponent is not None]
    if not exponents:
        return None
    total = np.negative(exponents[0], out=exponents[0] if spend else None)
    for s in exponents[1:]:
        total -= s
    return np.exp(total, out=total)


def _all_but_one(weights: np.ndarray, parts: Sequence[Block]) -> list[np.ndarray]:
    """For every factor, weights * exp(-sum of s) * the values of all others.

    By products from both ends and not by division, as a value may be 0.
    """
    decay = _decay(parts, spend=False)
    before = [weights if decay is None else np.multiply(weights, decay, out=decay)]
    for part in parts[:-1]:
        before.append(before[-1] * part.value)
    after, found = None, []
    for left, part in zip(reversed(before), reversed(parts), strict=True):
        found.append(left if after is None else left * after)
        after = part.value if after is None else after * part.value
    return found[::-1]


def _dot(A: np.ndarray, B: np.ndarray) -> float:
    """sum_ij A_ij B_ij without BLAS, which wakes its threads for a block that one has done by then."""
    return float(np.einsum("ij,ij->", A, B))
