"""Likelihoods of real numbers: Gaussian, StudentT, Gamma, Beta."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import special

from vff.likelihoods.base import WIDEST_EXPONENT, AbstractLikelihood, Location, Parameter, Traits
from vff.likelihoods.checks import positive_or_none, require
from vff.likelihoods.starts import spread_of, weighted_mean, weighted_median, weighted_variance

DF_FLOOR = 2.0  # learnt degrees of freedom stay above it, so that a new y has a variance


@dataclass(frozen=True)
class Gaussian(AbstractLikelihood):
    """y = f + noise: log p = -log(2π variance)/2 - (y - f)²/(2 variance)."""

    variance: float | None = None

    def __post_init__(self) -> None:
        positive_or_none("variance", self.variance)

    @property
    def traits(self) -> Traits:
        return Traits(standardised=True, closed_form=True)

    @property
    def form(self) -> Self:
        return replace(self, variance=None)

    @property
    def values(self) -> dict[str, Any]:
        return {"variance": self.variance}

    def _entries(self) -> tuple[Parameter, ...]:
        return (Parameter("variance", self.variance, self.variance is None, power=2),)

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        return replace(self, variance=values[0])

    def _sized_for(self, length: int) -> Self:
        return self

    def sized(self, y: np.ndarray) -> Self:
        return self

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        require(np.isfinite(y), y, "A Gaussian likelihood", "finite numbers", "leave such rows out")

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        return (max(0.2 * weighted_variance(y, w), 1e-12),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(weighted_mean(y, w), spread_of(y, w))

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        return self.expected(y, f, 0.0, extra, psi)

    def expected(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import jnp

        return -0.5 * (np.log(2 * np.pi) + psi[0] + ((y - mean) ** 2 + variance) * jnp.exp(-psi[0]))

    def width(self, psi: np.ndarray) -> float:
        return np.inf

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.asarray(f, dtype=float)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return np.full(np.shape(f), np.exp(self.psi[0]))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return special.ndtr((y - f) * np.exp(-self.psi[0] / 2))

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(f, np.exp(self.psi[0] / 2))

    def closed_moments(
        self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return mean, variance + np.exp(self.psi[0])


@dataclass(frozen=True)
class StudentT(AbstractLikelihood):
    """y = f + scale * t, t of Student's distribution with df degrees of freedom: rows may be outliers.

    log p = log Γ((df+1)/2) - log Γ(df/2) - log(π df)/2 - log scale - (df+1)/2 log(1 + ((y-f)/scale)²/df).
    Learnt degrees of freedom stay above two; a held value may be any positive number.
    """

    scale: float | None = None
    df: float | None = None

    def __post_init__(self) -> None:
        positive_or_none("scale", self.scale)
        positive_or_none("df", self.df)

    @property
    def _floor(self) -> float:
        return DF_FLOOR if self.df is None or self.df > DF_FLOOR else 0.0

    @property
    def traits(self) -> Traits:
        return Traits(standardised=True, log_concave=False)

    @property
    def form(self) -> Self:
        return replace(self, scale=None, df=None if self._floor else 1.0)

    @property
    def values(self) -> dict[str, Any]:
        return {"scale": self.scale, "df": self.df}

    def _entries(self) -> tuple[Parameter, ...]:
        return (
            Parameter("scale", self.scale, self.scale is None, power=1),
            Parameter("df", self.df, self.df is None, lower=self._floor),
        )

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        return replace(self, scale=values[0], df=values[1])

    def _sized_for(self, length: int) -> Self:
        return self

    def sized(self, y: np.ndarray) -> Self:
        return self

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        require(np.isfinite(y), y, "A StudentT likelihood", "finite numbers", "leave such rows out")

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        return max(0.4 * spread_of(y, w), 1e-6), 6.0

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(weighted_median(y, w), spread_of(y, w))

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import jnp, log, log_gamma

        df = self._floor + jnp.exp(psi[1])
        z = (y - f) * jnp.exp(-psi[0])
        constant = log_gamma(log((df + 1) / 2)) - log_gamma(log(df / 2)) - 0.5 * log(np.pi * df) - psi[0]
        return constant - (df + 1) / 2 * log(1 + z * z / df)

    def expected(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        return NotImplemented

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

    def closed_moments(
        self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return mean, variance + self.conditional_variance(mean, extra)


@dataclass(frozen=True)
class Gamma(AbstractLikelihood):
    """Positive y with mean exp(f) and variance exp(2f)/shape.

    log p = shape log shape - shape f - log Γ(shape) + (shape - 1) log y - shape y exp(-f).
    """

    shape: float | None = None

    def __post_init__(self) -> None:
        positive_or_none("shape", self.shape)

    @property
    def traits(self) -> Traits:
        return Traits(closed_form=True, support=(0.0, np.inf), widest=WIDEST_EXPONENT)

    @property
    def form(self) -> Self:
        return replace(self, shape=None)

    @property
    def values(self) -> dict[str, Any]:
        return {"shape": self.shape}

    def _entries(self) -> tuple[Parameter, ...]:
        return (Parameter("shape", self.shape, self.shape is None),)

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        return replace(self, shape=values[0])

    def _sized_for(self, length: int) -> Self:
        return self

    def sized(self, y: np.ndarray) -> Self:
        return self

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        require(np.isfinite(y) & (y > 0), y, "A Gamma likelihood", "numbers above zero", "leave such rows out")

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        variance = max(weighted_variance(y, w), 1e-300)
        return (float(np.clip(2 * weighted_mean(y, w) ** 2 / variance, 0.1, 1e3)),)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        return Location(float(np.log(weighted_mean(y, w))), 5.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        return self.expected(y, f, 0.0, extra, psi)

    def expected(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import exp, jnp, log, log_gamma

        shape, log_y = jnp.exp(psi[0]), log(y)
        # y exp(-f) as one exponential: neither factor need be finite by itself
        return shape * (psi[0] - mean - exp(log_y - mean + variance / 2)) - log_gamma(psi[0]) + (shape - 1) * log_y

    def width(self, psi: np.ndarray) -> float:
        return np.inf

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

    def closed_moments(
        self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """E y = exp(m + v/2), E y² = (1 + 1/shape) exp(2m + 2v)."""
        centre = np.exp(mean + variance / 2)
        return centre, centre**2 * (np.expm1(variance) + np.exp(variance - self.psi[0]))


@dataclass(frozen=True)
class Beta(AbstractLikelihood):
    """y strictly between 0 and 1 with mean μ = 1/(1 + exp(-f)) and variance μ(1-μ)/(1 + precision).

    y ~ Beta(a, b), a = μ precision, b = (1-μ) precision.
    """

    precision: float | None = None

    def __post_init__(self) -> None:
        positive_or_none("precision", self.precision)

    @property
    def traits(self) -> Traits:
        return Traits(support=(0.0, 1.0))

    @property
    def form(self) -> Self:
        return replace(self, precision=None)

    @property
    def values(self) -> dict[str, Any]:
        return {"precision": self.precision}

    def _entries(self) -> tuple[Parameter, ...]:
        return (Parameter("precision", self.precision, self.precision is None),)

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        return replace(self, precision=values[0])

    def _sized_for(self, length: int) -> Self:
        return self

    def sized(self, y: np.ndarray) -> Self:
        return self

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        advice = "shrink y into the interval, for example (y (N-1) + 1/2)/N, or leave such rows out"
        require((y > 0) & (y < 1), y, "A Beta likelihood", "numbers strictly between 0 and 1", advice)

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

    def expected(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        return NotImplemented

    def width(self, psi: np.ndarray) -> float:
        return 1.0

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

    def closed_moments(
        self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return None
