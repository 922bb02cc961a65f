"""What a linear-Gaussian model is told of its rows beside sums of features: a constant, and variances of their own."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from vff.linalg import AbstractSymmetric


@dataclass(frozen=True)
class Intercept:
    """What the rows say of an intercept beside the features, and its prior N(0, variance)."""

    stored_as: ClassVar[str] = "Constant"

    features: np.ndarray
    """h = Phi' W 1, (P,)."""
    target: float
    """sum w y."""
    variance: float


@dataclass(frozen=True)
class InterceptPosterior:
    """q(c0) of the intercept, and how the coefficients follow it."""

    stored_as: ClassVar[str] = "ConstantPosterior"

    mean: float
    variance: float
    answer: np.ndarray
    """u, (P,): what the coefficients give back when the constant rises by one; f rises by 1 - phi'u."""


class RowNoise(NamedTuple):
    """Of rows whose weights have variances of their own in them already: beside these the noise variance is one."""

    rows: float
    """sum w of the weights that count rows."""
    log_noise: float
    """sum w log(variance of a row)."""


class Drift(NamedTuple):
    """Derivatives of all that rows sum to, along some parameter."""

    G: AbstractSymmetric
    b: np.ndarray
    yy: float
    weight: float
    prior_trace: float
    intercept: Intercept | None
    log_noise: float
