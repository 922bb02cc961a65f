"""White variables to coefficients of a function of which rows see averages: those of the function itself, in JAX."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from vff.factors.blurred.basis import BlurredBasis
from vff.factors.blurred.factor import BlurredFactor
from vff.factors.interval.white import ColumnRoot, ColumnWhite
from vff.factors.protocol import WhiteFactor


@dataclass(frozen=True)
class BlurredWhite(WhiteFactor[BlurredBasis]):
    """A Matérn over an interval."""

    factor: BlurredFactor

    @property
    def _plain(self) -> ColumnWhite:
        return ColumnWhite(self.factor.plain, self.basis.plain)

    @property
    def white_size(self) -> int:
        return self._plain.white_size

    def at(self, values: tuple[Any, ...]) -> ColumnRoot:
        return self._plain.at(values)

    def coefficients(self, root: ColumnRoot, v: Any) -> Any:
        return self._plain.coefficients(root, v)

    def explained(self, root: ColumnRoot, features: Any) -> Any:
        """phi' K_uu^-1 phi of averages, whose squares of cosine and sine do not add up to one."""
        H = self.basis.plain.harmonics
        value = features[:, :H] ** 2 @ (1.0 / root.K.d) - jnp.sum((features[:, :H] @ root.U1) ** 2, axis=1)
        return value + jnp.sum((features @ root.U2_raw) ** 2, axis=1)
