"""Noise with outliers."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import special

from vff.likelihoods.base import AbstractLikelihood, Moments, Parameter, parameter
from vff.likelihoods.starts import spread_of

DF_FLOOR = 2.0  # learnt degrees of freedom stay above it, so that a new y has a variance


@dataclass(frozen=True)
class StudentT(AbstractLikelihood):
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

    standardised = True
    scale_name = "y"
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
        from vff.likelihoods.numerics import jnp, log, log_gamma

        df = self._floor + jnp.exp(psi[1])
        z = (y - f) * jnp.exp(-psi[0])
        constant = log_gamma(log((df + 1) / 2)) - log_gamma(log(df / 2)) - 0.5 * log(np.pi * df) - psi[0]
        return constant - (df + 1) / 2 * log(1 + z * z / df)

    def width(self, psi: np.ndarray) -> float:
        return float(np.exp(psi[0]) * np.sqrt(self._floor + np.exp(psi[1])) / np.pi)

    def _scale_df(self) -> tuple[float, float]:
        scale, shifted = np.exp(self.psi)
        return float(scale), float(self._floor + shifted)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """f; the centre of symmetry even where df ≤ 1 leaves no mean."""
        return np.asarray(f, dtype=float)

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

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        return mean, variance + self.conditional_variance(mean, extra)
