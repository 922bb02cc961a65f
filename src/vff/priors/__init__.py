"""Probability densities of hyperparameters, in the user's units.

A prior of a positive number is ``Gamma``, ``LogNormal``, ``InverseGamma``, ``HalfNormal`` or ``Exponential``; of any
real number, ``Normal``; of a correlation, ``LKJ``. A variance is easier to think of by its square root:
``OfSd(HalfNormal(2.0))`` is the prior of a variance whose standard deviation is half-normal. Penalised-complexity
priors are set by one statement each:

    penalised_sd(above=3.0, probability=0.05)               P(sd > 3) = 0.05, as a prior of the variance sd²
    PenalisedLengthscale(below=0.1, probability=0.05)       P(lengthscale < 0.1) = 0.05

A prior knows its log density, its quantiles and how to sample. Compiled code takes the ``form`` of a prior, which is
its kind, as a constant and its ``numbers`` as arguments; so other numbers compile nothing.
"""

from vff.priors.base import AbstractPrior
from vff.priors.leaves import (
    LKJ,
    Exponential,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    OfSd,
    PenalisedLengthscale,
    penalised_sd,
)

__all__ = [
    "LKJ",
    "AbstractPrior",
    "Exponential",
    "Gamma",
    "HalfNormal",
    "InverseGamma",
    "LogNormal",
    "Normal",
    "OfSd",
    "PenalisedLengthscale",
    "penalised_sd",
]
