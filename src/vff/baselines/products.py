"""Sums of products of one-column correlations, the covariance behind every kernel expression.

    k(x, x') = sum_t variance_t prod_f correlation_tf(x_c(tf), x'_c(tf))

A one-column kernel is a product of one factor, and columns may be shared between factors and terms. A factor may give
its correlation as value * exp(-s), as a Matérn does, a polynomial in s = rate |lag|; a product of them is the product
of their values and one exponential of -(s_1 + s_2 + ...): the exponential, which costs more than all the rest, is taken
once per term, not once per column.
Factors are matrices over the same block of rows, multiplied in place; nothing of size N x n x C is ever written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vff.baselines.covariances import AbstractCovariance, Values, dot
from vff.factors import Block, Factor, Parameter


@dataclass(frozen=True)
class Column:
    """The correlation of one column inside a term."""

    index: int
    """The column of T."""
    factor: Factor
    label: str
    """What it is called in notes."""


@dataclass(frozen=True)
class SumOfProducts(AbstractCovariance):
    """One variance per term, then the hyperparameters of all factors, in the order they are written."""

    terms: tuple[tuple[Column, ...], ...]

    @property
    def variance_names(self) -> tuple[str, ...]:
        return tuple(f"variance{_of(_name(term), len(self.terms))}" for term in self.terms)

    @property
    def _parameters(self) -> list[tuple[tuple[Column, ...], Column, Parameter]]:
        return [(term, column, own) for term in self.terms for column in term for own in column.factor.parameters]

    @property
    def lengthscale_names(self) -> tuple[str, ...]:
        every = self._parameters
        return tuple(f"{own.name}{_of(column.label, len(every))}{self._inside(term)}" for term, column, own in every)

    def _inside(self, term: tuple[Column, ...]) -> str:
        return f" in {_name(term)}" if len(term) > 1 and len(self.terms) > 1 else ""

    @property
    def lengthscale_units(self) -> tuple[tuple[int, str], ...]:
        return tuple((column.index, own.unit) for _, column, own in self._parameters)

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
                d_lengthscales += [variance * dot(other, slope) for slope in part.slopes()]
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


def _of(label: str, count: int) -> str:
    return f" of {label}" if count > 1 else ""


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
