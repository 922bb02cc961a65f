"""A new y when f ~ N(mean, variance), row by row, by NumPy. Of likelihoods whose parameters are all set."""

from collections.abc import Callable

import numpy as np

from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.rules import rule

NODES = 128
CHUNK = 2**12
HALVINGS = 50
DOUBLINGS = 60
END = 9.0  # standard deviations
GENTLE, FEW = 0.7, 32  # standard deviations over which the cdf falls, and nodes that are enough then
PRECISE = 1e-9  # of a quantile, and of the standard deviation


def predictive_moments(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a new y: E[E[y|f]], and E[var[y|f]] + var[E[y|f]]."""
    variance = np.maximum(variance, 0.0)
    with np.errstate(over="ignore"):  # beyond float64 a moment is infinite
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


def predictive_mean(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
) -> np.ndarray:
    """Mean of a new y, E[E[y|f]], for likelihoods of which the variance may be unknown."""
    variance = np.maximum(variance, 0.0)
    with np.errstate(over="ignore"):
        closed = likelihood.closed_moments(mean, variance, extra)
    if closed is not None:
        return closed[0]
    result = np.empty(len(mean))
    for begin in range(0, len(mean), CHUNK):
        rows = slice(begin, begin + CHUNK)
        f, weights = _nodes(mean[rows], variance[rows])
        result[rows] = likelihood.conditional_mean(f, extra[rows, None]) @ weights
    return result


def predictive_quantiles(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """(N, L) quantiles of a new y; of a discrete one the smallest whole number whose cdf reaches the level."""
    levels, start = checked_levels(levels), origin(likelihood, mean)
    result = np.empty((len(mean), len(levels)))
    chunk = max(CHUNK // max(len(levels), 1), 1)
    for begin in range(0, len(mean), chunk):
        rows = slice(begin, begin + chunk)
        result[rows] = _quantiles(likelihood, mean[rows] - start[rows], variance[rows], extra[rows], levels)
    return start[:, None] + result


def origin(likelihood: AbstractLikelihood, mean: np.ndarray) -> np.ndarray:
    """(N,) where y is measured from: the mean of f, if only y - f counts; float64 then resolves the spread of y."""
    return mean if likelihood.standardised and not likelihood.discrete else np.zeros(len(mean))


def predictive_cdf(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """(N,) P(Y ≤ y) of a new Y at every row."""
    result, sd = np.empty(len(mean)), np.sqrt(np.maximum(variance, 0.0))
    start = origin(likelihood, mean)
    y, mean = y - start, mean - start
    with np.errstate(over="ignore", invalid="ignore"):  # nine standard deviations may lead beyond float64
        for begin in range(0, len(mean), CHUNK):
            rows = slice(begin, begin + CHUNK)
            own = (part[rows, None] for part in (y, mean, sd, extra))
            result[rows] = _mixture_cdf(likelihood, *own)[:, 0]
    return result


def checked_levels(levels: np.ndarray) -> np.ndarray:
    """Levels of quantiles, or a ValueError."""
    levels = np.asarray(levels, dtype=float)
    if not np.all((levels > 0) & (levels < 1)):  # NaN is no level either
        raise ValueError(f"levels must lie strictly between 0 and 1; got {levels.tolist()}.")
    return levels


def predictive_sample(
    likelihood: AbstractLikelihood, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One new y per f."""
    return np.asarray(likelihood.sample(f, extra, rng), dtype=float)


def _nodes(mean: np.ndarray, variance: np.ndarray, count: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = rule(count)
    return mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * nodes, weights


def _quantiles(
    likelihood: AbstractLikelihood, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """Bisection on the cdf."""
    sd, extra = np.sqrt(np.maximum(variance, 0.0))[:, None], extra[:, None]

    def cdf(y: np.ndarray) -> np.ndarray:
        return _mixture_cdf(likelihood, y, mean[:, None], sd, extra)

    centre, spread = predictive_moments(likelihood, mean, variance, extra[:, 0])
    with np.errstate(over="ignore", invalid="ignore"):  # nine standard deviations may lead beyond float64
        return inverted(likelihood, centre, spread, levels, cdf)


def inverted(
    likelihood: AbstractLikelihood,
    centre: np.ndarray,
    spread: np.ndarray,
    levels: np.ndarray,
    cdf: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """(N, L) quantiles of the distributions that a cdf (N, L) -> (N, L) is of, of this mean and variance."""
    low, high = _bracket(likelihood, centre, spread, levels, cdf)
    width = np.where(np.isfinite(spread) & (spread > 0.0), np.sqrt(spread), np.inf)[:, None]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if likelihood.discrete:
            if np.all(high - low <= 1):
                break
            middle = np.floor(middle)
        elif np.all(high - low <= PRECISE * np.minimum(np.maximum(np.abs(low), np.abs(high)), width)):
            break
        reached = cdf(middle) >= levels
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high if likelihood.discrete else (low + high) / 2


def _mixture_cdf(
    likelihood: AbstractLikelihood, y: np.ndarray, mean: np.ndarray, sd: np.ndarray, extra: np.ndarray
) -> np.ndarray:
    """(N, L) ∫ P(Y ≤ y | f) N(f; mean, sd²) df.

    P(Y ≤ y | f) falls from one to zero around the f whose mean is y, perhaps steeply: over δ standard deviations. The
    trapezoidal rule in t, z = z* + δ sinh(t), is dense there and still covers ±9. Where no row is steep, a few Gauss
    nodes do.
    """
    centre = _where_the_mean_is(likelihood, y, mean, sd, extra)
    f, step = mean + sd * centre, 1e-4
    rise = likelihood.conditional_mean(f + step * sd, extra) - likelihood.conditional_mean(f - step * sd, extra)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.sqrt(likelihood.conditional_variance(f, extra)) / (rise / (2 * step))
    known = np.isfinite(width)
    width = np.clip(np.where(known, width, 1.0), 1e-8, 1.0)
    if np.all(known & (width >= GENTLE)):
        nodes, shares = rule(FEW)
        return likelihood.cdf(y[..., None], (mean + sd * nodes)[:, None, :], extra[..., None]) @ shares
    low, high = np.arcsinh((-END - centre) / width), np.arcsinh((END - centre) / width)
    t = low[..., None] + (high - low)[..., None] * np.linspace(0, 1, NODES)
    z = centre[..., None] + width[..., None] * np.sinh(t)
    weights = np.exp(-0.5 * z * z) * np.cosh(t)
    inside = likelihood.cdf(y[..., None], mean[..., None] + sd[..., None] * z, extra[..., None])
    return np.sum(weights * inside, axis=-1) / np.sum(weights, axis=-1)


def _where_the_mean_is(
    likelihood: AbstractLikelihood, y: np.ndarray, mean: np.ndarray, sd: np.ndarray, extra: np.ndarray
) -> np.ndarray:
    """(N, L) z within ±8 with E[y | mean + sd z] = y, by bisection: the mean never falls in f."""
    low, high = np.full(y.shape, -END + 1), np.full(y.shape, END - 1)
    for _ in range(40):
        middle = (low + high) / 2
        above = likelihood.conditional_mean(mean + sd * middle, extra) > y
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def _bracket(
    likelihood: AbstractLikelihood,
    centre: np.ndarray,
    spread: np.ndarray,
    levels: np.ndarray,
    cdf: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """(N, L) low with cdf below the level, or the end of the support, and high with cdf at least the level."""
    centre, spread = centre[:, None], spread[:, None]
    step = np.where(np.isfinite(spread), np.sqrt(spread), 1.0) + likelihood.discrete + 1e-300
    bottom, top = likelihood.support
    bottom = bottom - likelihood.discrete  # the cdf is zero there
    low = np.maximum(_outward(likelihood, centre - step, np.floor), bottom) + np.zeros(len(levels))
    high = np.minimum(_outward(likelihood, centre + step, np.ceil), top) + np.zeros(len(levels))
    for _ in range(DOUBLINGS):
        step = 2 * step
        short = (low > bottom) & (cdf(low) >= levels), (high < top) & (cdf(high) < levels)
        if not (short[0].any() or short[1].any()):
            break
        low = np.where(short[0], np.maximum(_outward(likelihood, low - step, np.floor), bottom), low)
        high = np.where(short[1], np.minimum(_outward(likelihood, high + step, np.ceil), top), high)
    return low, high


def _outward(likelihood: AbstractLikelihood, y: np.ndarray, rounding: np.ufunc) -> np.ndarray:
    return rounding(y) if likelihood.discrete else y
