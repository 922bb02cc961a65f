"""An exact Gaussian process by its definition, in long double: the judge of bounds and predictions.

Plain NumPy, and no code of the library. A row of weight w stands for w equal rows, so the density of all of them is
N(y; m, K + s W^-1) times (2πs)^(-w/2) (2πs/w)^(1/2) for every row, with s the variance of the noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

Number = np.longdouble


@dataclass(frozen=True)
class Factor:
    """A Matérn of some order with a lengthscale, or levels (order None), on a column."""

    column: str
    order: int | None
    lengthscale: float = 1.0


@dataclass(frozen=True)
class Term:
    variance: float
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Constant:
    """The prior of the constant: known when its variance is zero."""

    mean: float
    variance: float = 0.0


@dataclass(frozen=True)
class Exact:
    """log p(y), and the posterior of the function at the rows asked about."""

    evidence: float
    mean: np.ndarray
    variance: np.ndarray
    prior_variance: float


def matern(order: int, distance: np.ndarray) -> np.ndarray:
    """Correlation of a Matérn-(order + 1/2) at a distance in lengthscales."""
    r = np.sqrt(Number(2 * order + 1)) * distance
    total = np.zeros_like(r)
    for k in range(order + 1):
        share = Number(factorial(order + k)) / (factorial(k) * factorial(order - k))
        total = total + share * (2 * r) ** (order - k)
    return np.exp(-r) * total * factorial(order) / factorial(2 * order)


def covariance(terms: Sequence[Term], left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> np.ndarray:
    rows, columns = (len(next(iter(table.values()))) for table in (left, right))
    total = np.zeros((rows, columns), Number)
    for term in terms:
        product = np.full((rows, columns), Number(term.variance))
        for factor in term.factors:
            x, z = left[factor.column], right[factor.column]
            if factor.order is None:
                product = product * np.equal.outer(x, z)
            else:
                apart = np.abs(np.subtract.outer(x.astype(Number), z.astype(Number)))
                product = product * matern(factor.order, apart / Number(factor.lengthscale))
        total += product
    return total


def cholesky(A: np.ndarray) -> np.ndarray:
    """Lower factor in long double, column by column; LAPACK has none."""
    L = np.zeros_like(A)
    for k in range(len(A)):
        rest = A[k:, k] - L[k:, :k] @ L[k, :k]
        if not rest[0] > 0:
            raise FloatingPointError("the exact covariance is not positive definite in long double")
        L[k:, k] = rest / np.sqrt(rest[0])
    return L


def solve_lower(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    X = np.zeros_like(B)
    for k in range(len(L)):
        X[k] = (B[k] - L[k, :k] @ X[:k]) / L[k, k]
    return X


def exact(
    terms: Sequence[Term],
    noise: float,
    constant: Constant,
    table: Mapping[str, Any],
    y: np.ndarray,
    w: np.ndarray,
    asked: Mapping[str, Any],
) -> Exact:
    """Evidence of the rows, and the posterior of constant plus function at the rows asked about."""
    seen = w > 0
    table, y, w = {name: values[seen] for name, values in table.items()}, y[seen].astype(Number), w[seen].astype(Number)
    s, of_constant = Number(noise), Number(constant.variance)
    L = cholesky(covariance(terms, table, table) + of_constant + np.diag(s / w))
    v = solve_lower(L, (y - Number(constant.mean))[:, None])[:, 0]
    two_pi = 2 * np.arccos(Number(-1))
    density = -0.5 * (v @ v) - np.log(np.diag(L)).sum() - 0.5 * len(y) * np.log(two_pi)
    copies = 0.5 * np.sum(np.log(two_pi * s / w) - w * np.log(two_pi * s))
    across = solve_lower(L, covariance(terms, table, asked) + of_constant)
    prior = Number(sum(term.variance for term in terms)) + of_constant
    variance = prior - np.sum(across**2, axis=0)
    mean = Number(constant.mean) + across.T @ v
    return Exact(float(density + copies), mean.astype(float), variance.astype(float), float(prior))
