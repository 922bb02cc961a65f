"""A new y at every row where f is Gaussian, or one of several draws, by NumPy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import special

from vff.likelihoods.base import AbstractLikelihood, Moments
from vff.likelihoods.expectations import log_predictive
from vff.likelihoods.rules import rule

NODES = 128
CHUNK = 2**12
HALVINGS = 50
DOUBLINGS = 60
END = 9.0  # standard deviations
GENTLE, FEW = 0.7, 32  # standard deviations over which the cdf falls, and nodes that are enough then
PRECISE = 1e-9  # of a quantile, and of the standard deviation
QUANTILE_DRAWS = 250

Cdf = Callable[[np.ndarray], np.ndarray]
"""P(Y ≤ y) of y (N, L)."""


class Predictive(Protocol):
    """What can be asked about a new y at N rows.

    Examples
    --------
    >>> new = vff.likelihoods.Gaussian(1.0).predictive(np.zeros(1), np.zeros(1), np.ones(1))
    >>> [end.round(2) for end in new.interval(0.95)]
    [array([-1.96]), array([1.96])]
    """

    def mean(self) -> np.ndarray:
        """E y, (N,)."""
        ...

    def moments(self) -> Moments:
        """Mean and variance of y, (N,) each."""
        ...

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of y, (N, L)."""
        ...

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """log p(y), (N,)."""
        ...

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the central interval that holds y with this probability, (N,) each."""
        low, high = self.quantiles(np.array([0.5 - level / 2, 0.5 + level / 2])).T
        return low, high


@dataclass(frozen=True)
class Marginal(Predictive):
    """A new y at N rows where f ~ N(mean, variance); ``likelihood.predictive`` makes it.

    Parameters
    ----------
    likelihood : likelihood whose parameters are all set
    f_mean, f_variance : array (N,)
        Of the latent function.
    extra : array (N,)
        What the likelihood takes beside y, exposure or trials; ones when nothing.

    Examples
    --------
    >>> new = vff.likelihoods.Marginal(vff.likelihoods.Gaussian(1.0), np.zeros(2), np.zeros(2), np.ones(2))
    >>> new.cdf(np.array([0.0, 1.96])).round(3)
    array([0.5  , 0.975])
    """

    likelihood: AbstractLikelihood
    f_mean: np.ndarray
    f_variance: np.ndarray
    extra: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "f_variance", np.maximum(self.f_variance, 0.0))

    def mean(self) -> np.ndarray:
        """E[E[y|f]], also of likelihoods whose variance is not known."""
        closed = self._closed_moments()
        return self._by_chunks(lambda own, _: own._at_nodes().mean()) if closed is None else closed[0]

    def moments(self) -> Moments:
        """E[E[y|f]], and E[var[y|f]] + var[E[y|f]]."""
        closed = self._closed_moments()
        if closed is not None:
            return closed
        both = self._by_chunks(lambda own, _: np.stack(own._at_nodes().moments(), axis=1))
        return both[:, 0].copy(), both[:, 1].copy()

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """(N, L); of a discrete y the smallest whole number whose cdf reaches the level."""
        levels = checked_levels(levels)
        if self.likelihood.normal:
            mean, variance = self.moments()
            return mean[:, None] + np.sqrt(variance)[:, None] * special.ndtri(levels)
        start = origin(self.likelihood, self.f_mean)
        shifted = replace(self, f_mean=self.f_mean - start)
        chunk = max(CHUNK // max(len(levels), 1), 1)
        return start[:, None] + shifted._by_chunks(lambda own, _: own._bisected(levels), chunk)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """(N,) P(Y ≤ y) of a new Y at every row."""
        start = origin(self.likelihood, self.f_mean)
        shifted, y = replace(self, f_mean=self.f_mean - start), y - start
        with np.errstate(over="ignore", invalid="ignore"):  # nine standard deviations may lead beyond float64
            return shifted._by_chunks(lambda own, rows: own._cdf(y[rows, None])[:, 0])

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return log_predictive(self.likelihood, self.likelihood.psi, y, self.extra, self.f_mean, self.f_variance)

    def _by_chunks(self, ask: Callable[["Marginal", slice], np.ndarray], chunk: int = CHUNK) -> np.ndarray:
        """What some rows answer, for all of them."""
        each = [slice(begin, begin + chunk) for begin in range(0, max(len(self.f_mean), 1), chunk)]
        parts = (self.f_mean, self.f_variance, self.extra)
        return np.concatenate([ask(Marginal(self.likelihood, *(part[rows] for part in parts)), rows) for rows in each])

    def _closed_moments(self) -> Moments | None:
        with np.errstate(over="ignore"):  # beyond float64 a moment is infinite
            return self.likelihood.closed_moments(self.f_mean, self.f_variance, self.extra)

    def _at_nodes(self) -> "Mixture":
        """f at nodes of quadrature, as draws of other weights."""
        nodes, weights = rule(NODES)
        f = self.f_mean[:, None] + np.sqrt(self.f_variance)[:, None] * nodes
        return Mixture([self.likelihood] * NODES, f, self.extra, weights)

    def _bisected(self, levels: np.ndarray) -> np.ndarray:
        moments = self.moments()
        with np.errstate(over="ignore", invalid="ignore"):  # nine standard deviations may lead beyond float64
            return inverted(self.likelihood, *moments, levels, self._cdf)

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        """(N, L) P(Y ≤ y) = ∫ P(Y ≤ y | f) N(f; mean, sd²) df.

        P(Y ≤ y | f) falls from one to zero around the f whose mean is y, perhaps steeply: over δ standard deviations.
        The trapezoidal rule in t, z = z* + δ sinh(t), is dense there and still covers ±9. Where no row is steep, a few
        Gauss nodes do.
        """
        likelihood, mean, extra = self.likelihood, self.f_mean[:, None], self.extra[:, None]
        sd, step, centre = np.sqrt(self.f_variance)[:, None], 1e-4, self._where_the_mean_is(y)
        f = mean + sd * centre
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

    def _where_the_mean_is(self, y: np.ndarray) -> np.ndarray:
        """(N, L) z within ±8 with E[y | mean + sd z] = y, by bisection: the mean never falls in f."""
        low, high = np.full(y.shape, -END + 1), np.full(y.shape, END - 1)
        mean, sd = self.f_mean[:, None], np.sqrt(self.f_variance)[:, None]
        for _ in range(40):
            middle = (low + high) / 2
            above = self.likelihood.conditional_mean(mean + sd * middle, self.extra[:, None]) > y
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return (low + high) / 2


class Mixture(Predictive):
    """Averages over S draws of f at N rows, (N, S), each with its own parameters of the likelihood."""

    def __init__(
        self,
        likelihoods: Sequence[AbstractLikelihood],
        f: np.ndarray,
        extra: np.ndarray,
        weights: np.ndarray | None = None,
    ):
        """``likelihoods`` by draw, all parameters set; ``extra`` by row; ``weights`` of draws where they differ."""
        self._likelihoods, self._f, self._extra = likelihoods, f, extra
        self._weights = np.full(f.shape[1], 1.0 / f.shape[1]) if weights is None else weights
        # draws with the same parameters are answered together: all of them where the likelihood has none
        groups: dict[AbstractLikelihood, list[int]] = {}
        for number, likelihood in enumerate(likelihoods):
            groups.setdefault(likelihood, []).append(number)
        self._groups = [(likelihood, np.array(some)) for likelihood, some in groups.items()]

    def _by_draw(self, ask: Callable[[AbstractLikelihood, np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of a likelihood and some draws (N, G), for all draws, (N, S)."""
        values = np.empty(self._f.shape)
        for likelihood, some in self._groups:
            values[:, some] = ask(likelihood, self._f[:, some])
        return values

    def _means(self) -> np.ndarray:
        return self._by_draw(lambda likelihood, f: likelihood.conditional_mean(f, self._extra[:, None]))

    def mean(self) -> np.ndarray:
        with np.errstate(over="ignore"):  # beyond float64 a mean is infinite
            return self._means() @ self._weights

    def _variances(self) -> np.ndarray:
        return self._by_draw(lambda likelihood, f: likelihood.conditional_variance(f, self._extra[:, None]))

    def moments(self) -> Moments:
        """Mean and variance of y: E[var[y|f]] + var[E[y|f]]."""
        with np.errstate(over="ignore", invalid="ignore"):
            means = self._means()
            mean = means @ self._weights
            return mean, (self._variances() + (means - mean[:, None]) ** 2) @ self._weights

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """One y for every draw, (N, S)."""
        return self._by_draw(lambda likelihood, f: np.asarray(likelihood.sample(f, self._extra[:, None], rng), float))

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Quantiles of y, (N, L), from the average of the distribution functions of some of the draws."""
        levels = checked_levels(levels)
        some = np.arange(0, self._f.shape[1], -(-self._f.shape[1] // QUANTILE_DRAWS))
        start = origin(self._likelihoods[0], self._f.mean(axis=1))[:, None]
        few = Mixture([self._likelihoods[number] for number in some], self._f[:, some] - start, self._extra)
        cdf = few._normal_cdf() if self._likelihoods[0].normal else few._cdf
        return start + inverted(self._likelihoods[0], *few.moments(), levels, cdf)

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        each = [
            likelihood.cdf(y[..., None], self._f[:, None, some], self._extra[:, None, None]).sum(axis=-1)
            for likelihood, some in self._groups
        ]
        return np.sum(each, axis=0) / self._f.shape[1]

    def _normal_cdf(self) -> Cdf:
        """All draws at once, though each has a variance of its own."""
        alike = self._extra.size == 0 or np.ptp(self._extra) == 0.0
        sd = np.sqrt(self._variances()[: 1 if alike else None])[:, None]
        return lambda y: special.ndtr((y[..., None] - self._f[:, None]) / sd).mean(axis=-1)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """log p(y), (N,): the logarithm of the average density over draws."""

        def ask(likelihood: AbstractLikelihood, f: np.ndarray) -> np.ndarray:
            N, G = f.shape
            rows = np.repeat(y, G), np.repeat(self._extra, G), f.reshape(-1), np.zeros(N * G)
            return likelihood.expected(likelihood.psi, *rows).value.reshape(N, G)

        values = self._by_draw(ask)
        return special.logsumexp(values, axis=1) - np.log(values.shape[1])


def origin(likelihood: AbstractLikelihood, mean: np.ndarray) -> np.ndarray:
    """(N,) where y is measured from: the mean of f, if only y - f counts; float64 then resolves the spread of y."""
    return mean if likelihood.standardised and not likelihood.discrete else np.zeros(len(mean))


def checked_levels(levels: np.ndarray) -> np.ndarray:
    """Levels of quantiles, or a ValueError."""
    levels = np.asarray(levels, dtype=float)
    if not np.all((levels > 0) & (levels < 1)):  # NaN is no level either
        raise ValueError(f"levels must lie strictly between 0 and 1; got {levels.tolist()}.")
    return levels


def inverted(
    likelihood: AbstractLikelihood, centre: np.ndarray, spread: np.ndarray, levels: np.ndarray, cdf: Cdf
) -> np.ndarray:
    """(N, L) quantiles of the distributions that a cdf is of, of this mean and variance."""
    low, high = _bracket(likelihood, centre[:, None], spread[:, None], levels, cdf)
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


def _bracket(
    likelihood: AbstractLikelihood, centre: np.ndarray, spread: np.ndarray, levels: np.ndarray, cdf: Cdf
) -> tuple[np.ndarray, np.ndarray]:
    """(N, L) low with cdf below the level, or the end of the support, and high with cdf at least the level."""
    down, up = (np.floor, np.ceil) if likelihood.discrete else (np.positive, np.positive)
    step = np.where(np.isfinite(spread), np.sqrt(spread), 1.0) + likelihood.discrete + 1e-300
    bottom, top = likelihood.support
    bottom = bottom - likelihood.discrete  # the cdf is zero there
    low = np.maximum(down(centre - step), bottom) + np.zeros(len(levels))
    high = np.minimum(up(centre + step), top) + np.zeros(len(levels))
    for _ in range(DOUBLINGS):
        step = 2 * step
        too_high, too_low = (low > bottom) & (cdf(low) >= levels), (high < top) & (cdf(high) < levels)
        if not (too_high.any() or too_low.any()):
            break
        low = np.where(too_high, np.maximum(down(low - step), bottom), low)
        high = np.where(too_low, np.minimum(up(high + step), top), high)
    return low, high
