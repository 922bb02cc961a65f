"""The posterior process of a sum of terms, theory (7.3): joint, since the data do not tell terms apart for free."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from vff.inference.posterior.covariance import AbstractCovariance, columns_of
from vff.inference.posterior.direct import square_root
from vff.inference.posterior.exact import ExactMixture, ExactPosterior, TrainingRows
from vff.inference.posterior.pure import PureEffect, Sources, pure_averages, pure_effects
from vff.inference.posterior.scatter import MeanScatter
from vff.inference.posterior.term import Rows, TermProcess, stretches
from vff.inference.solvers.records import InterceptPosterior
from vff.linalg import threads_for
from vff.moments import ColumnRows, LetterFunction, MomentRequest, Tables, WrittenStretch, combined, synthesise

_CHUNK = 2**20
_MANY_PAIRS = 20  # of terms
_FEW_ANSWERS = 10_000  # rows whose answers are not worth waking threads for


class EffectAt(NamedTuple):
    """An effect at rows, (N,) each."""

    mean: np.ndarray
    variance: np.ndarray
    prior: np.ndarray
    """Its variance without data."""


@dataclass(frozen=True)
class Posterior:
    """q(f) for a sum of terms. Rows x (N, C) hold the modelled columns."""

    mean: np.ndarray
    """Of the coefficients, in the coordinates of the prior, (P,)."""
    covariance: AbstractCovariance
    centre: np.ndarray
    """Average of the features over the rows of the fit, (P,)."""
    centre_covariance: np.ndarray
    """S_ss centre_s of every term s, (P,)."""
    intercept: InterceptPosterior | None = field(default=None, kw_only=True)
    """None where the function has no constant beside its terms."""
    training: TrainingRows | None = field(default=None, kw_only=True)
    """The rows of the fit, where they are few."""
    mixture: ExactMixture | None = field(default=None, kw_only=True)
    """The process given these rows at every setting of the hyperparameters, where it is averaged over them."""

    def __getstate__(self) -> dict[str, Any]:
        """What defines it; what was worked out since is worked out again."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @cached_property
    def exact(self) -> ExactPosterior | ExactMixture | None:
        """The process given the rows of the fit themselves, where they are known."""
        if self.mixture is not None:
            return self.mixture
        return None if self.training is None else ExactPosterior(self.terms, self.training)

    @property
    def known_rows(self) -> tuple[TrainingRows, ...]:
        """Those of the fit, once for every setting of the hyperparameters; none where they are many."""
        if self.mixture is not None:
            return tuple(part.rows for part in self.mixture.parts)
        return () if self.training is None else (self.training,)

    @property
    def request(self) -> MomentRequest:
        return self.covariance.request

    @property
    def terms(self) -> tuple[TermProcess, ...]:
        return self.covariance.terms

    def prior_variance(self, x: np.ndarray) -> np.ndarray | float:
        """Prior variance of the sum at every row; one number where it is the same at all."""
        return self.covariance.prior_variances(x, self.rows(x))

    def rows(self, x: np.ndarray) -> list[ColumnRows]:
        """The columns of some rows, ready for the engines."""
        return columns_of(self.request, x)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie where the data have no say in some column, (N, C)."""
        outside = np.zeros(x.shape, bool)
        for term in self.terms:
            for c, factor in zip(term.columns, term.at_rows, strict=True):
                out = factor.outside(x[:, c])
                if isinstance(c, tuple):  # where one of several columns is missing, that one
                    gone = np.isnan(x[:, c])
                    out = out[:, None] & (gone | ~gone.any(axis=1, keepdims=True))
                outside[:, c] |= out
        return outside

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Mean of f at every row, O(P) each."""
        return self.marginals(x, variances=False)[0]

    def marginals(self, x: np.ndarray, *, variances: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at every row of x (N, C); without ``variances`` the second is empty."""
        if len(x) > _FEW_ANSWERS:
            return self._marginals(x, variances=variances)
        with threads_for(self.request.size):
            return self._marginals(x, variances=variances)

    def _marginals(self, x: np.ndarray, *, variances: bool) -> tuple[np.ndarray, np.ndarray]:
        if self.exact is not None:
            if not variances:
                return self.exact.mean(x), np.empty(0)
            return self.exact.marginals(x)
        mean, variance = np.empty(len(x)), np.empty(len(x) if variances else 0)
        for start in range(0, len(x), _CHUNK):
            some = slice(start, start + _CHUNK)
            rows = self.rows(x[some])
            if variances:
                mean[some], explained = self.covariance.explained(self.mean, x[some], rows)
                # the difference is a variance; only rounding can carry it below zero
                variance[some] = np.maximum(self.covariance.prior_variances(x[some], rows) - explained, 0.0)
            else:
                mean[some] = self._means(x[some], rows)
            if self.intercept is not None:
                mean[some] += self.intercept.mean
                if variances:
                    variance[some] += self.intercept.variance * self._follows(x[some], rows) ** 2
            if variances:
                variance[some] += self._scatter.at(len(x[some]), rows)
        return mean, variance

    def _means(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """phi'm at every row."""
        if all(term.inside(rows).all() for term in self.terms):
            return np.sum(synthesise(rows, self._mean_functions), axis=0)
        return np.sum([term.linear(x, rows, [m])[0] for term, m in self._by_term(self.mean)], axis=0)

    def _by_term(self, v: np.ndarray) -> list[tuple[TermProcess, np.ndarray]]:
        return [(term, v[place]) for term, place in zip(self.terms, self.request.slices, strict=True)]

    @cached_property
    def _scatter(self) -> MeanScatter:
        return MeanScatter(self.terms, [m for _, m in self._by_term(self.mean)])

    @cached_property
    def _mean_functions(self) -> list[LetterFunction]:
        return [term.function(m) for term, m in self._by_term(self.mean)]

    @cached_property
    def _answer_functions(self) -> list[LetterFunction]:
        """phi'u of every term; none without a constant."""
        if self.intercept is None:
            return []
        return [term.function(answer) for term, answer in self._by_term(self.intercept.answer)]

    def mean_inside(self, rows: Rows, tables: Tables) -> np.ndarray:
        """The mean that ``inside`` has, without the variance."""
        mean = np.sum(synthesise(rows, self._mean_functions, tables=tables), axis=0)
        return mean if self.intercept is None else mean + self.intercept.mean

    def term_mean(self, s: int, x: np.ndarray) -> np.ndarray:
        """phi'm of one term at every row of x (N, C), of which the other columns do not matter."""
        term, m = self._by_term(self.mean)[s]
        return term.linear(x, self.rows(x), [m])[0]

    def inside(self, rows: Rows, tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f at rows that all lie inside their places and are ready for the engines.

        ``tables`` belong to the caller, who comes back with the next stretch of the same columns.
        """
        written = isinstance(rows, WrittenStretch)
        if not written and len(self.request.pairs) > _MANY_PAIRS and rows[0].x.size <= self.request.size:
            return self._written_out(np.stack([column.x for column in rows], axis=1), rows)
        functions = self.covariance.functions
        if functions is None:
            return self.marginals(np.stack([column.x for column in rows], axis=1))
        own, between = functions
        explained = [*((-1.0, one) for one in own), *((2.0, one) for one in between)]
        means, answers = (
            [(1.0, one) for one in functions] for functions in (self._mean_functions, self._answer_functions)
        )
        groups = [means, explained] if self.intercept is None else [means, explained, answers]
        mean, known, *follows = combined(rows, self.request, groups, tables)
        constant = all(term.constant_variance for term in self.terms)
        x = np.empty((0, 0)) if constant else np.stack([column.x for column in rows], axis=1)
        variance = np.maximum(self.covariance.prior_variances(x, rows) + known, 0.0)
        if self.intercept is not None:
            mean += self.intercept.mean
            variance += self.intercept.variance * (1.0 - follows[0]) ** 2
        return mean, variance + self._scatter.at(mean.size, rows)

    def _written_out(self, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The same with the features of all rows written out, which is faster than a function of every pair of terms
        where pairs are many and rows are few.
        """
        features = [term.written(x) for term in self.terms]
        variance = np.maximum(self.covariance.prior_variances(x, rows) - self.covariance.quad(features), 0.0)
        own = zip(features, self.request.slices, strict=True)
        mean = np.sum([phi.dot(self.mean[place]) for phi, place in own], axis=0)
        if self.intercept is not None:
            mean += self.intercept.mean
            variance += self.intercept.variance * self._follows(x, rows) ** 2
        return mean, variance + self._scatter.at(mean.size, rows)

    def _follows(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """1 - phi'u: how far f rises at every row when the constant rises by one."""
        assert self.intercept is not None
        total = np.ones(len(x))
        for term, answer in self._by_term(self.intercept.answer):
            if answer.any():
                total -= term.linear(x, rows, [answer])[0]
        return total

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (N,) and covariance (N, N) of f at all rows together."""
        if self.exact is not None:
            return self.exact.joint(x)
        features = [term.written(x) for term in self.terms]
        covariance = self.covariance.prior_joint(x, features) - self.covariance.outer(features)
        own = zip(features, self.request.slices, strict=True)
        mean = np.sum([phi.dot(self.mean[place]) for phi, place in own], axis=0)
        if self.intercept is not None:
            follows = self._follows(x, self.rows(x))
            mean, covariance = (
                mean + self.intercept.mean,
                covariance + self.intercept.variance * np.outer(follows, follows),
            )
        if self._scatter.own:  # inputs of different rows are independent: only the variances know of them
            np.fill_diagonal(covariance, self.marginals(x)[1])
        return mean, covariance

    def slope(self, x: np.ndarray, *along: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the derivative of f along one column, in its own units, at every row.

        ``along`` are all ways in which the model reads that column.
        """
        mean, variance = np.zeros(len(x)), np.zeros(len(x))
        intercept = self.intercept
        for some in stretches(len(x), self.request.size):
            features = [term.written(x[some], along) if term.reads(along) else None for term in self.terms]
            prior = self.covariance.prior_slopes(x[some], along, features)
            variance[some] = np.maximum(prior - self.covariance.quad(features), 0.0)
            places = zip(features, self.request.slices, strict=True)
            own = [(phi, place) for phi, place in places if phi is not None]
            mean[some] = sum(phi.dot(self.mean[place]) for phi, place in own)
            if intercept is not None:
                follows = sum(phi.dot(intercept.answer[place]) for phi, place in own)
                variance[some] += intercept.variance * follows**2
        return mean, variance

    def effect(self, s: int, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of a term less its average over the rows of the fit.

        With f = phi'c + h, the average of the remainder h over many rows is negligible and is left out:
        var = k(x, x) - phi'K^-1 phi + (phi - centre)' S (phi - centre).
        """
        term, place = self.terms[s], self.request.slices[s]
        centre, own = self.centre[place], self.centre_covariance[place]
        (mean, cross), explained = self.covariance.answers(s, x, rows, [self.mean[place], own])
        # the differences are variances; only rounding can carry them below zero
        prior = self.covariance.prior_variance(s, x, rows)
        variance = np.maximum(prior - explained, 0.0) - 2.0 * cross + float(centre @ own)
        mean, variance = mean - float(centre @ self.mean[place]), np.maximum(variance, 0.0)
        if self.intercept is not None and self.intercept.answer[place].any():
            answer = self.intercept.answer[place]
            follows = term.linear(x, rows, [answer])[0] - float(centre @ answer)
            variance = variance + self.intercept.variance * follows**2
        return mean, variance

    def pure_effects(self, sources: Sources) -> tuple[PureEffect, ...]:
        """The effect of every term with margins of products where they belong, by the rule of ``pure``."""
        key = tuple(map(tuple, sources))
        if key not in self._pure:
            self._pure[key] = pure_effects(self.terms, self.centre, self.request.slices, key)
        return self._pure[key]

    @cached_property
    def _pure(self) -> dict[Any, tuple[PureEffect, ...]]:
        return {}

    def effect_at(self, s: int, effect: PureEffect | None, x: np.ndarray, rows: Rows) -> EffectAt:
        """That of ``pure_effects`` for term s, or the term as it is, less its average over the rows of the fit."""
        if effect is None or effect.plain:
            prior = np.broadcast_to(self.covariance.prior_variance(s, x, rows), len(x))
            return EffectAt(*self.effect(s, x, rows), prior)
        z = effect.centred_on(self.centre, self.request.slices)
        moved, intercept = self.covariance.product(z), self.intercept
        vectors = [self.mean, moved, *([] if intercept is None else [intercept.answer])]
        (mean, cross, *more), explained = self.covariance.pure(effect, x, rows, vectors)
        prior = self.covariance.pure_prior(effect, x, rows)
        # the differences are variances; only rounding can carry them below zero
        variance = np.maximum(np.maximum(prior - explained, 0.0) - 2.0 * cross + float(z @ moved), 0.0)
        for follows in more:
            assert intercept is not None
            variance = variance + intercept.variance * (follows - float(z @ intercept.answer)) ** 2
        return EffectAt(mean - float(z @ self.mean), variance, prior)

    def feature_averages(self, s: int, d: int) -> np.ndarray | None:
        """Of one factor of a term over the rows of the fit, as they are summed, (P,); None where they are not known."""
        known = pure_averages(self.terms, self.centre, self.request.slices)[s][d]
        return None if known is None else self.terms[s].factors[d].transform.inverse.forward(known.h)

    def effects_of_mean(self, sources: Sources, x: np.ndarray, rows: Rows) -> list[np.ndarray]:
        """The mean of every pure effect at every row, up to a constant."""
        places, found = self.request.slices, []
        for effect in self.pure_effects(sources):
            parts = [(part.process, part.reduced(self.mean[places[part.term]])) for part in effect.parts]
            found.append(np.sum([process.linear(x, rows, [c])[0] for process, c in parts], axis=0))
        return found

    def average(self) -> tuple[float, float]:
        """Mean and variance of f averaged over the rows of the fit: what effects are measured from."""
        mean, variance = float(self.centre @ self.mean), self.covariance.spread(self.centre, self.centre_covariance)
        if self.intercept is not None:
            follows = 1.0 - float(self.centre @ self.intercept.answer)
            mean, variance = mean + self.intercept.mean, variance + self.intercept.variance * follows**2
        return mean, max(variance, 0.0)

    def distinct(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The different rows, and which of them every row is; rows of levels never seen are not known to be equal."""
        levels = [column.domain.discrete for column in self.request.columns]
        unseen = self.outside(x) & levels
        row = np.where(unseen.any(axis=1), np.arange(len(x)), -1)
        # missing values are alike, and unlike any number
        known = np.column_stack([np.where(np.isnan(x), np.inf, x), row])
        _, first, codes = np.unique(known, axis=0, return_index=True, return_inverse=True)
        return x[first], codes.reshape(-1)

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of f, (N, n_samples); equal rows share one.

        Where draws are kept, the part of f that features do not carry is drawn for every distinct row by itself.
        """
        if self.covariance.count:
            return self.sample_some(x, chosen(self.covariance.count, n_samples, rng), rng)
        distinct, codes = self.distinct(x)
        mean, covariance = self.joint(distinct)
        white = rng.standard_normal((mean.size, n_samples))
        return (mean[:, None] + square_root(covariance) @ white)[codes]

    def values(self, x: np.ndarray, some: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Some of the draws that are kept at every row, (N, S), and the variance of the rest, (N,)."""
        if self.mixture is not None:
            return self.mixture.values(x, some), np.zeros(len(x))
        return self.covariance.values(x, some)

    def sample_some(self, x: np.ndarray, some: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The same, with the rest drawn; equal rows share one."""
        distinct, codes = self.distinct(x)
        if self.mixture is not None:
            return self.mixture.sample(distinct, some, rng)[codes]
        values, rest = self.values(distinct, some)
        values += np.sqrt(rest)[:, None] * rng.standard_normal(values.shape)
        return values[codes]

    def _beside_draws(self, x: np.ndarray) -> np.ndarray:
        """Variance of f at uncertain inputs that draws of its averages there do not have, (N,)."""
        rest = self.marginals(x)[1]
        for rows in stretches(len(x), self.request.size):
            features = [term.written(x[rows]) for term in self.terms]
            prior = [phi.product @ term.prior_covariance() for phi, term in zip(features, self.terms, strict=True)]
            drawn = sum(np.einsum("np,np->n", own, phi.product) for own, phi in zip(prior, features, strict=True))
            rest[rows] -= drawn - self.covariance.quad(features)
        if self.intercept is not None:
            rest -= self.intercept.variance * self._follows(x, self.rows(x)) ** 2
        return np.maximum(rest, 0.0)  # a variance; only rounding can carry it below zero

    def draws(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Joint draws of the part of f that is drawn, (N, n_samples), and the variance of the rest by row, (N,).

        Where coefficients can be drawn, what features do not carry, k(x, x) - phi'K^-1 phi, is left out.
        """
        if self.covariance.count:
            some = chosen(self.covariance.count, n_samples, rng)
            return self.values(x, some) if self.mixture is None else (self.sample_some(x, some, rng), np.zeros(len(x)))
        away = self.covariance.draws(n_samples, rng)
        if away is None:
            return self.sample(x, n_samples, rng), np.zeros(len(x))
        c, values, rest = self.mean[:, None] + away, np.empty((len(x), n_samples)), np.empty(len(x))
        for rows in stretches(len(x), self.request.size):
            values[rows] = np.concatenate([term.features(x[rows]) for term in self.terms], axis=1) @ c
            rest[rows] = np.sum([term.unseen(x[rows]) for term in self.terms], axis=0)
        if self._scatter.own:
            rest = self._beside_draws(x)
        if self.intercept is not None:
            white = np.sqrt(self.intercept.variance) * rng.standard_normal(n_samples)
            values += self.intercept.mean + np.multiply.outer(self._follows(x, self.rows(x)), white)
        return values, rest


def chosen(S: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """n of S draws in random order; each as often as any other, give or take one."""
    rounds = -(-int(n) // S)
    return np.concatenate([rng.permutation(S) for _ in range(rounds)])[:n]
