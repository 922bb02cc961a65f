"""White variables to intercept and slope, in JAX."""

from typing import Any

from vff.factors.line.basis import LineBasis
from vff.factors.protocol import WhiteFactor


class LineWhite(WhiteFactor[LineBasis]):
    """c = L v with L L' the covariance of intercept and slope."""

    def at(self, values: tuple[Any, ...]) -> Any:
        import jax.numpy as jnp

        slope, ratio = values
        # r and the root of 1 - r^2 of ratio = (1 + r) / (1 - r)
        r, rest = (ratio - 1.0) / (ratio + 1.0), 2.0 * jnp.sqrt(ratio) / (1.0 + ratio)
        return jnp.stack([jnp.stack([slope / slope, 0.0 * slope]), jnp.stack([slope * r, slope * rest])])

    def coefficients(self, root: Any, v: Any) -> Any:
        return root @ v

    def explained(self, root: Any, features: Any) -> Any:
        return ((features @ root) ** 2).sum(axis=1)
