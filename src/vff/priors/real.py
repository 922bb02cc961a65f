"""Priors of real numbers: Normal."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from vff.priors.base import AbstractPrior
from vff.priors.checks import require_finite, require_positive


@dataclass(frozen=True)
class Normal(AbstractPrior):
    """Of a constant, which may have either sign.

    Parameters
    ----------
    mean, sd : float

    Examples
    --------
    >>> vff.priors.Normal(0.0, 1.0).quantile([0.025, 0.975]).round(2)
    array([-1.96,  1.96])
    """

    mean: float
    sd: float

    support = "real"

    def __post_init__(self) -> None:
        require_finite("Normal", "mean", self.mean)
        require_positive("Normal", "sd", self.sd)

    @property
    def numbers(self) -> tuple[float, ...]:
        return float(self.mean), float(self.sd)

    @property
    def form(self) -> Self:
        return type(self)(0.0, 1.0)

    @property
    def log_constant(self) -> float:
        return -math.log(self.sd) - math.log(2 * math.pi) / 2

    def formula(self, value: Any, *numbers: Any) -> Any:
        mean, sd = numbers
        z = (value - mean) / sd
        return -z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.mean + self.sd * special.ndtri(level)
