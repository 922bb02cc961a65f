"""What every prior provides, and sentences about numbers that no prior has."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from vff.linalg import namespace
from vff.parameters import Support
from vff.words import shown

REAL = {"real": True}
"""Metadata of a field that may have either sign."""


@dataclass(frozen=True)
class AbstractPrior(ABC):
    """The density of one hyperparameter, in the user's units.

    A leaf is a frozen dataclass, by positive numbers unless it says otherwise. Its formula is a function of ``numbers``
    and never of the numbers in the object, so that compiled code serves every value.

    Examples
    --------
    >>> prior = vff.priors.LogNormal(median=2.0, sigma=1.0)
    >>> prior.quantile(0.5), prior.log_density(2.0).round(3), prior.sample(3, np.random.default_rng(0)).shape
    (np.float64(2.0), np.float64(-1.612), (3,))
    """

    support: ClassVar[Support] = "positive"
    """The values that can be: all finite numbers above zero, all finite numbers, or those between -1 and 1."""

    # --- hooks ---------------------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        for own in fields(self):
            (require_finite if own.metadata.get("real") else require_positive)(
                type(self).__name__, own.name, getattr(self, own.name)
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        """The parameters, which compiled code takes as arguments."""
        return tuple(float(getattr(self, own.name)) for own in fields(self))

    @property
    def form(self) -> Self:
        """The prior of the same kind with standard numbers: all that compiled code may depend on."""
        return type(self)(*(1.0 for _ in fields(self)))

    @property
    @abstractmethod
    def log_constant(self) -> float:
        """What the formula leaves out, so that the density integrates to one."""

    @abstractmethod
    def formula(self, value: Any, *numbers: Any) -> Any:
        """The log density within the support, less ``log_constant``.

        Value and numbers may be floats, arrays of NumPy, or arrays and tracers of JAX.
        """

    @abstractmethod
    def _quantile(self, level: np.ndarray) -> np.ndarray:
        """The inverse of the distribution function; levels are strictly between zero and one."""

    # --- final ---------------------------------------------------------------------------------------------------

    def log_density(self, value: Any) -> Any:
        """The log density; minus infinity outside the support, NaN at NaN."""
        xp = namespace(value)
        value = xp.asarray(value)
        outside = xp.isinf(value)
        if self.support == "positive":
            outside = outside | (value <= 0)
        if self.support == "correlation":
            outside = outside | (abs(value) >= 1)
        with np.errstate(over="ignore"):  # where the density is zero, an exponent is infinite
            inside = self.formula(xp.where(outside, 0.5, value), *self.numbers) + self.log_constant
        return xp.where(outside, -np.inf, inside)[()]

    def quantile(self, level: Any) -> Any:
        """The value that the hyperparameter is below with this probability; levels may be an array."""
        levels = np.asarray(level, dtype=float)
        wrong = levels[~((levels > 0) & (levels < 1))]
        if wrong.size:
            raise ValueError(
                f"A quantile expects levels between 0 and 1, but found {wrong[0]:g}; give one such as 0.95."
            )
        return np.asarray(self._quantile(levels))[()]

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Independent draws: quantiles of uniform levels."""
        return np.asarray(self.quantile(np.maximum(rng.random(size), 2.0**-54)))  # random() may be zero

    # Not a property: the median is also a number that a leaf may be given.
    @cached_property
    def median(self) -> float:
        """The value that half of the probability is below."""
        return float(self.quantile(0.5))


def from_t(support: Support, t: Any, lower: Any = 0.0, unit: Any = 1.0) -> Any:
    """The user's value where chains are at t: a logarithm, of a real number itself; in NumPy or in JAX."""
    xp = namespace(t)
    if support == "correlation":
        return xp.tanh(0.5 * t)
    return lower + unit * (t if support == "real" else xp.exp(t))


def to_t(support: Support, value: float, lower: float = 0.0, unit: float = 1.0) -> float:
    """The inverse of ``from_t``, of one value; one that is not above ``lower`` is as far down as float64 goes."""
    if support == "correlation":
        return 2.0 * float(np.arctanh(value))
    inner = (value - lower) / unit
    return inner if support == "real" else float(np.log(max(inner, 1e-300)))


def log_slope(support: Support, t: Any) -> Any:
    """log |d value / dt|, up to a constant: what a density of the value gains when it is written in t."""
    if support == "correlation":  # 1 - tanh^2, without the difference
        xp = namespace(t)
        return -2.0 * xp.logaddexp(0.5 * t, -0.5 * t)
    return 0.0 if support == "real" else t


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def require_finite(owner: str, name: str, value: float) -> None:
    """ValueError unless a finite number."""
    if not _is_finite(value):
        raise ValueError(
            f"{owner} expects a finite number as its {name}, but found {shown(value)}; give a finite {name}."
        )


def require_positive(owner: str, name: str, value: float) -> None:
    """ValueError unless a finite number above zero."""
    if not (_is_finite(value) and value > 0):
        raise ValueError(
            f"{owner} expects a finite number above zero as its {name}, but found {shown(value)}; give a {name} above "
            "zero."
        )


def require_probability(owner: str, value: float) -> None:
    """ValueError unless strictly between zero and one."""
    if not (_is_finite(value) and 0 < value < 1):
        raise ValueError(
            f"{owner} expects a probability between 0 and 1, but found {shown(value)}; give one such as 0.05."
        )
