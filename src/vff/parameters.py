"""Positive hyperparameters as one vector of logarithms, with names and bounds.

Some of what users speak of is no positive number: a correlation r lies between -1 and 1, and what is learnt of it is
(1 + r) / (1 - r). A ``Unit`` says what a number of the user is inside, and back. What a user knows of a number
beforehand is ``fixed`` or ``between``; a bare number is where learning starts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from vff.words import shown

_WRITTEN = re.compile(r"(fixed|between)\(((?:[-+0-9.e]+, ){0,2}[-+0-9.e]+)\)")


class Fixed(float):
    """A hyperparameter that is known: it is held, and not learnt. A number like any other everywhere else."""

    def __repr__(self) -> str:
        return f"fixed({float(self)!r})"

    @property
    def bounds(self) -> tuple[float, float]:
        """Where it may be."""
        return float(self), float(self)

    def at(self, value: float) -> "Fixed":
        """The same where learning ended, which is where it began."""
        return self

    def text(self, number: Callable[[Any], str]) -> str:
        """As it is written, each number by ``number``."""
        return f"fixed({number(float(self))})"


class Between(float):
    """A hyperparameter that is learnt between two bounds; as a number, where learning starts or has ended."""

    low: float
    high: float
    started: bool
    """Whether a value was given, and not only bounds."""

    def __new__(cls, low: float, high: float, start: float | None = None) -> "Between":
        middle = (low * high) ** 0.5 if low > 0.0 else 0.5 * (low + high)
        own = super().__new__(cls, middle if start is None else start)
        own.low, own.high, own.started = low, high, start is not None
        return own

    def __getnewargs__(self) -> Any:
        return self.low, self.high, float(self) if self.started else None

    def __repr__(self) -> str:
        return self.text(repr)

    @property
    def bounds(self) -> tuple[float, float]:
        """Where it may be."""
        return self.low, self.high

    def at(self, value: float) -> "Between":
        """The same bounds, from where learning ended."""
        return Between(self.low, self.high, float(np.clip(value, self.low, self.high)))

    def times(self, factor: float) -> "Between":
        """In other units, or beside a number that is held."""
        return Between(factor * self.low, factor * self.high, factor * float(self) if self.started else None)

    def text(self, number: Callable[[Any], str]) -> str:
        """As it is written, each number by ``number``."""
        numbers = [self.low, self.high, *([float(self)] if self.started else [])]
        return f"between({', '.join(map(number, numbers))})"


def start_of(value: float | None) -> float | None:
    """Where learning starts; None: from the data."""
    return None if value is None or (isinstance(value, Between) and not value.started) else float(value)


def bounds_of(value: float | None) -> tuple[float, float] | None:
    """Between which bounds a user's value is learnt; None where nothing was said."""
    return value.bounds if isinstance(value, Fixed | Between) else None


def kept(value: float | None, learnt: float) -> float:
    """What was learnt of a value, with what was known of it beforehand."""
    return value.at(learnt) if isinstance(value, Fixed | Between) else learnt


def from_text(text: str) -> float:
    """What ``repr`` of a held or bounded number writes, read again; nothing is evaluated."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"fixed(number) or between(low, high) was expected, got {shown(text)}; write one of these")
    kind, numbers = found[1], [float(part) for part in found[2].split(",")]
    known = {"fixed": fixed, "between": between}[kind]
    if len(numbers) not in {"fixed": (1,), "between": (2, 3)}[kind]:
        raise ValueError(f"fixed(number) or between(low, high) was expected, got {shown(text)}; write one of these")
    return known(*numbers)


def refuse_bounds(what: str, value: Any) -> None:
    """ValueError where a number is bounded that is given, and not learnt between bounds."""
    if isinstance(value, Between):
        raise ValueError(
            f"{what} cannot be bounded, got {shown(value)}; give a number, and between(...) for variances and other "
            "numbers of a kernel that are learnt, or for noise_variance"
        )


def number_text(value: float, number: Callable[[Any], str]) -> str:
    """A user's value as it is written."""
    return value.text(number) if isinstance(value, Fixed | Between) else number(value)


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


def between(low: float, high: float, start: float | None = None) -> Between:
    """A hyperparameter that is learnt between two bounds.

    Parameters
    ----------
    low, high : float
        In the user's units.
    start : float or None
        Where learning starts; None: from the data.

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
            f"between takes a lower and an upper bound, got {low:g} and {high:g}; give the lower one first, or "
            "fixed(...) for one value"
        )
    first = None if start is None else _number("between", start)
    if first is not None and not low <= first <= high:
        raise ValueError(f"between({low:g}, {high:g}) starts at {first:g}, which is outside; start between the bounds")
    return Between(low, high, first)


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

    @property
    def held(self) -> np.ndarray:
        """Which are known, and not learnt, (R,)."""
        return np.equal(self.lower, self.upper)

    def clip(self, theta: np.ndarray) -> np.ndarray:
        """Into the bounds."""
        return np.clip(theta, np.log(self.lower), np.log(self.upper))

    def at_bounds(self, theta: np.ndarray) -> dict[str, str]:
        """Which parameters ended on a bound, of those that are learnt: name -> 'lower' or 'upper'."""
        ends = {}
        for name, value, (low, high) in zip(self.names, theta, self.log_bounds, strict=True):
            if low == high:
                continue
            if value <= low + 1e-9:
                ends[name] = "lower"
            elif value >= high - 1e-9:
                ends[name] = "upper"
        return ends
