"""A Wiener process on an interval that begins where the process does: domain, prior, where learning starts."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.factor import AutoregressivePrior, IntervalFactor
from vff.factors.interval.letters import harmonic_part
from vff.factors.interval.rkhs import SpectralPrior, tail_root
from vff.factors.protocol import (
    Block,
    ColumnRange,
    FactorOptions,
    Parameter,
    StartingPoint,
    Values,
    WhiteFactor,
    with_room,
)
from vff.factors.trend.process import FAR, WienerProcess
from vff.linalg import DenseView, SingularLowRank, namespace
from vff.priors import AbstractPrior, LogNormal

_SHORTEST = 0.03
_LENGTHSCALES = (10.0, 3.0, 1.0, 0.3, 0.1, _SHORTEST)  # half domains
_SOME_CYCLES = 16
_MOST_HARMONICS = 128


def _around_range(length: float) -> AbstractPrior:
    return LogNormal(length, 1.5)


# What the data say of it beside the variance they say by one state, where the trend starts; a constant beside the terms
# may even say the rest. Short ones are no rougher, since the variance is free, but claim to know that state.
LENGTHSCALE = Parameter(
    "lengthscale", "length", (_SHORTEST, 1e3), (3.0, 1.0, 0.3), typical=1.0, prior=_around_range, loose=True
)


@dataclass(frozen=True)
class TrendColumnPrior(SpectralPrior):
    """K_uu of a Wiener process that starts at the left edge (in half domains).

    No lengthscale is in its functions: E_n is B_n up to n = r, and R_n beyond. The integral of two r-th derivatives
    vanishes for polynomials of a degree below r, of which only the state at the start speaks.
    """

    basis: ColumnBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    kernel: WienerProcess  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    @cached_property
    def _diagonal(self) -> np.ndarray:
        return self.basis.omega ** (2 * self.kernel.r) / self.kernel.diffusion

    @property
    def free(self) -> tuple[int, ...]:
        """Places of the constant and, of order 2, of B_1."""
        return (0, *range(self.basis.harmonics, self.basis.harmonics + self.kernel.r - 1))

    def edge_root(self) -> np.ndarray:
        """Of the integrals of r-th derivatives of edge functions at unit lengthscale, (q, q)."""
        q, r = self.basis.q, self.kernel.r
        root = np.zeros((q, q))
        root[r - 1, r - 1] = np.sqrt(0.5)  # the r-th derivative of B_r is -1/2, on an interval of length 2
        root[r:, r:] = tail_root(self.basis.M, q - r)
        return root

    def matrix(self) -> SingularLowRank:
        root = self.edge_root() / self.kernel.diffusion**0.5
        return SingularLowRank(self._diagonal, root, self._left, self.kernel.state_precision(), self.free)


@lru_cache(maxsize=128)
def _remembered(basis: ColumnBasis, r: int, lengthscale: float) -> TrendColumnPrior:
    """A value and its gradient ask for the same one."""
    return TrendColumnPrior(basis, WienerProcess(r, lengthscale))


@dataclass(frozen=True)
class TrendFactor(IntervalFactor):
    """A Wiener process, r - 1 times integrated, that starts at the left end of the domain."""

    r: int
    start: float | None = None
    """Where it was asked to start, in the column's own units."""
    parameters: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE,)
    constant_variance: ClassVar[bool] = False

    @property
    def title(self) -> str:
        return f"a trend of order {self.r}"

    def check(self) -> None:
        if self.r not in (1, 2) or not (self.start is None or np.isfinite(self.start)):
            raise ValueError(f"a trend of order 1 or 2 was expected, found order {self.r} and start {self.start}")

    @property
    def order(self) -> int:
        return self.r

    @property
    def usual_edges(self) -> int:
        """With one fewer, twice as much is missed at the edges of an order of 2 as in the middle."""
        return 2 * self.r

    @property
    def axis(self) -> tuple[Hashable, ...]:
        """Its domain is that of all kernels over the column, unless it was told where to start."""
        return (self.family,) if self.start is None else (self.family, self.start)

    def least(self, options: FactorOptions) -> ColumnBasis:
        least = super().least(options)
        if least.q < self.r:
            raise ValueError(
                f"edges={least.q} leaves no edge functions to {self.title}, which needs at least {self.r}: harmonics "
                "alone return to where they began; leave edges='auto'"
            )
        return least

    def spanning(self, low: float, high: float) -> Interval:
        if self.start is None:
            return super().spanning(low, high)
        if low < self.start:
            raise ValueError(
                f"Trend: start must be at or left of all rows and of the domain, which begin at {low:g}; got "
                f"start={self.start:g}: give a smaller start, or leave it out to start where the rows do"
            )
        return Interval(self.start, high if high > self.start else self.start + (0.5 * abs(self.start) or 1.0))

    def settled(self, found: ColumnRange, bases: Sequence[ColumnBasis], *, growing: bool) -> Interval:
        around = super().settled(found, bases, growing=growing)
        return around if self.start is None else self.spanning(found.low, around.b)

    def column_prior(self, basis: ColumnBasis, values: Mapping[str, Any]) -> TrendColumnPrior:
        return TrendColumnPrior(basis, WienerProcess(self.r, values["lengthscale"]))

    def prior(self, domain: Interval, basis: ColumnBasis, values: Values) -> "TrendPrior":
        return TrendPrior(domain, basis, self.r, values["lengthscale"], self.start)

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        """What is rougher than the shortest lengthscale has a larger variance instead."""
        points = [StartingPoint({"lengthscale": length}, _MOST_HARMONICS) for length in _LENGTHSCALES]
        if detail > _SOME_CYCLES:
            rough = [(_SHORTEST * np.pi * share * detail) ** (2 * self.r - 1) for share in (0.25, 1.0)]
            points += [
                StartingPoint({"lengthscale": _SHORTEST}, with_room(detail), float(times))
                for times in rough
                if times > 1.0
            ]
        return points

    def needed(self, values: Values) -> int:
        """Of the shortest lengthscale only the variance says how rough it is: then all that there are."""
        return 12 + int(values["lengthscale"] ** -2.0)

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        kernel = WienerProcess(self.r, values["lengthscale"])
        state, noise = kernel.parts(x + 1.0, z + 1.0)
        power = 2.0 * self.r - 1.0
        return Block(state + noise, None, lambda: [-2.0 * (state - 1.0) - power * noise], lambda: None)

    # k(x, x) = 1 + |u|, or 1 + u^2 + |u|^3 / 3, u in lengthscales from the start

    def variance_functions(self, t: np.ndarray) -> np.ndarray:
        u = np.minimum(np.abs(t + 1.0), FAR)
        return np.stack([np.ones_like(u), u] if self.r == 1 else [np.ones_like(u), u**2, u**3], axis=1)

    def variance_letters(self, basis: ColumnBasis) -> np.ndarray:
        return _powers(basis, self.r)

    def variance_weights(self, values: Mapping[str, Any]) -> Any:
        length = values["lengthscale"]
        xp = namespace(length)
        own = [1.0 / length] if self.r == 1 else [length**-2.0, length**-3.0 / 3.0]
        return xp.stack([xp.ones(()), *map(xp.asarray, own)])

    def variance_slopes(self, values: Values) -> Mapping[str, np.ndarray]:
        powers = np.array([0.0, -1.0] if self.r == 1 else [0.0, -2.0, -3.0])
        return {"lengthscale": powers * self.variance_weights(values)}

    def white(self, basis: ColumnBasis) -> WhiteFactor[ColumnBasis]:
        from vff.factors.trend.white import TrendWhite

        return TrendWhite(self, basis)


