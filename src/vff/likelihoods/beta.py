"""Shares strictly between zero and one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from vff.likelihoods.base import AbstractLikelihood, Location, parameter
from vff.likelihoods.checks import require
from vff.likelihoods.starts import weighted_mean, weighted_variance


@dataclass(frozen=True)
class Beta(AbstractLikelihood):
    """y strictly between 0 and 1 with mean μ = 1/(1 + exp(-f)) and variance μ(1-μ)/(1 + precision).

    y ~ Beta(a, b), a = μ precision, b = (1-μ) precision.

    Parameters
    ----------
    precision : float or None
        Held, or learnt if None.

    Examples
    --------
    >>> vff.likelihoods.Beta(precision=4.0).conditional_variance(np.zeros(1), np.ones(1))
    array([0.05])
    """

    scale_name = "logit"
    support = (0.0, 1.0)
    log_concave = False

    precision: float | None = parameter()

    @property
    def outliers(self) -> bool:
        return False

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        advice = "shrink y into the interval, for example (y (N-1) + 1/2)/N, or leave such rows out"
        require((y > 0) & (y < 1), y, self.title, "numbers strictly between 0 and 1", advice)

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        mean, variance = weighted_mean(y, w), max(weighted_variance(y, w), 1e-12)
        return (float(np.clip(2 * (mean * (1 - mean) / variance - 1), 0.5, 1e4)),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(float(special.logit(weighted_mean(y, w))), 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import jnp, log, log_gamma, softplus

        log_a, log_b = psi[0] - softplus(-f), psi[0] - softplus(f)
        normaliser = log_gamma(psi[0]) - log_gamma(log_a) - log_gamma(log_b)
        return normaliser + (jnp.exp(log_a) - 1) * log(y) + (jnp.exp(log_b) - 1) * log(1 - y)

    def _shapes(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        precision, tiny = np.exp(self.psi[0]), 1e-300
        return np.maximum(precision * special.expit(f), tiny), np.maximum(precision * special.expit(-f), tiny)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.expit(f)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        return special.expit(f) * special.expit(-f) / (1 + np.exp(self.psi[0]))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        a, b = self._shapes(np.asarray(f, dtype=float))
        return special.betainc(a, b, np.clip(y, 0.0, 1.0))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.beta(*self._shapes(np.asarray(f, dtype=float)))
