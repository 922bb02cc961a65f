"""Stationary kernels on a circle by the variances of their harmonics, k(r) = sum_k s_k cos(pi k r) (theory (15.1)).

Unit variance, distances in half turns. ``power`` is also known for hyperparameters that JAX traces.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, cached_property
from math import comb
from typing import Any

import numpy as np
from scipy.special import beta

from vff.factors.interval.matern import covariance_coefficients
from vff.linalg import namespace

_LEAST = 1e-30  # far below what rounding leaves of a unit variance, and its inverse is still a number
_NODES = 32
_ENOUGH = 20.0  # exp(-40) at the end of the nodes


class CircularKernel(ABC):
    """One such kernel at a value of its lengthscale."""

    @abstractmethod
    def power(self, k: np.ndarray) -> Any:
        """Variances of the harmonics k; those of all harmonics sum to one."""

    @abstractmethod
    def log_power_slope(self, k: np.ndarray) -> np.ndarray:
        """d log power / d log lengthscale."""

    @abstractmethod
    def correlation(self, r: np.ndarray) -> np.ndarray:
        """k(r)."""

    @abstractmethod
    def slope_variance(self) -> float:
        """-k''(0), per half turn squared; infinite where there is no slope."""

    @property
    @abstractmethod
    def width(self) -> float:
        """The harmonic below which about half of the variance lies."""


@cache
def _eulerian(j: int) -> np.ndarray:
    """Coefficients of A_j(q) with sum_n n^j q^n = q A_j(q) / (1 - q)^(j+1), j >= 1; all of them are positive."""
    return np.array([sum((-1) ** i * comb(j + 1, i) * (m + 1 - i) ** j for i in range(m + 1)) for m in range(j)], float)


@dataclass(frozen=True)
class WrappedMatern(CircularKernel):
    """sum_n k(r + 2n) over sum_n k(2n), for the Matérn k(r) = exp(-s) sum_j c_j s^j of order p, s = rate |r|.

    The sums over turns are geometric series in q = exp(-2 rate), all of whose terms are positive.
    """

    p: int
    rate: Any

    @classmethod
    def of(cls, p: int, lengthscale: Any) -> "WrappedMatern":
        return cls(p, np.sqrt(2.0 * p + 1.0) / lengthscale)

    @cached_property
    def _turns(self) -> list[Any]:
        """sum over n >= 0 of (2 rate n)^j q^n, j = 0 ... p + 1."""
        xp = namespace(self.rate)
        q, rest = xp.exp(-2.0 * self.rate), -xp.expm1(-2.0 * self.rate)
        found = [1.0 / rest]
        for j in range(1, self.p + 2):
            found.append((2.0 * self.rate / rest) ** j * (q / rest) * sum(a * q**m for m, a in enumerate(_eulerian(j))))
        return found

    def _wrapped(self, coefficients: np.ndarray) -> Any:
        """sum over all n of g(2 rate |n|) for g(s) = exp(-s) sum_j coefficients_j s^j."""
        ahead = sum(c * turns for c, turns in zip(coefficients, self._turns, strict=False))
        return 2.0 * ahead - coefficients[0]

    @cached_property
    def total(self) -> Any:
        """sum_n k(2n), the variance before it is made one."""
        return self._wrapped(covariance_coefficients(self.p))

    def power(self, k: np.ndarray) -> Any:
        """By Poisson's formula S(pi k) / total, half of it at zero."""
        lorentz = self.rate**2 / (self.rate**2 + (np.pi * k) ** 2)
        density = 2.0 * np.pi / beta(0.5, self.p + 0.5) / self.rate * lorentz ** (self.p + 1)
        return np.where(k == 0, 0.5, 1.0) * density / self.total

    def log_power_slope(self, k: np.ndarray) -> np.ndarray:
        """S goes as rate^(2p+1) / (rate^2 + omega^2)^(p+1); the total by s k'(s) at every turn."""
        moved = self._wrapped(np.append(0.0, _derivative(covariance_coefficients(self.p)))) / self.total
        lorentz = self.rate**2 / (self.rate**2 + (np.pi * k) ** 2)
        return 2.0 * (self.p + 1) * lorentz - (2.0 * self.p + 1.0) + moved

    def correlation(self, r: np.ndarray) -> np.ndarray:
        """The turns ahead and the turns behind."""
        r = np.mod(r, 2.0)
        return (self._ahead(r) + self._ahead(2.0 - r)) / self.total

    def _ahead(self, r: np.ndarray) -> np.ndarray:
        """sum over n >= 0 of k(r + 2n); a power of s + 2 rate n by the binomial theorem."""
        s, c = self.rate * r, covariance_coefficients(self.p)
        powers = [sum(c[i] * comb(i, j) * self._turns[i - j] for i in range(j, self.p + 1)) for j in range(self.p + 1)]
        return np.exp(-s) * np.polynomial.polynomial.polyval(s, powers)

    def slope_variance(self) -> float:
        if self.p == 0:
            return np.inf
        if self.p > 1 and self.rate < 1.0:  # of a nearly constant function the closed form leaves nothing but rounding
            k = np.arange(1.0, 2000.0)
            return float(self.power(k) @ (np.pi * k) ** 2)
        bend = _derivative(_derivative(covariance_coefficients(self.p)))
        return -float(self.rate**2 * self._wrapped(bend) / self.total)

    @property
    def width(self) -> float:
        return float(self.rate / np.pi)


