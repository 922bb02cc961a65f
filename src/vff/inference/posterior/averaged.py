"""S over draws of coefficients and hyperparameters, which are kept.

The first two moments of f over draws are those of one Gaussian process, theory (12.2), and ``Direct`` answers with
these; what is not Gaussian about f is answered by the draws themselves. Beyond the domain, features go on as their
tails at the median of the hyperparameters have it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.inference.posterior.covariance import Arrays, Direct, columns_of
from vff.inference.posterior.term import stretches


@dataclass(frozen=True)
class Averaged(Direct):
    """S given the constant, and what the draws have it from."""

    carried: tuple[np.ndarray, ...]
    """E[K^-1] of every term, (P_s, P_s)."""
    coefficients: np.ndarray
    """Draws of c, (S, P)."""
    intercepts: np.ndarray
    """How far the constant is from its average in every draw, (S,)."""

    @property
    def count(self) -> int:
        """Draws that are kept."""
        return len(self.coefficients)

    def arrays(self) -> Arrays:
        yield from super().arrays()
        for own, size in zip(self.carried, self.request.sizes, strict=True):
            yield own, (size, size), "a covariance of the prior"
        yield self.coefficients, (self.count, self.request.size), "draws of the coefficients"
        yield self.intercepts, (self.count,), "draws of the constant"

    def check(self) -> None:
        super().check()
        if not self.count:
            raise ValueError("draws were expected, found none")

    @cached_property
    def _rest(self) -> Direct:
        return Direct(self.terms, self.carried, {})

    def rest(self, x: np.ndarray) -> np.ndarray:
        """Variance of the part of f that features do not carry, on average over draws, (N,)."""
        _, explained = self._rest.explained(np.zeros(self.request.size), x, columns_of(self.request, x), "auto")
        # the difference is a variance; only rounding can carry it below zero
        return np.maximum(sum(term.variance for term in self.terms) - explained, 0.0)

    def values(self, x: np.ndarray, some: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """c0 + phi'c of some of the draws at every row, (N, S), and the variance of the rest, (N,)."""
        c = self.coefficients[some].T
        values = np.empty((len(x), c.shape[1]))
        for rows in stretches(len(x), self.request.size):
            values[rows] = np.concatenate([term.features(x[rows]) for term in self.terms], axis=1) @ c
        return values + self.intercepts[some], self.rest(x)
