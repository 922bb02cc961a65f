"""Every likelihood once, with values set, and its density by SciPy."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit, ndtr

from vff import likelihoods as lk


class Maker(NamedTuple):
    likelihood: lk.AbstractLikelihood
    logpdf: Callable[..., np.ndarray]  # of (y, f, extra)


def binary(p: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda y, f, e: stats.bernoulli.logpmf(y, p(f))


def ordinal(link: Callable[..., np.ndarray], cuts: tuple[float, ...]) -> Callable[..., np.ndarray]:
    edges = np.array([-np.inf, *cuts, np.inf])
    return lambda y, f, e: np.log(link(edges[y.astype(int) + 1] - f) - link(edges[y.astype(int)] - f))


CUTS = (-1.0, 0.2, 1.5)
MAKERS = {
    "gaussian": Maker(lk.Gaussian(0.3), lambda y, f, e: stats.norm.logpdf(y, f, np.sqrt(0.3))),
    "student": Maker(lk.StudentT(0.4, 5.0), lambda y, f, e: stats.t.logpdf(y, 5.0, f, 0.4)),
    "cauchy": Maker(lk.StudentT(0.4, 1.0), lambda y, f, e: stats.cauchy.logpdf(y, f, 0.4)),
    "gamma": Maker(lk.Gamma(2.5), lambda y, f, e: stats.gamma.logpdf(y, 2.5, scale=np.exp(f) / 2.5)),
    "beta": Maker(lk.Beta(6.0), lambda y, f, e: stats.beta.logpdf(y, 6 * expit(f), 6 * expit(-f))),
    "poisson": Maker(lk.Poisson("e"), lambda y, f, e: stats.poisson.logpmf(y, e * np.exp(f))),
    "negative": Maker(
        lk.NegativeBinomial(0.5, "e"), lambda y, f, e: stats.nbinom.logpmf(y, 2.0, 2.0 / (2.0 + e * np.exp(f)))
    ),
    "nearly poisson": Maker(
        lk.NegativeBinomial(0.01, "e"), lambda y, f, e: stats.nbinom.logpmf(y, 100.0, 100.0 / (100.0 + e * np.exp(f)))
    ),
    "logit": Maker(lk.Bernoulli(), binary(expit)),
    "probit": Maker(lk.Bernoulli("probit"), binary(ndtr)),
    "squashed": Maker(lk.Bernoulli("probit", 0.001), binary(lambda f: 0.001 + 0.998 * ndtr(f))),
    "squashed logit": Maker(lk.Bernoulli("logit", 0.01), binary(lambda f: 0.01 + 0.98 * expit(f))),
    "binomial": Maker(lk.Binomial("e"), lambda y, f, e: stats.binom.logpmf(y, e, expit(f))),
    "binomial probit": Maker(lk.Binomial("e", "probit"), lambda y, f, e: stats.binom.logpmf(y, e, ndtr(f))),
    "ordinal": Maker(lk.Ordinal(CUTS), ordinal(expit, CUTS)),
    "ordinal probit": Maker(lk.Ordinal(CUTS, link="probit"), ordinal(ndtr, CUTS)),
}
NAMES = list(MAKERS)
# without those whose formulas another one shares, where every function takes a second to compile
DISTINCT = [name for name in NAMES if name not in ("cauchy", "nearly poisson", "squashed logit", "binomial probit")]


def rows(name: str, count: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, f and extra, drawn from the likelihood itself."""
    likelihood, rng = MAKERS[name].likelihood, np.random.default_rng(3)
    extra = rng.integers(1, 9, count).astype(float) if likelihood.column else np.ones(count)
    f = 1.2 * rng.normal(size=count)
    return likelihood.sample(f, extra, rng), f, extra
