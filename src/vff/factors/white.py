"""White variables to coefficients in JAX, for kinds that know nothing better: by variances, or a dense factor of K.

Where K is dense, the prior answers in NumPy and is called back; its derivatives in the hyperparameters, with the
functions held, are those of K in the functions of the basis, T^-1 K T^-T, whatever the coordinates of the prior do.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from vff.basis import Basis
from vff.factors.protocol import B, Factor, Prior, WhiteFactor


class DiagonalWhite(WhiteFactor[B]):
    """White variables times the standard deviations of independent coefficients."""

    def at(self, values: tuple[Any, ...]) -> Any:
        """Standard deviations, (P,)."""
        names = [own.name for own in self.factor.parameters]
        return jnp.sqrt(self.factor.variances(self.basis, dict(zip(names, values, strict=True))))

    def coefficients(self, root: Any, v: Any) -> Any:
        return root[:, None] * v

    def explained(self, root: Any, features: Any) -> Any:
        return jnp.sum((features * root) ** 2, axis=1)


class DenseWhite(WhiteFactor[B]):
    """c = L^-T v with L L' = K."""

    def at(self, values: tuple[Any, ...]) -> Any:
        logs = jnp.log(jnp.stack(values)) if values else jnp.zeros(0)
        return jnp.linalg.cholesky(_precision_of(self.factor, self.basis)(logs))

    def coefficients(self, root: Any, v: Any) -> Any:
        return solve_triangular(root, v, lower=True, trans=1)

    def explained(self, root: Any, features: Any) -> Any:
        return jnp.sum(solve_triangular(root, features.T, lower=True) ** 2, axis=0)


@lru_cache(maxsize=32)
def _precision_of(factor: Factor, basis: Basis) -> Any:
    """log values -> K of the functions of the basis, (P, P), which JAX can differentiate once."""
    P, names = basis.size, [own.name for own in factor.parameters]

    def prior(logs: np.ndarray) -> Prior:
        values = dict(zip(names, np.exp(np.asarray(logs, float)).tolist(), strict=True))
        return factor.prior(factor.spanning(-1.0, 1.0), basis, values)

    def matrices(logs: np.ndarray) -> np.ndarray:
        """K, and its derivatives; of a position that a chain has lost, nothing."""
        if not np.isfinite(logs).all():
            return np.full((1 + len(names), P, P), np.nan)
        own = prior(logs)
        every = [own.K, *(own.derivative(name) for name in names)]
        return np.stack([_raw(own, matrix.to_dense()) for matrix in every])

    def in_bits(bits: Any) -> np.ndarray:
        return matrices(np.ascontiguousarray(bits).view(np.float64)[..., 0])[..., None].view(np.uint32)

    def called(logs: Any) -> Any:
        """By way of bits: the thread in which JAX calls back knows nothing of float64 being enabled in this one."""
        bits = jax.lax.bitcast_convert_type(logs, jnp.uint32)
        shape = jax.ShapeDtypeStruct((1 + len(names), P, P, 2), bits.dtype)
        return jax.lax.bitcast_convert_type(
            jax.pure_callback(in_bits, shape, bits, vmap_method="sequential"), logs.dtype
        )

    @jax.custom_jvp
    def precision(logs: Any) -> Any:
        return called(logs)[0]

    @precision.defjvp  # pyright: ignore[reportFunctionMemberAccess]
    def _(primals: Any, tangents: Any) -> Any:
        (K, *slopes), (moved,) = called(primals[0]), tangents
        return K, sum((moved[n] * slope for n, slope in enumerate(slopes)), jnp.zeros((P, P)))

    return precision


def _raw(prior: Prior, matrix: np.ndarray) -> np.ndarray:
    """T^-1 A T^-T."""
    inverse = prior.transform.inverse
    raw = inverse.forward(inverse.forward(matrix).T)
    return 0.5 * (raw + raw.T)
