"""Positive numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from vff.likelihoods.base import WIDEST_EXPONENT, AbstractLikelihood, Location, Moments, parameter
from vff.likelihoods.checks import require
from vff.likelihoods.starts import weighted_mean, weighted_variance


@dataclass(frozen=True)
class Gamma(AbstractLikelihood):
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

    scale_name = "log"
    support = (0.0, np.inf)
    widest = WIDEST_EXPONENT

    shape: float | None = parameter()

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        require(np.isfinite(y) & (y > 0), y, self.title, "numbers above zero", "leave such rows out")

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        variance = max(weighted_variance(y, w), 1e-300)
        return (float(np.clip(2 * weighted_mean(y, w) ** 2 / variance, 0.1, 1e3)),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(float(np.log(weighted_mean(y, w))), 5.0)

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import exp, jnp, log, log_gamma

        shape, log_y = jnp.exp(psi[0]), log(y)
        # y exp(-f) as one exponential: neither factor need be finite by itself
        return shape * (psi[0] - mean - exp(log_y - mean + variance / 2)) - log_gamma(psi[0]) + (shape - 1) * log_y

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.exp(f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.exp(2 * np.asarray(f) - self.psi[0])

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        shape = np.exp(self.psi[0])
        return special.gammainc(shape, shape * np.maximum(y, 0.0) * np.exp(-np.asarray(f)))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        shape = np.exp(self.psi[0])
        return np.exp(f) * rng.gamma(shape, 1 / shape, size=np.shape(f))

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """E y = exp(m + v/2), E y² = (1 + 1/shape) exp(2m + 2v)."""
        centre = np.exp(mean + variance / 2)
        return centre, centre**2 * (np.expm1(variance) + np.exp(variance - self.psi[0]))
