"""Autoregressive kernels on an interval, the half-integer Matérn among them: domain, basis, prior, where to start."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vff.factors.interval.autoregressive import Stationary
from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.letters import largest_resolved
from vff.factors.interval.matern import FAR, HalfInteger, covariance_coefficients
from vff.factors.interval.rkhs import ColumnPrior, SpectralPrior, outward_state, tail_features
from vff.factors.outside import TailRows
from vff.factors.protocol import (
    Beyond,
    Block,
    ColumnRange,
    Factor,
    FactorOptions,
    Parameter,
    Prior,
    StartingPoint,
    TailSums,
    Values,
    WhiteFactor,
    with_room,
)
from vff.factors.transform import EdgeTransform
from vff.linalg import AbstractInvertible, AbstractOperator
from vff.words import shown

_MOST_EDGES = 8
_PAPER_PADDING = 0.5  # of the data's range on each side, when no edge functions correct the ends
_ROOM_TO_GROW = 0.25  # the same, when more rows are to come
_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02)  # half domains
_SHORT_LENGTHSCALE, _MANY_CYCLES = 0.006, 32
_MOST_HARMONICS = 128
_COARSE_HARMONICS, _COARSE_EDGES = 5, 2
_HIGHEST_ORDER = 16

LENGTHSCALE = Parameter("lengthscale", "length", (2e-4, 1e2), (2.0, 0.6, 0.2), typical=0.5)


class IntervalFactor(Factor[Interval, ColumnBasis]):
    """An autoregressive kernel in harmonics and edge functions."""

    family: ClassVar[str] = "interval"
    options: ClassVar[frozenset[str]] = frozenset({"domain", "edges", "frequencies"})

    @property
    @abstractmethod
    def order(self) -> int:
        """r, the size of the state."""

    @abstractmethod
    def column_prior(self, basis: ColumnBasis, values: Mapping[str, Any]) -> SpectralPrior:
        """K_uu at hyperparameters, which JAX may trace."""

    @property
    def usual_edges(self) -> int:
        """How many edge functions leave nothing to the edges that harmonics leave out in the middle."""
        return self.order + 1

    @property
    def decay(self) -> float:
        """The tail of the spectrum."""
        return 2 * self.order - 1

    def least(self, options: FactorOptions) -> ColumnBasis:
        return ColumnBasis(1, checked_edges(options.edges, self.usual_edges, options.most))

    def spanning(self, low: float, high: float) -> Interval:
        return Interval(low, high)

    def settled(self, found: ColumnRange, bases: Sequence[ColumnBasis], *, growing: bool) -> Interval:
        """Hug the data where edge functions are; pad, as the paper advises, where not, or when more rows will come."""
        if found.constant:
            # one value: any interval around it will do, as long as it follows the units of the column
            half = 0.5 * abs(found.low) or 1.0
            return Interval(found.low - half, found.low + half)
        share = _PAPER_PADDING if min(basis.q for basis in bases) == 0 else _ROOM_TO_GROW if growing else 0.0
        pad = share * (found.high - found.low)
        return Interval(found.low - pad, found.high + pad)

    def largest(self, bases: Sequence[ColumnBasis]) -> int:
        return largest_resolved(max(basis.q for basis in bases))

    def edges(self, basis: ColumnBasis) -> int:
        return basis.q

    def waves(self, detail: int) -> ColumnBasis:
        return ColumnBasis(detail, 0)

    def coarse(self, basis: ColumnBasis, distinct: int) -> ColumnBasis:
        return ColumnBasis(max(1, min(_COARSE_HARMONICS, distinct // 2)), min(_COARSE_EDGES, basis.q))

    def tails(self, domain: Interval, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[TailRows, ...]:
        t = domain.to_unit(x)
        sides = [(side, side * t > 1.0) for side in (-1, 1)]
        return tuple(TailRows(side, np.abs(t[out]) - 1.0, w[out], y[out]) for side, out in sides if out.any())

    def white(self, basis: ColumnBasis) -> WhiteFactor[ColumnBasis]:
        from vff.factors.interval.white import ColumnWhite

        return ColumnWhite(self, basis)


@dataclass(frozen=True)
class MaternFactor(IntervalFactor):
    """A Matérn of order p."""

    p: int
    parameters: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE,)

    @property
    def title(self) -> str:
        return f"a Matérn of order {self.p}"

    def check(self) -> None:
        if not 0 <= self.p <= _HIGHEST_ORDER:
            raise ValueError(f"the order of a Matérn was expected, found {self.p}")

    @property
    def order(self) -> int:
        return self.p + 1

    def column_prior(self, basis: ColumnBasis, values: Mapping[str, Any]) -> ColumnPrior:
        return ColumnPrior(basis, self.p, np.sqrt(2 * self.p + 1) / values["lengthscale"])

    def prior(self, domain: Interval, basis: ColumnBasis, values: Values) -> "IntervalPrior":
        rate = HalfInteger.from_lengthscale(self.p, values["lengthscale"]).rate
        return IntervalPrior(domain, column_prior(basis, self.p, rate))

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        """Short lengthscales are tried with all the harmonics they need only when the targets have detail to show."""
        coarse = list(_LENGTHSCALES)
        if detail > _MANY_CYCLES:
            coarse.append(_SHORT_LENGTHSCALE)
        points = [StartingPoint({"lengthscale": length}, _MOST_HARMONICS) for length in coarse]
        if detail > _MOST_HARMONICS:
            fine = (4.0 / detail, 1.0 / detail, 0.25 / detail)
            points += [StartingPoint({"lengthscale": length}, with_room(detail)) for length in fine]
        return points

    def needed(self, values: Values) -> int:
        # Half the spectral mass of f lies below about omega = rate; four rates leave a few per cent or less.
        rate = np.sqrt(2 * self.p + 1) / values["lengthscale"]
        return int(np.clip(np.ceil(4.0 * rate / np.pi), 12, 10_000))

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        """A polynomial in s = rate |x - z| times exp(-s)."""
        rate = HalfInteger.from_lengthscale(self.p, values["lengthscale"]).rate
        s = np.subtract.outer(rate * x, rate * z)
        np.minimum(np.abs(s, out=s), FAR, out=s)

        def moved() -> np.ndarray:
            # d / dx = rate sign(lag) d / ds
            return _horner(_derivative_coefficients(self.p), s) * np.sign(np.subtract.outer(x, z))

        def slopes() -> list[np.ndarray]:
            return [_horner(_slope_coefficients(self.p), s)]

        return Block(_horner(covariance_coefficients(self.p), s), s, slopes, moved, rate)

    def frequencies(self, count: int, rng: np.random.RandomState) -> np.ndarray:
        """w times the lengthscale is Student-t with 2p + 1 degrees of freedom: S(w) ~ (2p+1 + (w l)^2)^-(p+1).

        A cosine and a sine do not see its sign.
        """
        return np.log(np.abs(rng.standard_t(2 * self.p + 1, size=count)))


@lru_cache(maxsize=128)
def column_prior(basis: ColumnBasis, p: int, rate: float) -> ColumnPrior:
    """Remembered, because a value and its gradient ask for the same one."""
    return ColumnPrior(basis, p, rate)


class AutoregressivePrior(Prior[Interval, ColumnBasis]):
    """An autoregressive kernel over an interval."""

    if TYPE_CHECKING:

        @property
        def prior(self) -> SpectralPrior:
            """In half domains."""
            ...

    @property
    def values(self) -> Values:
        return self.prior.kernel.values

    @property
    def K(self) -> AbstractInvertible:
        return self.prior.matrix()

    @property
    def transform(self) -> EdgeTransform:
        return self.prior.transform

    def derivative(self, name: str) -> AbstractOperator:
        return self.prior.derivative(name)

    def second_derivative(self, name: str, other: str) -> AbstractOperator:
        known = self.prior.second_derivative(name, other)
        return super().second_derivative(name, other) if known is None else known

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        t, basis = self.domain.to_unit(x), self.prior.basis
        inside = np.abs(t) <= 1.0
        features = np.empty((t.size, basis.size))
        features[inside] = self.prior.transform.forward(basis.evaluate(t[inside], derivative).T).T
        features[~inside] = tail_features(self.prior, t[~inside], derivative)
        return features / self.domain.half_length**derivative

    def beyond(self, x: np.ndarray) -> Sequence[Beyond]:
        """Rows outside see the features through the states of an edge."""
        t = self.domain.to_unit(x)
        sides = [(side, side * t > 1.0) for side in (-1, 1)]
        return [
            Beyond(rows, self.prior.kernel.tail(np.abs(t[rows]) - 1.0), outward_state(self.prior, side))
            for side, rows in sides
        ]

    def power(self, detail: int) -> float:
        return float(self.prior.kernel.spectral_density(np.array([np.pi * detail]))[0])

    def tail_states(self, side: int) -> np.ndarray:
        return outward_state(self.prior, side)

    def tail_sums(self, tail: TailRows) -> TailSums:
        H = self.prior.kernel.tail(tail.r)
        return TailSums(H.T @ (tail.w[:, None] * H), H.T @ (tail.w * tail.y), H.T @ tail.w)

    def tail_derivatives(self, tail: TailRows) -> dict[str, TailSums]:
        H, found = self.prior.kernel.tail(tail.r), {}
        for name, dH in self.prior.kernel.tail_slopes(tail.r).items():
            half = H.T @ (tail.w[:, None] * dH)
            found[name] = TailSums(half + half.T, dH.T @ (tail.w * tail.y), dH.T @ tail.w)
        return found


class StationaryPrior(AutoregressivePrior):
    """One whose kernel is the same everywhere."""

    @property
    def stationary(self) -> Stationary:
        kernel = self.prior.kernel
        assert isinstance(kernel, Stationary)
        return kernel

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie beyond [a, b] by more than a tenth of a lengthscale; there the data lose their say."""
        return np.abs(self.domain.to_unit(x)) > 1.0 + 0.1 * self.stationary.reach

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # rows that float64 cannot tell how far they are apart are far apart
            distances = np.subtract.outer(x, z) / self.domain.half_length
        return self.stationary.covariance(distances)

    def slope_variance(self, x: np.ndarray) -> float:
        if self.stationary.order == 1:
            raise ValueError("a Matérn-1/2 process has no derivative; use Matern32 or Matern52 to ask for one")
        return self.stationary.state_covariance()[1, 1] / self.domain.half_length**2


