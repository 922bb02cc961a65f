"""Factors of every registered kind at some values, and inner products by quadrature to measure their laws by."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import Legendre, polynomial
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

from vff.basis import Basis, Codes, ColumnBasis, Domain, Interval, LevelBasis
from vff.factors import KINDS, Leaf, Prior, Values
from vff.factors.blurred.basis import BlurredBasis, BlurredInterval
from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.interval.matern import covariance_coefficients
from vff.factors.line.basis import Line, LineBasis
from vff.factors.sphere.basis import Globe, SphereBasis
from vff.kernels import (
    Areas,
    Categorical,
    HalfInteger,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Matern92,
    Ordered,
    Oscillator,
    Periodic,
    Sphere,
    Trend,
)


@dataclass(frozen=True)
class Case:
    """One factor of a kind."""

    name: str
    leaf: Leaf
    """With all its values."""
    domain: Domain
    basis: Basis
    inside: np.ndarray
    """Inputs in the domain, (N,): numbers, or codes; (N, D) of several columns."""
    outside: np.ndarray
    """Inputs beyond it; empty where there is no beyond."""
    gram: Callable[[Prior, Values], np.ndarray]
    """<phi_i, phi_j> of the functions of a prior under the kernel with other values, by quadrature or a sum."""
    with_kernel: Callable[[Prior, Any], np.ndarray]
    """<phi_i, k(x, .)> of the functions of a prior, by quadrature or a sum."""
    column: Callable[[np.random.Generator, int], np.ndarray]
    """A column of a table, as users have it; (N, D) of several."""
    smooth: bool = True
    """The function has a derivative."""
    levels: tuple[Any, ...] = ()
    """Of codes."""

    def on(self, name: str) -> Leaf:
        """The leaf over columns called so."""
        fields = self.leaf.named_columns
        names = [name, *(f"{name}_{field}" for field in fields[1:])]
        return replace(self.leaf, **dict(zip(fields, names, strict=True)))

    def table(self, column: np.ndarray, name: str | None = None) -> dict[str, np.ndarray]:
        """Columns of a table for its leaf, or for that of another name."""
        names = (self.leaf if name is None else self.on(name)).columns
        columns = [column] if column.ndim == 1 else column.T
        return {str(own): values for own, values in zip(names, columns, strict=True)}

    @property
    def values(self) -> dict[str, float]:
        """Hyperparameters in units of the domain."""
        factor = self.leaf.factor
        units = {own.name: factor.measure(self.domain, own) for own in factor.parameters}
        return {name: units[name].inner(float(value or np.nan)) for name, value in self.leaf.given.items()}

    def prior(self, values: Values | None = None, basis: Basis | None = None) -> Prior:
        own = self.values if values is None else values
        return self.leaf.factor.prior(self.domain, self.basis if basis is None else basis, own)


def cases() -> list[Case]:
    """Of all kinds that are registered and have a maker; the kind that has no leaves is beside all others."""
    return [case for kind in KINDS for case in MAKERS.get(kind.name, list)()]


# --- Matérns on an interval ------------------------------------------------------------------------------------------

_DOMAIN = Interval(-3.0, 7.0)
_INSIDE, _OUTSIDE = np.array([-3.0, -1.2, 2.0, 6.1, 7.0]), np.array([-9.0, -3.2, 7.1, 30.0])


@dataclass(frozen=True)
class Equation:
    """sum_j a_j D^j f = white noise of a density, with the covariance of its state and derivatives of k at lags > 0."""

    a: np.ndarray
    diffusion: float
    state: np.ndarray
    derivative: Callable[[np.ndarray, int], np.ndarray]

    def applied(self, derivative: Callable[[int], Any]) -> Any:
        """The operator, from a function that gives derivatives."""
        return sum(own * derivative(j) for j, own in enumerate(self.a))

    def kernel_derivative(self, lag: np.ndarray, order: int) -> np.ndarray:
        """k^(order) at signed lags; the sign of zero tells from which side."""
        sign = np.where(np.signbit(lag), -1.0, 1.0)
        return sign**order * self.derivative(np.abs(lag), order)


def _matern(p: int) -> Callable[[Values], Equation]:
    def at(values: Values) -> Equation:
        kernel = HalfInteger.from_lengthscale(p, values["lengthscale"])
        a = np.array([comb(p + 1, j) * kernel.rate ** (p + 1 - j) for j in range(p + 2)])
        own = lambda r, order: covariance_derivative(kernel, np.maximum(r, 1e-300), order)  # noqa: E731
        return Equation(a, kernel.diffusion, kernel.state_covariance(), own)

    return at


def _oscillator(values: Values) -> Equation:
    """k = Re(A exp(s_1 r) + B exp(s_2 r)), s the roots of a, with k(0) = 1 and k'(0) = 0."""
    omega = 2.0 * np.pi / values["period"]
    a = np.array([omega**2, omega / values["quality"], 1.0])
    one, two = polynomial.polyroots(a.astype(complex))
    A, B = two / (two - one), one / (one - two)

    def derivative(r: np.ndarray, order: int) -> np.ndarray:
        return np.real(A * one**order * np.exp(one * r) + B * two**order * np.exp(two * r))

    return Equation(a, 2.0 * a[0] * a[1], np.diag([1.0, omega**2]), derivative)


