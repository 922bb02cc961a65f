"""A race to a score, for the peers of two_columns.py: training time is counted, scoring and importing are not."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 0.005
"""How far above the score to reach (nats per row) is near enough."""


class Race:
    """A stopwatch that stands still while the model is scored."""

    def __init__(self, target: float, cap: float) -> None:
        self.target, self.cap = target + TOLERANCE, cap
        self.course: list[tuple[float, float]] = []
        """Seconds of training and NLPD, whenever it was scored."""
        self._spent, self._since = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        return self._spent + time.perf_counter() - self._since

    def score(self, nlpd: Callable[[], float]) -> bool:
        """Score the model as it is now; whether the race is over."""
        self._spent = self.seconds
        self.course.append((self._spent, nlpd()))
        self._since = time.perf_counter()
        return self.course[-1][1] <= self.target or self._spent >= self.cap

    def result(self) -> dict[str, Any]:
        reached = [seconds for seconds, nlpd in self.course if nlpd <= self.target]
        best = min(nlpd for _, nlpd in self.course)
        reach = {"reached": reached[0] if reached else None, "spent": self.course[-1][0], "nlpd": best}
        return {**reach, "course": self.course}


def load(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, X_test, y_test."""
    X, y, X_test, y_test = (np.load(folder / f"{name}.npy") for name in ("X", "y", "X_test", "y_test"))
    return X, y, X_test, y_test


def mean_nlpd(mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> float:
    """Negative log density of normal predictions, nats per row."""
    return float(np.mean(0.5 * (np.log(2.0 * np.pi * variance) + (y - mean) ** 2 / variance)))
