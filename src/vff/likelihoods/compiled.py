"""Compiled functions of blocks of rows. Imports JAX: `expectations.py` imports this file inside functions only.

Every function here is made once per likelihood without its numbers (`AbstractLikelihood.form`); psi and the quadrature
nodes are arguments, so that a change of their values compiles nothing.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.numerics import HALF_LOG_2_PI, log, with_derivatives

Compiled = Callable[..., Any]
NEWTON_STEPS = 60
_remembered = lru_cache(maxsize=64)  # likelihoods; every new function of a user is one
GROW, SHRINK = 4.0, 0.25


def _local(form: AbstractLikelihood, y: Any, f: Any, extra: Any, psi: Any) -> tuple[Any, Any, Any]:
    """(N,) log p and its two derivatives in f."""
    return jax.vmap(lambda y, f, e: with_derivatives(lambda f: form.log_density(y, f, e, psi), f))(y, f, extra)


@_remembered
def expected(form: AbstractLikelihood) -> Compiled:
    """E log p, its slope in the mean and twice its slope in the variance: in closed form, or summed over nodes."""

    def exact(y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> tuple[Any, Any, Any]:
        value, (slope, half) = jax.value_and_grad(lambda m, v: form.expected_log_density(y, m, v, extra, psi), (0, 1))(
            mean, variance
        )
        return value, slope, 2 * half

    def rows(psi: Any, y: Any, extra: Any, mean: Any, variance: Any, *rule: Any) -> Any:
        if form.closed_form:
            return jax.vmap(exact, (0, 0, 0, 0, None))(y, mean, variance, extra, psi)
        return _summed(lambda f: _local(form, y, f, extra, psi), mean, variance, rule)

    return jax.jit(rows)


def _summed(function: Callable[[Any], tuple[Any, ...]], mean: Any, variance: Any, rule: tuple[Any, ...]) -> Any:
    """Σ_k weight_k function(mean + sd node_k), of every part of what it returns."""
    sd, (nodes, weights, count) = jnp.sqrt(variance), rule

    def add(k: Any, sums: tuple[Any, ...]) -> tuple[Any, ...]:
        parts = function(mean + sd * nodes[k])
        return tuple(total + weights[k] * part for total, part in zip(sums, parts, strict=True))

    zeros = jax.tree.map(lambda part: jnp.zeros(part.shape), jax.eval_shape(function, mean))
    return jax.lax.fori_loop(0, count, add, zeros)


@_remembered
def of_parameters(form: AbstractLikelihood) -> Compiled:
    """Σ w E log p as a function of psi: value, gradient, Hessian."""

    def total(psi: Any, y: Any, extra: Any, w: Any, mean: Any, variance: Any, *rule: Any) -> Any:
        if form.closed_form:
            rows = jax.vmap(lambda y, m, v, e: form.expected_log_density(y, m, v, e, psi))(y, mean, variance, extra)
        else:
            at = jax.vmap(lambda y, f, e: form.log_density(y, f, e, psi))
            (rows,) = _summed(lambda f: (at(y, f, extra),), mean, variance, rule)
        return jnp.sum(w * rows)

    def everything(psi: Any, *rows: Any) -> tuple[Any, Any, Any]:
        """Forward mode twice, since psi is short; what the value and the gradient need is computed once."""

        def with_value(psi: Any) -> tuple[Any, Any]:
            value = total(psi, *rows)
            return value, value

        def with_gradient(psi: Any) -> tuple[Any, Any]:
            gradient, value = jax.jacfwd(with_value, has_aux=True)(psi)
            return gradient, (value, gradient)

        hessian, (value, gradient) = jax.jacfwd(with_gradient, has_aux=True)(psi)
        return value, gradient, hessian

    return jax.jit(everything)


@_remembered
def modes(form: AbstractLikelihood) -> Compiled:
    """Per row the maximum of log p(y | f) - (f - centre)² / (2 spread²), by Newton's method in a trust interval.

    A step that does not raise the objective is refused and the interval shrinks to a quarter; one that does is taken
    and the interval grows fourfold.
    """

    def rows(psi: Any, y: Any, extra: Any, start: Any, centre: Any, spread: Any) -> tuple[Any, Any, Any]:
        precision = 1 / spread**2

        def evaluate(f: Any) -> tuple[Any, Any, Any]:
            value, slope, curvature = _local(form, y, f, extra, psi)
            offset = f - centre
            return value - 0.5 * precision * offset**2, slope, curvature

        def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
            count, f, value, slope, curvature, radius, _ = state
            uphill = slope - precision * (f - centre)
            newton = uphill / (jnp.maximum(-curvature, 0.0) + precision)
            move = jnp.clip(newton, -radius, radius)
            new_value, new_slope, new_curvature = evaluate(f + move)
            good = new_value >= value - jnp.where(count == 0, 0.0, 1e-12 * (1 + jnp.abs(value)))
            radius = jnp.where(good, jnp.maximum(radius, GROW * jnp.abs(move)), SHRINK * jnp.abs(move))
            tolerance = 1e-9 * jnp.sqrt(1 / (jnp.maximum(-curvature, 0.0) + precision))
            busy = (count == 0) | jnp.any((jnp.abs(move) > tolerance) & (jnp.abs(move) > 1e-13 * jnp.abs(f)))
            pick = lambda new, old: jnp.where(good, new, old)  # noqa: E731
            return (
                count + 1,
                pick(f + move, f),
                pick(new_value, value),
                pick(new_slope, slope),
                pick(new_curvature, curvature),
                radius,
                busy,
            )

        # the first step stays where it is and evaluates: one copy of the density to compile instead of two
        stay, none = precision * (start - centre), jnp.zeros_like(start)
        first = (jnp.zeros((), int), start, none - jnp.inf, stay, none, 2.0 * spread, jnp.array(True))
        final = jax.lax.while_loop(lambda state: state[-1] & (state[0] < NEWTON_STEPS), step, first)
        return final[1], final[3], final[4]

    return jax.jit(rows)


@_remembered
def log_integral(form: AbstractLikelihood) -> Compiled:
    """log ∫ p(y | f) N(f; mean, sd²) share(f) df by the trapezoidal rule in t, f = centre + scale sinh(t).

    ``t`` are ``count`` numbers from low to high, per row. The share is one, unless log p is not concave: then it goes
    from one at the centre to zero at another maximum of the integrand, ``other``, whose own call takes the rest,

        share = 1/(1 + r⁴),    r = ((f - centre)² + s²) / ((f - other)² + s²),    s the narrower width of the two.
    """

    def rows(psi: Any, y: Any, extra: Any, *geometry: Any) -> Any:
        mean, sd, centre, scale, low, high, other, narrow, count = geometry
        at = jax.vmap(lambda y, f, e: form.log_density(y, f, e, psi))
        gap = (high - low) / (count - 1)

        def term(k: Any) -> Any:
            t = low + k * gap
            f = centre + scale * jnp.sinh(t)
            z = (f - mean) / sd
            value = at(y, f, extra) - 0.5 * z * z + log(jnp.cosh(t))
            if form.log_concave:
                return value
            ratio = ((f - centre) ** 2 + narrow**2) / ((f - other) ** 2 + narrow**2)
            return value - jnp.log1p(ratio**4)

        def add(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            top, total = state
            new = term(k)
            higher = jnp.maximum(top, new)
            return higher, total * jnp.exp(top - higher) + jnp.exp(new - higher)

        top, total = jax.lax.fori_loop(0, count, add, (jnp.full_like(mean, -1e300), jnp.zeros_like(mean)))
        return top + log(total * gap * scale / sd) - HALF_LOG_2_PI

    return jax.jit(rows)
