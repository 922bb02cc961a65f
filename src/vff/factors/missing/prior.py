"""A factor at some values, on a column with missing values: K = diag(K of the numbers, 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.factors.missing.basis import MissingBasis, MissingDomain, are_missing, with_indicator
from vff.factors.outside import TailRows
from vff.factors.protocol import Beyond, Prior, TailSums, Values
from vff.factors.transform import EdgeTransform
from vff.linalg import AbstractInvertible, AbstractOperator, BlockDiagonal, BlockOperator, Diagonal

if TYPE_CHECKING:
    from vff.factors.missing.factor import MissingFactor


class RowsMissing(Prior[Any, Any]):
    """What any prior says of rows, where some are missing: they are alike, and have nothing in common with numbers."""

    base: Prior
    known: bool
    """Whether the fit has seen missing values, so that the data have a say at them."""

    @property
    def values(self) -> Values:
        return self.base.values

    def _filled(self, x: np.ndarray, numbers: Any, missing: float) -> np.ndarray:
        """What ``numbers`` tells of the rows that are there, and one value at the others, (N,)."""
        gone = are_missing(x)
        found = np.full(len(x), missing)
        if not gone.all():
            found[~gone] = numbers(x[~gone])
        return found

    def carried(self, x: np.ndarray) -> np.ndarray:
        return self._filled(x, self.base.carried, float(self.known))

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        mine, theirs = are_missing(x), are_missing(z)
        found = np.multiply.outer(mine, theirs).astype(float)
        numbers = x[~mine]
        # a prior may ask whether two sets of rows are the same rows
        found[np.ix_(~mine, ~theirs)] = self.base.correlation(numbers, numbers if x is z else z[~theirs])
        return found

    def outside(self, x: np.ndarray) -> np.ndarray:
        return self._filled(x, self.base.outside, float(not self.known)).astype(bool)

    def prior_variance(self, x: np.ndarray) -> np.ndarray | float:
        if self.base.factor.constant_variance:
            return 1.0
        return self._filled(x, self.base.prior_variance, 1.0)

    def slope_variance(self, x: np.ndarray) -> np.ndarray | float:
        return self._filled(x, self.base.slope_variance, 0.0)

    def power(self, detail: int) -> float:
        return self.base.power(detail)


@dataclass(frozen=True)
class MissingPrior(RowsMissing):
    """One that has a function for missing values, its last."""

    base: Prior

    @property
    def known(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    @property
    def domain(self) -> MissingDomain:
        return MissingDomain(self.base.domain)

    @property
    def basis(self) -> MissingBasis:
        return MissingBasis(self.base.basis)

    @property
    def factor(self) -> "MissingFactor":
        from vff.factors.missing.factor import MissingFactor  # which makes these

        return MissingFactor(self.base.factor)

    @property
    def K(self) -> AbstractInvertible:
        return BlockDiagonal((self.base.K, Diagonal(np.ones(1))))

    @property
    def transform(self) -> EdgeTransform:
        """The last function takes nothing of the others with it."""
        X = self.base.transform.X
        return EdgeTransform(np.pad(X, ((0, 1), (0, 0)))) if len(X) else EdgeTransform.identity(X.shape[1] + 1)

    def derivative(self, name: str) -> AbstractOperator:
        return BlockOperator((self.base.derivative(name), Diagonal(np.zeros(1))))

    def second_derivative(self, name: str, other: str) -> AbstractOperator:
        return BlockOperator((self.base.second_derivative(name, other), Diagonal(np.zeros(1))))

    def held(self, change: AbstractOperator, moved: Prior) -> AbstractOperator:
        assert isinstance(change, BlockOperator)
        assert isinstance(moved, MissingPrior)
        numbers, missing = change.blocks
        return BlockOperator((self.base.held(numbers, moved.base), missing))

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        size = self.base.basis.size
        return with_indicator(x, size, lambda own: self.base.features(own, derivative), float(not derivative))

    def beyond(self, x: np.ndarray) -> Sequence[Beyond] | None:
        """Rows outside a domain are numbers."""
        parts = None if are_missing(x).any() else self.base.beyond(x)
        return None if parts is None else [own._replace(states=_padded(own.states)) for own in parts]

    def readable(self) -> Sequence[tuple[str, float]] | None:
        own = self.base.readable()
        return None if own is None else [*own, ("[missing]", 1.0)]

    def tail_states(self, side: int) -> np.ndarray:
        return _padded(self.base.tail_states(side))

    def tail_sums(self, tail: TailRows) -> TailSums:
        return self.base.tail_sums(tail)

    def tail_derivatives(self, tail: TailRows) -> dict[str, TailSums]:
        return self.base.tail_derivatives(tail)


def _padded(states: np.ndarray) -> np.ndarray:
    """No tail reaches the last function."""
    return np.pad(states, ((0, 1), (0, 0)))


@dataclass(frozen=True)
class NeverMissing(RowsMissing):
    """One whose fit has seen no missing value: at rows that have one, nothing is known but the prior of its effect."""

    base: Prior

    @property
    def known(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return False

    @property
    def domain(self) -> Any:
        return self.base.domain

    @property
    def basis(self) -> Any:
        return self.base.basis

    @property
    def factor(self) -> Any:
        return self.base.factor

    @property
    def K(self) -> AbstractInvertible:
        return self.base.K

    @property
    def transform(self) -> EdgeTransform:
        return self.base.transform

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        return with_indicator(x, self.basis.size, lambda own: self.base.features(own, derivative))[:, :-1]

    def variance_functions(self, x: np.ndarray) -> np.ndarray:
        """Missing values are unknown levels, or where k(x, x) is one: that of numbers is a sum that begins with it."""
        gone = are_missing(x)
        if self.domain.discrete:
            return self.base.variance_functions(np.where(gone, -1.0, x))
        functions = self.base.variance_functions(x)
        functions[gone] = np.eye(1, functions.shape[1])[0]
        return functions

    def beyond(self, x: np.ndarray) -> Sequence[Beyond] | None:
        gone = are_missing(x)
        parts = self.base.beyond(x[~gone])
        if parts is None or not gone.any():
            return parts
        return [own._replace(rows=self._filled(x, lambda _, own=own: own.rows, 0.0).astype(bool)) for own in parts]
