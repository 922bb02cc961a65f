"""Functions of one number in JAX, finite with their first two derivatives wherever float64 is.

XLA's own log, log1p and log_ndtr take one number at a time on a CPU (8 to 80 ns each); those here are sums and
products throughout, which it vectorises (2 to 8 ns), and their derivatives share the work of the values. This file
imports JAX, so the other files of the room import it inside functions only.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

LARGEST = 690.0  # exp of it is finite, with room for a factor of 1e9
SHIFT = 8  # Stirling's series is used at least this far from the poles of Γ
LARGE = 20.0  # from here on differences of log Γ are taken term by term
HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)
END = 1e4  # stands for an infinite cut point; finite, so that derivatives are zero rather than NaN

LOG_2_HIGH, LOG_2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # their sum is log 2 in 80 bits
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD


def exp(x: Any) -> Any:
    """exp(x) up to 690, its Taylor polynomial of degree two beyond: finite, increasing, twice differentiable."""
    over = jnp.maximum(x - LARGEST, 0.0)
    return jnp.exp(jnp.minimum(x, LARGEST)) * (1 + over * (1 + over / 2))


def _atanh(z: Any, z2: Any, terms: int) -> Any:
    """2 atanh(z) = 2 Σ z^(2k+1)/(2k+1)."""
    series = 1 / (2 * terms + 1)
    for k in range(terms - 1, -1, -1):
        series = series * z2 + 1 / (2 * k + 1)
    return 2 * z * series


@jax.custom_jvp
@jax.jit
def log(x: Any) -> Any:
    """log(x) of normal positive numbers: x = 2^k m with m in [√½, √2), and log m = 2 atanh((m-1)/(m+1))."""
    shifted = jax.lax.bitcast_convert_type(x, jnp.int64) - SQRT_HALF_BITS
    power = shifted >> 52
    m = jax.lax.bitcast_convert_type((shifted & ((1 << 52) - 1)) + SQRT_HALF_BITS, jnp.float64)
    z = (m - 1) / (m + 1)
    k = power.astype(jnp.int32).astype(jnp.float64)
    return k * LOG_2_HIGH + (_atanh(z, z * z, 10) + k * LOG_2_LOW)


log.defjvps(lambda dx, _, x: dx / x)


@jax.custom_jvp
@jax.jit
def softplus(x: Any) -> Any:
    """log(1 + exp(x)) = max(x, 0) + 2 atanh(e/(2 + e)), e = exp(-|x|)."""
    e = jnp.exp(-jnp.abs(x))
    z = e / (2 + e)
    return jnp.maximum(x, 0.0) + _atanh(z, z * z, 15)


@jax.custom_jvp
@jax.jit
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)). The derivative of JAX's own has no digits left where it is one but for rounding."""
    e = jnp.exp(-jnp.abs(x))
    return jnp.where(x >= 0, 1.0, e) / (1 + e)


@jax.jit
def _bell(x: Any) -> Any:
    """The derivative of the sigmoid, from the same exponential."""
    e = jnp.exp(-jnp.abs(x))
    return e / ((1 + e) * (1 + e))


softplus.defjvps(lambda dx, _, x: dx * sigmoid(x))
sigmoid.defjvps(lambda dx, _, x: dx * _bell(x))


def _interpolated_erfcx(degree: int = 30, middle: float = 3.75) -> tuple[np.ndarray, float]:
    """Chebyshev coefficients of (1 + 2u) erfcx(u), u ≥ 0, in t = (u - middle)/(u + middle)."""
    t = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    u = middle * (1 + t) / (1 - t)
    return np.polynomial.chebyshev.chebfit(t, (1 + 2 * u) * special.erfcx(u), degree), middle


ERFCX, MIDDLE = _interpolated_erfcx()


def _half_erfcx(u: Any) -> Any:
    """exp(u²) erfc(u) / 2 for u ≥ 0, by Clenshaw's recurrence."""
    t = (u - MIDDLE) / (u + MIDDLE)
    last, before = jnp.zeros_like(t), jnp.zeros_like(t)
    for coefficient in ERFCX[:0:-1].tolist():
        last, before = coefficient + 2 * t * last - before, last
    return (ERFCX[0] + t * last - before) / (2 + 4 * u)


def _tail(x: Any) -> tuple[Any, Any]:
    """exp(-x²/2), and q with Φ(-|x|) = exp(-x²/2) q."""
    return jnp.exp(-0.5 * x * x), _half_erfcx(jnp.abs(x) * np.sqrt(0.5))


@jax.custom_jvp
@jax.jit
def log_ndtr(x: Any) -> Any:
    """log Φ(x)."""
    density, q = _tail(x)
    p = density * q
    near_one = -p * (1 + p * (1 / 2 + p * (1 / 3 + p * (1 / 4 + p / 5))))
    direct = jnp.where(x < 0, -0.5 * x * x, 0.0) + log(jnp.where(x < 0, q, 1 - p))
    return jnp.where((x > 0) & (p < 1e-3), near_one, direct)


