"""Penalised-complexity priors, which shrink towards a simpler model at a constant rate.

The distance from the simpler model is exponential (Simpson et al., 2017, Penalising model component complexity). For a
Gaussian process it is proportional to the standard deviation, with zero as the simpler model, and to l^(-d/2) in d
columns, with a constant as the simpler model (Fuglstad et al., 2019, Constructing priors that penalize the
complexity of Gaussian random fields). The rate follows from one statement of probability.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vff.linalg import namespace
from vff.priors.base import AbstractPrior
from vff.priors.checks import require_positive, require_probability
from vff.priors.positive import Exponential
from vff.priors.variances import OfSd
from vff.words import shown


def penalised_sd(above: float, probability: float) -> OfSd:
    """Penalised-complexity prior of a variance whose square root is above a number with this probability.

    Parameters
    ----------
    above, probability : float
        The statement that sets it.

    Returns
    -------
    OfSd
        A prior of the variance.

    Examples
    --------
    >>> round(vff.priors.penalised_sd(above=3.0, probability=0.05).quantile(0.95), 3)
    np.float64(9.0)
    """
    require_positive("penalised_sd", "above", above)
    require_probability("penalised_sd", probability)
    return OfSd(Exponential(above / -math.log(probability)))


@dataclass(frozen=True)
class PenalisedLengthscale(AbstractPrior):
    """Penalised-complexity prior with P(lengthscale < below) = probability.

    p(l) = (d/2) λ l^(-d/2 - 1) exp(-λ l^(-d/2)) with d = columns and λ = -log(probability) below^(d/2).

    Parameters
    ----------
    below, probability : float
        The statement that sets it.
    columns : int
        That the process is over and that share the lengthscale.

    Examples
    --------
    >>> round(vff.priors.PenalisedLengthscale(below=0.1, probability=0.05).quantile(0.05), 3)
    np.float64(0.1)
    """

    below: float
    probability: float
    columns: int = 1

    support = "positive"

    def __post_init__(self) -> None:
        require_positive("PenalisedLengthscale", "below", self.below)
        require_probability("PenalisedLengthscale", self.probability)
        if not isinstance(self.columns, int | np.integer) or self.columns < 1:
            raise ValueError(
                f"PenalisedLengthscale expects a whole number of columns from one, but found {shown(self.columns)}; "
                "give the number of columns that share the lengthscale."
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        """below, λ below^(-d/2) = -log(probability), and d/2."""
        return float(self.below), -math.log(self.probability), self.columns / 2

    @property
    def form(self) -> Self:
        return type(self)(1.0, 0.5, 1)

    @property
    def log_constant(self) -> float:
        below, rate, half = self.numbers
        return math.log(half) + math.log(rate) + half * math.log(below)

    def formula(self, value: Any, *numbers: Any) -> Any:
        below, rate, half = numbers
        ratio = value / below  # a tracer when either is
        exponent = -half * namespace(ratio).log(ratio)
        return -(half + 1.0) * namespace(value).log(value) - rate * namespace(exponent).exp(exponent)

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        """The level is exp(-λ l^(-d/2))."""
        below, rate, half = self.numbers
        return below * (rate / -np.log(level)) ** (1 / half)
