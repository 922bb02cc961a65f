"""Priors of positive numbers: Gamma, LogNormal, InverseGamma, HalfNormal, Exponential."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from scipy import special

from vff.linalg import namespace
from vff.priors.base import AbstractPrior
from vff.priors.checks import require_positive


@dataclass(frozen=True)
class AbstractPositive(AbstractPrior):
    """Of a positive number, by positive numbers: the fields of the leaf."""

    support = "positive"

    def __post_init__(self) -> None:
        for own in fields(self):
            require_positive(type(self).__name__, own.name, getattr(self, own.name))

    @property
    def numbers(self) -> tuple[float, ...]:
        return tuple(float(getattr(self, own.name)) for own in fields(self))

    @property
    def form(self) -> Self:
        return type(self)(*(1.0 for _ in fields(self)))


@dataclass(frozen=True)
class Gamma(AbstractPositive):
    """Mean shape · scale, variance shape · scale²: p ∝ v^(shape - 1) exp(-v / scale).

    Parameters
    ----------
    shape, scale : float

    Examples
    --------
    >>> round(vff.priors.Gamma(shape=2.0, scale=3.0).median, 3)
    5.035
    """

    shape: float
    scale: float

    @property
    def log_constant(self) -> float:
        return -math.lgamma(self.shape) - self.shape * math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        shape, scale = numbers
        return (shape - 1.0) * namespace(value).log(value) - value / scale

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale * special.gammaincinv(self.shape, level)


@dataclass(frozen=True)
class LogNormal(AbstractPositive):
    """The logarithm is normal with mean log(median) and standard deviation sigma.

    Parameters
    ----------
    median, sigma : float

    Examples
    --------
    >>> vff.priors.LogNormal(median=2.0, sigma=0.5).quantile([0.16, 0.84]).round(1)
    array([1.2, 3.3])
    """

    median: float = field()  # pyright: ignore[reportIncompatibleVariableOverride]  # given, not computed
    sigma: float = field()

    @property
    def log_constant(self) -> float:
        return -math.log(self.sigma) - math.log(2 * math.pi) / 2

    def formula(self, value: Any, *numbers: Any) -> Any:
        median, sigma = numbers
        ratio = value / median  # a tracer when either is
        z = namespace(ratio).log(ratio) / sigma
        return -namespace(value).log(value) - z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.median * np.exp(self.sigma * special.ndtri(level))


@dataclass(frozen=True)
class InverseGamma(AbstractPositive):
    """1 / v is Gamma(shape, 1 / scale): p ∝ v^(-shape - 1) exp(-scale / v). Almost nothing is near zero.

    Parameters
    ----------
    shape, scale : float

    Examples
    --------
    >>> round(vff.priors.InverseGamma(shape=3.0, scale=2.0).median, 3)
    0.748
    """

    shape: float
    scale: float

    @property
    def log_constant(self) -> float:
        return self.shape * math.log(self.scale) - math.lgamma(self.shape)

    def formula(self, value: Any, *numbers: Any) -> Any:
        shape, scale = numbers
        return -(shape + 1.0) * namespace(value).log(value) - scale / value

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale / special.gammainccinv(self.shape, level)


@dataclass(frozen=True)
class HalfNormal(AbstractPositive):
    """The absolute value of a normal number with mean zero.

    Parameters
    ----------
    scale : float
        Standard deviation of the normal number.

    Examples
    --------
    >>> round(vff.priors.HalfNormal(1.0).quantile(0.95), 2)
    np.float64(1.96)
    """

    scale: float

    @property
    def log_constant(self) -> float:
        return math.log(2 / math.pi) / 2 - math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        z = value / numbers[0]
        return -z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale * math.sqrt(2) * special.erfinv(level)


@dataclass(frozen=True)
class Exponential(AbstractPositive):
    """Mean and standard deviation scale: p ∝ exp(-v / scale).

    Parameters
    ----------
    scale : float

    Examples
    --------
    >>> round(vff.priors.Exponential(2.0).median, 3)
    1.386
    """

    scale: float

    @property
    def log_constant(self) -> float:
        return -math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        return -value / numbers[0]

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return -self.scale * np.log1p(-level)