@dataclass(frozen=True)
class IntervalPrior(StationaryPrior):
    """A Matérn over an interval."""

    stored_as: ClassVar[str] = "ColumnFactor"  # what files of all versions call it
    interval: Interval
    prior: ColumnPrior  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    @property
    def factor(self) -> MaternFactor:
        return MaternFactor(self.prior.p)

    @property
    def domain(self) -> Interval:
        return self.interval

    @property
    def basis(self) -> ColumnBasis:
        return self.prior.basis


def checked_edges(value: Any, usual: int, M: int | None) -> int:
    """The number of edge functions; as many as float64 resolves beside M harmonics."""
    if isinstance(value, str) and value == "auto":
        wanted = range(usual, 0, -1)
        return next(q for q in wanted if M is None or largest_resolved(q) >= M)
    if not isinstance(value, Integral) or isinstance(value, bool) or not 0 <= int(value) <= _MOST_EDGES:
        raise ValueError(
            f"edges must be 'auto' or an integer from 0 (the paper) to {_MOST_EDGES}, got {shown(value)}; "
            f"'auto' is {usual} for this kernel"
        )
    if M is not None and largest_resolved(int(value)) < M:
        raise ValueError(
            f"edges={value} beside frequencies={M} is more than float64 resolves; "
            f"use frequencies of at most {largest_resolved(int(value))}, or edges='auto'"
        )
    return int(value)


def _horner(coefficients: np.ndarray, s: np.ndarray) -> np.ndarray:
    """sum_j coefficients_j s^j; the powers are few and the matrix is large, so it is worked on in place."""
    if coefficients.size == 1:
        return np.full_like(s, coefficients[0])
    total = coefficients[-1] * s
    total += coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total *= s
        total += coefficient
    return total


@cache
def _derivative_coefficients(p: int) -> np.ndarray:
    """c_j with dk / ds = exp(-s) sum_j c_j s^j, from k = exp(-s) sum_j a_j s^j: c_j = (j + 1) a_(j+1) - a_j."""
    a = covariance_coefficients(p)
    return np.append(np.arange(1, p + 1) * a[1:], 0.0) - a


@cache
def _slope_coefficients(p: int) -> np.ndarray:
    """c_j with dk / d log lengthscale = -s dk/ds = exp(-s) sum_j c_j s^j: s goes as 1 / lengthscale."""
    return np.append(0.0, -_derivative_coefficients(p))
