"""Exchangeable levels in JAX: coefficients are white already."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from vff.factors.levels.basis import LevelBasis
from vff.factors.protocol import WhiteFactor


@dataclass(frozen=True)
class LevelWhite(WhiteFactor[LevelBasis]):
    """Nothing to be done."""

    basis: LevelBasis  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    @property
    def n_values(self) -> int:
        return 0

    def at(self, values: tuple[Any, ...]) -> None:
        """Nothing to know."""

    def coefficients(self, root: None, v: Any) -> Any:
        return v

    def explained(self, root: None, features: Any) -> Any:
        return jnp.sum(features**2, axis=1)
