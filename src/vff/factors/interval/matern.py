"""Half-integer Matérn covariances, nu = p + 1/2, as one formula.

f is stationary with (D + rate)^(p+1) f = white noise of spectral density ``diffusion``, rate = sqrt(2 nu)/lengthscale.
From this come the covariance, its spectral density S(w) = diffusion / (rate^2 + w^2)^(p+1), the stationary covariance
of the state (f, f', ..., f^(p)), and the regression of f(b + r) on the state at b. Unit variance throughout.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, factorial
from typing import Any

import numpy as np
from scipy.special import beta

from vff.factors.interval.autoregressive import Slope, Stationary

FAR = 800.0  # exp(-800) is zero in float64, and no power of it overflows


@cache
def covariance_coefficients(p: int) -> np.ndarray:
    """a_j with k(r) = exp(-s) sum_j a_j s^j, s = rate r, j = 0 ... p (Rasmussen & Williams, eq. 4.16)."""
    return np.array(
        [factorial(p) * factorial(2 * p - j) * 2**j / (factorial(2 * p) * factorial(j) * factorial(p - j))
         for j in range(p + 1)]
    )  # fmt: skip


@cache
def unit_state_covariance(p: int) -> np.ndarray:
    """Covariance of (f, f', ..., f^(p)) at one point for unit variance and rate, (p+1, p+1).

    cov(f^(i), f^(j)) = (-1)^((i-j)/2) mu_(i+j) for even i + j, with mu_2n the spectral moments; zero otherwise.
    """
    covariance = np.zeros((p + 1, p + 1))
    for i in range(p + 1):
        for j in range(i % 2, p + 1, 2):
            n = (i + j) // 2
            covariance[i, j] = (-1.0) ** ((i - j) // 2) * beta(n + 0.5, p + 0.5 - n) / beta(0.5, p + 0.5)
    return covariance


@cache
def unit_state_precision(p: int) -> np.ndarray:
    """Inverse of ``unit_state_covariance``, symmetric."""
    inverse = np.linalg.inv(unit_state_covariance(p))
    return 0.5 * (inverse + inverse.T)


@cache
def tail_coefficients(p: int) -> np.ndarray:
    """h[j] as polynomials in s = rate r: f(b + r) is predicted by exp(-s) sum_j h_j(s) f^(j)(b) / rate^j.

    First row of exp(F r) for the companion matrix F of (D + 1)^(p+1). Each h_j exp(-s) solves (D + 1)^(p+1) g = 0 with
    g^(i)(0) = [i == j]; writing g = exp(-s) h and h = exp(s) g gives h^(i)(0) = C(i, j) by Leibniz' rule.
    """
    h = np.zeros((p + 1, p + 1))
    for j in range(p + 1):
        for i in range(j, p + 1):
            h[j, i] = comb(i, j) / factorial(i)
    return h


@dataclass(frozen=True)
class HalfInteger(Stationary):
    """The Matérn of order p (nu = p + 1/2) with unit variance, at a given rate.

    Parameters
    ----------
    p : int
    rate : float
        sqrt(2 p + 1) / lengthscale, which ``from_lengthscale`` computes.

    Examples
    --------
    >>> vff.kernels.HalfInteger.from_lengthscale(1, 2.0).covariance(np.array([0.0, 2.0])).round(3)
    array([1.   , 0.483])
    """

    p: int
    rate: float

    @classmethod
    def from_lengthscale(cls, p: int, lengthscale: float) -> "HalfInteger":
        return cls(p, float(np.sqrt(2 * p + 1) / lengthscale))

    @property
    def values(self) -> dict[str, float]:
        return {"lengthscale": self.reach}

    @property
    def order(self) -> int:
        return self.p + 1

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        return tuple(comb(self.order, j) * self.rate ** float(self.order - j) for j in range(self.order + 1))

    def response(self, wave: np.ndarray) -> Any:
        return (self.rate + wave) ** self.order

    @cached_property
    def diffusion(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        """Spectral density of the driving noise: rate^(2p+1) 2 pi / B(1/2, p + 1/2), so that k(0) = 1."""
        return self.rate ** (2 * self.p + 1) * 2.0 * np.pi / beta(0.5, self.p + 0.5)

    def covariance(self, r: np.ndarray) -> np.ndarray:
        """k(r)."""
        s = np.minimum(self.rate * np.abs(r), FAR)
        return np.polynomial.polynomial.polyval(s, covariance_coefficients(self.p)) * np.exp(-s)

    def spectral_density(self, omega: np.ndarray) -> np.ndarray:
        """S(w) with k(r) = (1 / 2 pi) int S(w) exp(i w r) dw."""
        return self.diffusion / (self.rate**2 + np.asarray(omega) ** 2) ** (self.p + 1)

    def state_root(self) -> Any:
        """P = S P1 S with S = diag(rate^j)."""
        return np.linalg.cholesky(unit_state_precision(self.p)) * (self.rate ** -np.arange(self.p + 1.0))[:, None]

    def state_precision(self) -> np.ndarray:
        scale = self.rate ** -np.arange(self.p + 1.0)
        return unit_state_precision(self.p) * np.multiply.outer(scale, scale)

    @property
    def reach(self) -> float:
        """The lengthscale."""
        return float(np.sqrt(2 * self.p + 1) / self.rate)

    def slopes(self) -> dict[str, Slope]:
        """The rate goes as 1 / lengthscale, a_j as rate^(p+1-j), the precision of f^(i) and f^(j) as rate^-(i+j)."""
        orders = np.arange(self.order)
        coefficients = -np.arange(self.order, -1.0, -1.0) * np.array(self.coefficients)
        precision = np.add.outer(orders, orders) * self.state_precision()
        return {"lengthscale": Slope(coefficients, -(2.0 * self.p + 1.0), precision)}

    def curvatures(self) -> dict[tuple[str, str], Slope]:
        orders = np.arange(self.order)
        coefficients = np.arange(self.order, -1.0, -1.0) ** 2 * np.array(self.coefficients)
        precision = np.add.outer(orders, orders) ** 2 * self.state_precision()
        return {("lengthscale", "lengthscale"): Slope(coefficients, 0.0, precision)}

    def state_covariance(self) -> np.ndarray:
        """Covariance of (f, f', ..., f^(p)) at one point."""
        scale = self.rate ** np.arange(self.p + 1)
        return unit_state_covariance(self.p) * np.multiply.outer(scale, scale)

    def tail(self, r: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Regression weights of the given derivative of f(b + r), r >= 0, on the state at b, (N, p + 1)."""
        h = tail_coefficients(self.p)
        for _ in range(derivative):
            # d/dr exp(-s) h(s) = rate exp(-s) (h' - h)
            shifted = np.zeros_like(h)
            shifted[:, :-1] = h[:, 1:] * np.arange(1, self.p + 1)
            h = self.rate * (shifted - h)
        s = np.minimum(self.rate * r, FAR)
        powers = s[:, None] ** np.arange(self.p + 1)
        return np.exp(-s)[:, None] * (powers @ h.T) * self.rate ** -np.arange(self.p + 1.0)

    def tail_slopes(self, r: np.ndarray) -> dict[str, np.ndarray]:
        """tail_j = rate^-j g_j(rate r) gives d tail_j / d log rate = -j tail_j + r d tail_j / dr."""
        rate = -np.arange(self.p + 1.0) * self.tail(r) + r[:, None] * self.tail(r, derivative=1)
        return {"lengthscale": -rate}
