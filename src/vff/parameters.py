"""Positive hyperparameters as one vector of logarithms, with names and bounds."""

from dataclasses import dataclass

import numpy as np


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
