"""A function that comes again after a period: what the user writes, and its independent harmonics (theory (15.1))."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache, cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.circle.kernels import CircularKernel, ExponentialSine, WrappedMatern
from vff.factors.expression import Leaf
from vff.factors.protocol import Block, Factor, FactorOptions, Parameter, Prior, StartingPoint, Values, by_differences
from vff.linalg import Diagonal
from vff.priors import LogNormal
from vff.words import shown

_MOST_HARMONICS = 128
_COARSE_HARMONICS = 5
_FASTEST_DECAY = 12.0  # for harmonics that fall faster than any power
_HIGHEST_ORDER = 8
_LENGTHSCALES = {
    "matern": (2.0, 0.6, 0.2, 0.06),
    "exponential-sine": (3.0, 1.0, 0.4, 0.15),
}  # half turns, and about radians
KINDS_OF_CIRCLE = tuple(_LENGTHSCALES)


@cache
def _lengthscale(kind: str, period: float) -> Parameter:
    """Longer than a few turns a lengthscale says no more: the function is a constant."""
    starts = _LENGTHSCALES[kind][:3]
    if kind == "matern":
        return Parameter(
            "lengthscale", "length", (2e-3, 1e1), starts, typical=0.5, prior=lambda _: LogNormal(0.5 * period, 1.0)
        )
    return Parameter("lengthscale", "none", (1e-2, 2e1), starts, typical=1.0, prior=lambda _: LogNormal(1.0, 1.0))


@dataclass(frozen=True)
class CircleFactor(Factor[Circle, CircleBasis]):
    """A kernel of some kind on a circle of a given period."""

    period: float
    order: int = 1
    """Of a Matérn; other kinds have none, and leave it as it is."""
    kind: str = "matern"
    family: ClassVar[str] = "circle"
    options: ClassVar[frozenset[str]] = frozenset({"frequencies"})

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]  # by kind
        return (_lengthscale(self.kind, self.period),)

    @property
    def title(self) -> str:
        return f"a function of period {self.period:g}"

    def check(self) -> None:
        Circle(self.period).check()
        if self.kind not in KINDS_OF_CIRCLE or not 0 <= self.order <= _HIGHEST_ORDER:
            raise ValueError(
                f"a kernel of a circle was expected, found kind={shown(self.kind)} of order {shown(self.order)}"
            )

    def kernel(self, values: Mapping[str, Any]) -> CircularKernel:
        """At a lengthscale, which JAX may trace."""
        own = values["lengthscale"]
        return WrappedMatern.of(self.order, own) if self.kind == "matern" else ExponentialSine(own)

    @property
    def axis(self) -> tuple[Hashable, ...]:
        return self.family, self.period

    @property
    def decay(self) -> float:
        """The tail of the spectrum."""
        return 2.0 * self.order + 1.0 if self.kind == "matern" else _FASTEST_DECAY

    def least(self, options: FactorOptions) -> CircleBasis:
        return CircleBasis(1)

    def spanning(self, low: float, high: float) -> Circle:
        return Circle(self.period)

    def waves(self, detail: int) -> CircleBasis:
        return CircleBasis(detail)

    def coarse(self, basis: CircleBasis, distinct: int) -> CircleBasis:
        return CircleBasis(max(1, min(basis.M, _COARSE_HARMONICS)))

    def prior(self, domain: Circle, basis: CircleBasis, values: Values) -> "CirclePrior":
        return CirclePrior(domain, basis, values["lengthscale"], self.order, self.kind)

    def variances(self, basis: CircleBasis, values: Mapping[str, Any]) -> Any:
        return self.kernel(values).power(basis.degrees)

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        return [StartingPoint({"lengthscale": length}, _MOST_HARMONICS) for length in _LENGTHSCALES[self.kind]]

    def needed(self, values: Values) -> int:
        # half the spectral mass lies below the width; four widths leave a few per cent or less
        return int(np.clip(np.ceil(4.0 * self.kernel(values).width), 6, 10_000))

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        value = self.kernel(values).correlation(np.subtract.outer(x, z))
        return Block(value, None, lambda: by_differences(self, x, z, values), lambda: None)


@dataclass(frozen=True)
class CirclePrior(Prior[Circle, CircleBasis]):
    """Independent harmonics of a function of unit variance."""

    domain: Circle  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: CircleBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    lengthscale: float
    order: int = 1
    kind: str = "matern"

    @property
    def factor(self) -> CircleFactor:
        return CircleFactor(self.domain.period, self.order, self.kind)

    @cached_property
    def kernel(self) -> CircularKernel:
        return self.factor.kernel(self.values)

    def derivative(self, name: str) -> Diagonal:
        k = self.basis.degrees
        return Diagonal(-self.kernel.log_power_slope(k) / self.kernel.power(k))

    def slope_variance(self, x: np.ndarray) -> float:
        variance = self.kernel.slope_variance()
        if not np.isfinite(variance):
            raise ValueError(f"{self.factor.title} and order 0 has no derivative; use order=1 or more to ask for one")
        return variance / self.domain.unit() ** 2

    def power(self, detail: int) -> float:
        return float(self.kernel.power(np.array([detail]))[0])


@dataclass(frozen=True, repr=False)
class Periodic(Leaf):
    """A smooth function of a column that comes again after a given period: an hour of the day, a day of the year.

    The covariance is a Matérn of the line summed over all turns, or MacKay's periodic kernel, so value and slope at the
    end of a period are those at its beginning. ``Periodic("t", 24) * Matern32("t")`` is a season that drifts.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    period : float
        In the column's own units; of a column of dates, in days. It is given, and not learnt.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None means "start from the data".
    lengthscale : float or None
        The same, in the column's own units; of ``kind="exponential-sine"`` a number free of units.
    order : int or None
        How smooth a Matérn is: 0 is rough, as Matern12; 1, which None means, has a slope, as Matern32; 2 is as
        Matern52, and so on up to 8. It is given, and not learnt.
    kind : {"matern", "exponential-sine"}
        The second is exp(-2 sin^2(pi r / period) / lengthscale^2), smooth to any order: scikit-learn's
        ``ExpSineSquared``.

    Examples
    --------
    >>> import numpy as np
    >>> from vff import GPRegressor, Periodic
    >>> hour = np.arange(0.0, 96.0, 0.5)[:, None]
    >>> load = np.cos(2 * np.pi * hour[:, 0] / 24)
    >>> model = GPRegressor(Periodic(0, period=24)).fit(hour, load)
    >>> bool(np.ptp(model.predict([[3.0], [27.0], [99.0]])) < 1e-9)
    True
    """

    nickname: ClassVar[str] = "periodic"
    choices: ClassVar[frozenset[str]] = frozenset({"order", "kind"})
    period: float | None = None
    _: KW_ONLY
    lengthscale: float | None = None
    order: int | None = None
    kind: str = "matern"

    def __post_init__(self) -> None:
        advice = f"write Periodic({shown(self.column)}, period=24) for hours of the day"
        if self.period is None:
            raise TypeError(f"Periodic({shown(self.column)}) needs a period in the units of the column; {advice}")
        if isinstance(self.period, Real) and not 0.0 < float(self.period) < np.inf:
            raise ValueError(
                f"Periodic({shown(self.column)}): period must be a positive number, got {shown(self.period)}; {advice}"
            )
        super().__post_init__()
        self._check_choices()

    def _check_choices(self) -> None:
        who = f"Periodic({shown(self.column)})"
        if not isinstance(self.kind, str) or self.kind not in KINDS_OF_CIRCLE:
            raise ValueError(
                f"{who}: kind must be {' or '.join(map(shown, KINDS_OF_CIRCLE))}, got {shown(self.kind)}; leave it "
                "out for a Matérn"
            )
        if self.order is None:
            return
        whole = isinstance(self.order, Integral) and not isinstance(self.order, bool)
        if not whole or not 0 <= int(self.order) <= _HIGHEST_ORDER:
            raise ValueError(
                f"{who}: order must be an integer from 0 (as Matern12) to {_HIGHEST_ORDER}, got {shown(self.order)}; "
                "leave it out for 1 (as Matern32)"
            )
        if self.kind != "matern":
            raise ValueError(
                f"{who}: order={int(self.order)} is that of a Matérn, and kind={shown(self.kind)} is smooth to any "
                "order; leave one of the two out"
            )

    @property
    def factor(self) -> CircleFactor:
        assert self.period is not None
        return CircleFactor(float(self.period), 1 if self.order is None else int(self.order), self.kind)
