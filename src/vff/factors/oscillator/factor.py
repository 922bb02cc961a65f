"""A damped oscillation on an interval: what the user writes, where learning starts, and its prior."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from vff.factors.expression import Leaf
from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.factor import IntervalFactor, StationaryPrior
from vff.factors.interval.rkhs import SpectralPrior
from vff.factors.oscillator.process import DampedOscillator
from vff.factors.protocol import Block, Parameter, StartingPoint, Values, by_differences, with_room
from vff.priors import LogNormal

_CYCLES = (1.0, 2.0, 4.0, 8.0)  # of the whole domain
_QUALITY = 4.0
PERIOD = Parameter("period", "length", (2e-3, 1e2), tuple(2.0 / n for n in _CYCLES), typical=0.5)
QUALITY = Parameter(
    "quality",
    "none",
    (0.2, 1e4),
    (_QUALITY,) * len(_CYCLES),
    typical=_QUALITY,
    prior=lambda _: LogNormal(_QUALITY, 1.5),
)  # from none at all to hundreds of periods, whatever the range of the column is


@dataclass(frozen=True)
class OscillatorColumnPrior(SpectralPrior):
    """K_uu of an oscillator (in half domains)."""

    basis: ColumnBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    kernel: DampedOscillator  # pyright: ignore[reportIncompatibleMethodOverride]  # a field


@lru_cache(maxsize=128)
def _remembered(basis: ColumnBasis, period: float, quality: float) -> OscillatorColumnPrior:
    """A value and its gradient ask for the same one."""
    return OscillatorColumnPrior(basis, DampedOscillator(period, quality))


@dataclass(frozen=True)
class OscillatorFactor(IntervalFactor):
    """A damped oscillation whose period and quality are hyperparameters of the kernel, and not of the features."""

    parameters: ClassVar[tuple[Parameter, ...]] = (PERIOD, QUALITY)

    @property
    def title(self) -> str:
        return "an oscillator"

    @property
    def order(self) -> int:
        return 2

    @property
    def usual_edges(self) -> int:
        """With three, an oscillation of high quality misses a hundred times more at the edges than in the middle."""
        return 4

    def column_prior(self, basis: ColumnBasis, values: Mapping[str, Any]) -> SpectralPrior:
        return OscillatorColumnPrior(basis, DampedOscillator(values["period"], values["quality"]))

    def prior(self, domain: Interval, basis: ColumnBasis, values: Values) -> "OscillatorPrior":
        return OscillatorPrior(domain, basis, values["period"], values["quality"])

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        """Frequencies half a cycle of the domain apart: a bound has a peak of that width at a period of the data."""
        highest = max(2 * detail, 16)
        return [
            StartingPoint({"period": 4.0 / n, "quality": _QUALITY}, with_room(detail)) for n in range(1, highest + 1)
        ]

    def needed(self, values: Values) -> int:
        """A line at omega0 of width omega0 / quality; the tail falls like the fourth power."""
        cycles = 2.0 / values["period"]
        return int(np.clip(np.ceil(cycles * (1.0 + 4.0 / max(values["quality"], 1.0))), 12, 10_000))

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        kernel = DampedOscillator(values["period"], values["quality"])
        value = kernel.covariance(np.subtract.outer(x, z))
        return Block(value, None, lambda: by_differences(self, x, z, values), lambda: None)


@dataclass(frozen=True)
class OscillatorPrior(StationaryPrior):
    """An oscillator over an interval."""

    domain: Interval  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: ColumnBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    period: float
    """In half domains."""
    quality: float

    @property
    def factor(self) -> OscillatorFactor:
        return OscillatorFactor()

    @cached_property
    def prior(self) -> SpectralPrior:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        return _remembered(self.basis, self.period, self.quality)


@dataclass(frozen=True, repr=False)
class Oscillator(Leaf):
    """A damped oscillation that noise keeps going, as in stars and tides: celerite's ``SHOTerm``.

    f'' + (w / quality) f' + w^2 f = white noise with w = 2 pi / period. Of high quality it repeats itself over about
    ``quality`` periods; below 1/2 it does not swing at all. The period is learnt without another look at the rows.
    A sum of oscillators is a rotation of a star, or any spectrum of lines.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    period : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data. In the column's own
        units; of a column of dates, in days.
    variance : float or None
        The same.
    quality : float or None
        The same, of the number of periods over which an oscillation lasts, times pi.

    Examples
    --------
    >>> vff.Oscillator("t", period=2.0, quality=10.0, variance=1.0)([0.0], [0.0, 1.0, 2.0]).round(2)
    array([[ 1.  , -0.85,  0.73]])
    """

    nickname: ClassVar[str] = "oscillator"
    period: float | None = None
    _: KW_ONLY
    quality: float | None = None

    @property
    def factor(self) -> OscillatorFactor:
        return OscillatorFactor()

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        kernel = DampedOscillator(self.period, self.quality)
        return kernel.covariance(np.subtract.outer(np.asarray(x, float), np.asarray(z, float)))