def _functions(prior: Prior, t: np.ndarray, derivative: int) -> np.ndarray:
    return prior.transform.forward(prior.basis.evaluate(t, derivative).T)


def _interval_gram(equation: Callable[[Values], Equation]) -> Callable[[Prior, Values], np.ndarray]:
    def gram(prior: Prior, values: Values) -> np.ndarray:
        own, (t, w) = equation(values), leggauss(120)
        image = own.applied(lambda i: _functions(prior, t, i))
        Z = np.concatenate([_functions(prior, np.array([-1.0]), j) for j in range(len(own.state))], axis=1)
        return Z @ np.linalg.inv(own.state) @ Z.T + (image * w) @ image.T / own.diffusion

    return gram


def _interval_with_kernel(equation: Callable[[Values], Equation]) -> Callable[[Prior, float], np.ndarray]:
    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        own = equation(prior.values)
        at = float(prior.domain.to_unit(np.array([x]))[0])
        total = np.zeros(prior.basis.size)
        for low, high in pairwise(sorted({-1.0, 1.0, min(max(at, -1.0), 1.0)})):
            t, w = leggauss(80)
            t, w = low + (high - low) * (t + 1) / 2, w * (high - low) / 2
            image = own.applied(lambda i, t=t: _functions(prior, t, i))
            target = own.applied(lambda i, t=t: own.kernel_derivative(t - at, i))
            total += image @ (w * target) / own.diffusion
        Z = np.concatenate([_functions(prior, np.array([-1.0]), j) for j in range(len(own.state))], axis=1)
        lag = np.array([-1.0 - at]) if at != -1.0 else np.array([-0.0])
        state = np.array([own.kernel_derivative(lag, j)[0] for j in range(len(own.state))])
        return total + Z @ np.linalg.solve(own.state, state)

    return with_kernel


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
                _interval_gram(_matern(p)),
                _interval_with_kernel(_matern(p)),
                lambda rng, n: rng.uniform(-3.0, 7.0, n),
                smooth=p > 0,
            )
        )
    return made


# --- averages of Matérns ---------------------------------------------------------------------------------------------


def _plain(prior: Prior) -> Prior:
    """The same function, of which rows see points."""
    ends, own = prior.domain.ends, (prior.basis.detail, prior.factor.edges(prior.basis))
    assert ends is not None
    leaf = {0: Matern12, 1: Matern32, 2: Matern52, 3: Matern72, 4: Matern92}[prior.prior.p]
    return leaf("x").factor.prior(Interval(*ends), ColumnBasis(*own), prior.values)


