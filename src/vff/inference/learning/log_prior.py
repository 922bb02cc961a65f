"""What is known of hyperparameters before the data: a prior each, written in the logarithms that learning moves in.

The best hyperparameters under it are the maximum a posteriori of these logarithms, the coordinates in which chains
sample, too: with a log-normal prior the median is where nothing is pulled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vff.parameters import Support
from vff.priors import AbstractPrior
from vff.priors.base import from_t, log_slope, to_t

_IMAGINED = 0.005, 0.995  # quantiles between which learning starts
_STEP = 1e-3  # of a difference of fourth order, which leaves 1e-12


@dataclass(frozen=True)
class KnownPrior:
    """The prior of one hyperparameter in the user's units, and what learning calls it."""

    prior: AbstractPrior
    support: Support = "positive"
    lower: float = 0.0
    unit: float = 1.0

    def at(self, t: np.ndarray) -> np.ndarray:
        """log p(t)."""
        return self.prior.log_density(from_t(self.support, t, self.lower, self.unit)) + log_slope(self.support, t)

    def clipped(self, t: float) -> float:
        """Where the prior can imagine it."""
        with np.errstate(over="ignore"):  # of a prior that says nothing
            low, high = self.prior.quantile(np.array(_IMAGINED))
        low, high = (to_t(self.support, end, self.lower, self.unit) for end in (low, high))
        return float(np.clip(t, low, high))

    def slopes(self, t: float) -> tuple[float, float, float]:
        """log p(t), its first derivative and its second."""
        far, near, here, more, most = self.at(t + _STEP * np.arange(-2.0, 3.0))
        first = (8.0 * (more - near) - (most - far)) / (12.0 * _STEP)
        second = (16.0 * (more + near) - (most + far) - 30.0 * here) / (12.0 * _STEP**2)
        return float(here), float(first), float(second)


@dataclass(frozen=True)
class LogPriors:
    """Priors of some of the hyperparameters, in the order in which learning has them."""

    entries: tuple[KnownPrior | None, ...]

    def value(self, theta: np.ndarray) -> float:
        """log p(theta), nats; of those without a prior nothing is said."""
        both = zip(self.entries, theta, strict=True)
        return sum(float(own.at(np.asarray(t))) for own, t in both if own is not None)

    def clipped(self, theta: np.ndarray) -> np.ndarray:
        """Where the priors can imagine them: elsewhere learning has no reason to start."""
        both = zip(self.entries, theta, strict=True)
        return np.array([t if own is None else own.clipped(t) for own, t in both])

    def slope(self, theta: np.ndarray) -> np.ndarray:
        """Its derivatives, (R,)."""
        return self.slopes(theta)[0]

    def slopes(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Its derivatives, and the second ones, (R,) each."""
        both = zip(self.entries, theta, strict=True)
        first, second = np.array([(0.0, 0.0) if own is None else own.slopes(t)[1:] for own, t in both]).reshape(-1, 2).T
        return first, second

    def taken(self, places: Sequence[int]) -> "LogPriors":
        """Those of some hyperparameters."""
        return LogPriors(tuple(self.entries[place] for place in places))
