"""Harmonics on a circle in JAX: coefficients are independent."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from vff.factors.circle.basis import CircleBasis
from vff.factors.circle.prior import WrappedMatern, harmonics_of
from vff.factors.protocol import WhiteFactor


@dataclass(frozen=True)
class CircleWhite(WhiteFactor[CircleBasis]):
    """White variables times the standard deviations of the coefficients."""

    basis: CircleBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    @property
    def n_values(self) -> int:
        return 1

    def at(self, values: tuple[Any, ...]) -> Any:
        """Standard deviations, (P,)."""
        return jnp.sqrt(WrappedMatern.of(values[0]).power(harmonics_of(self.basis)))

    def coefficients(self, root: Any, v: Any) -> Any:
        return root[:, None] * v

    def explained(self, root: Any, features: Any) -> Any:
        return jnp.sum((features * root) ** 2, axis=1)