def _derivative(coefficients: np.ndarray) -> np.ndarray:
    """Of exp(-s) sum_j c_j s^j, in the same form."""
    c = coefficients
    return np.append(np.arange(1, c.size) * c[1:], 0.0) - c


def scaled_bessel(k: np.ndarray, z: Any) -> Any:
    """exp(-z) I_k(z) for whole k >= 0 and a number z, in NumPy or in JAX, to rounding however small it is.

    I_k(z) = (1/pi) int_0^pi exp(z cos t) cos(k t) dt, with the path moved to the saddle point t + i asinh(k / z): with
    c = (k^2 + z^2)^1/2 the integrand is exp(-c (1 - cos t)) cos(k (t - sin t)), which does not cancel, and the
    trapezoidal rule is exact up to exp(-40). SciPy's ``ive`` is not known to JAX.
    """
    xp = namespace(z)
    c = xp.sqrt(k**2 + z**2)
    end = np.pi * xp.minimum(1.0, xp.sqrt(_ENOUGH / c))
    share = np.arange(_NODES + 1) / _NODES
    weights = np.where((share == 0.0) | (share == 1.0), 0.5, 1.0) / _NODES
    t = end[:, None] * share
    inside = xp.exp(-2.0 * c[:, None] * xp.sin(0.5 * t) ** 2) * xp.cos(k[:, None] * (t - xp.sin(t)))
    # c - z as a fraction: the difference of two large numbers would lose digits
    return xp.exp(k**2 / (c + z) - k * xp.arcsinh(k / z)) * (end / np.pi) * (inside @ weights)


@dataclass(frozen=True)
class ExponentialSine(CircularKernel):
    """exp(-2 sin^2(pi r / 2) / lengthscale^2), MacKay's; its lengthscale is free of units (about radians)."""

    lengthscale: Any

    @property
    def z(self) -> Any:
        return self.lengthscale**-2

    def power(self, k: np.ndarray) -> Any:
        """exp(-z) I_k(z), twice beyond zero, z = 1 / lengthscale^2.

        High harmonics vary less than float64 can say the inverse of; ``_LEAST`` is added, and nothing sees it.
        """
        return np.where(k == 0, 1.0, 2.0) * scaled_bessel(k, self.z) + _LEAST

    def log_power_slope(self, k: np.ndarray) -> np.ndarray:
        """I_k' = (I_(k-1) + I_(k+1)) / 2, and z goes as lengthscale^-2."""
        below, here, above = (scaled_bessel(np.abs(k + step), self.z) for step in (-1, 0, 1))
        moved = np.where(k == 0, 1.0, 2.0) * (0.5 * (below + above) - here)
        return -2.0 * self.z * moved / self.power(k)

    def correlation(self, r: np.ndarray) -> np.ndarray:
        return np.exp(-2.0 * self.z * np.sin(0.5 * np.pi * r) ** 2)

    def slope_variance(self) -> float:
        return float(np.pi**2 * self.z)

    @property
    def width(self) -> float:
        return float(1.0 / self.lengthscale)
