"""White variables v ~ N(0, I) to coefficients of a trend, in JAX.

Less their Taylor polynomials at the start, all functions but those polynomials are independent of these, and no
lengthscale is in any of them: K^-1 = T'(S D+ S' + N C^-1 N')T is a constant root with scaled columns (theory (19.4)).
"""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from vff.factors.interval.basis import ColumnBasis
from vff.factors.protocol import WhiteFactor
from vff.factors.trend.process import WienerProcess


class TrendWhite(WhiteFactor[ColumnBasis]):
    """A Wiener process over an interval; the first r white variables are the state at the start."""

    def at(self, values: tuple[Any, ...]) -> Any:
        """The root, (P, P)."""
        (lengthscale,) = values
        r = self.factor.order  # pyright: ignore[reportAttributeAccessIssue]
        noise = lengthscale ** (0.5 - r) * jnp.ones(self.size - r)
        state = jnp.stack([lengthscale ** -float(j) * jnp.ones(()) for j in range(r)])
        return _unit_root(self.basis, r) * jnp.concatenate([state, noise])

    def coefficients(self, root: Any, v: Any) -> Any:
        return root @ v

    def explained(self, root: Any, features: Any) -> Any:
        return jnp.sum((features @ root) ** 2, axis=1)


@lru_cache(maxsize=32)
def _unit_root(basis: ColumnBasis, r: int) -> np.ndarray:
    """Of K^-1 of the functions of the basis at unit lengthscale, (P, P); not to be written to."""
    from vff.factors.trend.factor import TrendColumnPrior

    prior, P, H = TrendColumnPrior(basis, WienerProcess(r, 1.0)), basis.size, basis.harmonics
    Z, free = prior.state(-1), list(prior.free)
    held = np.setdiff1d(np.arange(P), free)
    N, root = np.zeros((P, r)), np.zeros((P, P))
    N[free] = np.linalg.inv(Z[free]).T
    waves, edges = held[held < H], held[held >= H] - H
    root[waves, r + np.arange(waves.size)] = basis.omega[waves] ** -float(r)
    places = np.ix_(H + edges, np.arange(r + waves.size, P))
    root[places] = np.linalg.inv(prior.edge_root()[np.ix_(edges, edges)]).T
    root -= N @ (Z.T @ root)
    root[:, :r] = N
    return prior.transform.transpose(root)