def averaged(kind: str, x: np.ndarray, ends: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of which a row (middle, width or std) is an average, in pieces up to the ends of a domain."""
    middle, h = x
    if not h:
        return np.array([middle]), np.ones(1)
    if kind == "std":
        z, w = hermegauss(24)
        return middle + h * z, w / w.sum()
    low, high = middle - 0.5 * h, middle + 0.5 * h
    edges = [low, *(end for end in ends if low < end < high), high]
    z, w = leggauss(24)
    pieces = [(one + (other - one) * (z + 1) / 2, w * (other - one) / (2 * h)) for one, other in pairwise(edges)]
    points, weights = zip(*pieces, strict=True)
    return np.concatenate(points), np.concatenate(weights)


def _averages() -> list[Case]:
    made, tops = [], {"width": 2.0, "std": 0.2}
    for leaf, lengthscale, q, kind in (
        (Matern12, 2.0, 2, "width"),
        (Matern32, 4.0, 3, "width"),
        (Matern72, 9.0, 5, "width"),
        (Matern32, 4.0, 3, "std"),
        (Matern52, 6.0, 4, "std"),
    ):
        own, p, top = leaf("x", variance=2.0, lengthscale=lengthscale, **{kind: "h"}), leaf.order, tops[kind]
        domain = BlurredInterval(-3.0, 7.0, top, kind)

        def gram(prior: Prior, values: Values, p: int = p) -> np.ndarray:
            return _interval_gram(_matern(p))(_plain(prior), values)

        def with_kernel(prior: Prior, x: np.ndarray, p: int = p, kind: str = kind) -> np.ndarray:
            points, weights = averaged(kind, x, (-3.0, 7.0))
            plain, inner = _plain(prior), _interval_with_kernel(_matern(p))
            return np.sum([w * inner(plain, at) for at, w in zip(points, weights, strict=True)], axis=0)

        def column(rng: np.random.Generator, n: int, top: float = top) -> np.ndarray:
            return np.stack([rng.uniform(-2.0, 6.0, n), rng.uniform(0.0, top, n)], axis=1)

        widest = top if kind == "width" else 0.5 * top  # at five standard deviations from an edge, 1e-7 is not seen
        inside = np.array([[-2.0, widest], [-1.2, 0.0], [2.0, 0.3 * top], [6.0, widest], [4.1, 0.5 * top]])
        beyond = np.array([[-9.0, 0.0], [7.1, 0.0]])
        if kind == "width":
            beyond = np.concatenate([beyond, [[6.9, 1.0], [8.0, 1.5], [0.0, 14.0]]])
        name = f"{leaf.__name__} with a {kind} and {q} edge functions"
        functions = own, domain, BlurredBasis(5, q, kind, top / 5.0), inside, beyond
        made.append(Case(name, *functions, gram, with_kernel, column, smooth=False))
    return made


def _oscillating() -> list[Case]:
    made = []
    for period, quality, q in ((4.0, 3.0, 4), (6.0, 12.0, 0), (5.0, 0.3, 3), (8.0, 0.6, 3)):
        leaf = Oscillator("x", period=period, quality=quality, variance=2.0)
        own = leaf, _DOMAIN, ColumnBasis(5, q), _INSIDE, _OUTSIDE
        inner = _interval_gram(_oscillator), _interval_with_kernel(_oscillator)
        name = f"oscillator of quality {quality:g} with {q} edge functions"
        made.append(Case(name, *own, *inner, lambda rng, n: rng.uniform(-3.0, 7.0, n)))
    return made


# --- a Wiener process that starts at the left edge -------------------------------------------------------------------


def _trend_inner(
    r: int, values: Values, state: tuple[np.ndarray, np.ndarray], derivatives: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """From states at the start (., r), and r-th derivatives with the weights of a quadrature in the first of them."""
    length = values["lengthscale"]
    precision = np.diag(length ** (2.0 * np.arange(r)))
    return length ** (2 * r - 1) * derivatives[0] @ derivatives[1].T + state[0] @ precision @ state[1].T


def _at_start(prior: Prior, r: int) -> np.ndarray:
    return np.concatenate([_functions(prior, np.array([-1.0]), j) for j in range(r)], axis=1)


def _trending() -> list[Case]:
    made = []
    for r, lengthscale, q in ((1, 2.0, 1), (1, 20.0, 3), (2, 4.0, 3), (2, 1.5, 2), (2, 30.0, 5)):

        def gram(prior: Prior, values: Values, r: int = r) -> np.ndarray:
            t, w = leggauss(120)
            image, Z = _functions(prior, t, r), _at_start(prior, r)
            return _trend_inner(r, values, (Z, Z), (image * w, image))

        def with_kernel(prior: Prior, x: float, r: int = r) -> np.ndarray:
            """D^r k(x, .) is (u - v)^(r-1) over lengthscale^(2r-1) up to u, the distance of x from the start."""
            length, u = prior.values["lengthscale"], float(prior.domain.to_unit(np.array([x]))[0]) + 1.0
            end = min(max(u, 0.0), 2.0)
            t, w = leggauss(120)
            t, w = 0.5 * end * (t + 1.0), 0.5 * end * w
            driven = ((u - t) ** (r - 1) / length ** (2 * r - 1))[None]
            state = np.array([[1.0, u / length**2][:r]])
            own = _at_start(prior, r), state
            return _trend_inner(r, prior.values, own, (_functions(prior, t - 1.0, r) * w, driven))[:, 0]

        leaf = Trend("x", variance=2.0, lengthscale=lengthscale, order=r, start=-3.0)
        own = leaf, _DOMAIN, ColumnBasis(5, q), _INSIDE, _OUTSIDE, gram, with_kernel
        name = f"trend of order {r} with {q} edge functions"
        made.append(Case(name, *own, lambda rng, n: np.append(-3.0, rng.uniform(-3.0, 7.0, n - 1)), smooth=r > 1))
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


_PERIOD = 7.0
_ROUND = np.linspace(0.0, _PERIOD, 256, endpoint=False)


def _circle_case(name: str, leaf: Periodic, kernel: Callable[[np.ndarray, Values], np.ndarray], reach: int) -> Case:
    """The inner product of a stationary kernel on a circle, from its Fourier series: sum of g_k h_k / s_k, k < reach.

    Features have few harmonics; where s_k is lost in rounding there is nothing of them.
    """

    def angle(x: Any) -> Any:
        return 2.0 * np.pi * x / _PERIOD

    def spectrum(values: Values) -> np.ndarray:
        """The Fourier coefficients of the kernel, which is smooth from 0 to the end of a turn."""
        nodes, weights = leggauss(200)
        r = 0.5 * _PERIOD * (nodes + 1.0)
        return 0.5 * np.cos(np.multiply.outer(np.arange(reach), angle(r))) @ (weights * kernel(r, values))

    def inner(g: np.ndarray, h: np.ndarray, values: Values) -> np.ndarray:
        both = np.where(np.arange(reach) == 0, 1.0, 2.0)
        return np.real((g * (both / spectrum(values))) @ h.conj().T)

    def waves(prior: Prior) -> np.ndarray:
        return np.fft.fft(prior.features(_ROUND).T, axis=-1)[:, :reach] / _ROUND.size

    def gram(prior: Prior, values: Values) -> np.ndarray:
        return inner(waves(prior), waves(prior), values)

    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        shifted = spectrum(prior.values) * np.exp(-1j * np.arange(reach) * angle(x))
        return inner(waves(prior), shifted[None], prior.values)[:, 0]

    inside = np.array([0.0, 1.2, 6.9, 30.0, -4.0])
    own = leaf, Circle(_PERIOD), CircleBasis(5), inside, np.empty(0), gram, with_kernel
    return Case(name, *own, lambda rng, n: rng.uniform(-3.0, 30.0, n), smooth=leaf.order != 0)


def _turn_after_turn(p: int) -> Callable[[np.ndarray, Values], np.ndarray]:
    """The Matérn of the line over all turns, over its own variance."""

    def kernel(r: np.ndarray, values: Values) -> np.ndarray:
        line = HalfInteger.from_lengthscale(p, 0.5 * _PERIOD * values["lengthscale"])
        turns = _PERIOD * np.arange(-40, 41)
        return np.sum([line.covariance(r + turn) for turn in turns], axis=0) / np.sum(line.covariance(turns))

    return kernel


def _exponential_sine(r: np.ndarray, values: Values) -> np.ndarray:
    return np.exp(-2.0 * np.sin(np.pi * r / _PERIOD) ** 2 / values["lengthscale"] ** 2)


def _on_circle() -> list[Case]:
    made = [_circle_case("circle", Periodic("x", _PERIOD, variance=2.0, lengthscale=2.0), _turn_after_turn(1), 200)]
    for p, lengthscale in ((0, 3.0), (2, 2.0), (3, 1.0), (6, 1.0)):
        leaf = Periodic("x", _PERIOD, variance=2.0, lengthscale=lengthscale, order=p)
        made.append(_circle_case(f"circle of order {p}", leaf, _turn_after_turn(p), 30))
    for lengthscale in (0.4, 1.0):
        leaf = Periodic("x", _PERIOD, variance=2.0, lengthscale=lengthscale, kind="exponential-sine")
        made.append(_circle_case(f"exponential sine of {lengthscale:g}", leaf, _exponential_sine, 8))
    return made


# --- levels that know their neighbours -------------------------------------------------------------------------------


def _pseudo_inverse(near: np.ndarray) -> np.ndarray:
    """Of D - W, over the geometric mean of its diagonal."""
    inverse = np.linalg.pinv(np.diag(near.sum(axis=1)) - near)
    return inverse / np.exp(np.log(np.diagonal(inverse)).mean())


def _whole(parts: dict[tuple[int, ...], np.ndarray], size: int) -> np.ndarray:
    """Independent parts, by the places of their levels."""
    C = np.zeros((size, size))
    for places, own in parts.items():
        C[np.ix_(places, places)] = own
    return C


def _on_graph() -> list[Case]:
    """Gaussian fields over few areas, their covariance written out with loops and a dense inverse."""
    pairs = [("b", "a"), ("c", "b"), ("d", "a"), ("c", "d"), ("d", "e"), ("x", "y"), ("z", "y")]
    levels, land, isles = ("a", "b", "c", "d", "e", "w", "x", "y", "z"), (0, 1, 2, 3, 4), (6, 7, 8)
    near = np.array([[float((a, b) in pairs or (b, a) in pairs) for b in levels] for a in levels])
    parts = {own: near[np.ix_(own, own)] for own in (land, isles)}

    def bym2(values: Values) -> np.ndarray:
        structured = _whole({**{own: _pseudo_inverse(W) for own, W in parts.items()}, (5,): np.ones((1, 1))}, 9)
        phi = values["ratio"] / (1.0 + values["ratio"])
        return (1.0 - phi) * np.eye(9) + phi * structured

    def proper(values: Values) -> np.ndarray:
        rho, found = values["lengthscale"] ** 2 / (1.0 + values["lengthscale"] ** 2), {(5,): np.ones((1, 1))}
        for own, W in parts.items():
            C = np.linalg.inv((1.0 - rho) * np.eye(len(W)) + rho * (np.diag(W.sum(axis=1)) - W))
            found[own] = C / np.exp(np.log(np.diagonal(C)).mean())
        return _whole(found, 9)

    steps = ("low", "some", "more", 7, "high")

    def walk(values: Values) -> np.ndarray:
        """Steps of equal variance from level to level, less their mean, over their typical variance."""
        heights = np.tri(5)[:, 1:]
        about = heights - heights.mean(axis=0)
        C = about @ about.T
        return 1.0 + C / np.exp(np.log(np.diagonal(C)).mean())

    def case(name: str, leaf: Leaf, levels: tuple[Any, ...], covariance: Callable[[Values], np.ndarray]) -> Case:
        every, some = np.arange(float(len(levels))), np.array(levels[:-1], object)

        def gram(prior: Prior, values: Values) -> np.ndarray:
            phi = prior.features(every)
            return phi.T @ np.linalg.inv(covariance(values)) @ phi

        def with_kernel(prior: Prior, x: float) -> np.ndarray:
            k = covariance(prior.values)[int(x)] if x >= 0.0 else np.zeros(every.size)
            return prior.features(every).T @ np.linalg.inv(covariance(prior.values)) @ k

        def column(rng: np.random.Generator, n: int) -> np.ndarray:
            return some[rng.integers(some.size, size=n)]

        own = leaf, Codes(), LevelBasis(levels), np.array([2.0, 0.0, 3.0, 4.0]), np.array([-1.0])
        return Case(name, *own, gram, with_kernel, column, smooth=False, levels=levels)

    return [
        case("areas", Areas("x", pairs, levels=["w"], variance=2.0, ratio=3.0), levels, bym2),
        case("areas, mostly their own", Areas("x", pairs, levels=["w"], variance=2.0, ratio=0.1), levels, bym2),
        case(
            "areas, a proper field",
            Areas("x", pairs, levels=["w"], kind="proper", variance=2.0, lengthscale=1.7),
            levels,
            proper,
        ),
        case("ordered levels", Ordered("x", steps, variance=2.0), steps, walk),
    ]


# --- a globe ---------------------------------------------------------------------------------------------------------


def _on_globe() -> list[Case]:
    """The inner product by projections on degrees: (2l + 1) P_l(angle) reproduces functions of degree l on the sphere.

    Means over the sphere are Gauss-Legendre in the sine of latitude by equal steps of longitude.
    """
    sines, weights = leggauss(24)
    latitude, longitude = np.meshgrid(np.degrees(np.arcsin(sines)), 360.0 * np.arange(48) / 48, indexing="ij")
    every = np.stack([latitude.ravel(), longitude.ravel()], axis=1)
    w = np.repeat(0.5 * weights, 48) / 48

    def cosines(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        one, other = np.radians(x)[:, None], np.radians(z)[None]
        across = np.cos(one[..., 0]) * np.cos(other[..., 0]) * np.cos(one[..., 1] - other[..., 1])
        return np.clip(np.sin(one[..., 0]) * np.sin(other[..., 0]) + across, -1.0, 1.0)

    def powers(order: int, values: Values, count: int) -> np.ndarray:
        nu, k = order + 0.5, np.arange(200_000.0)
        every = (2.0 * nu / values["lengthscale"] ** 2 + k * (k + 1.0)) ** -(nu + 1.0)
        return every[:count] / np.sum((2.0 * k + 1.0) * every)

    def inner(g: np.ndarray, h: np.ndarray, s: np.ndarray) -> np.ndarray:
        """sum over degrees of <g, projection of h> / s_l."""
        angle, total = cosines(every, every), np.zeros((len(g), len(h)))
        for degree in range(12):
            kernel = (2 * degree + 1) * Legendre.basis(degree)(angle)
            total += (g * w) @ kernel @ (h * w).T / s[degree]
        return total

    def case(order: int, lengthscale: float) -> Case:
        def gram(prior: Prior, values: Values) -> np.ndarray:
            phi = prior.features(every).T
            return inner(phi, phi, powers(order, values, 12))

        def with_kernel(prior: Prior, x: np.ndarray) -> np.ndarray:
            """Degrees of the kernel beyond those of the features are orthogonal to them."""
            s, angle = powers(order, prior.values, 12), cosines(x[None], every)
            k = sum((2 * degree + 1) * s[degree] * Legendre.basis(degree)(angle) for degree in range(12))
            return inner(prior.features(every).T, k, s)[:, 0]

        def column(rng: np.random.Generator, n: int) -> np.ndarray:
            return np.stack([np.degrees(np.arcsin(rng.uniform(-1.0, 1.0, n))), rng.uniform(-180.0, 180.0, n)], axis=1)

        leaf = Sphere("x", "x_longitude", variance=2.0, lengthscale=lengthscale, order=order)
        inside = np.array([[90.0, 12.0], [-30.0, 180.0], [-30.0, -180.0], [0.0, 370.0], [-90.0, 3.0], [51.5, -0.1]])
        own = leaf, Globe(), SphereBasis(5), inside, np.empty((0, 2)), gram, with_kernel, column
        return Case(f"globe of order {order}", *own, smooth=False)

    return [case(1, 40.0), case(2, 70.0)]


# --- a line ----------------------------------------------------------------------------------------------------------


def _on_line() -> list[Case]:
    """Functions a + b t: the inner product is that of (a, b) by the inverse of a covariance, read off at two points."""

    def coefficients(f: Callable[[np.ndarray], np.ndarray], intercept: bool) -> np.ndarray:
        """Of the functions (N, P) at x = 0 and x = 8, which is t = 1: (1 or 2, P)."""
        at = f(np.array([0.0, 8.0]))
        return np.stack([at[0], at[1] - at[0]]) if intercept else at[1:] - at[:1]

    def covariance(values: Values, intercept: bool) -> np.ndarray:
        if not intercept:
            return np.ones((1, 1))
        r, s = (values["correlation"] - 1.0) / (values["correlation"] + 1.0), values["slope"]
        return np.array([[1.0, r * s], [r * s, s**2]])

    def gram(prior: Prior, values: Values) -> np.ndarray:
        intercept = prior.basis.size == 2
        c = coefficients(prior.features, intercept)
        return c.T @ np.linalg.inv(covariance(values, intercept)) @ c

    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        intercept = prior.basis.size == 2
        C = covariance(prior.values, intercept)
        kernel = C @ np.array([1.0, (x - prior.domain.origin) / 8.0])[-len(C) :]
        return coefficients(prior.features, intercept).T @ np.linalg.inv(C) @ kernel

    inside = np.array([0.0, -7.5, 3.0, 8.0, 40.0])
    leaves = [
        ("slope", Linear("x", variance=2.0)),
        ("slope about an origin", Linear("x", variance=2.0, origin=4.0)),
        ("intercept and slope", Linear("x", variance=2.0, intercept=True, slope=0.3, correlation=-0.4)),
        (
            "intercept and slope that go together",
            Linear("x", variance=2.0, intercept=True, slope=0.05, correlation=0.9),
        ),
    ]
    return [
        Case(
            name,
            leaf,
            Line(8.0, leaf.origin or 0.0),
            LineBasis(leaf.intercept),
            inside,
            np.empty(0),
            gram,
            with_kernel,
            lambda rng, n: rng.uniform(4.1, 7.9, n),
        )
        for name, leaf in leaves
    ]


MAKERS: dict[str, Callable[[], list[Case]]] = {
    "interval": _on_interval,
    "levels": _of_levels,
    "blurred": _averages,
    "circle": _on_circle,
    "oscillator": _oscillating,
    "graph": _on_graph,
    "trend": _trending,
    "sphere": _on_globe,
    "line": _on_line,
    "missing": list,
}
"""By kind; a kind of one's own is added here while it is registered."""
