"""What both sides of chains.py share: the problems, a clock of compilation, and what is told of draws."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

SHORT = 5  # times fewer steps of chains with --quick


@dataclass(frozen=True)
class Problem:
    """Counts over columns that lie in [0, 1], a product of Matérn-3/2, and how both sides are to sample it."""

    columns: int
    domain: tuple[float, float]
    """Of our features."""
    frequencies: int
    edges: int | str
    half_length: float
    """Of the interval of the eigenfunctions, around 0.5."""
    eigenfunctions: int
    """By column."""
    centred: bool
    """Whether the peer samples coefficients as they are, which suits many rows, or divided by their deviation."""
    dense_mass: bool
    """Of the peer."""
    priors: Mapping[str, tuple[str, float, float]]
    """Name in vff.priors, and its two numbers."""
    warmup: int
    draws: int
    chains: int = 2
    seed: int = 0

    def shortened(self, times: int) -> "Problem":
        """With fewer steps."""
        return replace(self, warmup=max(self.warmup // times, 20), draws=max(self.draws // times, 20))


PINES = {"lengthscale": ("Gamma", 0.1, 1.0), "variance": ("Gamma", 1.0, 1.0), "constant": ("Normal", 0.0, 3.0**0.5)}
LINE = {"lengthscale": ("LogNormal", 0.5, 1.0), "variance": ("LogNormal", 1.0, 1.0), "constant": ("Normal", 0.0, 3.0)}
PROBLEMS = {
    "pines": Problem(2, (-1.0, 2.0), 29, 0, 1.5, 59, False, False, PINES, 300, 500),
    "line": Problem(1, (0.0, 1.0), 30, "auto", 0.6, 64, True, True, LINE, 300, 500),
}


@dataclass
class Clock:
    """Seconds during which JAX traced, lowered or compiled, in any thread; what overlaps counts once."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def running(cls) -> "Clock":
        """A clock that listens from now on."""
        from jax import monitoring

        clock = cls()
        monitoring.register_event_duration_secs_listener(clock._listen)
        return clock

    def _listen(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.startswith("/jax/core/compile"):
            now = time.perf_counter()
            self.spans.append((now - duration_secs, now))

    @property
    def seconds(self) -> float:
        total, end = 0.0, -np.inf
        for first, last in sorted(self.spans):
            total += max(last - max(first, end), 0.0)
            end = max(end, last)
        return total


def told(
    values: Mapping[str, np.ndarray], steps: np.ndarray, divergences: int, sampling: float, whole: float
) -> dict[str, Any]:
    """What a side found out: both have their effective sample sizes from the same function."""
    from vff.inference.methods.chains.diagnostics import bulk_ess, rank_normalised_rhat

    return {
        "sampling": sampling,
        "whole": whole,
        "ess": min(bulk_ess(x) for x in values.values()),
        "rhat": max(rank_normalised_rhat(x) for x in values.values()),
        "steps": float(steps.mean()),
        "divergences": divergences,
        "means": {name: float(x.mean()) for name, x in values.items()},
        "sds": {name: float(x.std()) for name, x in values.items()},
    }
