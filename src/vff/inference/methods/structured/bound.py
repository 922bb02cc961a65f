"""The bound of a structured q, and its gradient, in JAX and float64 (theory §10).

Everything is written in whitened coefficients h ~ N(0, I): the features of term t are z_t = kron_g z_tg, its prior
variance is part of them, and q is N(h_t, S_t) with S_t a sum of one or two *pieces*, each kron_g (L_g L_g'):

    mu_n  = offset + sum_t z_tn' h_t,      v_n = residual_n + sum_t sum_pieces prod_g |L_g' z_tgn|^2

Of log|S|, only eigenvalues are differentiated, so equal ones do no harm. JAX is imported when a fit starts.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from vff.inference.model.products import evaluated
from vff.likelihoods.float64 import float64
from vff.likelihoods.rules import rule

Piece = tuple[np.ndarray, ...]
"""L_g of every group."""
Pieces = tuple[tuple[Piece, ...], ...]
"""Over terms, then over the one or two pieces of its covariance."""


class Rows(NamedTuple):
    """What the bound knows of the rows."""

    z: tuple[tuple[np.ndarray, ...], ...]
    """Whitened features of every group of every term, (N, P_g)."""
    residual: np.ndarray
    """k(0) - phi'K^-1 phi, (N,)."""
    observed: tuple[Any, ...]
    """y, w, extra and psi."""
    offset: np.ndarray | float = 0.0
    """Prior mean of f, one or by row."""


class State(NamedTuple):
    """q in whitened coefficients."""

    means: tuple[np.ndarray, ...]
    """h_t, (P_t,)."""
    pieces: Pieces


class Coordinates(NamedTuple):
    """Where a search stands, and the metric it moves in: h = centre + metric a, L_g = base_g T_g."""

    centre: tuple[np.ndarray, ...]
    metric: np.ndarray
    """(P, P) for all terms together, or (P,) if diagonal."""
    bases: tuple[tuple[np.ndarray, ...], ...]
    """Lower triangular, shared by the pieces of a term."""


class Sites(NamedTuple):
    """The bound at a state, and what the rows say there."""

    bound: float
    slope: np.ndarray
    """w_n d E log p / d mu_n."""
    weight: np.ndarray
    """-2 w_n d E log p / d v_n, which is -w_n E d^2 log p / df^2."""


def marginals(rows: Any, state: Any, xp: Any) -> tuple[Any, Any]:
    """mu and v of every row; like the next two, in ``xp``, NumPy or jax.numpy."""
    mean, variance = rows.offset, rows.residual
    for z, h, pieces in zip(rows.z, state.means, state.pieces, strict=True):
        mean = mean + evaluated(z, h, xp)
        for piece in pieces:
            own = 1.0
            for factor, L in zip(z, piece, strict=True):
                own = own * xp.sum((factor @ L) ** 2, axis=1)
            variance = variance + own
    return mean, variance


def log_determinant(pieces: Any, xp: Any) -> Any:
    """log|S| of one term."""
    first = pieces[0]
    size = int(np.prod([len(L) for L in first]))
    value = sum(2.0 * size / len(L) * xp.sum(xp.log(xp.abs(xp.diagonal(L)))) for L in first)
    if len(pieces) == 1:
        return value
    products = xp.ones(())
    for L, T in zip(first, pieces[1], strict=True):
        relative = xp.linalg.solve(L, T)
        # rounding may carry an eigenvalue of a positive matrix below zero
        products = xp.multiply.outer(products, xp.maximum(xp.linalg.eigvalsh(relative @ relative.T), 0.0))
    return value + xp.sum(xp.log1p(products))


def trace(pieces: Any, xp: Any = np) -> Any:
    """tr S of one term."""
    total = 0.0
    for piece in pieces:
        own = 1.0
        for L in piece:
            own = own * xp.sum(L**2)
        total = total + own
    return total


def divergence(state: Any, xp: Any) -> Any:
    """KL(q || prior)."""
    total = 0.0
    for h, pieces in zip(state.means, state.pieces, strict=True):
        total = total + trace(pieces, xp) + h @ h - h.size - log_determinant(pieces, xp)
    return 0.5 * total


