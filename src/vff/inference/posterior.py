"""The posterior process of a sum of terms: joint over all of them, since the data do not tell terms apart for free.

f(x) | y ~ GP( sum_s phi_s' m_s,  sum_s k_s(x, x') - phi' S phi ),      S = diag(K_s^-1) - A^-1

Per row: the terms' own quadratic forms, and -2 phi_s' (A^-1)_st phi_t taken away for every pair. A constant beside the
terms (``form``) adds its mean, and var(c0) (1 - phi'u)^2 to the variance: A^-1 is that of terms to which it is known.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vff.inference.collapsed import ClosedForm
from vff.inference.form import ConstantPosterior
from vff.inference.model import Setting, SumModel
from vff.inference.term_posterior import TermCoefficients, TermPosterior
from vff.linalg import factorise
from vff.moments import (
    ColumnRows,
    Coupling,
    KeyedByPairs,
    LetterFunction,
    MomentRequest,
    Pair,
    Tables,
    column_rows,
    evaluate_letters,
    pair_functions,
    summed,
)

_WRITTEN = 2**23  # features written out at a time, for the rows that need it
_CHUNK = 2**20


def stretches(N: int, size: int) -> Iterator[slice]:
    """Rows a few at a time, so that ``size`` numbers for each fit in memory."""
    step = max(1, _WRITTEN // size)
    return (slice(start, min(start + step, N)) for start in range(0, N, step))


@dataclass(frozen=True)
class AbstractSumPosterior(KeyedByPairs, ABC):
    """q(f) for a sum of terms. Rows x (N, C) hold the modelled columns. Kinds differ in what they keep of A^-1."""

    request: MomentRequest
    terms: tuple[TermPosterior, ...]
    constant: ConstantPosterior | None = field(default=None, kw_only=True)
    """None where the function has no constant beside its terms."""

    @abstractmethod
    def _chunk(
        self, x: np.ndarray, rows: Sequence[ColumnRows], variances: bool, engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the sum of the terms at some rows, the constant held at zero; without ``variances`` the
        second is empty.
        """

    @abstractmethod
    def inside(self, rows: Sequence[ColumnRows], tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at rows that all lie inside their places and are ready for the engines.

        ``tables`` belong to the caller, who comes back with the next stretch of the same columns.
        """

    @abstractmethod
    def _joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of the sum of the terms at all rows together, the constant held at zero."""

    @abstractmethod
    def _slope(self, x: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of its derivative along one column, in that column's units, at every row."""

    @abstractmethod
    def _variance_of_average(self) -> float:
        """Of the terms together over the rows of the fit, the constant held."""

    @property
    def variance(self) -> float:
        """Prior variance of the sum."""
        return sum(term.variance for term in self.terms)

    def rows(self, x: np.ndarray) -> list[ColumnRows]:
        """The columns of some rows, ready for the engines."""
        return [column_rows(column, np.ascontiguousarray(x[:, c])) for c, column in enumerate(self.request.columns)]

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say in some column, (N, C)."""
        outside = np.zeros(x.shape, bool)
        for term in self.terms:
            for c, factor in zip(term.columns, term.factors, strict=True):
                outside[:, c] |= factor.outside(x[:, c])
        return outside

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, O(P) each."""
        return self.marginals(x, variances=False)[0]

    def marginals(
        self, x: np.ndarray, *, variances: bool = True, engine: str = "auto"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row of x (N, C)."""
        mean, variance = np.empty(len(x)), np.empty(len(x))
        for start in range(0, len(x), _CHUNK):
            some = slice(start, start + _CHUNK)
            rows = self.rows(x[some])
            mean[some], variance[some] = self._chunk(x[some], rows, variances, engine)
            if self.constant is not None:
                mean[some] += self.constant.mean
                if variances:
                    variance[some] += self.constant.variance * self._follows(x[some], rows, engine) ** 2
        return mean, variance

    def _follows(self, x: np.ndarray, rows: Sequence[ColumnRows], engine: str = "auto") -> np.ndarray:
        """1 - phi'u: how far f rises at every row when the constant rises by one."""
        total = np.ones(len(x))
        for term, answer in zip(self.terms, self._answers, strict=True):
            if answer.any():
                total -= term.linear(x, rows, answer, engine)
        return total

    @cached_property
    def _answers(self) -> list[np.ndarray]:
        """u by term."""
        assert self.constant is not None
        return [self.constant.answer[place] for place in self.request.slices]

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        mean, covariance = self._joint(x)
        if self.constant is not None:
            follows = self._follows(x, self.rows(x))
            mean, covariance = (
                mean + self.constant.mean,
                covariance + self.constant.variance * np.outer(follows, follows),
            )
        return mean, covariance

    def slope(self, x: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the derivative of f along one column, in its own units, at every row."""
        mean, variance = self._slope(x, along)
        if self.constant is not None and self.constant.answer.any():
            for some in stretches(len(x), self.request.size):
                terms = zip(self.terms, self._answers, strict=True)
                follows = sum(term.features(x[some], along) @ u for term, u in terms if along in term.columns)
                variance[some] += self.constant.variance * follows**2
        return mean, variance

    def effect(self, s: int, x: np.ndarray, rows: Sequence[ColumnRows]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of a term less its average over the rows of the fit."""
        term = self.terms[s]
        mean, variance = term.centred(x, rows)
        if self.constant is not None and self._answers[s].any():
            answer = self._answers[s]
            follows = term.linear(x, rows, answer) - float(term.coefficients.centre @ answer)
            variance = variance + self.constant.variance * follows**2
        return mean, variance

    def average(self) -> tuple[float, float]:
        """Mean and variance of f averaged over the rows of the fit: what effects are measured from."""
        centres = [term.coefficients.centre for term in self.terms]
        mean = sum(float(own @ term.coefficients.mean) for own, term in zip(centres, self.terms, strict=True))
        variance = self._variance_of_average()
        if self.constant is not None:
            follows = 1.0 - float(np.concatenate(centres) @ self.constant.answer)
            mean, variance = mean + self.constant.mean, variance + self.constant.variance * follows**2
        return mean, max(variance, 0.0)

    def distinct(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The different rows, and which of them every row is; rows of levels never seen are not known to be equal."""
        levels = [column.place.discrete for column in self.request.columns]
        unseen = self.outside(x) & levels
        row = np.where(unseen.any(axis=1), np.arange(len(x)), -1)
        distinct, codes = np.unique(np.column_stack([x, row]), axis=0, return_inverse=True)
        return distinct[:, :-1], codes.reshape(-1)

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples); equal rows share one."""
        distinct, codes = self.distinct(x)
        mean, covariance = self.joint(distinct)
        white = rng.standard_normal((mean.size, n_samples))
        return (mean[:, None] + _square_root(covariance) @ white)[codes]

    def draws(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Joint draws of the part of f that is drawn, (N, n_samples), and the variance of the rest by row, (N,).

        Here all of f is drawn; kinds that can draw coefficients leave out what their features do not carry.
        """
        return self.sample(x, n_samples, rng), np.zeros(len(x))

    def _draws_of_constant(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """What the constant adds to draws of coefficients to which it is known, (N, n_samples) or (1, 1)."""
        if self.constant is None:
            return np.zeros((1, 1))
        white = np.sqrt(self.constant.variance) * rng.standard_normal(n_samples)
        return self.constant.mean + np.multiply.outer(self._follows(x, self.rows(x)), white)


def covariance_root(covariance: np.ndarray) -> np.ndarray:
    """R with R R' = covariance, a factor unless the data leave so little open that rounding hides it."""
    try:
        return factorise(covariance).lower
    except FloatingPointError:
        return _square_root(covariance)


def _square_root(covariance: np.ndarray) -> np.ndarray:
    """R with R R' = covariance. Rows close to one another leave eigenvalues that rounding may carry below zero."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@dataclass(frozen=True)
class SumPosterior(AbstractSumPosterior):
    """q(f) with A^-1 written out."""

    shared: dict[Pair, np.ndarray]
    """(A^-1)_st for s < t, (P_s, P_t)."""

    @classmethod
    def from_closed_form(cls, closed: ClosedForm, model: SumModel, setting: Setting) -> "SumPosterior":
        """The posterior at a setting."""
        request = model.moments.request
        places, inverse, centre = request.slices, closed.inverse.matrix, model.centre(setting)
        terms = []
        for s, (term, place) in enumerate(zip(model.terms, places, strict=True)):
            own = inverse[place, place]
            explained = term.precision(model.columns[s], setting.terms[s]).solve(np.eye(own.shape[0])) - own
            coefficients = TermCoefficients(
                closed.mean[place], 0.5 * (explained + explained.T), centre[place], own @ centre[place]
            )
            terms.append(
                TermPosterior(
                    coefficients,
                    setting.terms[s]["variance"],
                    request.terms[s].columns,
                    term.priors(model.columns[s], setting.terms[s]),
                    term.transform(model.columns[s], setting.terms[s]),
                )
            )
        shared = {(s, t): inverse[places[s], places[t]].copy() for s, t in request.pairs}
        return cls(request, tuple(terms), shared, constant=closed.level)

    @cached_property
    def _couplings(self) -> dict[Pair, Coupling]:
        return {(s, t): Coupling(self.request.terms[s], self.request.terms[t]) for s, t in self.shared}

    @cached_property
    def _pair_functions(self) -> list[LetterFunction]:
        return pair_functions(self._couplings, self._shared_raw)

    @cached_property
    def _shared_raw(self) -> dict[Pair, np.ndarray]:
        """``shared`` in the functions that are summed over rows."""
        return {(s, t): self.terms[t].to_raw(self.terms[s].to_raw(block).T).T for (s, t), block in self.shared.items()}

    def inside(self, rows: Sequence[ColumnRows], tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        T = len(self.terms)
        own = [*(term.mean_function for term in self.terms), *(term.explained_function for term in self.terms)]
        values = evaluate_letters(rows, [*own, *self._answer_functions, *self._pair_functions], tables=tables)
        pairs = 2 * T + len(self._answer_functions)
        mean, variance = np.sum(values[:T], axis=0), self.variance - np.sum(values[T : 2 * T], axis=0)
        if self._pair_functions:
            variance += 2.0 * np.sum(values[pairs:], axis=0)
        variance = np.maximum(variance, 0.0)
        if self.constant is not None:
            mean += self.constant.mean
            variance += self.constant.variance * (1.0 - np.sum(values[2 * T : pairs], axis=0)) ** 2
        return mean, variance

    @cached_property
    def _answer_functions(self) -> list[LetterFunction]:
        """phi'u of every term; none without a constant."""
        if self.constant is None:
            return []
        return [term.function(answer) for term, answer in zip(self.terms, self._answers, strict=True)]

    def _chunk(
        self, x: np.ndarray, rows: Sequence[ColumnRows], variances: bool, engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        inside = np.logical_and.reduce([column.request.place.contains(column.t) for column in rows])
        if inside.all() and not variances:
            means = evaluate_letters(rows, [term.mean_function for term in self.terms], engine)
            return np.sum(means, axis=0), np.empty(inside.size)
        answers = [term.answers(x, rows, [term.coefficients.mean], engine) for term in self.terms]
        mean = np.sum([values[0] for values, _ in answers], axis=0)
        own = self.variance - np.sum([explained for _, explained in answers], axis=0)
        if variances and self.shared:
            own += 2.0 * self._pairs(x, rows, inside, engine)
        # The difference is a variance; only rounding can carry it below zero.
        return mean, np.maximum(own, 0.0)

    def _pairs(self, x: np.ndarray, rows: Sequence[ColumnRows], inside: np.ndarray, engine: str) -> np.ndarray:
        """sum over pairs of phi_s' (A^-1)_st phi_t."""
        if inside.all():
            return summed(rows, self._pair_functions, engine)
        shared = np.empty(inside.size)
        if inside.any():
            shared[inside] = summed(self.rows(x[inside]), self._pair_functions, engine)
        shared[~inside] = self._written_pairs(x[~inside])
        return shared

    def _written_pairs(self, x: np.ndarray) -> np.ndarray:
        """The same with the features written out, for rows that all lie outside."""
        total = np.empty(len(x))
        for rows in stretches(len(x), self.request.size):
            features = [term.features(x[rows]) for term in self.terms]
            total[rows] = self._shared_quad(features)
        return total

    def _shared_quad(self, features: Sequence[np.ndarray]) -> np.ndarray:
        """sum over pairs of phi_s' (A^-1)_st phi_t for features written out, (N,)."""
        parts = [np.einsum("np,np->n", features[s] @ block, features[t]) for (s, t), block in self.shared.items()]
        return np.sum(parts, axis=0) if parts else np.zeros(len(features[0]))

    def _joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        N = len(x)
        mean, covariance = np.zeros(N), np.zeros((N, N))
        features = [term.features(x) for term in self.terms]
        for term, phi in zip(self.terms, features, strict=True):
            mean += phi @ term.coefficients.mean
            covariance += term.covariance(x) - phi @ term.coefficients.explained @ phi.T
        for (s, t), block in self.shared.items():
            half = features[s] @ block @ features[t].T
            covariance += half + half.T
        return mean, covariance

    def draws(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """phi'c for draws of all coefficients, (N, n_samples), and k(0) - phi'K^-1 phi, (N,); O(P^3) once."""
        mean = np.concatenate([term.coefficients.mean for term in self.terms])
        c = mean[:, None] + self._coefficient_root() @ rng.standard_normal((mean.size, n_samples))
        values, rest = np.empty((len(x), n_samples)), np.empty(len(x))
        for rows in stretches(len(x), self.request.size):
            values[rows] = np.concatenate([term.features(x[rows]) for term in self.terms], axis=1) @ c
            rest[rows] = np.sum([term.unseen(x[rows]) for term in self.terms], axis=0)
        return values + self._draws_of_constant(x, n_samples, rng), rest

    def _variance_of_average(self) -> float:
        own = sum(float(term.coefficients.centre @ term.coefficients.centre_covariance) for term in self.terms)
        centres = [term.coefficients.centre for term in self.terms]
        return own + 2.0 * sum(float(centres[s] @ block @ centres[t]) for (s, t), block in self.shared.items())

    def coefficient_covariance(self) -> np.ndarray:
        """A^-1 of all terms together, (P, P); the constant held."""
        places = self.request.slices
        covariance = np.empty((self.request.size, self.request.size))
        for term, place in zip(self.terms, places, strict=True):
            covariance[place, place] = term.coefficient_covariance()
        for (s, t), block in self.shared.items():
            covariance[places[s], places[t]], covariance[places[t], places[s]] = block, block.T
        return covariance

    def _coefficient_root(self) -> np.ndarray:
        """R with R R' = A^-1, (P, P)."""
        return covariance_root(self.coefficient_covariance())

    def _slope(self, x: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = np.empty(len(x)), np.empty(len(x))
        own = [s for s, term in enumerate(self.terms) if along in term.columns]
        prior = sum(self.terms[s].slope_variance(along) for s in own)
        for rows in stretches(len(x), self.request.size):
            features = {s: self.terms[s].features(x[rows], along) for s in own}
            mean[rows] = sum(phi @ self.terms[s].coefficients.mean for s, phi in features.items())
            explained = sum(
                np.einsum("np,np->n", phi @ self.terms[s].coefficients.explained, phi) for s, phi in features.items()
            )
            pairs = sum(
                np.einsum("np,np->n", features[s] @ block, features[t])
                for (s, t), block in self.shared.items()
                if s in features and t in features
            )
            variance[rows] = np.maximum(prior - explained + 2.0 * pairs, 0.0)
        return mean, variance
