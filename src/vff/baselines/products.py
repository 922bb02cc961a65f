"""Sums of products of one-column correlations, the covariance behind every kernel expression.

    k(x, x') = sum_t variance_t prod_f correlation_tf(x_c(tf), x'_c(tf))

A one-column kernel is a product of one factor, and columns may be shared between factors and terms. A Matérn factor is
polynomial(s) exp(-s) with s = rate |lag|, so a product of them is the product of their polynomials and one exponential
of -(s_1 + s_2 + ...): the exponential, which costs more than all the rest, is taken once per term, not once per column.
Factors are matrices over the same block of rows, multiplied in place; nothing of size N x n x C is ever written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from vff.baselines.covariances import AbstractCovariance, Values, dot
from vff.kernels import HalfInteger
from vff.kernels.matern import covariance_coefficients

_FAR = 800.0  # exp(-800) is zero in float64, and no power of it overflows


@dataclass(frozen=True)
class Factor:
    """The correlation of one column inside a term."""

    place: int
    """The column of T."""
    order: int | None
    """p of a Matérn; None for levels, whose correlation is [x == x']."""
    label: str
    """What it is called in notes."""

    @property
    def n_lengthscales(self) -> int:
        return 0 if self.order is None else 1


class _Part(NamedTuple):
    """One factor over a block of rows; the correlation is value * exp(-s)."""

    value: np.ndarray
    s: np.ndarray | None
    """rate |lag|; None for levels, which have no exponential."""
    factor: Factor
    rate: float


@dataclass(frozen=True)
class SumOfProducts(AbstractCovariance):
    """One variance per term, one lengthscale per Matérn factor, in the order they are written."""

    terms: tuple[tuple[Factor, ...], ...]

    @property
    def variance_names(self) -> tuple[str, ...]:
        return tuple(f"variance{_of(_name(term), len(self.terms))}" for term in self.terms)

    @property
    def lengthscale_names(self) -> tuple[str, ...]:
        return tuple(
            f"lengthscale{_of(factor.label, len(self._matern))}{self._inside(term)}"
            for term in self.terms
            for factor in term
            if factor.n_lengthscales
        )

    def _inside(self, term: tuple[Factor, ...]) -> str:
        return f" in {_name(term)}" if len(term) > 1 and len(self.terms) > 1 else ""

    @property
    def _matern(self) -> tuple[Factor, ...]:
        return tuple(factor for term in self.terms for factor in term if factor.n_lengthscales)

    @property
    def lengthscale_places(self) -> tuple[int, ...]:
        return tuple(factor.place for factor in self._matern)

    @property
    def first_lengthscale(self) -> float | None:
        return None

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

    def pull_back(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        d_variances, d_lengthscales = [], []
        for variance, parts in zip(values.variances, self._parts(values, T, S), strict=True):
            others = _all_but_one(weights, parts)
            d_variances.append(variance * dot(others[0], parts[0].value))
            for other, part in zip(others, parts, strict=True):
                if part.s is not None and part.factor.order is not None:
                    slope = _horner(_slope_coefficients(part.factor.order), part.s)
                    d_lengthscales.append(variance * dot(other, slope))
        return np.array(d_variances + d_lengthscales)

    def pull_back_rows(self, values: Values, T: np.ndarray, S: np.ndarray, weights: np.ndarray) -> np.ndarray:
        gradient = np.zeros(T.shape)
        for variance, parts in zip(values.variances, self._parts(values, T, S), strict=True):
            for other, part in zip(_all_but_one(weights, parts), parts, strict=True):
                if part.s is not None and part.factor.order is not None:
                    c = part.factor.place
                    # d / dT = rate sign(lag) d / ds
                    moved = other * _horner(_derivative_coefficients(part.factor.order), part.s)
                    moved *= np.sign(np.subtract.outer(T[:, c], S[:, c]))
                    gradient[:, c] += variance * part.rate * moved.sum(axis=1)
        return gradient

    def _parts(self, values: Values, T: np.ndarray, S: np.ndarray) -> Iterator[list[_Part]]:
        """The factors of every term over a block, each with arrays of its own."""
        lengthscales = iter(values.lengthscales)
        for term in self.terms:
            yield [_part(f, next(lengthscales) if f.n_lengthscales else np.nan, T, S) for f in term]


def _of(label: str, count: int) -> str:
    return f" of {label}" if count > 1 else ""


def _name(term: Sequence[Factor]) -> str:
    return " * ".join(factor.label for factor in term)


def _part(factor: Factor, lengthscale: float, T: np.ndarray, S: np.ndarray) -> _Part:
    x, z = T[:, factor.place], S[:, factor.place]
    if factor.order is None:
        return _Part(np.equal.outer(x, z).astype(float), None, factor, np.nan)
    rate = HalfInteger.from_lengthscale(factor.order, lengthscale).rate
    s = np.subtract.outer(rate * x, rate * z)
    np.minimum(np.abs(s, out=s), _FAR, out=s)
    return _Part(_horner(covariance_coefficients(factor.order), s), s, factor, rate)


def _decay(parts: Sequence[_Part], *, spend: bool) -> np.ndarray | None:
    """exp(-sum of s over the Matérn factors), written over the first s when that may be spent; None without Matérns."""
    exponents = [part.s for part in parts if part.s is not None]
    if not exponents:
        return None
    total = np.negative(exponents[0], out=exponents[0] if spend else None)
    for s in exponents[1:]:
        total -= s
    return np.exp(total, out=total)


def _all_but_one(weights: np.ndarray, parts: Sequence[_Part]) -> list[np.ndarray]:
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


def _horner(coefficients: np.ndarray, s: np.ndarray) -> np.ndarray:
    """sum_j coefficients_j s^j; the powers are few and the matrix is large, so it is worked on in place."""
    if coefficients.size == 1:
        return np.full_like(s, coefficients[0])
    total = coefficients[-1] * s
    total += coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total *= s
        total += coefficient
    return total


@cache
def _derivative_coefficients(p: int) -> np.ndarray:
    """c_j with dk / ds = exp(-s) sum_j c_j s^j, from k = exp(-s) sum_j a_j s^j: c_j = (j + 1) a_(j+1) - a_j."""
    a = covariance_coefficients(p)
    return np.append(np.arange(1, p + 1) * a[1:], 0.0) - a


@cache
def _slope_coefficients(p: int) -> np.ndarray:
    """c_j with dk / d log lengthscale = -s dk/ds = exp(-s) sum_j c_j s^j: s goes as 1 / lengthscale."""
    return np.append(0.0, -_derivative_coefficients(p))
