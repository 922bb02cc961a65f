"""What the user writes: a function that comes again after a period."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from vff.factors.circle.factor import CircleFactor
from vff.factors.circle.prior import WrappedMatern
from vff.factors.expression import Leaf
from vff.words import shown


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
        super().__post_init__()
        if self.period is None:
            raise TypeError(
                f"Periodic({shown(self.column)}) needs a period in the units of the column; write "
                f"Periodic({shown(self.column)}, period=24) for hours of the day"
            )

    @property
    def factor(self) -> CircleFactor:
        assert self.period is not None
        return CircleFactor(float(self.period))

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        assert self.period is not None
        assert self.lengthscale is not None
        half = 0.5 * self.period
        lags = np.subtract.outer(np.asarray(x, float), np.asarray(z, float))
        return WrappedMatern.of(self.lengthscale / half).correlation(lags / half)
