"""Likelihoods by name."""

from collections.abc import Callable

from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.classes import Bernoulli
from vff.likelihoods.continuous import Beta, Gamma, Gaussian, StudentT
from vff.likelihoods.counts import NegativeBinomial, Poisson
from vff.likelihoods.ordinal import Ordinal
from vff.words import shown

NAMES: dict[str, Callable[[], AbstractLikelihood]] = {
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "logit": Bernoulli,
    "probit": lambda: Bernoulli("probit"),
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "student-t": StudentT,
    "gamma": Gamma,
    "beta": Beta,
    "ordinal": Ordinal,
}


def by_name(likelihood: str | AbstractLikelihood) -> AbstractLikelihood:
    """The likelihood itself, or the one of that name with all its parameters learnt."""
    if isinstance(likelihood, AbstractLikelihood):
        return likelihood
    if likelihood == "binomial":
        raise ValueError("A binomial likelihood needs the column of trials; pass Binomial(trials='column').")
    if not isinstance(likelihood, str) or likelihood not in NAMES:
        raise ValueError(
            f"likelihood must be one of {', '.join(NAMES)}, or a likelihood object; got {shown(likelihood)}."
        )
    return NAMES[likelihood]()
