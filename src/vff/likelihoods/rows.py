"""Sentences about rows and values that a likelihood cannot have, and weighted summaries of y to start from."""

from numbers import Real
from typing import Any

import numpy as np

from vff.parameters import refuse_bounds
from vff.words import shown


def require(good: np.ndarray, values: np.ndarray, sentence: str, what: str, advice: str) -> None:
    """ValueError naming the first row that is not good."""
    if not np.all(good):
        row = int(np.argmin(good))
        raise ValueError(f"{sentence}, but {what} is {values[row]:g} at row {row}; {advice}.")


def is_number(value: Any) -> bool:
    """Whether this is one finite number; text, truth values and lists are none."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def positive_or_none(name: str, value: float | None) -> None:
    """ValueError unless None or a finite number above zero."""
    refuse_bounds(f"{name} of a likelihood", value)
    if value is not None and not (is_number(value) and value > 0):
        raise ValueError(f"{name} must be a number above 0, or None to learn it; got {shown(value)}.")


def weighted_mean(y: np.ndarray, w: np.ndarray) -> float:
    return float(w @ y / w.sum())


def weighted_variance(y: np.ndarray, w: np.ndarray) -> float:
    return float(w @ (y - weighted_mean(y, w)) ** 2 / w.sum())


def weighted_median(y: np.ndarray, w: np.ndarray) -> float:
    return float(np.quantile(y, 0.5, weights=w, method="inverted_cdf"))


def spread_of(y: np.ndarray, w: np.ndarray) -> float:
    """A standard deviation that outliers do not move: the interquartile range over 1.35; if zero, the deviation.

    A row of weight two counts as two rows.
    """
    low, high = np.quantile(y, [0.25, 0.75], weights=w, method="inverted_cdf")
    return float((high - low) / 1.349 or np.sqrt(weighted_variance(y, w)) or 1.0)
