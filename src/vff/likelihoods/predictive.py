"""A new y when f ~ N(mean, variance), row by row, by NumPy. Of likelihoods whose parameters are all set."""

import numpy as np

from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.rules import rule

NODES = 128
CHUNK = 2**12
HALVINGS = 60


def predictive_moments(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a new y: E[E[y|f]], and E[var[y|f]] + var[E[y|f]]."""
    variance = np.maximum(variance, 0.0)
    closed = likelihood.closed_moments(mean, variance, extra)
    if closed is not None:
        return closed
    results = np.empty((2, len(mean)))
    for begin in range(0, len(mean), CHUNK):
        rows = slice(begin, begin + CHUNK)
        f, weights = _nodes(mean[rows], variance[rows])
        centre = likelihood.conditional_mean(f, extra[rows, None])
        first = centre @ weights
        results[0, rows] = first
        spread = (centre - first[:, None]) ** 2
        results[1, rows] = (spread + likelihood.conditional_variance(f, extra[rows, None])) @ weights
    return results[0], results[1]


def predictive_quantiles(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """(N, L) quantiles of a new y; of a discrete one the smallest whole number whose cdf reaches the level."""
    levels = np.asarray(levels, dtype=float)
    if np.any((levels <= 0) | (levels >= 1)):
        raise ValueError(f"levels must lie strictly between 0 and 1; got {levels.tolist()}.")
    result = np.empty((len(mean), len(levels)))
    for begin in range(0, len(mean), CHUNK):
        rows = slice(begin, begin + CHUNK)
        result[rows] = _quantiles(likelihood, mean[rows], variance[rows], extra[rows], levels)
    return result


def predictive_sample(
    likelihood: AbstractLikelihood, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One new y per f."""
    return np.asarray(likelihood.sample(f, extra, rng), dtype=float)


def _nodes(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = rule(NODES)
    return mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * nodes, weights


def _quantiles(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Bisection on the cdf from a bracket."""
    f, weights = _nodes(mean, variance)

    def cdf(y: np.ndarray) -> np.ndarray:
        return likelihood.cdf(y[:, :, None], f[:, None, :], extra[:, None, None]) @ weights

    low, high = _bracket(likelihood, mean, variance, extra, levels, cdf)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if likelihood.discrete:
            middle = np.floor(middle)
        reached = cdf(middle) >= levels
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        if likelihood.discrete and np.all(high - low <= 1):
            break
    return high if likelihood.discrete else (low + high) / 2


def _bracket(likelihood, mean, variance, extra, levels, cdf):
    shape = (len(mean), len(levels))
    centre, spread = predictive_moments(likelihood, mean, variance, extra)
    step = np.sqrt(np.where(np.isfinite(spread), spread, 1.0)) + 1.0
    bottom, top = likelihood.support
    low = np.broadcast_to((centre - step)[:, None], shape).copy()
    high = np.broadcast_to((centre + step)[:, None], shape).copy()
    if likelihood.discrete:
        low, high = np.floor(low), np.ceil(high)
    low, high = np.maximum(low, bottom - likelihood.discrete), np.minimum(high, top)
    for k in range(60):
        move = step[:, None] * 2.0**k
        bad_low = (cdf(low) >= levels) & (low > bottom)
        bad_high = (cdf(high) < levels) & (high < top)
        if not (bad_low.any() or bad_high.any()):
            break
        low = np.where(
            bad_low,
            np.maximum(np.floor(low - move) if likelihood.discrete else low - move, bottom - likelihood.discrete),
            low,
        )
        high = np.where(bad_high, np.minimum(np.ceil(high + move), top), high)
    return low, high
