"""The posterior process of a q whose covariance has a structure.

f(x) | y ~ GP( sum_t phi_t' m_t,  sum_t k_t(x, x') - phi_t' (K_t^-1 - S_t) phi_t ),      S_t = sum of Kronecker products

Terms are independent of one another under q. K^-1 and S are products over the factors of a term, so that features are
written out factor by factor, (N, P_d), a stretch of rows at a time, and never (N, P), unless the covariance is dense
within a term.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from vff.factors import Prior, TermTransform
from vff.inference.posterior import AbstractSumPosterior, stretches
from vff.inference.structured import StructuredFit
from vff.inference.structured_bound import Piece, evaluated, projected
from vff.inference.term_posterior import TermCoefficients, TermPosterior
from vff.linalg import apply_along, product_rows
from vff.moments import ColumnRows, Tables

Features = Sequence[np.ndarray]
"""Of every factor of a term, (N, P_d)."""
Reduction = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class StructuredTerm(TermPosterior):
    """q(f) for one term; ``coefficients.explained`` is not written out."""

    pieces: tuple[Piece, ...]
    """L with S = sum over pieces of kron_g L_g L_g', a group being a factor, or the whole term."""
    whiteners: tuple[np.ndarray, ...]
    """G_d for every factor, K_d^-1 = G_d G_d' for unit variance."""

    def factor_features(self, x: np.ndarray, along: int | None = None) -> list[np.ndarray]:
        """Of every factor at any rows x (N, C), (N, P_d), or the slopes along one of the columns."""
        return [factor.features(x[:, c], int(c == along)) for c, factor in zip(self.columns, self.factors, strict=True)]

    def _products(self, phi: Features, reduction: Reduction) -> tuple[np.ndarray, np.ndarray]:
        """phi'K^-1 phi and phi'S phi, with what ``reduction`` makes of the rows of phi L for every factor L."""
        prior = self.variance * _product([reduction(own @ G) for own, G in zip(phi, self.whiteners, strict=True)])
        whole = len(self.pieces[0]) < len(phi)
        groups = [product_rows(list(phi))] if whole else list(phi)
        parts = [_product([reduction(own @ L) for own, L in zip(groups, piece, strict=True)]) for piece in self.pieces]
        return prior, np.sum(parts, axis=0)

    @property
    def _written_size(self) -> int:
        """Numbers per row that ``values`` keeps at a time."""
        sizes = [len(G) for G in self.whiteners]
        whole = len(self.pieces[0]) < len(sizes)
        return 2 * sum(sizes) + (2 if whole else 1) * prod(sizes if whole else sizes[1:])

    def values(
        self, x: np.ndarray, vectors: Sequence[np.ndarray], along: int | None = None, *, variances: bool = True
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """phi'c for every vector c, and phi'(K^-1 - S)phi, at every row; of slopes along a column if one is named."""
        found, explained = [np.empty(len(x)) for _ in vectors], np.zeros(len(x))
        for rows in stretches(len(x), self._written_size):
            phi = self.factor_features(x[rows], along)
            for value, c in zip(found, vectors, strict=True):
                value[rows] = evaluated(phi, c)
            if variances:
                prior, left = self._products(phi, _squares)
                explained[rows] = prior - left
        return found, explained

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of all rows."""
        phi = self.factor_features(x)
        prior, left = self._products(phi, _outer)
        return evaluated(phi, self.coefficients.mean), self.covariance(x) - prior + left

    def answers(
        self, x: np.ndarray, rows: Sequence[ColumnRows], vectors: Sequence[np.ndarray], engine: str = "auto"
    ) -> tuple[list[np.ndarray], np.ndarray]:
        return self.values(x, vectors)

    def linear(self, x: np.ndarray, rows: Sequence[ColumnRows], c: np.ndarray, engine: str = "auto") -> np.ndarray:
        return self.values(x, [c], variances=False)[0][0]


def _product(parts: Sequence[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.einsum("np,np->n", rows, rows)


def _outer(rows: np.ndarray) -> np.ndarray:
    return rows @ rows.T


@dataclass(frozen=True)
class StructuredPosterior(AbstractSumPosterior):
    """q(f) for a sum of terms."""

    terms: tuple[StructuredTerm, ...]

    def _chunk(
        self, x: np.ndarray, rows: Sequence[ColumnRows], variances: bool, engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = np.zeros(len(x)), np.zeros(len(x))
        for term in self.terms:
            (value,), explained = term.values(x, [term.coefficients.mean], variances=variances)
            mean += value
            # the difference is a variance; only rounding can carry it below zero
            variance += np.maximum(term.variance - explained, 0.0)
        return mean, variance

    def inside(self, rows: Sequence[ColumnRows], tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        return self.marginals(np.stack([column.x for column in rows], axis=1))

    def _joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = np.zeros(len(x)), np.zeros((len(x), len(x)))
        for term in self.terms:
            own, spread = term.joint(x)
            mean += own
            covariance += spread
        return mean, covariance

    def _variance_of_average(self) -> float:
        return sum(float(term.coefficients.centre @ term.coefficients.centre_covariance) for term in self.terms)

    def _slope(self, x: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = np.zeros(len(x)), np.zeros(len(x))
        for term in self.terms:
            if along in term.columns:
                (value,), explained = term.values(x, [term.coefficients.mean], along)
                mean += value
                variance += np.maximum(term.slope_variance(along) - explained, 0.0)
        return mean, variance


def structured_term(
    fit: StructuredFit,
    t: int,
    columns: tuple[int, ...],
    factors: tuple[Prior, ...],
    centre: np.ndarray,
    transform: TermTransform,
) -> StructuredTerm:
    """One term of a fit; ``centre`` is the average of its features over the rows, (P,)."""
    pieces, mean = fit.factors[t], fit.means[t]
    shape = mean.shape if len(pieces[0]) == mean.ndim else (mean.size,)
    spread = np.zeros(mean.size)
    for piece in pieces:
        spread += apply_along(centre, shape, [lambda v, L=L: L @ (L.T @ v) for L in piece])
    coefficients = TermCoefficients(mean.ravel(), np.empty((0, 0)), centre, spread)
    return StructuredTerm(coefficients, fit.variances[t], columns, factors, transform, pieces, fit.whiteners[t])


def centre_of(features: Features, w: np.ndarray) -> np.ndarray:
    """Average of the features of a term over the rows, (P,)."""
    return projected(tuple(features), w / w.sum())
