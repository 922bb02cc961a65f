"""The mean of y is f, or exposure exp(f): Gaussian, StudentT; Poisson, NegativeBinomial, Gamma."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import special

from vff.likelihoods.base import (
    WIDEST_EXPONENT,
    AbstractLikelihood,
    Location,
    Moments,
    Parameter,
    likelihood_column,
    parameter,
)
from vff.likelihoods.float64 import numerics
from vff.likelihoods.logistic import MOST_COUNTS, Change, Logistic, rising
from vff.likelihoods.rows import spread_of, weighted_mean, weighted_variance

_NO_NOISE = 1e-300  # a variance that adds nothing to any other
_LARGEST_ERROR = 1e140  # whose square stays within float64
DF_FLOOR = 2.0  # learnt degrees of freedom stay above it, so that a new y has a variance


class AbstractNoise(AbstractLikelihood):
    """y = f + noise of one scale."""

    standardised = True
    scale_name = "y"

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """f; the centre of symmetry even where there is no mean."""
        return np.asarray(f, dtype=float)

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        return mean, variance + self.conditional_variance(mean, extra)


@dataclass(frozen=True)
class Gaussian(AbstractNoise):
    """y = f + noise: log p = -log(2π variance)/2 - (y - f)²/(2 variance).

    Parameters
    ----------
    variance : float or None
        Held, or learnt if None; in squared units of y.

    Examples
    --------
    >>> vff.likelihoods.Gaussian(variance=0.25).predictive(np.zeros(1), np.full(1, 0.75), np.ones(1)).moments()
    (array([0.]), array([1.]))
    """

    normal = True
    misfit = "targets lie further out than Gaussian noise puts them; try likelihood='student-t'"

    variance: float | None = parameter(power=2)

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        return (max(0.2 * weighted_variance(y, w), 1e-12),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(weighted_mean(y, w), spread_of(y, w))

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        return -0.5 * (np.log(2 * np.pi) + psi[0] + ((y - mean) ** 2 + variance) * numerics.jnp.exp(-psi[0]))

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.full(np.shape(f), np.exp(self.psi[0]))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.ndtr((y - f) * np.exp(-self.psi[0] / 2))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(f, np.exp(self.psi[0] / 2))


@dataclass(frozen=True)
class ErrorBars(Gaussian):
    """y = f + noise of a known standard deviation in every row, and of a variance beside it that all rows share.

    log p = -log(2π (noise_std² + variance))/2 - (y - f)²/(2 (noise_std² + variance)).

    Parameters
    ----------
    variance : float or None
        Of what is beside the error bars, learnt if None; zero after a fit that held none.
    noise_std : str, int or None
        The column of standard deviations, in units of y; None where they were given to ``fit``.

    Examples
    --------
    >>> bars = vff.likelihoods.ErrorBars(variance=0.25, noise_std="err")
    >>> bars.predictive(np.zeros(1), np.full(1, 0.75), np.full(1, 2.0)).moments()
    (array([0.]), array([5.]))
    """

    known_errors = True
    misfit = "targets lie further out than their error bars and the noise put them; see whether these are too small"

    noise_std: Hashable | None = likelihood_column()

    def __post_init__(self) -> None:
        if self.variance != 0.0:
            super().__post_init__()

    @property
    def entries(self) -> tuple[Parameter, ...]:
        (own,) = super().entries
        return (own._replace(value=_NO_NOISE) if own.value == 0.0 else own,)

    def in_units(self, scale: float) -> Self:
        return self if self.variance == 0.0 else super().in_units(scale)

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        super().check(y, extra)
        self._check_extra((extra >= 0.0) & (extra < _LARGEST_ERROR), extra, "standard deviations, zero or more,")

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        total = numerics.jnp.exp(psi[0]) + extra**2
        return -0.5 * (np.log(2 * np.pi) + numerics.jnp.log(total) + ((y - mean) ** 2 + variance) / total)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.exp(self.psi[0]) + np.broadcast_to(extra, np.shape(f)) ** 2

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.ndtr((y - f) / np.sqrt(np.exp(self.psi[0]) + extra**2))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(f, np.sqrt(self.conditional_variance(f, extra)))


@dataclass(frozen=True)
class StudentT(AbstractNoise):
    """y = f + scale * t, t of Student's distribution with df degrees of freedom: rows may be outliers.

    log p = log Γ((df+1)/2) - log Γ(df/2) - log(π df)/2 - log scale - (df+1)/2 log(1 + ((y-f)/scale)²/df).

    Parameters
    ----------
    scale : float or None
        Held, or learnt if None; in units of y.
    df : float or None
        Held, any positive number, or learnt if None, above two.

    Examples
    --------
    >>> vff.likelihoods.StudentT(scale=1.0, df=4.0).conditional_variance(np.zeros(1), np.ones(1))
    array([2.])
    """

    log_concave = False

    scale: float | None = parameter(power=1)
    df: float | None = parameter()

    @property
    def _floor(self) -> float:
        return DF_FLOOR if self.df is None or self.df > DF_FLOOR else 0.0

    @property
    def form(self) -> Self:
        return replace(self, scale=None, df=None if self._floor else 1.0)

    @property
    def entries(self) -> tuple[Parameter, ...]:
        scale, df = super().entries
        return scale, df._replace(lower=self._floor)

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        return max(0.4 * spread_of(y, w), 1e-6), 6.0

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        exp, log, log_gamma = numerics.jnp.exp, numerics.log, numerics.log_gamma
        df = self._floor + exp(psi[1])
        z = (y - f) * exp(-psi[0])
        constant = log_gamma(log((df + 1) / 2)) - log_gamma(log(df / 2)) - 0.5 * log(np.pi * df) - psi[0]
        return constant - (df + 1) / 2 * log(1 + z * z / df)

    def width(self, psi: np.ndarray) -> float:
        return float(np.exp(psi[0]) * np.sqrt(self._floor + np.exp(psi[1])) / np.pi)

    def _scale_df(self) -> tuple[float, float]:
        scale, shifted = np.exp(self.psi)
        return float(scale), float(self._floor + shifted)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """scale² df / (df - 2), infinite for df ≤ 2."""
        scale, df = self._scale_df()
        return np.full(np.shape(f), scale**2 * df / (df - 2) if df > 2 else np.inf)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        scale, df = self._scale_df()
        return special.stdtr(df, (y - f) / scale)

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        scale, df = self._scale_df()
        return f + scale * rng.standard_t(df, size=np.shape(f))


class AbstractRate(AbstractLikelihood):
    """Mean μ = exposure exp(f) and variance b μ², of counts μ + b μ²."""

    scale_name = "log"
    support = (0.0, np.inf)
    expects = "whole numbers from zero", "round y, or use Gamma for positive real numbers"
    widest = WIDEST_EXPONENT

    @property
    def _spread(self) -> float:
        """b."""
        return 0.0

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        super().check(y, extra)
        self._check_extra(np.isfinite(extra) & (extra > 0), extra, "an exposure above zero")

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        """log of y per exposure, of counts with half a count more so that zero counts have one."""
        return Location(float(np.log((w @ y + 0.5 * self.discrete) / (w @ extra))), 5.0)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * np.exp(f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        b, mu = self._spread, extra * np.exp(f)
        square = b * mu**2 if b else np.zeros_like(mu)  # zero times infinity is no number
        return mu + square if self.discrete else square

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """E μ = e exp(m + v/2) and E μ² = (E μ)² exp(v)."""
        b, centre = self._spread, extra * np.exp(mean + variance / 2)
        square = centre**2 * (np.expm1(variance) + (b * np.exp(variance) if b else 0.0))
        return centre, square + (centre if self.discrete else 0.0)


@dataclass(frozen=True)
class Poisson(AbstractRate):
    """Counts with rate μ = exposure exp(f): log p = y log μ - μ - log y!.

    Parameters
    ----------
    exposure : str, int or None
        The column of X that holds the exposure; None is one everywhere.

    Examples
    --------
    >>> vff.likelihoods.Poisson(exposure="hours").conditional_mean(np.zeros(2), np.array([1.0, 24.0]))
    array([ 1., 24.])
    """

    discrete = True
    affine = True
    misfit = "counts vary more than a Poisson lets them; try likelihood='negative-binomial'"

    exposure: Hashable | None = likelihood_column()

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        log_mean = mean + numerics.log(extra)
        return y * log_mean - numerics.exp(log_mean + variance / 2) - numerics.log_factorial(y)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        count = np.floor(y)
        return np.where(count < 0, 0.0, special.gammaincc(np.maximum(count, 0.0) + 1, extra * np.exp(f)))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(np.minimum(extra * np.exp(f), 1e18)).astype(float)


@dataclass(frozen=True)
class NegativeBinomial(AbstractRate):
    """Counts with mean μ = exposure exp(f) and variance μ + dispersion μ².

    With r = 1/dispersion, log p = log Γ(y+r) - log Γ(r) - log y! + y log(μ/(r+μ)) + r log(r/(r+μ)).

    Parameters
    ----------
    dispersion : float or None
        Held, or learnt if None.
    exposure : str, int or None
        The column of X that holds the exposure; None is one everywhere.

    Examples
    --------
    >>> vff.likelihoods.NegativeBinomial(dispersion=0.5).conditional_variance(np.zeros(1), np.full(1, 2.0))
    array([4.])
    """

    discrete = True

    dispersion: float | None = parameter()
    exposure: Hashable | None = likelihood_column()

    @property
    def _spread(self) -> float:
        return float(np.exp(self.psi[0]))

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        """Half of what a constant rate would leave: E[(y - μ)² - μ] / E[μ²]."""
        mu = extra * (w @ y + 0.5) / (w @ extra)
        excess = weighted_mean((y - mu) ** 2 - mu, w) / weighted_mean(mu**2, w)
        return (float(np.clip(excess / 2, 0.01, 10.0)),)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        r, log_mu = numerics.exp(-psi[0]), f + numerics.log(extra)
        # y log(μ/r) cancels the y log r that log_rising leaves out
        known = numerics.log_rising(r, y) - numerics.log_factorial(y)
        return known + y * log_mu - (y + r) * numerics.softplus(log_mu + psi[0])

    def logistic(self, psi: np.ndarray, y: np.ndarray, extra: np.ndarray) -> Logistic | None:
        """The same, with what only counts and dispersion enter from a table by count."""
        most = float(y.max(initial=0.0))
        if not most <= MOST_COUNTS:
            return None
        counts, r, log_extra = y.astype(np.int64), float(np.exp(-psi[0])), np.log(extra)
        known, slope, curvature = rising(r, int(most))
        known = known - special.gammaln(np.arange(int(most) + 1) + 1.0)
        first, second = Change(-r, slope[counts], 1.0), Change(r, curvature[counts], 0.0)
        return Logistic(y, y + r, known[counts] + y * log_extra, shift=log_extra + psi[0], first=first, second=second)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """I_q(r, y + 1) with q = r/(r + μ), taken from the side where it is small."""
        count, r = np.floor(y), np.exp(-self.psi[0])
        log_ratio = np.asarray(f) + np.log(extra) + self.psi[0]  # log(μ/r)
        inside = 1 - special.betainc(np.maximum(count, 0.0) + 1, r, special.expit(log_ratio))
        return np.where(count < 0, 0.0, inside)

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        r = np.exp(-self.psi[0])
        rate = extra * np.exp(f) * rng.gamma(r, 1 / r, size=np.shape(f))
        return rng.poisson(np.minimum(rate, 1e18)).astype(float)


@dataclass(frozen=True)
class Gamma(AbstractRate):
    """Positive y with mean exp(f) and variance exp(2f)/shape.

    log p = shape log shape - shape f - log Γ(shape) + (shape - 1) log y - shape y exp(-f).

    Parameters
    ----------
    shape : float or None
        Held, or learnt if None.

    Examples
    --------
    >>> vff.likelihoods.Gamma(shape=4.0).conditional_variance(np.zeros(1), np.ones(1))
    array([0.25])
    """

    expects = "numbers above zero", "leave such rows out"
    misfit = "targets vary more than a Gamma lets them; try likelihood='student-t' for their logarithms"

    shape: float | None = parameter()

    @property
    def _spread(self) -> float:
        return float(np.exp(-self.psi[0]))

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        variance = max(weighted_variance(y, w), 1e-300)
        return (float(np.clip(2 * weighted_mean(y, w) ** 2 / variance, 0.1, 1e3)),)

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        shape, log_y = numerics.jnp.exp(psi[0]), numerics.log(y)
        # y exp(-f) as one exponential: neither factor need be finite by itself
        ratio = numerics.exp(log_y - mean + variance / 2)
        return shape * (psi[0] - mean - ratio) - numerics.log_gamma(psi[0]) + (shape - 1) * log_y

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        shape = np.exp(self.psi[0])
        return special.gammainc(shape, shape * np.maximum(y, 0.0) * np.exp(-np.asarray(f)))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        shape = np.exp(self.psi[0])
        return np.exp(f) * rng.gamma(shape, 1 / shape, size=np.shape(f))
