"""A function of a given period: how many harmonics it needs, and where learning starts."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.circle.prior import CirclePrior, WrappedMatern
from vff.factors.protocol import (
    Block,
    Factor,
    FactorOptions,
    Parameter,
    StartingPoint,
    Values,
    WhiteFactor,
    by_differences,
)

_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06)  # half turns
_MOST_HARMONICS = 128
_COARSE_HARMONICS = 5
# longer than a few turns a lengthscale says no more: the function is a constant
LENGTHSCALE = Parameter("lengthscale", "length", (2e-3, 1e1), _LENGTHSCALES[:3], typical=0.5)


@dataclass(frozen=True)
class CircleFactor(Factor[Circle, CircleBasis]):
    """A Matérn on a circle of a given period."""

    period: float
    family: ClassVar[str] = "circle"
    options: ClassVar[frozenset[str]] = frozenset({"frequencies"})
    view: ClassVar[str] = "circle"
    parameters: ClassVar[tuple[Parameter, ...]] = (LENGTHSCALE,)

    @property
    def title(self) -> str:
        return f"a function of period {self.period:g}"

    def check(self) -> None:
        Circle(self.period).check()

    @property
    def axis(self) -> tuple[Hashable, ...]:
        return self.family, self.period

    @property
    def decay(self) -> float:
        """The tail of the spectrum."""
        return 3.0

    def least(self, options: FactorOptions) -> CircleBasis:
        return CircleBasis(1)

    def spanning(self, low: float, high: float) -> Circle:
        return Circle(self.period)

    def waves(self, detail: int) -> CircleBasis:
        return CircleBasis(detail)

    def coarse(self, basis: CircleBasis, distinct: int) -> CircleBasis:
        return CircleBasis(max(1, min(basis.M, _COARSE_HARMONICS)))

    def prior(self, domain: Circle, basis: CircleBasis, values: Values) -> CirclePrior:
        return CirclePrior(domain, basis, values["lengthscale"])

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        return [StartingPoint({"lengthscale": length}, _MOST_HARMONICS) for length in _LENGTHSCALES]

    def needed(self, values: Values) -> int:
        # half the spectral mass lies below about omega = rate; four rates leave a few per cent or less
        rate = WrappedMatern.of(values["lengthscale"]).rate
        return int(np.clip(np.ceil(4.0 * rate / np.pi), 6, 10_000))

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        value = WrappedMatern.of(values["lengthscale"]).correlation(np.subtract.outer(x, z))
        return Block(value, None, lambda: by_differences(self, x, z, values), lambda: None)

    def white(self, basis: CircleBasis) -> WhiteFactor:
        from vff.factors.circle.white import CircleWhite

        return CircleWhite(basis)