@lru_cache(maxsize=32)
def _powers(basis: ColumnBasis, r: int) -> np.ndarray:
    """1 and u, or 1, u^2 and u^3, in double letters, (Q, 2) or (Q, 3): each is a product of two features.

    u = t + 1 = 1 - 2 B_1 and u^2 = 4/3 - 4 B_1 - 4 B_2, and B_n is R_n with its harmonics.
    """
    H, few = basis.harmonics, min(basis.q, 2)
    one, bernoulli = np.eye(1, basis.size)[0], np.zeros((few, basis.size))
    bernoulli[:, :H] = harmonic_part(basis.M, few)
    bernoulli[:, H : H + few] = np.eye(few)
    u = one - 2.0 * bernoulli[0]
    if r == 1:
        pairs = [(one, one), (one, u)]
    else:
        square = 4.0 / 3.0 * one - 4.0 * bernoulli[0] - 4.0 * bernoulli[1]
        pairs = [(one, one), (one, square), (u, square)]
    products = [0.5 * (np.multiply.outer(a, b) + np.multiply.outer(b, a)) for a, b in pairs]
    return np.stack([basis.project(DenseView(product)) for product in products], axis=1)


@dataclass(frozen=True)
class TrendPrior(AutoregressivePrior):
    """A Wiener process over an interval."""

    domain: Interval  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: ColumnBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    r: int
    lengthscale: float
    """In half domains."""
    start: float | None = None
    """Where it was asked to start; it starts at the left end of the domain."""

    @property
    def factor(self) -> TrendFactor:
        return TrendFactor(self.r, self.start)

    @cached_property
    def prior(self) -> SpectralPrior:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        return _remembered(self.basis, self.r, self.lengthscale)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """None: the data have their say however far away, with a variance that says how much."""
        return np.zeros(x.shape, bool)

    def slope_variance(self, x: np.ndarray) -> np.ndarray:
        if self.r == 1:
            raise ValueError("a trend of order 1 has no derivative; use Trend(..., order=2) to ask for one")
        u = self.domain.to_unit(x) + 1.0
        return WienerProcess(self.r, self.lengthscale).slope_variance(u) / self.domain.half_length**2
