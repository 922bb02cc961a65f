"""The two kinds of term: a half-integer Matérn over a column, and exchangeable effects of levels.

A term knows its hyperparameters (relative to half the domain and to the targets' variance), the prior precision of its
coefficients, the coordinates in which that is written, and the chain rule back to the logarithms.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vff.basis import ColumnBasis
from vff.features import ColumnPrior, EdgeTransform
from vff.kernels import HalfInteger
from vff.linalg import AbstractInvertible, Diagonal, Summary
from vff.moments import Basis

Values = Mapping[str, float]

_BOUNDS = {"variance": (1e-8, 1e6), "lengthscale": (2e-4, 1e2)}


class AbstractTerm(ABC):
    """One summand of the model, of any basis."""

    names: tuple[str, ...]
    """Its hyperparameters; the variance is the first."""

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [_BOUNDS[name] for name in self.names]

    @abstractmethod
    def precision(self, basis: Basis, values: Values) -> AbstractInvertible:
        """K, the prior precision of the coefficients."""

    @abstractmethod
    def transform(self, basis: Basis, values: Values) -> EdgeTransform:
        """From the functions that are summed over rows to those whose coefficients K is about."""

    @abstractmethod
    def pull_back(self, basis: Basis, values: Values, K: AbstractInvertible, dK: Summary) -> dict[str, float]:
        """The derivatives <dK, dK / d log theta> for every hyperparameter."""


@lru_cache(maxsize=64)
def _prior(basis: ColumnBasis, p: int, rate: float) -> ColumnPrior:
    """Remembered, because a value and its gradient ask for the same one."""
    return ColumnPrior(basis, p, rate)


@dataclass(frozen=True)
class MaternTerm(AbstractTerm):
    """A Matérn of order p."""

    p: int
    names = ("variance", "lengthscale")

    def kernel(self, values: Values) -> HalfInteger:
        return HalfInteger.from_lengthscale(self.p, values["lengthscale"])

    def prior(self, basis: Basis, values: Values) -> ColumnPrior:
        """K_uu's author at these hyperparameters, for unit variance."""
        assert isinstance(basis, ColumnBasis)
        return _prior(basis, self.p, self.kernel(values).rate)

    def precision(self, basis: Basis, values: Values) -> AbstractInvertible:
        return self.prior(basis, values).matrix().scaled(1.0 / values["variance"])

    def transform(self, basis: Basis, values: Values) -> EdgeTransform:
        return self.prior(basis, values).transform

    def pull_back(self, basis: Basis, values: Values, K: AbstractInvertible, dK: Summary) -> dict[str, float]:
        # K is proportional to 1 / variance. The bound does not depend on coordinates, so those of the prior may be
        # held at this rate.
        d_rate = self.prior(basis, values).rate_derivative().inner(dK) / values["variance"]
        return {"variance": -K.inner(dK), "lengthscale": -d_rate}


@dataclass(frozen=True)
class LevelTerm(AbstractTerm):
    """Independent effects of equal variance, one per level."""

    names = ("variance",)

    def precision(self, basis: Basis, values: Values) -> AbstractInvertible:
        return Diagonal(np.full(basis.size, 1.0 / values["variance"]))

    def transform(self, basis: Basis, values: Values) -> EdgeTransform:
        return EdgeTransform(np.zeros((0, basis.size)))

    def pull_back(self, basis: Basis, values: Values, K: AbstractInvertible, dK: Summary) -> dict[str, float]:
        return {"variance": -K.inner(dK)}


Term = MaternTerm | LevelTerm
