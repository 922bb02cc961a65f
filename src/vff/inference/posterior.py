"""The posterior process of a sum of terms: joint over all of them, since the data do not tell terms apart for free.

f(x) | y ~ GP( sum_s phi_s' m_s,  sum_s k_s(x, x') - phi' S phi ),      S = diag(K_s^-1) - A^-1

Per row: the terms' own quadratic forms, and -2 phi_s' (A^-1)_st phi_t taken away for every pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.basis import Interval, LevelBasis
from vff.inference.collapsed import ClosedForm
from vff.inference.model import Setting, SumModel
from vff.inference.term_posterior import (
    AbstractTermPosterior,
    ColumnPosterior,
    LevelPosterior,
    TermCoefficients,
)
from vff.inference.terms import MaternTerm
from vff.linalg import factorise
from vff.moments import Pair, quad_of_pairs

_WRITTEN = 2**23  # features written out at a time, for the rows that need it
_CHUNK = 2**20

Columns = Sequence[np.ndarray]
"""The modelled columns, (N,) each, one per term; a table x (N, T) from outside has one column per term."""


def _columns(x: np.ndarray) -> Columns:
    return [np.ascontiguousarray(column) for column in x.T]


@dataclass(frozen=True)
class SumPosterior:
    """q(f) for a sum of terms."""

    terms: tuple[AbstractTermPosterior, ...]
    shared: dict[Pair, np.ndarray]
    """(A^-1)_st for s < t, (P_s, P_t)."""

    @classmethod
    def from_closed_form(cls, closed: ClosedForm, model: SumModel, setting: Setting) -> "SumPosterior":
        """The posterior at a setting."""
        places, inverse, centre = model.moments.request.slices, closed.factor.inverse(), model.centre(setting)
        terms = []
        for s, (term, place) in enumerate(zip(model.terms, places, strict=True)):
            own = inverse[place, place]
            explained = term.precision(model.bases[s], setting.terms[s]).solve(np.eye(own.shape[0])) - own
            coefficients = TermCoefficients(
                closed.mean[place], 0.5 * (explained + explained.T), centre[place], own @ centre[place]
            )
            terms.append(_term_posterior(model, setting, s, coefficients))
        shared = {(s, t): inverse[places[s], places[t]].copy() for s, t in model.moments.request.pairs}
        return cls(tuple(terms), shared)

    @cached_property
    def _shared_raw(self) -> dict[Pair, np.ndarray]:
        """``shared`` in the functions that are summed over rows."""
        return {(s, t): self.terms[t].to_raw(self.terms[s].to_raw(block).T).T for (s, t), block in self.shared.items()}

    @property
    def variance(self) -> float:
        """Prior variance of the sum."""
        return sum(term.variance for term in self.terms)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say in some term, (N, T)."""
        return np.stack([term.outside(column) for term, column in zip(self.terms, x.T, strict=True)], axis=1)

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, O(P) each."""
        return self.marginals(x, variances=False)[0]

    def marginals(
        self, x: np.ndarray, *, variances: bool = True, engine: str = "auto"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row of x (N, T)."""
        mean, variance = np.empty(len(x)), np.empty(len(x))
        for start in range(0, len(x), _CHUNK):
            rows = slice(start, start + _CHUNK)
            mean[rows], variance[rows] = self._chunk(_columns(x[rows]), variances, engine)
        return mean, variance

    def _chunk(self, columns: Columns, variances: bool, engine: str) -> tuple[np.ndarray, np.ndarray]:
        every = list(zip(self.terms, columns, strict=True))
        rows = [term.rows(x) for term, x in every]
        inside = np.logical_and.reduce([column.request.place.contains(column.t) for column in rows])
        whole = bool(inside.all())
        if whole and not variances:
            means = [term.mean_inside(column) for term, column in zip(self.terms, rows, strict=True)]
            return np.sum(means, axis=0), np.empty(inside.size)
        if whole:
            parts = [term.inside(column, engine) for term, column in zip(self.terms, rows, strict=True)]
            own = self.variance - np.sum([explained for _, explained in parts], axis=0)
        else:
            parts = [term.marginals(x, engine) for term, x in every]
            own = np.sum([variance for _, variance in parts], axis=0)
        mean = np.sum([mean for mean, _ in parts], axis=0)
        if variances and self.shared:
            own += 2.0 * (
                quad_of_pairs(rows, self._shared_raw, engine) if whole else self._pairs(columns, inside, engine)
            )
        # The difference is a variance; only rounding can carry it below zero.
        return mean, np.maximum(own, 0.0)

    def _pairs(self, columns: Columns, inside: np.ndarray, engine: str) -> np.ndarray:
        """sum over pairs of phi_s' (A^-1)_st phi_t, for rows some of which lie outside."""
        shared = np.empty(inside.size)
        if inside.any():
            rows = [term.rows(x[inside]) for term, x in zip(self.terms, columns, strict=True)]
            shared[inside] = quad_of_pairs(rows, self._shared_raw, engine)
        shared[~inside] = self._written_pairs([x[~inside] for x in columns])
        return shared

    def _written_pairs(self, columns: Columns) -> np.ndarray:
        """The same with the features written out, for rows that all lie outside."""
        N, P = columns[0].size, sum(term.coefficients.mean.size for term in self.terms)
        total = np.empty(N)
        step = max(1, _WRITTEN // P)
        for start in range(0, N, step):
            rows = slice(start, start + step)
            features = [term.features(x[rows]) for term, x in zip(self.terms, columns, strict=True)]
            total[rows] = sum(
                np.einsum("np,np->n", features[s] @ block, features[t]) for (s, t), block in self.shared.items()
            )
        return total

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        N, columns = len(x), _columns(x)
        mean, covariance = np.zeros(N), np.zeros((N, N))
        features = [term.features(x) for term, x in zip(self.terms, columns, strict=True)]
        for term, column, phi in zip(self.terms, columns, features, strict=True):
            mean += phi @ term.coefficients.mean
            covariance += term.covariance(column, column) - phi @ term.coefficients.explained @ phi.T
        for (s, t), block in self.shared.items():
            half = features[s] @ block @ features[t].T
            covariance += half + half.T
        return mean, covariance

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples)."""
        # equal rows share one draw, but rows of levels never seen are not known to be equal
        unseen = self.outside(x) & [isinstance(term, LevelPosterior) for term in self.terms]
        row = np.where(unseen.any(axis=1), np.arange(len(x)), -1)
        distinct, codes = np.unique(np.column_stack([x, row]), axis=0, return_inverse=True)
        mean, covariance = self.joint(distinct[:, :-1])
        white = rng.standard_normal((mean.size, n_samples))
        return (mean[:, None] + factorise(covariance).sqrt_mv(white))[codes.reshape(-1)]


def _term_posterior(model: SumModel, setting: Setting, s: int, coefficients: TermCoefficients) -> AbstractTermPosterior:
    term, basis, values = model.terms[s], model.bases[s], setting.terms[s]
    place = model.moments.request.columns[s].place
    if isinstance(term, MaternTerm):
        assert isinstance(place, Interval)
        return ColumnPosterior(coefficients, values["variance"], place, term.prior(basis, values))
    assert isinstance(basis, LevelBasis)
    return LevelPosterior(coefficients, values["variance"], basis)
