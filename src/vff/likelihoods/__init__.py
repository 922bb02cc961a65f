"""Likelihoods p(y | f), one factor per row, and what inference and prediction ask of them.

| likelihood | y | mean of y given f | learnt unless given |
|---|---|---|---|
| `Gaussian` | real | f | variance |
| `StudentT` | real, with outliers | f | scale, df |
| `Gamma` | positive | exp(f) | shape |
| `Beta` | strictly between 0 and 1 | 1/(1 + exp(-f)) | precision |
| `Poisson` | counts | exposure · exp(f) | |
| `NegativeBinomial` | counts | exposure · exp(f) | dispersion |
| `Bernoulli` | 0 or 1 | F(f), logistic or normal | |
| `Binomial` | successes of n | n F(f) | |
| `Ordinal` | levels 0 … C-1 | Σ_k F(f - c_k) | cut points c |
| `Custom` | anything | the user's | the user's, in log space |

A likelihood is a small frozen object. Its log-density is written in JAX, which gives the derivatives; JAX is imported
when an expectation is first asked for, never by importing this room, and always computes in float64 without touching
its global flags. ``LIKELIHOODS`` are the kinds there are, and ``register`` adds one.
"""

from vff.likelihoods.base import (
    WIDEST_EXPONENT,
    AbstractLikelihood,
    Location,
    Parameter,
    choice,
    likelihood_column,
    parameter,
)
from vff.likelihoods.beta import Beta
from vff.likelihoods.classes import Bernoulli, Binomial
from vff.likelihoods.counts import NegativeBinomial, Poisson
from vff.likelihoods.custom import Custom
from vff.likelihoods.expectations import Expected, best_constant, log_predictive, parameter_derivatives, row_modes
from vff.likelihoods.gamma import Gamma
from vff.likelihoods.gaussian import Gaussian
from vff.likelihoods.mixture import Mixture
from vff.likelihoods.ordinal import Ordinal
from vff.likelihoods.predictive import Marginal, Predictive
from vff.likelihoods.registry import LIKELIHOODS, binary_names, by_name, likelihood_names, register, unregister
from vff.likelihoods.student_t import StudentT

__all__ = [
    "LIKELIHOODS",
    "WIDEST_EXPONENT",
    "AbstractLikelihood",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Custom",
    "Expected",
    "Gamma",
    "Gaussian",
    "Location",
    "Marginal",
    "Mixture",
    "NegativeBinomial",
    "Ordinal",
    "Parameter",
    "Poisson",
    "Predictive",
    "StudentT",
    "best_constant",
    "binary_names",
    "by_name",
    "choice",
    "likelihood_column",
    "likelihood_names",
    "log_predictive",
    "parameter",
    "parameter_derivatives",
    "register",
    "row_modes",
    "unregister",
]
