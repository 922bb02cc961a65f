"""Covariances of averages of a half-integer Matérn, at unit rate (theory (24.2), (24.3)).

k(r) = exp(-r) a(r) with a polynomial a. With S a = a + a' + a'' + ..., the first two integrals of k from zero are
S a(0) - exp(-r) S a(r), and S a(0) r - S S a(0) + exp(-r) S S a(r). Functions of a rate may be traced by JAX.
"""

from functools import cache
from math import factorial
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.polynomial.legendre import leggauss

from vff.factors.interval.matern import FAR, covariance_coefficients
from vff.linalg import namespace

_TERMS = 30  # of power series, up to one
_SMALL = 1e-3  # below which the second moment of an average is all that counts
_WIDE, _PANEL = 9.0, 48  # standard deviations of a Gaussian, and Gauss-Legendre nodes on either side of zero


@cache
def _integrated(p: int) -> tuple[np.ndarray, np.ndarray]:
    """S a and S S a."""

    def once(a: np.ndarray) -> np.ndarray:
        total, part = a.copy(), a
        while part.size > 1:
            part = polynomial.polyder(part)
            total[: part.size] += part
        return total

    first = once(covariance_coefficients(p))
    return first, once(first)


@cache
def _taylor(p: int) -> np.ndarray:
    """Derivatives of k at zero from the right, (_TERMS,)."""
    a = covariance_coefficients(p)
    return np.array(
        [
            sum((-1.0) ** (m - j) * factorial(m) / factorial(m - j) * a[j] for j in range(min(p, m) + 1))
            for m in range(_TERMS)
        ]
    )


def _value(xp: Any, coefficients: np.ndarray, s: Any) -> Any:
    total = xp.zeros_like(s)
    for c in coefficients[::-1]:
        total = total * s + c
    return total


def mean_square(p: int, width: Any) -> Any:
    """Variance of the average over an interval, (2 / h^2) int_0^h (h - r) k(r) dr, at widths in units of 1 / rate."""
    xp = namespace(width)
    m = np.arange(_TERMS)
    over = np.array([factorial(i + 2) for i in m], float)
    small = _value(xp, 2.0 * _taylor(p) / over, xp.minimum(width, 1.0))
    h = xp.maximum(width, 1.0)
    return xp.where(width < 1.0, small, 2.0 * _second(p, h) / h**2)


def mean_square_slope(p: int, width: np.ndarray) -> np.ndarray:
    """Its derivative in the logarithm of the lengthscale, -h d/dh."""
    m = np.arange(_TERMS)
    over = np.array([factorial(i + 2) for i in m], float)
    small = _value(np, -2.0 * m * _taylor(p) / over, np.minimum(width, 1.0))
    h = np.maximum(width, 1.0)
    return np.where(width < 1.0, small, 4.0 * _second(p, h) / h**2 - 2.0 * _first(p, h) / h)


def _first(p: int, r: Any) -> Any:
    """int_0^r k."""
    xp, (one, _) = namespace(r), _integrated(p)
    r = xp.minimum(r, FAR) if xp is np else r
    return one[0] - xp.exp(-r) * _value(xp, one, r)


def _second(p: int, r: Any) -> Any:
    """Its integral."""
    xp, (one, two) = namespace(r), _integrated(p)
    near = xp.minimum(r, FAR)
    return one[0] * r - two[0] + xp.exp(-near) * _value(xp, two, near)


def between_widths(p: int, s: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Covariance of averages over two intervals whose middles are s apart: the second difference of (24.3).

    That of the straight part of the second integral is known without rounding. Where an interval is so short that the
    difference would be, it stands for its middle and its second moment.
    """
    s, one, other = np.broadcast_arrays(np.abs(s), one, other)
    wide, narrow = np.maximum(one, other), np.minimum(one, other)
    found = _at_points(p, s) + (wide**2 + narrow**2) / 24.0 * _curvature(p, s)
    single = (narrow < _SMALL) & (wide >= _SMALL)
    h, r = wide[single], s[single]
    found[single] = (_odd(p, r + 0.5 * h) - _odd(p, r - 0.5 * h)) / h
    both = narrow >= _SMALL
    h, g, r = wide[both], narrow[both], s[both]
    (flat, _), far, near = _integrated(p), 0.5 * (h + g), 0.5 * (h - g)
    corner = 2.0 * flat[0] * (np.maximum(far - r, 0.0) - np.maximum(near - r, 0.0))
    found[both] = (corner + sum(sign * _even(p, r + at) for sign, at in _ends(far, near))) / (h * g)
    return found


def _ends(far: np.ndarray, near: np.ndarray) -> list[tuple[float, np.ndarray]]:
    return [(1.0, far), (-1.0, near), (-1.0, -near), (1.0, -far)]


def _at_points(p: int, s: np.ndarray) -> np.ndarray:
    s = np.minimum(np.abs(s), FAR)
    return np.exp(-s) * polynomial.polyval(s, covariance_coefficients(p))


def _curvature(p: int, s: np.ndarray) -> np.ndarray:
    """k'' away from zero."""
    a = covariance_coefficients(p)
    once = polynomial.polysub(polynomial.polyder(a) if a.size > 1 else [0.0], a)
    twice = polynomial.polysub(polynomial.polyder(once) if once.size > 1 else [0.0], once)
    s = np.minimum(s, FAR)
    return np.exp(-s) * polynomial.polyval(s, twice)


def _odd(p: int, r: np.ndarray) -> np.ndarray:
    return np.sign(r) * _first(p, np.abs(r))


def _even(p: int, r: np.ndarray) -> np.ndarray:
    """exp(-r) S S a(r), the second integral without its straight line."""
    r = np.minimum(np.abs(r), FAR)
    return np.exp(-r) * _value(np, _integrated(p)[1], r)


def between_uncertain(p: int, s: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """E k(r) of r ~ N(s, spread^2): covariance of f at two independent uncertain inputs, on both sides of the kink."""
    s, spread = np.broadcast_arrays(np.abs(s), spread)
    nodes, weights = leggauss(_PANEL)
    found = _at_points(p, s)
    some = spread > 0.0
    s, spread = s[some][:, None], spread[some][:, None]
    kink = np.clip(-s / spread, -_WIDE, _WIDE)
    total = np.zeros(len(s))
    for low, high in ((-_WIDE, kink), (kink, _WIDE)):
        half = 0.5 * (high - low)
        z = low + half * (nodes + 1.0)
        density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        total += np.sum(half * weights * density * _at_points(p, s + spread * z), axis=1)
    found[some] = total
    return found
