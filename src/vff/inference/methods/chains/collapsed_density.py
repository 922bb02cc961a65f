"""Hyperparameters of a model with Gaussian noise, sampled on the collapsed bound (7.2): no step costs any rows.

With few features the bound is written in white variables, where JAX differentiates it: with C = B'GB, A = I + tau C,

    bound = -1/2 [W log(2 pi / tau) + log|A| + tau y'Wy - tau^2 b'B A^-1 B'b + tau (W k(0) - tr C)].

With many, or with rows beyond the domain, the algebra that learning uses gives bound and gradient, and JAX calls back:
differentiating through a large Cholesky factor would take far longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag, solve_triangular

from vff.inference.learning.model import SumModel
from vff.inference.methods.chains.density import Entry, Hyper, log_prior
from vff.inference.methods.chains.points import TermShape, maps_of, places_of, roots_of
from vff.inference.methods.chains.start import round_coordinates
from vff.likelihoods.float64 import float64

_MODELS: dict[int, SumModel] = {}
_numbers = count()


class Sums(NamedTuple):
    """All that the bound knows of the rows."""

    G: Any
    """Phi' W Phi, (P, P), the constant last where there is one."""
    b: Any
    """Phi' W y, (P,)."""
    yy: Any
    weight: Any
    intercept: Any = None
    """Prior standard deviation of the constant."""

    @classmethod
    def of(cls, model: SumModel) -> "Sums":
        """Those of a model without rows beyond its domain."""
        moments = model.moments
        G, b, others = moments.gram().dense(), moments.project, (moments.target_squared, moments.weight)
        if model.intercept is None:
            return cls(G, b, *others)
        h = np.concatenate(moments.features_sums)
        G = np.block([[G, h[:, None]], [h, np.array([[moments.weight]])]])
        return cls(G, np.append(b, moments.target), *others, np.sqrt(model.intercept))


class CollapsedData(NamedTuple):
    """All numbers of a target."""

    number: Any
    """Under which the model is known while it is sampled."""
    hyper: Hyper
    centre: Any
    """(K,)."""
    root: Any
    """(K, K): free hyperparameters = centre + root z."""
    bounds: Any
    """Of the logarithms, (L, 2): beyond them there is no model."""
    sums: Sums | None = None
    """Where the bound is written in white variables."""


