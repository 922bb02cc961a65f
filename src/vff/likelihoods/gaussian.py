"""Normal noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from vff.likelihoods.base import AbstractLikelihood, Location, Moments, parameter
from vff.likelihoods.starts import spread_of, weighted_mean, weighted_variance


@dataclass(frozen=True)
class Gaussian(AbstractLikelihood):
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
    standardised = True
    scale_name = "y"

    variance: float | None = parameter(power=2)

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        return (max(0.2 * weighted_variance(y, w), 1e-12),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(weighted_mean(y, w), spread_of(y, w))

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import jnp

        return -0.5 * (np.log(2 * np.pi) + psi[0] + ((y - mean) ** 2 + variance) * jnp.exp(-psi[0]))

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.asarray(f, dtype=float)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.full(np.shape(f), np.exp(self.psi[0]))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.ndtr((y - f) * np.exp(-self.psi[0] / 2))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(f, np.exp(self.psi[0] / 2))

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        return mean, variance + np.exp(self.psi[0])

    def closed_quantiles(
        self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray, levels: np.ndarray
    ) -> np.ndarray | None:
        return mean[:, None] + np.sqrt(variance + np.exp(self.psi[0]))[:, None] * special.ndtri(levels)

    @classmethod
    def mean_cdf(
        cls, groups: Sequence[tuple[Any, np.ndarray]], y: np.ndarray, f: np.ndarray, extra: np.ndarray
    ) -> np.ndarray:
        """All draws at once, though each has a variance of its own."""
        scales = np.empty(f.shape[1])
        for likelihood, some in groups:
            scales[some] = (likelihood.variance or np.nan) ** 0.5
        return special.ndtr((y[..., None] - f[:, None, :]) / scales).mean(axis=-1)