def expected_log_density(likelihood: Any, nodes: int) -> Callable[..., Any]:
    """sum_n w_n E log p(y_n | f) as a function of mu, v, y, w, extra, psi: in closed form, or by quadrature."""
    import jax
    import jax.numpy as jnp

    if likelihood.closed_form:
        by_row = jax.vmap(likelihood.expected_log_density, in_axes=(0, 0, 0, 0, None))
        return lambda mean, variance, y, w, extra, psi: jnp.sum(w * by_row(y, mean, variance, extra, psi))
    places, weights = rule(nodes)
    over_nodes = jax.vmap(likelihood.log_density, in_axes=(None, 0, None, None))
    over_rows = jax.vmap(over_nodes, in_axes=(0, 0, 0, None))

    def total(mean: Any, variance: Any, y: Any, w: Any, extra: Any, psi: Any) -> Any:
        # a variance; the floor keeps the slope of the root finite
        spread = jnp.sqrt(jnp.maximum(variance, 0.5e-14))
        f = mean[:, None] + spread[:, None] * places
        return jnp.sum(w * (over_rows(y, f, extra, psi) @ weights))

    return total


def placed(at: Any, a: Any, T: Any, xp: Any) -> State:
    """The state at coordinates a and T."""
    step = at.metric @ a if at.metric.ndim == 2 else at.metric * a
    ends = np.cumsum([h.size for h in at.centre])[:-1]
    means = tuple(h + part for h, part in zip(at.centre, xp.split(step, ends), strict=True))
    pieces = tuple(
        tuple(tuple(base @ xp.tril(t) for base, t in zip(bases, piece, strict=True)) for piece in term)
        for bases, term in zip(at.bases, T, strict=True)
    )
    return State(means, pieces)


def flattened(tree: Any) -> tuple[np.ndarray, Callable[[np.ndarray], Any]]:
    """All numbers of a tree of arrays, one after another, and the way back."""
    import jax

    leaves, shape = jax.tree.flatten(tree)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def back(x: np.ndarray) -> Any:
        parts = zip(np.split(x, ends), leaves, strict=True)
        return jax.tree.unflatten(shape, [part.reshape(leaf.shape) for part, leaf in parts])

    return np.concatenate([leaf.ravel() for leaf in leaves]), back


@lru_cache(maxsize=32)
def compiled(likelihood: Any, nodes: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """For one likelihood: sum_n w_n E log p and its gradient in mu and v, and the bound and its gradient in (a, T).

    The first looks at no features, so that it compiles once for all q; equal shapes compile once.
    """
    import jax

    expected = expected_log_density(likelihood, nodes)

    def bound(free: tuple[Any, Any], rows: Rows, at: Coordinates) -> Any:
        state = placed(at, *free, jax.numpy)
        return expected(*marginals(rows, state, jax.numpy), *rows.observed) - divergence(state, jax.numpy)

    return jax.jit(jax.value_and_grad(expected, argnums=(0, 1))), jax.jit(jax.value_and_grad(bound))


class Objective:
    """The bound of one problem, in NumPy on both sides; counts its evaluations."""

    def __init__(self, rows: Rows, likelihood: Any, nodes: int):
        import jax

        (self._expected, self._ascent), self._rows = compiled(likelihood, nodes), rows
        with float64():
            self._device_rows = jax.tree.map(jax.numpy.asarray, rows)
        self.evaluations = 0

    def sites(self, state: State) -> Sites:
        """The bound, and the slopes and weights of the rows."""
        self.evaluations += 1
        mean, variance = marginals(self._rows, state, np)
        with float64():
            value, (slope, change) = self._expected(mean, variance, *self._device_rows.observed)
        bound = float(value) - float(divergence(state, np))
        return Sites(bound, np.asarray(slope), -2.0 * np.asarray(change))

    def ascent(self, at: Coordinates, a: np.ndarray, T: Pieces) -> tuple[float, np.ndarray, Pieces]:
        """The bound and its gradient in (a, T)."""
        import jax

        self.evaluations += 1
        with float64():
            value, (da, dT) = self._ascent((a, T), self._device_rows, at)
        return float(value), np.asarray(da), jax.tree.map(np.asarray, dT)
