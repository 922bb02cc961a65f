"""Priors of positive numbers: Gamma, LogNormal, InverseGamma, HalfNormal, Exponential."""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import special

from vff.linalg import namespace
from vff.priors.base import AbstractPrior
from vff.priors.checks import require_positive


@dataclass(frozen=True)
class Gamma(AbstractPrior):
    """Mean shape · scale, variance shape · scale²: p ∝ v^(shape - 1) exp(-v / scale)."""

    shape: float
    scale: float

    support = "positive"

    def __post_init__(self) -> None:
        require_positive("Gamma", "shape", self.shape)
        require_positive("Gamma", "scale", self.scale)

    @property
    def numbers(self) -> tuple[float, ...]:
        return float(self.shape), float(self.scale)

    @property
    def form(self) -> Self:
        return type(self)(1.0, 1.0)

    @property
    def log_constant(self) -> float:
        return -math.lgamma(self.shape) - self.shape * math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        shape, scale = numbers
        return (shape - 1.0) * namespace(value).log(value) - value / scale

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale * special.gammaincinv(self.shape, level)


@dataclass(frozen=True)
class LogNormal(AbstractPrior):
    """The logarithm is normal with mean log(median) and standard deviation sigma."""

    median: float = field()  # pyright: ignore[reportIncompatibleVariableOverride]  # given, not computed
    sigma: float = field()

    support = "positive"

    def __post_init__(self) -> None:
        require_positive("LogNormal", "median", self.median)
        require_positive("LogNormal", "sigma", self.sigma)

    @property
    def numbers(self) -> tuple[float, ...]:
        return float(self.median), float(self.sigma)

    @property
    def form(self) -> Self:
        return type(self)(1.0, 1.0)

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
class InverseGamma(AbstractPrior):
    """1 / v is Gamma(shape, 1 / scale): p ∝ v^(-shape - 1) exp(-scale / v). Almost nothing is near zero."""

    shape: float
    scale: float

    support = "positive"

    def __post_init__(self) -> None:
        require_positive("InverseGamma", "shape", self.shape)
        require_positive("InverseGamma", "scale", self.scale)

    @property
    def numbers(self) -> tuple[float, ...]:
        return float(self.shape), float(self.scale)

    @property
    def form(self) -> Self:
        return type(self)(1.0, 1.0)

    @property
    def log_constant(self) -> float:
        return self.shape * math.log(self.scale) - math.lgamma(self.shape)

    def formula(self, value: Any, *numbers: Any) -> Any:
        shape, scale = numbers
        return -(shape + 1.0) * namespace(value).log(value) - scale / value

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale / special.gammainccinv(self.shape, level)


@dataclass(frozen=True)
class HalfNormal(AbstractPrior):
    """The absolute value of a normal number with mean zero and standard deviation scale."""

    scale: float

    support = "positive"

    def __post_init__(self) -> None:
        require_positive("HalfNormal", "scale", self.scale)

    @property
    def numbers(self) -> tuple[float, ...]:
        return (float(self.scale),)

    @property
    def form(self) -> Self:
        return type(self)(1.0)

    @property
    def log_constant(self) -> float:
        return math.log(2 / math.pi) / 2 - math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        z = value / numbers[0]
        return -z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale * math.sqrt(2) * special.erfinv(level)


@dataclass(frozen=True)
class Exponential(AbstractPrior):
    """Mean and standard deviation scale: p ∝ exp(-v / scale)."""

    scale: float

    support = "positive"

    def __post_init__(self) -> None:
        require_positive("Exponential", "scale", self.scale)

    @property
    def numbers(self) -> tuple[float, ...]:
        return (float(self.scale),)

    @property
    def form(self) -> Self:
        return type(self)(1.0)

    @property
    def log_constant(self) -> float:
        return -math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        return -value / numbers[0]

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return -self.scale * np.log1p(-level)
