"""Positive hyperparameters as one vector of logarithms, with names and bounds.

Some of what users speak of is no positive number: a correlation r lies between -1 and 1, and what is learnt of it is
(1 + r) / (1 - r). A ``Unit`` says what a number of the user is inside, and back. What a user knows of a number beforehand
is ``fixed`` or ``between``; a bare number is where learning starts.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from vff.words import shown


@dataclass(frozen=True)
class Fixed:
    """A hyperparameter that is known: it is held, and not learnt."""

    value: float

    def __repr__(self) -> str:
        return f"fixed({self.value!r})"


@dataclass(frozen=True)
class Between:
    """A hyperparameter that is learnt between two bounds."""

    low: float
    high: float

    def __repr__(self) -> str:
        return f"between({self.low!r}, {self.high!r})"


def fixed(value: float) -> Fixed:
    """A hyperparameter that is known, and held at this value while others are learnt.

    Parameters
    ----------
    value : float
        In the user's units.

    Returns
    -------
    Fixed

    Examples
    --------
    >>> vff.Matern32("x", lengthscale=vff.fixed(2.0))
    Matern32('x', lengthscale=fixed(2))
    """
    return Fixed(_number("fixed", value))


def between(low: float, high: float) -> Between:
    """A hyperparameter that is learnt between two bounds.

    Parameters
    ----------
    low, high : float
        In the user's units.

    Returns
    -------
    Between

    Examples
    --------
    >>> vff.Matern32("x", variance=vff.between(0.1, 10))
    Matern32('x', variance=between(0.1, 10))
    """
    low, high = _number("between", low), _number("between", high)
    if not low < high:
        raise ValueError(
            f"between takes a lower and an upper bound, got {low:g} and {high:g}; give the lower one first"
        )
    return Between(low, high)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name} takes finite numbers, got {shown(value)}; write them in the units of the data")
    return float(value)


Support = Literal["positive", "real", "correlation"]
"""Which numbers a user's value may be: those above zero, all, or those between -1 and 1."""


class Unit(NamedTuple):
    """What one of the user's values is measured in."""

    size: float = 1.0
    """Of a positive one, in the user's units; a correlation has none."""
    support: Support = "positive"

    def inner(self, value: Any) -> Any:
        """The positive number that is learnt."""
        return (1.0 + value) / (1.0 - value) if self.support == "correlation" else value / self.size

    def outer(self, inner: Any) -> Any:
        """What the user calls it."""
        return (inner - 1.0) / (inner + 1.0) if self.support == "correlation" else inner * self.size


@dataclass(frozen=True)
class PositiveVector:
    """The layout of a vector of log parameters. Optimisers see logarithms; everything else sees positive numbers."""

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def log_bounds(self) -> list[tuple[float, float]]:
        return list(zip(np.log(self.lower).tolist(), np.log(self.upper).tolist(), strict=True))

    def clip(self, theta: np.ndarray) -> np.ndarray:
        """Into the bounds."""
        return np.clip(theta, np.log(self.lower), np.log(self.upper))

    def at_bounds(self, theta: np.ndarray) -> dict[str, str]:
        """Which parameters ended on a bound: name -> 'lower' or 'upper'."""
        ends = {}
        for name, value, (low, high) in zip(self.names, theta, self.log_bounds, strict=True):
            if value <= low + 1e-9:
                ends[name] = "lower"
            elif value >= high - 1e-9:
                ends[name] = "upper"
        return ends
