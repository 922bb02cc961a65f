"""The Matérn of the circle: that of the line, summed over all turns, with independent harmonics (theory (15.1))."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.protocol import Prior, Values
from vff.linalg import Diagonal, namespace

if TYPE_CHECKING:
    from vff.factors.circle.factor import CircleFactor


@dataclass(frozen=True)
class WrappedMatern:
    """sum_n k(r + 2n) over sum_n k(2n), r in half turns, for the Matérn-3/2 k(r) = (1 + s) exp(-s), s = rate |r|.

    The sums over turns are geometric series in q = exp(-2 rate). ``power`` is also known for a rate that JAX traces.
    """

    rate: Any

    @classmethod
    def of(cls, lengthscale: Any) -> "WrappedMatern":
        return cls(np.sqrt(3.0) / lengthscale)

    @cached_property
    def _q(self) -> Any:
        return namespace(self.rate).exp(-2.0 * self.rate)

    @cached_property
    def _rest(self) -> Any:
        """1 - q."""
        return -namespace(self.rate).expm1(-2.0 * self.rate)

    @cached_property
    def total(self) -> Any:
        """sum_n k(2n), the variance before it is made one."""
        return 1.0 + 2.0 * self._q / self._rest + 4.0 * self.rate * self._q / self._rest**2

    def power(self, k: np.ndarray) -> Any:
        """Variances of the harmonics k, which sum to one: by Poisson's formula S(pi k) / total, half of it at zero."""
        density = 4.0 * self.rate**3 / (self.rate**2 + (np.pi * k) ** 2) ** 2
        return np.where(k == 0, 0.5, 1.0) * density / self.total

    def log_power_slope(self, k: np.ndarray) -> np.ndarray:
        """d log power / d log lengthscale."""
        total = 8.0 * self.rate**2 * self._q * (1.0 + self._q) / self._rest**3 / self.total
        return 4.0 * self.rate**2 / (self.rate**2 + (np.pi * k) ** 2) - 3.0 - total

    def correlation(self, r: np.ndarray) -> np.ndarray:
        """At distances in half turns: the turns ahead and the turns behind."""
        r = np.mod(r, 2.0)
        return (self._ahead(r) + self._ahead(2.0 - r)) / self.total

    def _ahead(self, r: np.ndarray) -> np.ndarray:
        """sum over n >= 0 of k(r + 2n)."""
        s = self.rate * r
        return np.exp(-s) * ((1.0 + s) / self._rest + 2.0 * self.rate * self._q / self._rest**2)

    def slope_variance(self) -> float:
        """-k''(0) of the sum, per half turn squared."""
        turns = 1.0 + 2.0 * self._q / self._rest - 4.0 * self.rate * self._q / self._rest**2
        return float(self.rate**2 * turns / self.total)


@dataclass(frozen=True)
class CirclePrior(Prior[Circle, CircleBasis]):
    """Independent harmonics of a function of unit variance."""

    domain: Circle  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    basis: CircleBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field
    lengthscale: float

    @property
    def factor(self) -> "CircleFactor":
        from vff.factors.circle.factor import CircleFactor

        return CircleFactor(self.domain.period)

    @property
    def values(self) -> Values:
        return {"lengthscale": self.lengthscale}

    @cached_property
    def kernel(self) -> WrappedMatern:
        return WrappedMatern.of(self.lengthscale)

    @property
    def K(self) -> Diagonal:
        return Diagonal(1.0 / self.kernel.power(harmonics_of(self.basis)))

    def derivative(self, name: str) -> Diagonal:
        return Diagonal(-self.kernel.log_power_slope(harmonics_of(self.basis)) * self.K.d)

    def features(self, x: np.ndarray, derivative: int = 0) -> np.ndarray:
        return self.basis.evaluate(self.domain.to_unit(x), derivative) / self.domain.unit() ** derivative

    def correlation(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return self.kernel.correlation(np.subtract.outer(x, z) / self.domain.unit())

    def slope_variance(self) -> float:
        return self.kernel.slope_variance() / self.domain.unit() ** 2

    def power(self, detail: int) -> float:
        return float(self.kernel.power(np.array([detail]))[0])


def harmonics_of(basis: CircleBasis) -> np.ndarray:
    """The harmonic of every feature, (P,)."""
    k = np.arange(basis.M + 1)
    return np.concatenate([k, k[1:]])
