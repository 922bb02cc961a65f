"""White variables to coefficients, in JAX, with one more for missing values."""

from typing import Any

import jax.numpy as jnp

from vff.factors.missing.basis import MissingBasis
from vff.factors.missing.factor import MissingFactor
from vff.factors.protocol import WhiteFactor


class MissingWhite(WhiteFactor[MissingBasis]):
    """The last white variable is the effect of missing values."""

    @property
    def numbers(self) -> WhiteFactor:
        """Those of the numbers."""
        assert isinstance(self.factor, MissingFactor)
        return self.factor.base.white(self.basis.base)

    @property
    def white_size(self) -> int:
        return self.numbers.white_size + 1

    def at(self, values: tuple[Any, ...]) -> Any:
        return self.numbers.at(values)

    def coefficients(self, root: Any, v: Any) -> Any:
        return jnp.concatenate([self.numbers.coefficients(root, v[:-1]), v[-1:]])

    def explained(self, root: Any, features: Any) -> Any:
        gone = features[:, -1]  # one or zero; what numbers explain may take for granted that there is one
        return (1.0 - gone) * self.numbers.explained(root, features[:, :-1]) + gone
