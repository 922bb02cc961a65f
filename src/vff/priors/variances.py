"""Priors of a variance that are stated for its square root."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vff.linalg import namespace
from vff.priors.base import AbstractPrior
from vff.words import shown


@dataclass(frozen=True)
class OfSd(AbstractPrior):
    """The prior of a variance v whose square root has the given one: p(v) = p_sd(√v) / 2√v.

    Parameters
    ----------
    prior : prior of a positive number
        Of the standard deviation.

    Examples
    --------
    >>> round(vff.priors.OfSd(vff.priors.HalfNormal(1.0)).quantile(0.95), 2)
    np.float64(3.84)
    """

    prior: AbstractPrior
    """Of the standard deviation, positive."""

    support = "positive"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, AbstractPrior) or self.prior.support != "positive":
            raise ValueError(
                f"OfSd expects a prior of a positive number, but found {shown(self.prior)}; "
                "give the prior of the standard deviation, such as HalfNormal(1.0)."
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.prior.numbers

    @property
    def form(self) -> Self:
        return type(self)(self.prior.form)

    @property
    def log_constant(self) -> float:
        return self.prior.log_constant - math.log(2)

    def formula(self, value: Any, *numbers: Any) -> Any:
        xp = namespace(value)
        return self.prior.formula(xp.sqrt(value), *numbers) - xp.log(value) / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return np.square(self.prior.quantile(level))
