"""Where chains start, and how wide the posterior is there: at the mode of the white variables, given a start."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from vff.inference.methods.chains.density import Data, HyperTarget, Leading, Target
from vff.inference.methods.chains.points import RowData, TermPoints, TermShape
from vff.inference.methods.chains.run import Drawn, Plan, compilation, compiled, run, slope_of
from vff.likelihoods.float64 import float64

_HYPER_SCALE = 0.5  # log units; adaptation finds better ones
_OVERDISPERSED = 2.0  # starts of hyperparameters, in units of the posterior's width as far as it is known
_MOST_STEPS = 200
_FLATTEST = 0.25  # nats per squared log unit: along flatter directions chains start with a step of two
_DIFFERENCE = 1e-3  # log units
_LEADING = 128  # white variables that are measured together: a product of this size squared at every gradient
_FIRST = (50, 50)  # steps of warm-up, and after it, before coordinates are laid again


def sampled(target: HyperTarget, data: Data, plan: Plan, progress: Callable[[str], None]) -> tuple[Data, list[Drawn]]:
    """Chains from starts around the mode, and the data with the coordinates that these moved in.

    Where white variables are not transported, coordinates are laid a second time, around the hyperparameters that the
    first steps of the chains come to: where these were learnt with few features, the posterior may be elsewhere.
    """
    plan, K = plan.settled(known=target.transported), target.n_hyper
    if isinstance(target, Target) and not target.transported:
        data = data._replace(leading=_none_leads(target))
    compiling = compilation(target, plan.sampler, data, target.size)
    data = settled(target, data)
    starts = np.random.default_rng(plan.seed).standard_normal((plan.chains, target.size))
    starts[:, :K] *= _OVERDISPERSED
    if isinstance(target, Target) and not target.transported and (plan.warmup or 0) > 2 * sum(_FIRST):
        warmup, draws = _FIRST
        first = run(target, data, starts, replace(plan, warmup=warmup, draws=draws), progress, compiling)
        found, ends = np.stack([own.position[:, :K] for own in first]), [own.position[-1] for own in first]
        middle = data.centre[:K] + data.root @ found.mean(axis=(0, 1))
        before, data = data, settled(target, data._replace(centre=np.append(middle, data.centre[K:])))
        starts = np.stack([_moved(before, data, z) for z in ends])
        plan = replace(plan, warmup=(plan.warmup or 0) - sum(_FIRST), seed=plan.seed + 1)
    return data, run(target, data, starts, plan, progress, compiling)


def settled(target: HyperTarget, data: Data) -> Data:
    """The data with a centre and scales that suit the posterior.

    Where white variables are transported, hyperparameters are all but independent of them: round coordinates at their
    mode. Elsewhere hyperparameters stay where the centre has them, and white variables are at their mode there.
    """
    K = target.n_hyper
    with float64():
        if target.transported:
            mode, root = _round_coordinates(target, jax.device_put(data))
            return data._replace(centre=np.append(data.centre[:K] + mode, data.centre[K:]), root=root)
        assert isinstance(target, Target)  # others have no white variables
        S = target.white_size
        plain = data._replace(centre=np.append(data.centre[:K], np.zeros(S)), scale=np.ones(S))
        plain = plain._replace(root=_HYPER_SCALE * np.eye(K), leading=_none_leads(target))
        v, mean, rest = _mode(target, jax.device_put(plain))
        scale = _scales(target, plain, mean, rest)
        leading = _leading(target, plain, v, np.sort(np.argsort(scale)[: _most_leading(target)]))
    return plain._replace(centre=np.append(data.centre[:K], v), scale=scale, leading=leading)


def _most_leading(target: Target) -> int:
    return min(_LEADING, target.white_size)


def _none_leads(target: Target) -> Leading:
    """Coordinates in which white variables are as they are."""
    m = _most_leading(target)
    return Leading(np.arange(m), np.eye(m), np.zeros((m, target.n_hyper)))


def _leading(target: Target, data: Data, v: np.ndarray, place: np.ndarray) -> Leading:
    """The Gaussian at the mode, given hyperparameters, along these white variables; and how it moves with them: (12.4).

    Of likelihoods that are not log-concave the curvature is at least that of the prior.
    """
    K, slope, data = target.n_hyper, slope_of(target), jax.device_put(data)
    at = np.concatenate([np.zeros(K), v])

    def second(number: int) -> np.ndarray:
        """The slope's derivative along one coordinate."""
        step = np.zeros(at.size)
        step[number] = _DIFFERENCE
        both = [np.asarray(slope(data, at + sign * step)[1]) for sign in (1.0, -1.0)]
        return (both[0] - both[1])[K + place] / (2.0 * _DIFFERENCE)

    cross = np.array([second(k) for k in range(K)]).reshape(K, place.size).T
    hessian = -np.array([second(K + k) for k in place])
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    values = np.maximum(values, 1.0)
    inverse = (vectors / values) @ vectors.T
    return Leading(place, (vectors / np.sqrt(values)) @ vectors.T, inverse @ cross)


