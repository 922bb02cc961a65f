"""What the user writes: a trend."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from vff.basis import Domain
from vff.factors.expression import REAL, Leaf
from vff.factors.trend.factor import TrendFactor
from vff.factors.trend.process import WienerProcess
from vff.words import shown


@dataclass(frozen=True, repr=False)
class Trend(Leaf):
    """A trend that goes on: beyond the data it continues as a constant (order 1) or a line (order 2).

    A Wiener process, or an integrated one, whose posterior mean is the linear or the cubic smoothing spline. Where it
    starts it has the given variance, and of order 2 a slope of variance ``variance / lengthscale**2``; from there noise
    drives it, so that over a lengthscale it leaves its constant or line by about a standard deviation. A long
    lengthscale means a constant or a line. In mgcv's or SciPy's terms, the penalty of the spline is
    ``noise_variance * lengthscale**(2 * order - 1) / variance``.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    variance, lengthscale : float or None
        Where learning starts, or the values used when nothing is learnt; None starts from the data. The lengthscale is
        in the column's own units; of a column of dates, in days.
    order : int
        1 for a function that goes on as a constant, 2 for one that has a slope and goes on as a line.
    start : float or None
        Where it starts, at or left of all rows; None for where the rows start. It is given, and not learnt.

    Examples
    --------
    >>> vff.Trend("t", variance=1.0, lengthscale=2.0, order=1, start=0.0)([1.0], [0.0, 1.0, 4.0])
    array([[1. , 1.5, 1.5]])
    >>> vff.Trend("year") + vff.Periodic("month", 12)
    Trend('year') + Periodic('month', period=12)
    """

    nickname: ClassVar[str] = "trend"
    choices: ClassVar[frozenset[str]] = frozenset({"order"})
    _: KW_ONLY
    lengthscale: float | None = None
    order: int = 2
    start: float | None = field(default=None, metadata=REAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.order, bool) or self.order not in (1, 2):
            raise ValueError(
                f"Trend({shown(self.column)}): order must be 1 (it goes on as a constant) or 2 (as a line), got "
                f"{shown(self.order)}; leave it out for 2"
            )

    @property
    def factor(self) -> TrendFactor:
        return TrendFactor(int(self.order), None if self.start is None else float(self.start))

    def settled(self, domain: Domain) -> Self:
        ends = domain.ends
        return self if ends is None else replace(self, start=ends[0])

    def clash(self, other: Leaf) -> str | None:
        same = self.factor.family == other.factor.family
        return "a product of a trend and another function of its column is not a trend" if same else None

    def __call__(self, x: Any, z: Any) -> np.ndarray:
        if self.start is None and self.variance is not None and self.lengthscale is not None:
            raise ValueError(
                f"{shown(self)} does not say where it starts: give start= in the column's own units, or use the "
                "kernel_ of a fit"
            )
        return super().__call__(x, z)

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        assert self.start is not None
        assert self.lengthscale is not None
        u, v = (np.asarray(own, float) - self.start for own in (x, z))
        return WienerProcess(int(self.order), self.lengthscale).covariance(u, v)
