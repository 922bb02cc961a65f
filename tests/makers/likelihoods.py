"""Likelihoods of every registered kind with values set, each with its density by SciPy and rows that it must refuse."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.special import expit, ndtr

from vff import likelihoods as lk


@dataclass(frozen=True)
class Case:
    """One likelihood of a kind."""

    name: str
    likelihood: lk.AbstractLikelihood
    logpdf: Callable[..., np.ndarray]
    """Of (y, f, extra)."""
    learnt: lk.AbstractLikelihood | None = None
    """The same with nothing given, where it has parameters."""
    refused: tuple[tuple[list[float], list[float], str], ...] = ()
    """Rows y and extra that cannot be, and a sentence that says so."""
    twin: bool = False
    """Its formulas are those of another case: left out where every function takes a second to compile."""
    moments: bool = True
    """A new y has a mean and a variance."""
    stored: bool = field(default=True, kw_only=True)
    """Files can hold it; functions are no records."""

    def rows(self, count: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """y, f and extra, drawn from the likelihood itself."""
        rng = np.random.default_rng(3)
        extra = rng.integers(1, 9, count).astype(float) if self.likelihood.column else np.ones(count)
        f = 1.2 * rng.normal(size=count)
        return self.likelihood.sample(f, extra, rng), f, extra


def _binary(p: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda y, f, e: stats.bernoulli.logpmf(y, p(f))


def _ordinal(link: Callable[..., np.ndarray], cuts: tuple[float, ...]) -> Callable[..., np.ndarray]:
    edges = np.array([-np.inf, *cuts, np.inf])
    return lambda y, f, e: np.log(link(edges[y.astype(int) + 1] - f) - link(edges[y.astype(int)] - f))


def logistic_noise(y: Any, f: Any, scale: Any) -> Any:
    """A log-density of a user's."""
    import jax

    z = (y - f) / scale
    return -z - 2 * jax.nn.softplus(-z) - jax.numpy.log(scale)


CUTS = (-1.0, 0.2, 1.5)
EXPOSURE = "an exposure above zero in column 'e', but it is 0 at row 1"
COUNTS = (([-1, 2], [1, 1], "whole numbers from zero, but y is -1 at row 0"), ([1, 2], [1, 0], EXPOSURE))
CLASSES = (([0, 1, 2], [1, 1, 1], "zeros and ones, but y is 2 at row 2; code the two classes as 0 and 1"),)
TRIALS = (
    ([1, 5], [4, 4], "from zero to the trials of the row, but y is 5 at row 1"),
    ([1, 1], [4, 0.5], "whole number of trials above zero in column 'e', but it is 0.5 at row 1"),
)
MISSING = (([0, np.nan], [1, 1], "finite numbers, but y is nan at row 1"),)

