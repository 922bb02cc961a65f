"""What factors and their priors are told, and what they answer."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

Values = Mapping[str, float]
"""Hyperparameters of one factor by name, in units of its domain."""


class ColumnRange(Protocol):
    """What is known of the values of a column."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    @property
    def n_distinct(self) -> int: ...

    @property
    def constant(self) -> bool: ...


class FactorOptions(NamedTuple):
    """What the options say of one factor."""

    edges: Any
    """As the user gave them, "auto" where nothing was said."""
    most: int | None
    """The largest detail that is asked of any factor over the column; None where it is to be found."""
    levels: tuple[Hashable, ...]
    """Of a column that is read as levels, those that are known."""


class StartingPoint(NamedTuple):
    """Values to begin learning from."""

    values: Values
    most: int | None
    """The largest detail to try them with; None for all there is."""
    variance: float = 1.0
    """How many times the usual variance goes with them, where none was given."""


class Beyond(NamedTuple):
    """Rows outside a domain that see its features through few states: phi = weights states'."""

    rows: np.ndarray
    """Which rows, (N,) booleans."""
    weights: np.ndarray
    """(n, k)."""
    states: np.ndarray
    """(P, k)."""


class TailSums(NamedTuple):
    """What rows outside add to sums over rows: Z gram Z', Z project and Z total, with Z their states."""

    gram: np.ndarray
    project: np.ndarray
    total: np.ndarray


class Block(NamedTuple):
    """A correlation between two sets of rows, value * exp(-exponent), and derivatives, without the exponential."""

    value: np.ndarray
    exponent: np.ndarray | None
    """None for one."""
    slopes: Callable[[], Sequence[np.ndarray]]
    """Derivatives in the logarithm of every hyperparameter."""
    moved: Callable[[], np.ndarray | None]
    """Derivative in the first rows over ``speed``; None where these cannot move."""
    speed: float = 1.0
