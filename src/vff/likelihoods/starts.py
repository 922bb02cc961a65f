"""Weighted summaries of y that starting values are made of."""

import numpy as np


def weighted_mean(y: np.ndarray, w: np.ndarray) -> float:
    return float(w @ y / w.sum())


def weighted_variance(y: np.ndarray, w: np.ndarray) -> float:
    return float(w @ (y - weighted_mean(y, w)) ** 2 / w.sum())


def weighted_median(y: np.ndarray, w: np.ndarray) -> float:
    order = np.argsort(y)
    total = np.cumsum(w[order])
    return float(y[order[np.searchsorted(total, total[-1] / 2)]])


def spread_of(y: np.ndarray, w: np.ndarray) -> float:
    """A standard deviation that outliers do not move: the interquartile range over 1.35; if zero, the deviation.

    A row of weight two counts as two rows.
    """
    low, high = np.quantile(y, [0.25, 0.75], weights=w, method="inverted_cdf")
    return float((high - low) / 1.349 or np.sqrt(weighted_variance(y, w)) or 1.0)
