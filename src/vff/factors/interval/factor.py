"""A half-integer Matérn on an interval: its domain, its harmonics and edge functions, and where learning starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.bernoulli import largest_resolved
from vff.factors.interval.matern import HalfInteger, covariance_coefficients
from vff.factors.interval.prior import IntervalPrior, column_prior
from vff.factors.outside import TailRows
from vff.factors.protocol import (
    Block,
    Extent,
    Factor,
    FactorOptions,
    Parameter,
    StartingPoint,
    Values,
    WhiteFactor,
    with_room,
)
from vff.words import shown

_MOST_EDGES = 8
_PAPER_PADDING = 0.5  # of the data's range on each side, when no edge functions correct the ends
_ROOM_TO_GROW = 0.25  # the same, when more rows are to come
_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02)  # half domains
_SHORT_LENGTHSCALE, _MANY_CYCLES = 0.006, 32
_MOST_HARMONICS = 128
_COARSE_HARMONICS, _COARSE_EDGES = 5, 2
_HIGHEST_ORDER = 16
_FAR = 800.0  # exp(-800) is zero in float64, and no power of it overflows

LENGTHSCALE = Parameter("lengthscale", "length", (2e-4, 1e2), (2.0, 0.6, 0.2), typical=0.5)


@dataclass(frozen=True)
class MaternFactor(Factor[Interval, ColumnBasis]):
    """A Matérn of order p, in harmonics and edge functions."""

    p: int
    family: ClassVar[str] = "interval"
    options: ClassVar[frozenset[str]] = frozenset({"domain", "edges", "frequencies"})
    parameters: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE,)

    @property
    def title(self) -> str:
        return f"a Matérn of order {self.p}"

    def check(self) -> None:
        if not 0 <= self.p <= _HIGHEST_ORDER:
            raise ValueError(f"the order of a Matérn was expected, found {self.p}")

    @property
    def decay(self) -> float:
        """The tail of the spectrum."""
        return 2 * self.p + 1

    def least(self, options: FactorOptions) -> ColumnBasis:
        return ColumnBasis(1, checked_edges(options.edges, self.p, options.most))

    def spanning(self, low: float, high: float) -> Interval:
        return Interval(low, high)

    def settled(self, found: Extent, bases: Sequence[ColumnBasis], *, growing: bool) -> Interval:
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

    def prior(self, domain: Interval, basis: ColumnBasis, values: Values) -> IntervalPrior:
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

    def tails(self, domain: Interval, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[TailRows, ...]:
        t = domain.to_unit(x)
        sides = [(side, side * t > 1.0) for side in (-1, 1)]
        return tuple(TailRows(side, np.abs(t[out]) - 1.0, w[out], y[out]) for side, out in sides if out.any())

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        """A polynomial in s = rate |x - z| times exp(-s)."""
        rate = HalfInteger.from_lengthscale(self.p, values["lengthscale"]).rate
        s = np.subtract.outer(rate * x, rate * z)
        np.minimum(np.abs(s, out=s), _FAR, out=s)

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

    def white(self, basis: ColumnBasis) -> WhiteFactor[ColumnBasis]:
        from vff.factors.interval.white import ColumnWhite

        return ColumnWhite(basis, self.p)


def checked_edges(value: Any, p: int, M: int | None) -> int:
    """The number of edge functions; as many as float64 resolves beside M harmonics."""
    if isinstance(value, str) and value == "auto":
        wanted = range(p + 2, 0, -1)
        return next(q for q in wanted if M is None or largest_resolved(q) >= M)
    if not isinstance(value, Integral) or isinstance(value, bool) or not 0 <= int(value) <= _MOST_EDGES:
        raise ValueError(
            f"edges must be 'auto' or an integer from 0 (the paper) to {_MOST_EDGES}, got {shown(value)}; "
            f"'auto' is {p + 2} for this kernel"
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
