"""What the exact process learns from: any number of columns, checked and standardised."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from vff.baselines.covariances import AbstractCovariance, Additive, Radial, Values
from vff.baselines.evidence import Given
from vff.baselines.problem import matern_of, target_scale
from vff.baselines.squared_exponential import SquaredExponential
from vff.basis import Interval
from vff.estimators.tables import Table
from vff.inference import TargetScale
from vff.kernels import Kernel, Matern32, Term, normal_form


def to_unit(intervals: Sequence[Interval], x: np.ndarray) -> np.ndarray:
    """Rows (N, C) with the range of every column mapped to [-1, 1]; one column may come as (N,)."""
    x = x.reshape(len(x), -1)
    return np.column_stack([interval.to_unit(x[:, c]) for c, interval in enumerate(intervals)])


@dataclass(frozen=True)
class Design:
    """A kernel of the user's settled on the columns of a table."""

    kernel: SquaredExponential | tuple[Term, ...]
    columns: tuple[int, ...]
    """Where the modelled columns stand in X; each once, in the order the kernel names them."""
    covariance: AbstractCovariance

    @classmethod
    def of(cls, kernel: Any, table: Table) -> "Design":
        if isinstance(kernel, str) and kernel == "rbf":
            kernel = SquaredExponential()
        if isinstance(kernel, str):
            raise ValueError(f"kernel must be an expression such as Matern32('x'), None or 'rbf'; got {kernel!r}")
        everything = range(table.n_columns)
        if isinstance(kernel, SquaredExponential):
            return cls(kernel, tuple(everything), Radial(tuple(table.label(index) for index in everything)))
        if kernel is None:
            kernel = _sum([Matern32(table.names[index] if table.names else index) for index in everything])
        terms = normal_form(kernel)
        _refuse_products(terms)
        indices = [table.index(term.columns[0]) for term in terms]
        columns = tuple(dict.fromkeys(indices))
        orders, places = tuple(matern_of(term).order for term in terms), tuple(map(columns.index, indices))
        labels = tuple(f"{type(matern_of(term)).__name__}({term.columns[0]!r})" for term in terms)
        return cls(terms, columns, Additive(orders, places, labels))

    def scales(self, half_ranges: np.ndarray) -> np.ndarray:
        """The half range that every lengthscale is measured in."""
        return half_ranges if isinstance(self.covariance, Radial) else half_ranges[list(self._places)]

    @property
    def _places(self) -> tuple[int, ...]:
        assert isinstance(self.covariance, Additive)
        return self.covariance.places

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """Variances and lengthscales of the user's, NaN where none was given."""
        if isinstance(self.kernel, SquaredExponential):
            return _numbers([self.kernel.variance]), self.kernel.for_columns(len(self.columns))
        return (
            _numbers([term.variance for term in self.kernel]),
            _numbers([matern_of(term).lengthscale for term in self.kernel]),
        )

    def with_values(self, values: Values) -> Kernel | SquaredExponential:
        """The kernel again, with learnt values."""
        variances, lengthscales = values.variances.tolist(), values.lengthscales.tolist()
        if isinstance(self.kernel, SquaredExponential):
            return SquaredExponential(variances[0], tuple(lengthscales))
        filled = zip(self.kernel, variances, lengthscales, strict=True)
        return _sum([term.with_values(variance, (lengthscale,)) for term, variance, lengthscale in filled])


@dataclass(frozen=True)
class TableProblem:
    """Rows of several columns, in the units the exact process works in."""

    design: Design
    intervals: tuple[Interval, ...]
    """The range of the data in every column, which becomes [-1, 1]."""
    target: TargetScale
    T: np.ndarray
    y: np.ndarray
    given: Given

    @classmethod
    def of(cls, design: Design, x: np.ndarray, y: np.ndarray, noise: float | None, *, centre: bool) -> "TableProblem":
        """Standardise checked rows; ``given`` is taken from the kernel and ``noise``, in the user's units."""
        intervals = tuple(Interval(float(column.min()), float(column.max())) for column in x.T)
        target = target_scale(y, centre=centre)
        variances, lengthscales = design.given
        half_ranges = np.array([interval.half_length for interval in intervals])
        noise_share = np.nan if noise is None else noise / target.scale**2
        given = Given(variances / target.scale**2, lengthscales / design.scales(half_ranges), noise_share)
        return cls(design, intervals, target, to_unit(intervals, x), (y - target.mean) / target.scale, given)

    def in_user_units(self, values: Values) -> Values:
        """Hyperparameters of y and of the columns as they came."""
        half_ranges = np.array([interval.half_length for interval in self.intervals])
        square = self.target.scale**2
        return Values(
            values.variances * square, values.lengthscales * self.design.scales(half_ranges), values.noise * square
        )

    def evidence_in_user_units(self, value: float) -> float:
        """Nats for y as it came: the density of N standardised targets is scale^N times theirs."""
        return value - self.y.size * float(np.log(self.target.scale))


def _sum(kernels: Sequence[Any]) -> Any:
    return reduce(add, kernels)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])


def _refuse_products(terms: Sequence[Term]) -> None:
    for term in terms:
        if len(term.factors) > 1:
            raise ValueError(
                f"a term of the kernel is a product over the columns {term.columns}, and the exact process models sums "
                "of one-column terms, or 'rbf'; write Matern32('a') + Matern32('b'), or use GPRegressor"
            )