def _bound(number: float, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """The collapsed bound and its gradient; minus infinity where there is none."""
    model, nothing = _MODELS[int(number)], (-np.inf, np.zeros(theta.size))
    if not np.array_equal(model.parameters.clip(theta), theta):
        return nothing
    try:
        with np.errstate(all="ignore"):
            closed = model.at(theta)
            value, gradient = float(closed.elbo), model.pull_back(theta, closed.cotangents)
    except FloatingPointError:
        return nothing
    return (value, gradient) if np.isfinite(value) and np.isfinite(gradient).all() else nothing


@jax.custom_vjp
def collapsed_bound(number: Any, theta: Any) -> Any:
    """The bound of a model that is known by number, at log hyperparameters."""
    return _called(number, theta)[0]


def _called(number: Any, theta: Any) -> tuple[Any, Any]:
    """By way of bits: the thread in which JAX calls back knows nothing of float64 being enabled in this one."""
    bits = jax.lax.bitcast_convert_type(jnp.append(theta, number), jnp.uint32)
    found = jax.pure_callback(_bound_in_bits, jax.ShapeDtypeStruct(bits.shape, bits.dtype), bits)
    both = jax.lax.bitcast_convert_type(found, theta.dtype)
    return both[-1], both[:-1]


def _bound_in_bits(bits: Any) -> np.ndarray:
    *theta, number = np.ascontiguousarray(bits).view(np.float64)[:, 0]
    value, gradient = _bound(number, np.array(theta))
    return np.append(gradient, value)[:, None].view(np.uint32)


def _forward(number: Any, theta: Any) -> tuple[Any, Any]:
    return _called(number, theta)


def _backward(gradient: Any, weight: Any) -> tuple[None, Any]:
    return None, weight * gradient


collapsed_bound.defvjp(_forward, _backward)


@dataclass(frozen=True)
class CollapsedTarget:
    """The structure of the log-density. Entries: of every term its hyperparameters, then the noise."""

    entries: tuple[Entry, ...]
    terms: tuple[TermShape, ...] | None = None
    """Where the bound is written in white variables; None where it is called back."""

    @property
    def free(self) -> np.ndarray:
        """Places of the entries that are sampled, (K,)."""
        return np.array([number for number, entry in enumerate(self.entries) if entry.prior is not None], int)

    @property
    def n_hyper(self) -> int:
        """Coordinates that no Gaussian is known for."""
        return self.free.size

    def at(self, data: CollapsedData, z: Any) -> Any:
        """t of every entry, (L,)."""
        return jnp.asarray(data.hyper.held).at[self.free].set(data.centre + data.root @ z)

    def __call__(self, data: CollapsedData, z: Any) -> Any:
        """The log-density at z, up to a constant."""
        t = self.at(data, z)
        bound = collapsed_bound(data.number, t) if self.terms is None else white_bound(self.terms, data.sums, t)
        value = bound + log_prior(self.entries, self.free, data.hyper.numbers, data.hyper, t)
        inside = jnp.all((t >= data.bounds[:, 0]) & (t <= data.bounds[:, 1]))
        return jnp.where(jnp.isfinite(value) & inside, value, -jnp.inf)


def white_bound(terms: Sequence[TermShape], sums: Sums | None, t: Any) -> Any:
    """The collapsed bound at log hyperparameters, those of the terms and the noise."""
    assert sums is not None
    places = places_of(terms)
    blocks = maps_of(terms, places, t, roots_of(terms, places, t))
    features = sum(block.shape[1] for block in blocks)
    if sums.intercept is not None:
        blocks = [*blocks, jnp.reshape(sums.intercept, (1, 1))]
    B = block_diag(*blocks)
    C, tau = B.T @ sums.G @ B, jnp.exp(-t[-1])
    L = jnp.linalg.cholesky(jnp.eye(len(C)) + tau * C)
    pull = tau * solve_triangular(L, B.T @ sums.b, lower=True)
    variance = sum(jnp.exp(t[own.variance]) for own in places)
    # the difference is a sum of variances; only rounding can carry it below zero
    bound_gap = jnp.maximum(variance * sums.weight - jnp.trace(C[:features, :features]), 0.0)
    quadratic = tau * sums.yy - pull @ pull + tau * bound_gap
    return -0.5 * (sums.weight * (np.log(2.0 * np.pi) + t[-1]) + quadratic) - jnp.sum(jnp.log(jnp.diagonal(L)))


class Registered:
    """A model under a number, while it is sampled."""

    def __init__(self, model: SumModel):
        self._model, self.number = model, next(_numbers)

    def __enter__(self) -> np.ndarray:
        _MODELS[self.number] = self._model
        return np.array(float(self.number))

    def __exit__(self, *_: object) -> None:
        del _MODELS[self.number]


def settled(target: CollapsedTarget, data: CollapsedData) -> CollapsedData:
    """Measured from the mode, in coordinates in which the log-density is round there."""
    K = target.free.size
    plain = data._replace(centre=np.asarray(data.hyper.held)[target.free], root=np.eye(K))
    with float64():
        mode, root = round_coordinates(target, jax.device_put(plain), K, K)
    return plain._replace(centre=plain.centre + mode, root=root)


def hyperparameters(target: CollapsedTarget, data: CollapsedData, positions: Sequence[np.ndarray]) -> np.ndarray:
    """t of every draw of every chain, (chains, draws, L)."""
    t = np.tile(np.asarray(data.hyper.held), (*np.shape(positions)[:2], 1))
    t[:, :, target.free] = data.centre + np.stack(positions) @ np.asarray(data.root).T
    return t
