"""A function that comes again after a period: what the user writes, and its independent harmonics (theory (15.1))."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.expression import Leaf
from vff.factors.protocol import Block, Factor, FactorOptions, Parameter, Prior, StartingPoint, Values, by_differences
from vff.linalg import Diagonal, namespace
from vff.words import shown

_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06)  # half turns
_MOST_HARMONICS = 128
_COARSE_HARMONICS = 5
# longer than a few turns a lengthscale says no more: the function is a constant
LENGTHSCALE = Parameter("lengthscale", "length", (2e-3, 1e1), _LENGTHSCALES[:3], typical=0.5)


@dataclass(frozen=True)
class WrappedMatern:
    """sum_n k(r + 2n) over sum_n k(2n), r in half turns, for the Matérn-3/2 k(r) = (1 + s) exp(-s), s = rate |r|.

    The sums over turns are geometric series in q = exp(-2 rate). ``power`` is also known for a rate that JAX traces.
    """

    rate: Any

    @classmethod
    def of(cls, lengthscale: Any) -> "WrappedMatern":
        return cls(np.sqrt(3.0) / lengthscale)

    @cached_property
    def _q(self) -> Any:
        return namespace(self.rate).exp(-2.0 * self.rate)

    @cached_property
    def _rest(self) -> Any:
        """1 - q."""
        return -namespace(self.rate).expm1(-2.0 * self.rate)

    @cached_property
    def total(self) -> Any:
        """sum_n k(2n), the variance before it is made one."""
        return 1.0 + 2.0 * self._q / self._rest + 4.0 * self.rate * self._q / self._rest**2

    def power(self, k: np.ndarray) -> Any:
        """Variances of the harmonics k, which sum to one: by Poisson's formula S(pi k) / total, half of it at zero."""
        density = 4.0 * self.rate**3 / (self.rate**2 + (np.pi * k) ** 2) ** 2
        return np.where(k == 0, 0.5, 1.0) * density / self.total

    def log_power_slope(self, k: np.ndarray) -> np.ndarray:
        """d log power / d log lengthscale."""
        total = 8.0 * self.rate**2 * self._q * (1.0 + self._q) / self._rest**3 / self.total
        return 4.0 * self.rate**2 / (self.rate**2 + (np.pi * k) ** 2) - 3.0 - total

    def correlation(self, r: np.ndarray) -> np.ndarray:
        """At distances in half turns: the turns ahead and the turns behind."""
        r = np.mod(r, 2.0)
        return (self._ahead(r) + self._ahead(2.0 - r)) / self.total

    def _ahead(self, r: np.ndarray) -> np.ndarray:
        """sum over n >= 0 of k(r + 2n)."""
        s = self.rate * r
        return np.exp(-s) * ((1.0 + s) / self._rest + 2.0 * self.rate * self._q / self._rest**2)

    def slope_variance(self) -> float:
        """-k''(0) of the sum, per half turn squared."""
        turns = 1.0 + 2.0 * self._q / self._rest - 4.0 * self.rate * self._q / self._rest**2
        return float(self.rate**2 * turns / self.total)


@dataclass(frozen=True)
class CircleFactor(Factor[Circle, CircleBasis]):
    """A Matérn on a circle of a given period."""

    period: float
    family: ClassVar[str] = "circle"
    options: ClassVar[frozenset[str]] = frozenset({"frequencies"})
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

    def prior(self, domain: Circle, basis: CircleBasis, values: Values) -> "CirclePrior":
        return CirclePrior(domain, basis, values["lengthscale"])

    def variances(self, basis: CircleBasis, values: Mapping[str, Any]) -> Any:
        return WrappedMatern.of(values["lengthscale"]).power(basis.degrees)

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        return [StartingPoint({"lengthscale": length}, _MOST_HARMONICS) for length in _LENGTHSCALES]

    def needed(self, values: Values) -> int:
        # half the spectral mass lies below about omega = rate; four rates leave a few per cent or less
        rate = WrappedMatern.of(values["lengthscale"]).rate
        return int(np.clip(np.ceil(4.0 * rate / np.pi), 6, 10_000))

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        value = WrappedMatern.of(values["lengthscale"]).correlation(np.subtract.outer(x, z))
        return Block(value, None, lambda: by_differences(self, x, z, values), lambda: None)


@dataclass(frozen=True)
class CirclePrior(Prior[Circle, CircleBasis]):
    """Independent harmonics of a function of unit variance."""

    domain: Circle  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: CircleBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    lengthscale: float

    @property
    def factor(self) -> CircleFactor:
        return CircleFactor(self.domain.period)

    @cached_property
    def kernel(self) -> WrappedMatern:
        return WrappedMatern.of(self.lengthscale)

    def derivative(self, name: str) -> Diagonal:
        k = self.basis.degrees
        return Diagonal(-self.kernel.log_power_slope(k) / self.kernel.power(k))

    def slope_variance(self, x: np.ndarray) -> float:
        return self.kernel.slope_variance() / self.domain.unit() ** 2

    def power(self, detail: int) -> float:
        return float(self.kernel.power(np.array([detail]))[0])


@dataclass(frozen=True, repr=False)
class Periodic(Leaf):
    """A smooth function of a column that comes again after a given period: an hour of the day, a day of the year.

    The covariance is the Matérn-3/2 of the line summed over all turns, so value and slope at the end of a period are
    those at its beginning. ``Periodic("t", 24) * Matern32("t")`` is a season that drifts.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    period : float
        In the column's own units; of a column of dates, in days. It is given, and not learnt.
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None means "start from the data".
    lengthscale : float or None
        The same, in the column's own units.

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
    period: float | None = None
    _: KW_ONLY
    lengthscale: float | None = None

    def __post_init__(self) -> None:
        advice = f"write Periodic({shown(self.column)}, period=24) for hours of the day"
        if self.period is None:
            raise TypeError(f"Periodic({shown(self.column)}) needs a period in the units of the column; {advice}")
        if isinstance(self.period, Real) and not 0.0 < float(self.period) < np.inf:
            raise ValueError(
                f"Periodic({shown(self.column)}): period must be a positive number, got {shown(self.period)}; {advice}"
            )
        super().__post_init__()

    @property
    def factor(self) -> CircleFactor:
        assert self.period is not None
        return CircleFactor(float(self.period))