@jax.custom_jvp
@jax.jit
def ndtr(x: Any) -> Any:
    """Φ(x)."""
    density, q = _tail(x)
    return jnp.where(x < 0, density * q, 1 - density * q)


@jax.custom_jvp
@jax.jit
def mills(x: Any) -> Any:
    """φ(x)/Φ(x), the derivative of log Φ."""
    density, q = _tail(x)
    return jnp.where(x < 0, 1.0, density) / (jnp.where(x < 0, q, 1 - density * q) * np.sqrt(2 * np.pi))


ndtr.defjvps(lambda dx, _, x: dx * jnp.exp(-0.5 * x * x) / np.sqrt(2 * np.pi))
log_ndtr.defjvps(lambda dx, _, x: dx * mills(x))
mills.defjvps(lambda dx, g, x: -dx * g * (x + g))


def log_link(link: str, x: Any) -> Any:
    """log of the logistic function, or of the normal distribution function."""
    return -softplus(-x) if link == "logit" else log_ndtr(x)


def log_difference(link: str, low: Any, high: Any) -> Any:
    """log(F(high) - F(low)) for low < high.

    Logit: σ(b) - σ(a) = σ(b) σ(-a) (1 - exp(a - b)). Probit: in the tail where Φ is small,
    log Φ(b) + log(1 - Φ(a)/Φ(b)).
    """
    if link == "logit":
        return -softplus(-high) - softplus(low) + log(-jnp.expm1(low - high))
    flip = low + high > 0
    a, b = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
    log_b = log_ndtr(b)
    return log_b + log(-jnp.expm1(log_ndtr(a) - log_b))


@jax.jit
def _stirling(x: Any) -> Any:
    """log Γ(x) - (x - 1/2) log x + x - log(2π)/2, exact in float64 from x = 9 on."""
    z = 1 / (x * x)
    series = 1 / 156
    for term in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * z + term
    return series / x


@jax.custom_jvp
@jax.jit
def log_factorial(x: Any) -> Any:
    """log Γ(x + 1) for x ≥ 0, by Stirling's series at x + 9: Γ(x + 9) = Γ(x + 1) (x + 1) … (x + 8)."""
    product = x + 1
    for k in range(2, SHIFT + 1):
        product = product * (x + k)
    large = x + (SHIFT + 1)
    return (large - 0.5) * log(large) - large + HALF_LOG_2_PI + _stirling(large) - log(product)


@jax.custom_jvp
@jax.jit
def _slope_of_log_factorial(x: Any) -> Any:
    """ψ(x + 1) = ψ(x + 9) - Σ 1/(x + k), and ψ(z) = log z - 1/(2z) - 1/(12 z²) + …"""
    large = x + (SHIFT + 1)
    z = 1 / (large * large)
    series = 1 / 12
    for term in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = series * z + term
    return log(large) - 0.5 / large - z * series - sum(1 / (x + k) for k in range(1, SHIFT + 1))


@jax.jit
def _curvature_of_log_factorial(x: Any) -> Any:
    """ψ'(x + 1) = ψ'(x + 9) + Σ 1/(x + k)², and ψ'(z) = 1/z + 1/(2z²) + 1/(6z³) - …"""
    large = x + (SHIFT + 1)
    z = 1 / (large * large)
    series = 7 / 6
    for term in (-691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = series * z + term
    return 1 / large + z / 2 + z / large * series + sum(1 / (x + k) ** 2 for k in range(1, SHIFT + 1))


log_factorial.defjvps(lambda dx, _, x: dx * _slope_of_log_factorial(x))
_slope_of_log_factorial.defjvps(lambda dx, _, x: dx * _curvature_of_log_factorial(x))


def log_gamma(log_x: Any) -> Any:
    """log Γ(x) from log x, also where x underflows: log Γ(1 + x) - log x."""
    return log_factorial(jnp.exp(log_x)) - log_x


def log_rising(r: Any, y: Any) -> Any:
    """log Γ(r + y) - log Γ(r) - y log r, without cancellation for large r."""
    small, large = jnp.minimum(r, LARGE), jnp.maximum(r, LARGE)
    direct = log_factorial(small + y) - log_factorial(small) - log((small + y) / small) - y * log(small)
    series = (large + y - 0.5) * jnp.log1p(y / large) - y + _stirling(large + y) - _stirling(large)
    return jnp.where(r < LARGE, direct, series)


def with_derivatives(function: Any, x: Any) -> tuple[Any, Any, Any]:
    """Value, first and second derivative of a function of one number, in one forward pass."""

    def value_and_slope(x: Any) -> tuple[Any, Any]:
        return jax.jvp(function, (x,), (jnp.ones_like(x),))

    (value, slope), (_, curvature) = jax.jvp(value_and_slope, (x,), (jnp.ones_like(x),))
    return value, slope, curvature
