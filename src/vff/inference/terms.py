"""A term: a product of factors over columns, each a half-integer Matérn or exchangeable effects of levels.

A term knows its hyperparameters (relative to half the domain and to the targets' variance), the prior precision of its
coefficients, the coordinates in which that is written, and the chain rule back to the logarithms. It has one variance;
every Matérn factor has a lengthscale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vff.basis import Basis, ColumnBasis
from vff.features import ColumnPrior, EdgeTransform, TermTransform
from vff.kernels import HalfInteger
from vff.linalg import AbstractInvertible, Diagonal, Kronecker, Summary

Values = Mapping[str, float]

_VARIANCE_BOUNDS, _LENGTHSCALE_BOUNDS = (1e-8, 1e6), (2e-4, 1e2)


@lru_cache(maxsize=128)
def _prior(basis: ColumnBasis, p: int, rate: float) -> ColumnPrior:
    """Remembered, because a value and its gradient ask for the same one."""
    return ColumnPrior(basis, p, rate)


@dataclass(frozen=True)
class MaternFactor:
    """A Matérn of order p over one column."""

    p: int

    def kernel(self, lengthscale: float) -> HalfInteger:
        return HalfInteger.from_lengthscale(self.p, lengthscale)

    def prior(self, basis: Basis, lengthscale: float) -> ColumnPrior:
        """K_uu's author at this lengthscale, for unit variance."""
        assert isinstance(basis, ColumnBasis)
        return _prior(basis, self.p, self.kernel(lengthscale).rate)


@dataclass(frozen=True)
class LevelFactor:
    """Independent effects of equal variance, one per level."""


Factor = MaternFactor | LevelFactor


@dataclass(frozen=True)
class Term:
    """One summand of the model: a product of factors, one per column."""

    factors: tuple[Factor, ...]

    @property
    def lengthscales(self) -> tuple[str | None, ...]:
        """What the lengthscale of every factor is called; None for levels."""
        alone = len(self.factors) == 1
        return tuple(
            ("lengthscale" if alone else f"lengthscale of factor {d}") if isinstance(factor, MaternFactor) else None
            for d, factor in enumerate(self.factors)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Its hyperparameters; the variance is the first."""
        return ("variance", *(name for name in self.lengthscales if name is not None))

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [_VARIANCE_BOUNDS] + [_LENGTHSCALE_BOUNDS] * (len(self.names) - 1)

    def order(self, d: int) -> int | None:
        """p of a factor; None for levels."""
        factor = self.factors[d]
        return factor.p if isinstance(factor, MaternFactor) else None

    def lengthscale(self, d: int, values: Values) -> float:
        """Of a Matérn factor."""
        name = self.lengthscales[d]
        assert name is not None
        return values[name]

    def prior(self, d: int, bases: Sequence[Basis], values: Values) -> ColumnPrior:
        """K_uu's author for a Matérn factor, unit variance."""
        factor = self.factors[d]
        assert isinstance(factor, MaternFactor)
        return factor.prior(bases[d], self.lengthscale(d, values))

    def kernel(self, d: int, values: Values) -> HalfInteger:
        """The correlation of a Matérn factor."""
        factor = self.factors[d]
        assert isinstance(factor, MaternFactor)
        return factor.kernel(self.lengthscale(d, values))

    def _block(self, d: int, bases: Sequence[Basis], values: Values) -> "AbstractInvertible":
        """The precision of one factor, for unit variance."""
        if isinstance(self.factors[d], LevelFactor):
            return Diagonal(np.ones(bases[d].size))
        return self.prior(d, bases, values).matrix()

    def blocks(self, bases: Sequence[Basis], values: Values) -> tuple[AbstractInvertible, ...]:
        """The precision of every factor, for unit variance."""
        return tuple(self._block(d, bases, values) for d in range(len(self.factors)))

    def precision(self, bases: Sequence[Basis], values: Values) -> AbstractInvertible:
        """K, the prior precision of the coefficients."""
        blocks = self.blocks(bases, values)
        return (blocks[0] if len(blocks) == 1 else Kronecker(blocks)).scaled(1.0 / values["variance"])

    def transform(self, bases: Sequence[Basis], values: Values) -> TermTransform:
        """From the functions that are summed over rows to those whose coefficients K is about."""
        return TermTransform(
            tuple(
                EdgeTransform(np.zeros((0, bases[d].size)))
                if isinstance(factor, LevelFactor)
                else self.prior(d, bases, values).transform
                for d, factor in enumerate(self.factors)
            )
        )

    def pull_back(self, bases: Sequence[Basis], values: Values, K: AbstractInvertible, dK: Summary) -> dict[str, float]:
        """The derivatives <dK, dK / d log theta> for every hyperparameter.

        K is proportional to 1 / variance. The bound does not depend on coordinates, so those of the prior may be held
        at this rate.
        """
        gradient = {"variance": -K.inner(dK)}
        for d, name in enumerate(self.lengthscales):
            if name is not None:
                change = self.prior(d, bases, values).rate_derivative()
                if isinstance(K, Kronecker):
                    gradient[name] = -K.inner_of_factor(change, dK, d)
                else:
                    gradient[name] = -change.inner(dK) / values["variance"]
        return gradient
