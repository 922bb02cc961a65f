"""A hyperparameter of a kind of factor: its name, its bounds, where learning starts, and its prior in chains."""

from collections.abc import Callable
from dataclasses import dataclass

from vff.parameters import Support
from vff.priors import AbstractPrior, LogNormal

_MEDIAN, _SIGMA = 0.5, 1.0


def _around_half(length: float) -> AbstractPrior:
    return LogNormal(_MEDIAN * length, _SIGMA)


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter beside the variance."""

    name: str
    unit: str
    """What it is measured in, as ``Factor.unit`` knows it."""
    bounds: tuple[float, float]
    """Of the positive number that is learnt."""
    starts: tuple[float, ...]
    """Values to try first, where it is one of several."""
    typical: float
    prior: Callable[[float], AbstractPrior] = _around_half
    """The prior of chains in the user's units, from the range of the column's data."""
    loose: bool = False
    """Whether data often leave it undetermined beside others, and nobody need be told when it ends at a bound."""
    support: Support = "positive"
    """Which numbers the user may give it; inside it is always positive."""
