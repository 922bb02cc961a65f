"""White variables v ~ N(0, I) to coefficients of one column, in JAX (theory §12): structured algebra only, O(P).

Coefficients are those of the functions that are evaluated at rows, so the edge transform T' is part of the map. The
part of f that the features miss has the variance

    k(0) - phi' K_uu^-1 phi,      phi' K_uu^-1 phi = s - |U1' phi|^2 + |U2' phi|^2

with s the same at every row, because cos^2 + sin^2 is one.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.factor import IntervalFactor
from vff.factors.interval.rkhs import PriorParts
from vff.factors.protocol import WhiteFactor


class ColumnRoot(NamedTuple):
    """What the maps of one column need at a rate."""

    K: PriorParts
    U1: Any
    """(H, p + 1)."""
    U2: Any
    """(P, q), in the coordinates of K_uu."""
    U2_raw: Any
    """The same in the functions that are evaluated at rows."""
    level: Any
    """s."""


@dataclass(frozen=True)
class ColumnWhite(WhiteFactor[ColumnBasis]):
    """An autoregressive kernel over an interval."""

    factor: IntervalFactor

    @property
    def white_size(self) -> int:
        """One per feature and one per state of the edge."""
        return self.size + self.factor.order

    def at(self, values: tuple[Any, ...]) -> ColumnRoot:
        """The square root and the inverse of K_uu at hyperparameters in half domains, for unit variance."""
        names = (own.name for own in self.factor.parameters)
        prior = self.factor.column_prior(self.basis, dict(zip(names, values, strict=True)))
        d, constant, root, W = parts = prior.parts()
        H, q = self.basis.harmonics, self.basis.q
        scaled = W[:H] / d[:, None]
        capacitance = jnp.linalg.cholesky(jnp.eye(self.factor.order) + W[:H].T @ scaled)
        U1 = solve_triangular(capacitance, scaled.T, lower=True).T
        level = 1.0 / d[0] + jnp.sum(1.0 / d[1 : self.basis.M + 1])
        if not q:
            none = jnp.zeros((H, 0))
            return ColumnRoot(parts, U1, none, none, level)
        edge = solve_triangular(capacitance, (W[H:] - jnp.outer(constant, scaled[0])).T, lower=True).T
        # the Schur complement of the edge functions, a sum of squares, with a diagonal of ones before it is factored
        schur = root @ root.T + edge @ edge.T
        size = jnp.sqrt(jnp.diagonal(schur))
        lower = size[:, None] * jnp.linalg.cholesky(schur / jnp.outer(size, size))
        reach = -(U1 @ edge.T) - jnp.zeros((H, q)).at[0].set(constant / d[0])
        U2 = solve_triangular(lower, jnp.concatenate([reach, jnp.eye(q)]).T, lower=True).T
        raw = jnp.concatenate([U2[:H] + prior.transform.X.T @ U2[H:], U2[H:]])
        return ColumnRoot(parts, U1, U2, raw, level)

    def coefficients(self, root: ColumnRoot, v: Any) -> Any:
        """T' K_uu^-1 R v for v (S, n): coefficients of the functions at rows, (P, n)."""
        (d, constant, corner, W), H, q = root.K, self.basis.harmonics, self.basis.q
        white, state = v[:H], v[H + q :]
        u = jnp.sqrt(d)[:, None] * white + W[:H] @ state
        c = u / d[:, None] - root.U1 @ (root.U1.T @ u)
        if not q:
            return c
        edges = jnp.outer(constant, white[0] / jnp.sqrt(d[0])) + corner @ v[H : H + q]
        pull = root.U2[:H].T @ u + root.U2[H:].T @ (edges + W[H:] @ state)
        return jnp.concatenate([c, jnp.zeros((q, v.shape[1]))]) + root.U2_raw @ pull

    def explained(self, root: ColumnRoot, features: Any) -> Any:
        """phi' K_uu^-1 phi at rows with these features (n, P), (n,)."""
        H = self.basis.harmonics
        value = root.level - jnp.sum((features[:, :H] @ root.U1) ** 2, axis=1)
        return value + jnp.sum((features @ root.U2_raw) ** 2, axis=1)
