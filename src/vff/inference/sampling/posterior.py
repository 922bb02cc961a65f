"""The posterior process that draws stand for.

Given a draw, f = phi'c + rest. Inside the domain phi does not depend on hyperparameters (design Fact A), so all draws
speak of the same functions, and the first two moments of f over draws are those of one Gaussian process,

    mean phi'E[c],      variance E[k(0)] - phi'E[K^-1]phi + phi'cov(c)phi,

whatever the number of draws. ``SumPosterior`` answers with these; what is not Gaussian about f is answered by the draws
themselves. Beyond the domain, features go on as their tails at the median of the hyperparameters have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from vff.factors import TermTransform
from vff.inference.model import Setting, SumModel
from vff.inference.posterior import AbstractSumPosterior, SumPosterior, stretches
from vff.inference.term_posterior import TermCoefficients, TermPosterior
from vff.inference.terms import Term
from vff.moments import ColumnRows, Tables, TermRequest

_AVERAGED = 200  # settings over which K^-1 is averaged, and fewer where it is large
_NUMBERS = 2**30


@dataclass(frozen=True)
class Cloud:
    """Draws of the coefficients of all terms, of the functions that are summed over rows, or what is known of them."""

    mean: np.ndarray
    """(P,)."""
    covariance: np.ndarray
    """(P, P)."""
    draws: np.ndarray
    """(S, P)."""

    @classmethod
    def of(cls, draws: np.ndarray) -> "Cloud":
        """Moments of the draws themselves."""
        mean = draws.mean(axis=0)
        centred = draws - mean
        return cls(mean, centred.T @ centred / len(draws), draws)


@dataclass(frozen=True)
class Level:
    """How far the constant is from its average, which the coefficients of the first term have in them already
    (``constant_function``), and what is known of it beside the draws.
    """

    draws: np.ndarray
    """(S,)."""
    covariance: np.ndarray
    """With the coefficients of all terms, (P,)."""
    variance: float

    @classmethod
    def of(cls, draws: np.ndarray, cloud: Cloud) -> "Level":
        """Moments of the draws themselves."""
        return cls(draws, cloud.draws.T @ draws / len(draws), float(np.mean(draws**2)))


@dataclass(frozen=True)
class SampledPosterior(AbstractSumPosterior):
    """f as the draws have it; ``terms`` are those of the moments."""

    moments: SumPosterior
    rest: SumPosterior
    """Its variance is that of the part of f that features do not carry, on average over draws."""
    coefficients: np.ndarray
    """(S, P), in the coordinates of ``terms``."""
    level: np.ndarray
    """How far the constant is from its average in every draw, (S,); inside the domain the first term has it."""
    one: np.ndarray
    """The function that is one everywhere, as the first term writes it, (P_1,)."""
    with_level: np.ndarray | None = field(default=None, kw_only=True)
    """Covariance of the constant with the coefficients, and behind it its variance, (P + 1,). It belongs to
    ``moments``, which may know more than the draws say; None: as the draws have it.
    """

    def _chunk(
        self, x: np.ndarray, rows: Sequence[ColumnRows], variances: bool, engine: str
    ) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self.moments._chunk(x, rows, variances, engine)
        lost = self._lost(x)
        if variances and lost.any():
            far = lost != 0.0
            features = np.concatenate([term.features(x[far]) for term in self.terms], axis=1)
            variance[far] = self._with_constant(variance[far], features, lost[far])
        return mean, variance

    @cached_property
    def _level_moments(self) -> tuple[np.ndarray, float]:
        if self.with_level is not None:
            return self.with_level[:-1], float(self.with_level[-1])
        S = len(self.level)
        return self.coefficients.T @ self.level / S, float(np.mean(self.level**2))

    def _with_constant(self, variance: np.ndarray, features: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """From var(phi'c) to var(phi'c + lost level) by row; ``features`` are those of the first terms, or of all."""
        together, own = self._level_moments
        cross = features @ together[: features.shape[1]]
        # the sum is a variance; only rounding can carry it below zero
        return np.maximum(variance + lost**2 * own + 2.0 * lost * cross, 0.0)

    def _lost(self, x: np.ndarray) -> np.ndarray:
        """What features of the first term forget of a constant beyond its domain, (N,): zero inside, one far away."""
        lost, first = np.zeros(len(x)), self.terms[0]
        if self.level.any():
            outside = ~first.inside(self.rows(x))
            if outside.any():
                lost[outside] = 1.0 - first.features(x[outside]) @ self.one
        return lost

    def inside(self, rows: Sequence[ColumnRows], tables: Tables) -> tuple[np.ndarray, np.ndarray]:
        return self.moments.inside(rows, tables)

    def _joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = self.moments.joint(x)
        lost = self._lost(x)
        if lost.any():
            features = np.concatenate([term.features(x) for term in self.terms], axis=1)
            together, own = self._level_moments
            cross = np.multiply.outer(lost, features @ together)
            covariance += np.multiply.outer(lost, lost) * own + cross + cross.T
        return mean, covariance

    def _variance_of_average(self) -> float:
        return self.moments.average()[1]

    def _slope(self, x: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self.moments.slope(x, along)
        first = self.terms[0]
        if along in first.columns:
            far = self._lost(x) != 0.0
            for some in stretches(len(x), self.request.size) if far.any() else ():
                own = np.arange(len(x))[some][far[some]]
                features = [
                    term.features(x[own], along) if along in term.columns else np.zeros((own.size, size))
                    for term, size in zip(self.terms, self.request.sizes, strict=True)
                ]
                lost = -(features[0] @ self.one)
                variance[own] = self._with_constant(variance[own], np.concatenate(features, axis=1), lost)
        return mean, variance

    def effect(self, s: int, x: np.ndarray, rows: Sequence[ColumnRows]) -> tuple[np.ndarray, np.ndarray]:
        """(phi - centre)'c of the first term has the constant in it, as far as features remember it: a term less its
        average has not, and is (phi - centre)'c + lost level.
        """
        mean, variance = super().effect(s, x, rows)
        lost = self._lost(x) if s == 0 else np.zeros(len(x))
        if lost.any():
            far = lost != 0.0
            own = self.terms[0]
            features = own.features(x[far]) - own.coefficients.centre
            variance[far] = self._with_constant(variance[far], features, lost[far])
        return mean, variance

    def values(self, x: np.ndarray, some: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """phi'c of some of the draws at every row, (N, S), and the variance of the rest, (N,)."""
        c = self.coefficients[some].T
        values = np.empty((len(x), c.shape[1]))
        for rows in stretches(len(x), self.request.size):
            values[rows] = np.concatenate([term.features(x[rows]) for term in self.terms], axis=1) @ c
        lost = self._lost(x)
        if lost.any():
            values += np.multiply.outer(lost, self.level[some])
        return values, self.rest.marginals(x)[1]

    def draws(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return self.values(x, chosen(len(self.coefficients), n_samples, rng))

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of f, joint over the rows but for the rest, which is drawn for every distinct row by itself."""
        return self.sample_some(x, chosen(len(self.coefficients), n_samples, rng), rng)

    def sample_some(self, x: np.ndarray, some: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The same for these draws."""
        distinct, codes = self.distinct(x)
        values, rest = self.values(distinct, some)
        values += np.sqrt(rest)[:, None] * rng.standard_normal(values.shape)
        return values[codes]


def chosen(S: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """n of S draws in random order; each as often as any other, give or take one."""
    rounds = -(-n // S)
    return np.concatenate([rng.permutation(S) for _ in range(rounds)])[:n]


def sampled_posterior(
    model: SumModel,
    settings: Sequence[Setting],
    cloud: Cloud,
    averages: Sequence[np.ndarray],
    level: Level,
) -> SampledPosterior:
    """From draws of settings and of coefficients.

    ``averages`` of the features over the rows of the fit, by term, are what effects are centred on.
    """
    middle = _median(settings)
    places, request = model.moments.request.slices, model.moments.request
    back = [_inverse(term.transform(own.factors, values)) for term, own, values in _parts(model, middle)]
    coefficients = np.concatenate(
        [inverse.transpose(cloud.draws[:, place].T) for inverse, place in zip(back, places, strict=True)]
    ).T
    terms, rests = [], []
    for s, (term, own, values) in enumerate(_parts(model, middle)):
        place, inverse = places[s], back[s]
        mean = inverse.transpose(cloud.mean[place])
        C = _both(inverse, cloud.covariance[place, place])
        variance, raw = _average_inverse(term, own, [setting.terms[s] for setting in settings])
        K = _both(inverse, raw)
        transform = term.transform(own.factors, values)
        centre = transform.forward(np.asarray(averages[s]))
        whole = TermPosterior(
            TermCoefficients(mean, K - C, centre, C @ centre),
            variance,
            own.columns,
            term.priors(own.factors, values),
            transform,
        )
        terms.append(whole)
        zero = np.zeros_like(mean)
        rests.append(replace(whole, coefficients=TermCoefficients(zero, K, zero, zero)))
    shared = {
        (s, t): back[s].transpose(back[t].transpose(cloud.covariance[places[s], places[t]].T).T)
        for s, t in request.pairs
    }
    moments, rest = SumPosterior(request, tuple(terms), shared), SumPosterior(request, tuple(rests), {})
    together = [own.transpose(level.covariance[place]) for own, place in zip(back, places, strict=True)]
    one = back[0].transpose(constant_function(model.terms, request.terms)[places[0]])
    parts = request, tuple(terms), moments, rest, coefficients, level.draws, one
    return SampledPosterior(*parts, with_level=np.append(np.concatenate(together), level.variance))


def constant_function(terms: Sequence[Term], request: Sequence[TermRequest]) -> np.ndarray:
    """Coefficients of the function that is one everywhere, as the first term can write it, and zero for the others."""
    parts = [np.zeros(own.size) for own in request]
    tensor = np.ones(())
    for factor, basis in zip(terms[0].factors, request[0].bases, strict=True):
        tensor = np.multiply.outer(tensor, factor.one(basis))
    parts[0] = tensor.reshape(-1)
    return np.concatenate(parts)


def _parts(model: SumModel, setting: Setting) -> list[tuple[Term, TermRequest, dict[str, float]]]:
    return list(zip(model.terms, model.moments.request.terms, setting.terms, strict=True))


def _median(settings: Sequence[Setting]) -> Setting:
    """Every hyperparameter by itself."""
    terms = tuple(
        {name: float(np.median([setting.terms[s][name] for setting in settings])) for name in first}
        for s, first in enumerate(settings[0].terms)
    )
    return Setting(terms, float(np.median([setting.noise for setting in settings])))


def _inverse(transform: TermTransform) -> TermTransform:
    """T^-1."""
    return TermTransform(tuple(factor.inverse for factor in transform.factors))


def _both(inverse: TermTransform, matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix of coefficients of the functions at rows, in the coordinates of the prior."""
    image = inverse.transpose(inverse.transpose(matrix).T)
    return 0.5 * (image + image.T)


def _average_inverse(term: Term, request: TermRequest, values: Sequence[dict[str, float]]) -> tuple[float, np.ndarray]:
    """E[k(0)] and E[K^-1] of one term over the same draws, the latter of the functions at rows, (P, P)."""
    most = int(np.clip(_NUMBERS / request.size**2, 16, _AVERAGED))
    some = [values[n] for n in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]
    total = np.zeros((request.size, request.size))
    for own in some:
        priors = term.priors(request.factors, own)
        raw = [_both(TermTransform((prior.transform,)), prior.K.solve(np.eye(prior.basis.size))) for prior in priors]
        product = raw[0]
        for other in raw[1:]:
            product = np.kron(product, other)
        total += own["variance"] * product
    return float(np.mean([own["variance"] for own in some])), total / len(some)
