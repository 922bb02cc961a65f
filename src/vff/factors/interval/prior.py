"""The prior of a Matérn on an interval of a column: features, tails and correlations in the column's own units."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.interval.matern import HalfInteger
from vff.factors.interval.rkhs import ColumnPrior
from vff.factors.interval.tails import outward_state, tail_features
from vff.factors.outside import TailRows
from vff.factors.protocol import Beyond, Prior, TailSums, Values
from vff.factors.transform import EdgeTransform
from vff.linalg import AbstractInvertible, AbstractOperator, BorderedLowRank

if TYPE_CHECKING:
    from vff.factors.interval.factor import MaternFactor


@lru_cache(maxsize=128)
def column_prior(basis: ColumnBasis, p: int, rate: float) -> ColumnPrior:
    """Remembered, because a value and its gradient ask for the same one."""
    return ColumnPrior(basis, p, rate)


@dataclass(frozen=True)
class IntervalPrior(Prior[Interval, ColumnBasis]):
    """A Matérn over an interval."""

    stored_as: ClassVar[str] = "ColumnFactor"  # what files of all versions call it
    interval: Interval
    prior: ColumnPrior
    """Its rate is per half domain."""

    @property
    def factor(self) -> "MaternFactor":
        from vff.factors.interval.factor import MaternFactor

        return MaternFactor(self.prior.p)

    @property
    def values(self) -> Values:
        return {"lengthscale": float(np.sqrt(2 * self.prior.p + 1) / self.prior.rate)}

    @property
    def domain(self) -> Interval:
        return self.interval

    @property
    def basis(self) -> ColumnBasis:
        return self.prior.basis

    @property
    def K(self) -> AbstractInvertible:
        return self.prior.matrix()

    @property
    def transform(self) -> EdgeTransform:
        return self.prior.transform

    def derivative(self, name: str) -> AbstractOperator:
        """The rate goes as 1 / lengthscale."""
        own = self.prior.rate_derivative()
        return BorderedLowRank(-own.d, -own.border, -own.corner, own.Z, -own.C)

    @cached_property
    def kernel(self) -> HalfInteger:
        return HalfInteger(self.prior.p, self.prior.rate)

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Which rows lie beyond [a, b] by more than a tenth of a lengthscale; there the data lose their say."""
        return np.abs(self.interval.to_unit(x)) > 1.0 + 0.1 * self.values["lengthscale"]

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        t, basis = self.interval.to_unit(x), self.prior.basis
        inside = np.abs(t) <= 1.0
        features = np.empty((t.size, basis.size))
        features[inside] = self.prior.transform.forward(basis.evaluate(t[inside], derivative).T).T
        features[~inside] = tail_features(self.prior, t[~inside], derivative)
        return features / self.interval.half_length**derivative

    def beyond(self, x: np.ndarray) -> Sequence[Beyond]:
        """Rows outside see the features through the p + 1 states of an edge."""
        t = self.interval.to_unit(x)
        sides = [(side, side * t > 1.0) for side in (-1, 1)]
        return [
            Beyond(rows, self.kernel.tail(np.abs(t[rows]) - 1.0), outward_state(self.prior, side))
            for side, rows in sides
        ]

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # rows that float64 cannot tell how far they are apart are far apart
            distances = np.subtract.outer(x, z) / self.interval.half_length
        return self.kernel.covariance(distances)

    def slope_variance(self) -> float:
        if self.prior.p == 0:
            raise ValueError("a Matérn-1/2 process has no derivative; use Matern32 or Matern52 to ask for one")
        return self.kernel.state_covariance()[1, 1] / self.interval.half_length**2

    def power(self, detail: int) -> float:
        return float(self.kernel.spectral_density(np.array([np.pi * detail]))[0])

    def tail_states(self, side: int) -> np.ndarray:
        return outward_state(self.prior, side)

    def tail_sums(self, tail: TailRows) -> TailSums:
        H = self.kernel.tail(tail.r)
        return TailSums(H.T @ (tail.w[:, None] * H), H.T @ (tail.w * tail.y), H.T @ tail.w)

    def tail_derivatives(self, tail: TailRows) -> dict[str, TailSums]:
        H, dH = self.kernel.tail(tail.r), -self.kernel.tail_rate_derivative(tail.r)
        half = H.T @ (tail.w[:, None] * dH)
        return {"lengthscale": TailSums(half + half.T, dH.T @ (tail.w * tail.y), dH.T @ tail.w)}
