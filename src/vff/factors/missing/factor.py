"""Any kind of factor, on a column with missing values: these have an effect of their own, of unit variance."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vff.basis import Basis
from vff.factors.missing.basis import MissingBasis, MissingDomain, are_missing, with_indicator
from vff.factors.missing.prior import MissingPrior
from vff.factors.outside import TailRows
from vff.factors.protocol import (
    Block,
    ColumnRange,
    Factor,
    FactorOptions,
    Parameter,
    StartingPoint,
    Values,
    WhiteFactor,
)
from vff.linalg import namespace
from vff.parameters import Unit


def _without(bases: Sequence[MissingBasis]) -> list[Basis]:
    return [basis.base for basis in bases]


@dataclass(frozen=True)
class MissingFactor(Factor[MissingDomain, MissingBasis]):
    """Independent of the function of the numbers, and the same for all missing values."""

    base: Factor

    @property
    def family(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.family

    @property
    def options(self) -> frozenset[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.options

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.parameters

    @property
    def constant_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.constant_variance

    @property
    def title(self) -> str:
        return self.base.title

    def check(self) -> None:
        self.base.check()

    @property
    def numbers(self) -> Factor:
        return self.base

    @property
    def lone(self) -> bool:
        """An effect beside a slope is let be as wide as the slope."""
        return self.base.lone

    @property
    def axis(self) -> tuple[Hashable, ...]:
        return self.base.axis

    def unit(self, domain: MissingDomain, kind: str) -> float:
        return self.base.unit(domain.base, kind)

    def measure(self, domain: MissingDomain, own: Parameter) -> Unit:
        return self.base.measure(domain.base, own)

    @property
    def decay(self) -> float | None:
        return self.base.decay

    def least(self, options: FactorOptions) -> MissingBasis:
        return MissingBasis(self.base.least(options))

    def spanning(self, low: float, high: float) -> MissingDomain:
        return MissingDomain(self.base.spanning(low, high))

    def settled(self, found: ColumnRange, bases: Sequence[MissingBasis], *, growing: bool) -> MissingDomain:
        return MissingDomain(self.base.settled(found, _without(bases), growing=growing))

    def settled_together(
        self, found: Sequence[ColumnRange], bases: Sequence[MissingBasis], *, growing: bool, **more: Any
    ) -> MissingDomain:
        return MissingDomain(self.base.settled_together(found, _without(bases), growing=growing, **more))

    def largest(self, bases: Sequence[MissingBasis]) -> int:
        return self.base.largest(_without(bases))

    def edges(self, basis: MissingBasis) -> int | None:
        return self.base.edges(basis.base)

    def waves(self, detail: int) -> Basis | None:
        return self.base.waves(detail)

    def coarse(self, basis: MissingBasis, distinct: int) -> MissingBasis:
        return MissingBasis(self.base.coarse(basis.base, distinct))

    def one(self, basis: MissingBasis) -> np.ndarray | None:
        own = self.base.one(basis.base)
        return None if own is None else np.append(own, 1.0)

    def prior(self, domain: MissingDomain, basis: MissingBasis, values: Values) -> MissingPrior:
        return MissingPrior(self.base.prior(domain.base, basis.base, values))

    def variances(self, basis: MissingBasis, values: Mapping[str, Any]) -> Any:
        own = self.base.variances(basis.base, values)
        return None if own is None else namespace(own).concatenate([own, np.ones(1)])

    def variance_functions(self, t: np.ndarray) -> np.ndarray:
        few = np.zeros((1, *t.shape[1:]))
        return with_indicator(t, self.base.variance_functions(few).shape[1], self.base.variance_functions)

    def variance_at(self, t: np.ndarray, values: Values) -> np.ndarray | float:
        if self.base.constant_variance:
            return 1.0
        gone, variance = are_missing(t), np.ones(len(t))
        variance[~gone] = self.base.variance_at(t[~gone], values)
        return variance

    def on(self, basis: MissingBasis) -> "MissingFactor":
        return MissingFactor(self.base.on(basis.base))

    @property
    def scattered(self) -> bool:
        return self.base.scattered

    def variance_letters(self, basis: MissingBasis) -> np.ndarray:
        own = self.base.variance_letters(basis.base)
        letters = np.zeros((own.shape[0] + 1, own.shape[1] + 1))
        letters[:-1, :-1], letters[-1, -1] = own, 1.0
        return letters

    def variance_weights(self, values: Mapping[str, Any]) -> Any:
        own = self.base.variance_weights(values)
        return namespace(own).concatenate([own, np.ones(1)])

    def variance_slopes(self, values: Values) -> Mapping[str, np.ndarray]:
        return {name: np.append(slope, 0.0) for name, slope in self.base.variance_slopes(values).items()}

    def ladder(self, detail: int) -> Sequence[StartingPoint]:
        return self.base.ladder(detail)

    def needed(self, values: Values) -> int | None:
        return self.base.needed(values)

    def tails(self, domain: MissingDomain, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[TailRows, ...]:
        if x.ndim > 1:  # which have none
            return ()
        there = ~are_missing(x)
        return self.base.tails(domain.base, x[there], y[there], w[there])

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        """Of numbers their own; of missing values one another's."""
        gone = are_missing(x), are_missing(z)
        known = self.base.block(x[~gone[0]], z[~gone[1]], values)
        places = np.ix_(~gone[0], ~gone[1])

        def written(own: np.ndarray, among_missing: float) -> np.ndarray:
            whole = among_missing * np.multiply.outer(*gone)
            whole[places] = own
            return whole

        def moved() -> np.ndarray | None:
            own = known.moved()
            return None if own is None else written(own, 0.0)

        exponent = None if known.exponent is None else written(known.exponent, 0.0)
        slopes = lambda: [written(own, 0.0) for own in known.slopes()]  # noqa: E731
        return Block(written(known.value, 1.0), exponent, slopes, moved, known.speed)

    def white(self, basis: MissingBasis) -> WhiteFactor[MissingBasis]:
        from vff.factors.missing.white import MissingWhite

        return MissingWhite(self, basis)
