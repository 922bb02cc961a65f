"""The Matérn of the sphere: variances of degrees, and the correlation at an angle (theory (20.2), (20.3)).

Borovitskiy, Terenin, Mostowsky and Deisenroth (2020): (2 nu / l^2 - Laplacian)^(nu/2 + d/4) f = white noise, with d = 2
and the eigenvalues k (k + 1) of the sphere's Laplacian. The sum over degrees goes on to infinity: sixty-four of them
are added one by one, and of the others, as a function of u = k + 1/2 that is smooth beyond, the sum is its integral
with the corrections of Euler and Maclaurin at midpoints, to rounding.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.interpolate import CubicSpline

from vff.linalg import namespace

_ONE_BY_ONE = 64
_TAIL = 1e-11  # of the variance, left out of a correlation
_MOST_DEGREES = 200_000


def total(s: float, a: Any) -> Any:
    """sum over k of (2k + 1) (a + k (k + 1))^-s; ``a`` may be traced by JAX."""
    xp, N = namespace(a), _ONE_BY_ONE
    k = np.arange(N)
    first = xp.sum((2.0 * k + 1.0) * (a + k * (k + 1.0)) ** -s)
    # g(u) = 2u v^-s with v = u^2 + b, b = a - 1/4, at u = N: the integral, g' / 24, -7 g''' / 5760
    v = N * N + a - 0.25
    integral = v ** (1.0 - s) / (s - 1.0)
    one = 2.0 * v**-s - 4.0 * s * N**2 * v ** (-s - 1.0)
    three = -12.0 * s * v ** (-s - 1.0) + 48.0 * s * (s + 1.0) * N**2 * v ** (-s - 2.0)
    three = three - 16.0 * s * (s + 1.0) * (s + 2.0) * N**4 * v ** (-s - 3.0)
    return first + integral + one / 24.0 - 7.0 * three / 5760.0


@dataclass(frozen=True)
class SphereMatern:
    """Of smoothness nu = order + 1/2, with a lengthscale in radians, which JAX may trace."""

    order: int
    lengthscale: Any

    @property
    def nu(self) -> float:
        return self.order + 0.5

    @cached_property
    def a(self) -> Any:
        """2 nu / lengthscale^2."""
        return 2.0 * self.nu / self.lengthscale**2

    @cached_property
    def _total(self) -> Any:
        return total(self.nu + 1.0, self.a)

    def power(self, k: np.ndarray) -> Any:
        """The variance of every harmonic of degree k; times 2k + 1 they sum to one."""
        return (self.a + k * (k + 1.0)) ** -(self.nu + 1.0) / self._total

    def log_power_slope(self, k: np.ndarray) -> np.ndarray:
        """d log power / d log lengthscale: a goes as its inverse square."""
        whole = total(self.nu + 2.0, self.a) / self._total
        return 2.0 * self.a * (self.nu + 1.0) * (1.0 / (self.a + k * (k + 1.0)) - whole)

    def correlation(self, angle: np.ndarray) -> np.ndarray:
        """At angles in radians."""
        return _curve(self.order, float(self.lengthscale))(angle)


@lru_cache(maxsize=16)
def _curve(order: int, lengthscale: float) -> CubicSpline:
    """The correlation as a function of the angle, from its Legendre series.

    On [0, pi] it is smooth, though it has a kink in a high derivative at zero, so that few Chebyshev nodes, by the
    lengthscale, hold it; at these the series is summed, as far as it matters.
    """
    kernel = SphereMatern(order, lengthscale)
    n = int(64 + 48 / min(lengthscale, 1.0))
    nodes = chebyshev.chebpts1(n)
    degrees = np.sqrt(kernel.a) * _TAIL ** (-0.5 / kernel.nu)
    values = _series(kernel, np.cos(0.5 * np.pi * (nodes + 1.0)), int(np.clip(degrees, 128, _MOST_DEGREES)))
    fine = np.linspace(-1.0, 1.0, 64 * n)
    weights = 2.0 / n * chebyshev.chebvander(nodes, n - 1).T @ values
    weights[0] *= 0.5
    return CubicSpline(0.5 * np.pi * (fine + 1.0), chebyshev.chebval(fine, weights))


def _series(kernel: SphereMatern, cosine: np.ndarray, K: int) -> np.ndarray:
    """sum over k <= K of (2k + 1) s_k P_k(cosine)."""
    k = np.arange(K + 1.0)
    weights = (2.0 * k + 1.0) * kernel.power(k)
    before, now = np.ones_like(cosine), cosine.copy()
    found = weights[0] * before + weights[1] * now
    for n in range(2, K + 1):
        before, now = now, ((2 * n - 1) * cosine * now - (n - 1) * before) / n
        found += weights[n] * now
    return found
