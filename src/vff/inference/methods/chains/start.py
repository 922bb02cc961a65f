"""Where chains start, and how wide the posterior is there: at the mode of the white variables, given a start."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from vff.inference.methods.chains.density import Data, HyperTarget, Target
from vff.inference.methods.chains.run import Drawn, Plan, compilation, compiled, run, slope_of
from vff.likelihoods.float64 import float64

_HYPER_SCALE = 0.5  # log units; adaptation finds better ones
_OVERDISPERSED = 2.0  # starts of hyperparameters, in units of the posterior's width as far as it is known
_MOST_STEPS = 200
_FLATTEST = 0.25  # nats per squared log unit: along flatter directions chains start with a step of two
_DIFFERENCE = 1e-3  # log units


def sampled(target: HyperTarget, data: Data, plan: Plan, progress: Callable[[str], None]) -> tuple[Data, list[Drawn]]:
    """Chains from starts around the mode, and the data with the coordinates that these moved in."""
    compiling = compilation(target, plan.sampler, data, target.size)
    data, plan = settled(target, data), plan.settled(known=target.transported)
    starts = np.random.default_rng(plan.seed).standard_normal((plan.chains, target.size))
    starts[:, : target.n_hyper] *= _OVERDISPERSED
    return data, run(target, data, starts, plan, progress, compiling)


def settled(target: HyperTarget, data: Data) -> Data:
    """The data with a centre and scales that suit the posterior.

    Where white variables are transported, hyperparameters are all but independent of them: round coordinates at their
    mode. Elsewhere hyperparameters stay where they were learnt, and white variables are at their mode there.
    """
    K = target.n_hyper
    with float64():
        if target.transported:
            mode, root = _round_coordinates(target, jax.device_put(data))
            return data._replace(centre=np.append(data.centre[:K] + mode, data.centre[K:]), root=root)
        assert isinstance(target, Target)  # others have no white variables
        v, mean, rest = _mode(target, jax.device_put(data))
        scale = _scales(target, data, mean, rest)
    return data._replace(centre=np.append(data.centre[:K], v), scale=scale, root=_HYPER_SCALE * np.eye(K))


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
    rows, t = data.rows, np.asarray(data.hyper.held)
    y, extra, w = (np.asarray(part) for part in (rows.y, rows.extra, rows.w))
    precision = -w * target.likelihood.expected(t[target.intercept + 1 :], y, extra, mean, rest).curvature
    found = []
    for term, points in zip(target.terms, rows.terms, strict=True):
        white = [
            phi @ axis.coefficients(root, jnp.eye(axis.white_size))
            for axis, root, phi in zip(term.axes, term.roots(t), points.features, strict=True)
        ]
        # values at rows are linear in coefficients, and what is wanted is the transpose of that map
        squares = points._replace(features=tuple(z**2 for z in white))
        _, transpose = jax.vjp(
            lambda c, own=term, at=squares: own.at_rows(at, own.values(at, c)), jnp.zeros(term.white_shape)
        )
        found.append(np.exp(t[term.first]) * np.asarray(transpose(precision)[0]).reshape(-1))
    if target.centred:
        found.append(np.array([precision.sum() * target.intercept_prior(data.hyper)[1] ** 2]))
    return 1.0 / np.sqrt(1.0 + np.maximum(np.concatenate(found), 0.0))