def _moved(before: Data, after: Data, z: np.ndarray) -> np.ndarray:
    """The same place in other coordinates."""
    K, first, second = len(before.root), before.leading, after.leading
    assert first is not None
    assert second is not None
    white = before.scale * z[K:]
    white[first.place] = first.root @ z[K:][first.place] + first.slope @ z[:K]
    away = before.centre + np.append(before.root @ z[:K], white) - after.centre
    hyper, white = np.linalg.solve(after.root, away[:K]), away[K:] / after.scale
    white[second.place] = np.linalg.solve(second.root, away[K:][second.place] - second.slope @ hyper)
    return np.append(hyper, white)


def _round_coordinates(target: HyperTarget, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mode in the hyperparameters, white variables zero, and a root in which the density is round there, (K, K)."""
    K, slope, others = target.n_hyper, slope_of(target), np.zeros(target.white_size)

    def loss(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = slope(data, np.append(z, others))
        # beyond the bounds of a model the density is zero: as steep a wall as a search can use
        return (-float(value), -np.asarray(gradient)[:K]) if np.isfinite(value) else (1e300, np.zeros(K))

    if not K:
        return np.zeros(0), np.zeros((0, 0))
    mode = minimize(loss, np.zeros(K), jac=True, method="L-BFGS-B", options={"ftol": 1e-10}).x
    steps = _DIFFERENCE * np.eye(K)
    hessian = np.array([(loss(mode + step)[1] - loss(mode - step)[1]) / (2.0 * _DIFFERENCE) for step in steps])
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    return mode, vectors / np.sqrt(np.maximum(values, _FLATTEST))


@lru_cache(maxsize=32)
def _marginals(target: Target) -> Callable[..., Any]:
    return compiled(lambda data, z: target.marginals(data, target.at(data, z)))


def _mode(target: Target, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """White variables at their most probable, and mean and variance of f at the rows there."""
    K, slope = target.n_hyper, slope_of(target)

    def loss(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = slope(data, np.concatenate([np.zeros(K), v]))
        return -float(value), -np.asarray(gradient)[K:]

    options = {"maxiter": _MOST_STEPS, "ftol": 1e-9}
    v = minimize(loss, np.zeros(target.white_size), jac=True, method="L-BFGS-B", options=options).x
    mean, rest = (np.asarray(part) for part in _marginals(target)(data, np.concatenate([np.zeros(K), v])))
    return v, mean, rest


def _scales(target: Target, data: Data, mean: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """1 / sqrt(1 + h) with h = sum_n precision_n z_n^2 the curvature of the likelihood along every white variable."""
    assert data.rows is not None
    rows, t = data.rows, np.asarray(data.hyper.held).copy()
    t[target.free] = data.centre[: target.n_hyper]
    y, extra, w = (np.asarray(part) for part in (rows.y, rows.extra, rows.w))
    precision = -w * target.likelihood.expected(t[target.intercept + 1 :], y, extra, mean, rest).curvature
    found = np.asarray(_along_white(target)(rows, t, precision))
    if target.centred:
        found = np.append(found, precision.sum() * target.intercept_prior(data.hyper)[1] ** 2)
    return 1.0 / np.sqrt(1.0 + np.maximum(found, 0.0))


@lru_cache(maxsize=32)
def _along_white(target: Target) -> Callable[..., Any]:
    """(rows, t, precision) -> sum_n precision_n z_n^2 of every white variable of the terms, compiled."""

    def of_term(term: TermShape, points: TermPoints, t: Any, precision: Any) -> Any:
        white = [
            phi @ axis.coefficients(root, jnp.eye(axis.white_size))
            for axis, root, phi in zip(term.axes, term.roots(t, points), points.features, strict=True)
        ]
        # values at rows are linear in coefficients, and what is wanted is the transpose of that map
        squares = points._replace(features=tuple(z**2 for z in white))
        _, transpose = jax.vjp(lambda c: term.at_rows(squares, term.values(squares, c)), jnp.zeros(term.white_shape))
        return jnp.exp(t[term.first]) * transpose(precision)[0].reshape(-1)

    def along(rows: RowData, t: Any, precision: Any) -> Any:
        both = zip(target.terms, rows.terms, strict=True)
        return jnp.concatenate([of_term(term, points, t, precision) for term, points in both])

    return compiled(along)
