"""All of the room, which the first use of any of its names imports."""

# ruff: noqa: F401

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
from vff.likelihoods.registry import LIKELIHOODS, binary_names, by_name, exposed_names, register, unregister
from vff.likelihoods.student_t import StudentT
