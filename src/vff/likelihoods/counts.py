"""Counts with an exposure: Poisson, and NegativeBinomial where they scatter more."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from vff.likelihoods.base import WIDEST_EXPONENT, AbstractLikelihood, Location, Moments, likelihood_column, parameter
from vff.likelihoods.checks import require, require_extra, whole
from vff.likelihoods.starts import weighted_mean


class AbstractCounts(AbstractLikelihood):
    """Counts of mean exposure exp(f)."""

    scale_name = "log"
    discrete = True
    support = (0.0, np.inf)
    widest = WIDEST_EXPONENT

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        advice = "round y, or use Gamma for positive real numbers"
        require(whole(y) & (y >= 0), y, self.title, "whole numbers from zero", advice)
        require_extra(np.isfinite(extra) & (extra > 0), extra, self.title, self.column, "an exposure above zero")

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        """log of counts per exposure, with half a count more so that zero counts have one."""
        return Location(float(np.log((w @ y + 0.5) / (w @ extra))), 5.0)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * np.exp(f)


@dataclass(frozen=True)
class Poisson(AbstractCounts):
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

    affine = True

    exposure: Hashable | None = likelihood_column()

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import exp, log, log_factorial

        log_mean = mean + log(extra)
        return y * log_mean - exp(log_mean + variance / 2) - log_factorial(y)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return extra * np.exp(f)

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        count = np.floor(y)
        return np.where(count < 0, 0.0, special.gammaincc(np.maximum(count, 0.0) + 1, extra * np.exp(f)))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(np.minimum(extra * np.exp(f), 1e18)).astype(float)

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """E y = e exp(m + v/2) and var y = E y + (E y)² (exp(v) - 1)."""
        centre = extra * np.exp(mean + variance / 2)
        return centre, centre + centre**2 * np.expm1(variance)


@dataclass(frozen=True)
class NegativeBinomial(AbstractCounts):
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

    dispersion: float | None = parameter()
    exposure: Hashable | None = likelihood_column()

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        """Half of what a constant rate would leave: E[(y - μ)² - μ] / E[μ²]."""
        mu = extra * (w @ y + 0.5) / (w @ extra)
        excess = weighted_mean((y - mu) ** 2 - mu, w) / weighted_mean(mu**2, w)
        return (float(np.clip(excess / 2, 0.01, 10.0)),)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import exp, log, log_factorial, log_rising, softplus

        r, log_mu = exp(-psi[0]), f + log(extra)
        # y log(μ/r) cancels the y log r that log_rising leaves out
        return log_rising(r, y) - log_factorial(y) + y * log_mu - (y + r) * softplus(log_mu + psi[0])

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        mu = extra * np.exp(f)
        return mu + np.exp(self.psi[0]) * mu**2

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

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """As of Poisson, plus dispersion E μ²."""
        centre = extra * np.exp(mean + variance / 2)
        return centre, centre + centre**2 * (np.expm1(variance) + np.exp(variance + self.psi[0]))