MAKERS: dict[str, tuple[Case, ...]] = {
    "Gaussian": (
        Case(
            "gaussian", lk.Gaussian(0.3), lambda y, f, e: stats.norm.logpdf(y, f, np.sqrt(0.3)), lk.Gaussian(), MISSING
        ),
    ),
    "ErrorBars": (
        Case(
            "error bars",
            lk.ErrorBars(0.3, "e"),
            lambda y, f, e: stats.norm.logpdf(y, f, np.sqrt(0.3 + e**2)),
            lk.ErrorBars(noise_std="e"),
            (*MISSING, ([0, 1], [1, -2], "zero or more, in column 'e', but it is -2 at row 1")),
        ),
    ),
    "StudentT": (
        Case("student", lk.StudentT(0.4, 5.0), lambda y, f, e: stats.t.logpdf(y, 5.0, f, 0.4), lk.StudentT(), MISSING),
        Case(
            "cauchy",
            lk.StudentT(0.4, 1.0),
            lambda y, f, e: stats.cauchy.logpdf(y, f, 0.4),
            refused=(([0, np.inf], [1, 1], "A StudentT likelihood expects finite numbers, but y is inf at row 1"),),
            twin=True,
            moments=False,
        ),
    ),
    "Gamma": (
        Case(
            "gamma",
            lk.Gamma(2.5),
            lambda y, f, e: stats.gamma.logpdf(y, 2.5, scale=np.exp(f) / 2.5),
            lk.Gamma(),
            (([1, 0], [1, 1], "numbers above zero, but y is 0 at row 1"),),
        ),
    ),
    "Beta": (
        Case(
            "beta",
            lk.Beta(6.0),
            lambda y, f, e: stats.beta.logpdf(y, 6 * expit(f), 6 * expit(-f)),
            lk.Beta(),
            (([0.5, 1], [1, 1], "strictly between 0 and 1, but y is 1 at row 1"),),
        ),
    ),
    "Poisson": (
        Case(
            "poisson",
            lk.Poisson("e"),
            lambda y, f, e: stats.poisson.logpmf(y, e * np.exp(f)),
            refused=(
                ([1, 2.5], [1, 1], "A Poisson likelihood expects whole numbers from zero, but y is 2.5 at row 1;"),
                *COUNTS,
            ),
        ),
    ),
    "NegativeBinomial": (
        Case(
            "negative",
            lk.NegativeBinomial(0.5, "e"),
            lambda y, f, e: stats.nbinom.logpmf(y, 2.0, 2.0 / (2.0 + e * np.exp(f))),
            lk.NegativeBinomial(exposure="e"),
            COUNTS,
        ),
        Case(
            "nearly poisson",
            lk.NegativeBinomial(0.01, "e"),
            lambda y, f, e: stats.nbinom.logpmf(y, 100.0, 100.0 / (100.0 + e * np.exp(f))),
            twin=True,
        ),
    ),
    "Bernoulli": (
        Case("logit", lk.Bernoulli(), _binary(expit), refused=CLASSES),
        Case("probit", lk.Bernoulli("probit"), _binary(ndtr), refused=CLASSES),
        Case("squashed", lk.Bernoulli("probit", 0.001), _binary(lambda f: 0.001 + 0.998 * ndtr(f))),
        Case("squashed logit", lk.Bernoulli("logit", 0.01), _binary(lambda f: 0.01 + 0.98 * expit(f)), twin=True),
    ),
    "Binomial": (
        Case("binomial", lk.Binomial("e"), lambda y, f, e: stats.binom.logpmf(y, e, expit(f)), refused=TRIALS),
        Case(
            "binomial probit", lk.Binomial("e", "probit"), lambda y, f, e: stats.binom.logpmf(y, e, ndtr(f)), twin=True
        ),
    ),
    "Ordinal": (
        Case(
            "ordinal",
            lk.Ordinal(CUTS),
            _ordinal(expit, CUTS),
            lk.Ordinal(),
            (([0, 4], [1, 1], "whole numbers from zero to 3, but y is 4 at row 1"),),
        ),
        Case("ordinal probit", lk.Ordinal(CUTS, link="probit"), _ordinal(ndtr, CUTS)),
    ),
    "Custom": (
        Case(
            "custom",
            lk.Custom(
                logistic_noise,
                mean=lambda f, scale: f,
                variance=lambda f, scale: np.full(np.shape(f), (np.pi * scale) ** 2 / 3),
                cdf=lambda y, f, scale: special.expit((y - f) / scale),
                sample=lambda f, rng, scale: rng.logistic(f, scale),
                standardised=True,
                scale=0.4,
            ),
            lambda y, f, e: stats.logistic.logpdf(y, f, 0.4),
            refused=(([0, np.inf], [1, 1], "A Custom likelihood expects finite numbers, but y is inf at row 1"),),
            stored=False,
        ),
    ),
}


def cases(*, distinct: bool = False) -> list[Case]:
    """Those of every registered kind; a kind without a maker is an error."""
    return [case for kind in lk.LIKELIHOODS for case in MAKERS[kind.__name__] if not (distinct and case.twin)]


def case(name: str) -> Case:
    """The one of this name."""
    return next(own for own in cases() if own.name == name)
