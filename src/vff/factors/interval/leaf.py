"""What the user writes: half-integer Matérn kernels on a column of numbers."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from vff.factors.expression import Column, Leaf
from vff.factors.interval.factor import MaternFactor
from vff.factors.interval.matern import HalfInteger
from vff.factors.protocol import Factor
from vff.words import shown


@dataclass(frozen=True, repr=False)
class _Matern(Leaf):
    """A half-integer Matérn kernel on one column; the leaves below fix its order.

    ``column`` is a name or an index. ``variance`` and ``lengthscale`` (in the column's own units) are where learning
    starts, or the values used when nothing is learnt; None means "start from the data". ``width`` and ``std`` name a
    column that says what of the function a row has seen (theory §24).
    """

    order: ClassVar[int]
    choices: ClassVar[frozenset[str]] = frozenset({"width", "std"})
    value_columns: ClassVar[frozenset[str]] = choices
    _: KW_ONLY
    lengthscale: float | None = None
    width: Column | None = None
    std: Column | None = None

    def __post_init__(self) -> None:
        if self.width is not None and self.std is not None:
            raise ValueError(
                f"{type(self).__name__}({shown(self.column)}): a row is an average over a width or has an uncertain "
                f"input, got width={shown(self.width)} and std={shown(self.std)}; name one of them"
            )
        super().__post_init__()
        blur = None if self._blur is None else getattr(self, self._blur)
        if isinstance(self.column, str) and blur is not None and not isinstance(blur, str):
            raise TypeError(
                f"{type(self).__name__}({shown(self.column)}): {self._blur} names a column, as {shown(self.column)} "
                f"does, got {shown(blur)}; give the name of the column that holds it, row by row"
            )

    @property
    def _blur(self) -> str | None:
        return next((name for name in ("width", "std") if getattr(self, name) is not None), None)

    @property
    def named_columns(self) -> tuple[str, ...]:
        return self.column_fields if self._blur is None else (*self.column_fields, self._blur)

    @property
    def one_by_one(self) -> bool:
        return True

    @property
    def name(self) -> str:
        """The function is one of the column, whatever rows have seen of it."""
        return str(self.column)

    @property
    def factor(self) -> Factor:
        if self._blur is None:
            return MaternFactor(self.order)
        from vff.factors.blurred.factor import BlurredFactor

        return BlurredFactor(self.order, self._blur)

    def clash(self, other: Leaf) -> str | None:
        """The normal form has one lengthscale per column, and the features of a Matérn are those of no product."""
        same = self.factor.axis == other.factor.axis
        return "a product of Matérns on one column is not a Matérn" if same else None

    def _correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        assert self.lengthscale is not None
        if self._blur is not None:
            return super()._correlation(x, z)
        unit = HalfInteger.from_lengthscale(self.order, self.lengthscale)
        return unit.covariance(np.subtract.outer(np.asarray(x, float), np.asarray(z, float)))


@dataclass(frozen=True, repr=False)
class Matern12(_Matern):
    """Matérn-1/2, the exponential kernel: continuous, nowhere smooth.

    Parameters
    ----------
    column : str or int
        Name or index of the column.
    variance, lengthscale : float or None
        Where learning starts, or the values used when nothing is learnt; None starts from the data. The lengthscale is
        in the column's own units.
    width : str, int or None
        A column that says over how wide an interval around ``column`` a row is an average of the function, in the same
        units: an exposure time, a bin. Zero is a point. New rows have widths of their own.
    std : str, int or None
        A column that says how uncertain ``column`` is: the standard deviation of the input, which is Gaussian. The
        bound averages over inputs as they are given, and noise holds what they scatter.

    Examples
    --------
    >>> vff.Matern12("x", variance=1.0, lengthscale=2.0)([0.0], [0.0, 2.0]).round(3)
    array([[1.   , 0.368]])
    """

    order = 0
    smoothness = "1/2"


@dataclass(frozen=True, repr=False)
class Matern32(_Matern):
    """Matérn-3/2: once differentiable.

    Parameters
    ----------
    column, variance, lengthscale, width, std : as for ``Matern12``

    Examples
    --------
    >>> vff.Matern32("day") * vff.Matern32("time") + vff.Categorical("carrier")
    Matern32('day') * Matern32('time') + Categorical('carrier')
    >>> import pandas as pd
    >>> X, y = pd.DataFrame({"t": np.arange(0.5, 20.0), "h": 1.0}), np.sin(np.arange(0.5, 20.0)) * np.sin(0.5) / 0.5
    >>> model = vff.GPRegressor(vff.Matern32("t", width="h"), frequencies=20).fit(X, y)
    >>> model.predict(pd.DataFrame({"t": [np.pi / 2 + 2 * np.pi], "h": [0.0]})).round(1)
    array([1.])
    """

    order = 1
    smoothness = "3/2"
    default_for = frozenset({"number", "datetime", "duration", "boolean"})


@dataclass(frozen=True, repr=False)
class Matern52(_Matern):
    """Matérn-5/2: twice differentiable.

    Parameters
    ----------
    column, variance, lengthscale, width, std : as for ``Matern12``

    Examples
    --------
    >>> vff.Matern52("x", variance=1.0, lengthscale=2.0)([0.0], [2.0]).round(3)
    array([[0.524]])
    """

    order = 2
    smoothness = "5/2"


@dataclass(frozen=True, repr=False)
class Matern72(_Matern):
    """Matérn-7/2: three times differentiable.

    Parameters
    ----------
    column, variance, lengthscale, width, std : as for ``Matern12``

    Examples
    --------
    >>> vff.Matern72("x", variance=1.0, lengthscale=2.0)([0.0], [2.0]).round(3)
    array([[0.545]])
    """

    order = 3
    smoothness = "7/2"


@dataclass(frozen=True, repr=False)
class Matern92(_Matern):
    """Matérn-9/2: four times differentiable.

    Parameters
    ----------
    column, variance, lengthscale, width, std : as for ``Matern12``

    Examples
    --------
    >>> vff.Matern92("x", variance=1.0, lengthscale=2.0)([0.0], [2.0]).round(3)
    array([[0.558]])
    """

    order = 4
    smoothness = "9/2"
