"""Factors of every registered kind at some values, and inner products by quadrature to measure their laws by."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.polynomial.legendre import leggauss

from vff.basis import Basis, Codes, ColumnBasis, Domain, Interval, LevelBasis
from vff.factors import KINDS, Leaf, Prior, Values
from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.interval.matern import covariance_coefficients
from vff.kernels import Categorical, HalfInteger, Matern12, Matern32, Matern52, Matern72, Matern92, Periodic


@dataclass(frozen=True)
class Case:
    """One factor of a kind."""

    name: str
    leaf: Leaf
    """With all its values."""
    domain: Domain
    basis: Basis
    inside: np.ndarray
    """Inputs in the domain, (N,): numbers, or codes."""
    outside: np.ndarray
    """Inputs beyond it; empty where there is no beyond."""
    gram: Callable[[Prior, Values], np.ndarray]
    """<phi_i, phi_j> of the functions of a prior under the kernel with other values, by quadrature or a sum."""
    with_kernel: Callable[[Prior, float], np.ndarray]
    """<phi_i, k(x, .)> of the functions of a prior, by quadrature or a sum."""
    column: Callable[[np.random.Generator, int], np.ndarray]
    """A column of a table, as users have it."""
    smooth: bool = True
    """The function has a derivative."""
    levels: tuple[Any, ...] = ()
    """Of codes."""

    @property
    def values(self) -> dict[str, float]:
        """Hyperparameters in units of the domain."""
        units = {own.name: self.domain.unit(own.unit) for own in self.leaf.factor.parameters}
        return {name: float(value or np.nan) / units[name] for name, value in self.leaf.given.items()}

    def prior(self, values: Values | None = None, basis: Basis | None = None) -> Prior:
        own = self.values if values is None else values
        return self.leaf.factor.prior(self.domain, self.basis if basis is None else basis, own)


def cases() -> list[Case]:
    """Of all kinds that are registered and have a maker."""
    return [case for kind in KINDS for case in MAKERS.get(kind.name, list)()]


# --- Matérns on an interval ------------------------------------------------------------------------------------------

_DOMAIN = Interval(-3.0, 7.0)
_INSIDE, _OUTSIDE = np.array([-3.0, -1.2, 2.0, 6.1, 7.0]), np.array([-9.0, -3.2, 7.1, 30.0])


def _operator(derivative: Callable[[int], Any], p: int, rate: float) -> Any:
    """(D + rate)^(p+1), from a function that gives derivatives."""
    return sum(comb(p + 1, i) * rate ** (p + 1 - i) * derivative(i) for i in range(p + 2))


def _functions(prior: Prior, t: np.ndarray, derivative: int) -> np.ndarray:
    return prior.transform.forward(prior.basis.evaluate(t, derivative).T)


def _interval_gram(p: int) -> Callable[[Prior, Values], np.ndarray]:
    def gram(prior: Prior, values: Values) -> np.ndarray:
        kernel = HalfInteger.from_lengthscale(p, values["lengthscale"])
        t, w = leggauss(120)
        image = _operator(lambda i: _functions(prior, t, i), p, kernel.rate)
        Z = np.concatenate([_functions(prior, np.array([-1.0]), j) for j in range(p + 1)], axis=1)
        return Z @ np.linalg.inv(kernel.state_covariance()) @ Z.T + (image * w) @ image.T / kernel.diffusion

    return gram


def _interval_with_kernel(p: int) -> Callable[[Prior, float], np.ndarray]:
    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        kernel = HalfInteger.from_lengthscale(p, prior.values["lengthscale"])
        at = float(prior.domain.to_unit(np.array([x]))[0])
        total = np.zeros(prior.basis.size)
        for low, high in pairwise(sorted({-1.0, 1.0, min(max(at, -1.0), 1.0)})):
            t, w = leggauss(80)
            t, w = low + (high - low) * (t + 1) / 2, w * (high - low) / 2
            image = _operator(lambda i, t=t: _functions(prior, t, i), p, kernel.rate)
            target = _operator(lambda i, t=t: _kernel_derivative(kernel, t - at, i), p, kernel.rate)
            total += image @ (w * target) / kernel.diffusion
        Z = np.concatenate([_functions(prior, np.array([-1.0]), j) for j in range(p + 1)], axis=1)
        lag = np.array([-1.0 - at]) if at != -1.0 else np.array([-0.0])
        state = np.array([_kernel_derivative(kernel, lag, j)[0] for j in range(p + 1)])
        return total + Z @ np.linalg.solve(kernel.state_covariance(), state)

    return with_kernel


def _kernel_derivative(kernel: HalfInteger, lag: np.ndarray, order: int) -> np.ndarray:
    """k^(order) at signed lags; the sign of zero tells from which side."""
    sided = np.where(lag == 0.0, -1e-300 if np.signbit(lag).all() else 1e-300, lag)
    return covariance_derivative(kernel, sided, order)


def covariance_derivative(kernel: HalfInteger, r: np.ndarray, order: int) -> np.ndarray:
    """d^order k / dr^order for signed r, order <= 2p; odd orders are odd functions of r."""
    coefficients = covariance_coefficients(kernel.p)
    for _ in range(order):
        derivative = np.append(polynomial.polyder(coefficients), 0.0)
        coefficients = derivative[: coefficients.size] - coefficients
    s = np.minimum(kernel.rate * np.abs(r), 800.0)
    sign = np.sign(r) if order % 2 else 1.0
    return kernel.rate**order * sign * polynomial.polyval(s, coefficients) * np.exp(-s)


def _on_interval() -> list[Case]:
    made = []
    for leaf, lengthscale, q in (
        (Matern12, 2.0, 2),
        (Matern12, 12.0, 0),
        (Matern32, 4.0, 3),
        (Matern32, 9.0, 1),
        (Matern52, 6.0, 4),
        (Matern72, 9.0, 5),
        (Matern92, 12.0, 6),
    ):
        own, p = leaf("x", variance=2.0, lengthscale=lengthscale), leaf.order
        made.append(
            Case(
                f"{leaf.__name__} with {q} edge functions",
                own,
                _DOMAIN,
                ColumnBasis(5, q),
                _INSIDE,
                _OUTSIDE,
                _interval_gram(p),
                _interval_with_kernel(p),
                lambda rng, n: rng.uniform(-3.0, 7.0, n),
                smooth=p > 0,
            )
        )
    return made


# --- levels ----------------------------------------------------------------------------------------------------------


def _of_levels() -> list[Case]:
    """Functions on a finite set, with the inner product of its points."""
    levels = ("a", "b", None, 7)
    every = np.arange(4.0)

    def gram(prior: Prior, values: Values) -> np.ndarray:
        phi = prior.features(every)
        return phi.T @ phi

    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        return prior.features(every).T @ (every == x)

    def column(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.array(["a", "b", "c"])[rng.integers(3, size=n)]

    leaf, basis = Categorical("x", variance=2.0), LevelBasis(levels)
    known, unknown = np.array([2.0, 0.0, 3.0]), np.array([-1.0])
    own = leaf, Codes(), basis, known, unknown, gram, with_kernel, column
    return [Case("levels", *own, smooth=False, levels=levels)]


# --- a circle --------------------------------------------------------------------------------------------------------


def _on_circle() -> list[Case]:
    """The inner product of a stationary kernel on a circle, from its Fourier series: sum of g_k h_k / s_k."""
    period, turns = 7.0, range(-40, 41)
    every = np.linspace(0.0, period, 4096, endpoint=False)

    def kernel(r: np.ndarray, values: Values) -> np.ndarray:
        """The Matérn-3/2 of the line, turn after turn, over its own variance."""
        lags = [np.sqrt(3.0) * np.abs(r + period * n) / (0.5 * period * values["lengthscale"]) for n in turns]
        nought = [np.sqrt(3.0) * abs(2.0 * n) / values["lengthscale"] for n in turns]
        return sum((1.0 + s) * np.exp(-s) for s in lags) / sum((1.0 + s) * np.exp(-s) for s in nought)

    def inner(g: np.ndarray, h: np.ndarray, values: Values) -> np.ndarray:
        g, h, s = (np.fft.fft(own, axis=-1)[..., :200] / every.size for own in (g, h, kernel(every, values)))
        both = np.where(np.arange(200) == 0, 1.0, 2.0)
        return np.real((g * (both / s.real)) @ h.conj().T)

    def gram(prior: Prior, values: Values) -> np.ndarray:
        phi = prior.features(every).T
        return inner(phi, phi, values)

    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        return inner(prior.features(every).T, kernel(every - x, prior.values)[None], prior.values)[:, 0]

    leaf, inside = Periodic("x", period, variance=2.0, lengthscale=2.0), np.array([0.0, 1.2, 6.9, 30.0, -4.0])
    own = leaf, Circle(period), CircleBasis(5), inside, np.empty(0), gram, with_kernel
    return [Case("circle", *own, lambda rng, n: rng.uniform(-3.0, 30.0, n))]


MAKERS: dict[str, Callable[[], list[Case]]] = {
    "interval": _on_interval,
    "levels": _of_levels,
    "circle": _on_circle,
}
"""By kind; a kind of one's own is added here while it is registered."""
