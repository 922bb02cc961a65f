"""Where chains start, and how wide the posterior is there: at the mode of the white variables, given a start."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from scipy.optimize import minimize

from vff.inference.methods.chains.compiling import compiled
from vff.inference.methods.chains.density import Data, LogDensity, Target, slope_of
from vff.inference.methods.chains.points import Interpolated, TermPoints, TermShape
from vff.inference.model.products import projected
from vff.likelihoods.float64 import float64

HYPER_SCALE = 0.5  # log units; adaptation finds better ones
_MOST_STEPS = 200
_FLATTEST = 0.25  # nats per squared log unit: along flatter directions chains start with a step of two
_DIFFERENCE = 1e-3  # log units


@lru_cache(maxsize=32)
def _marginals(target: Target) -> Callable[..., Any]:
    return compiled(lambda data, z: target.marginals(data, target.at(data, z)))


def settled(target: Target, data: Data) -> Data:
    """The data with a centre and scales that suit the posterior.

    Where white variables are transported, hyperparameters are all but independent of them: round coordinates at their
    mode. Elsewhere hyperparameters stay where they were learnt, and white variables are at their mode there.
    """
    K, held = target.free.size, np.asarray(data.hyper.held)
    centre = np.concatenate([held[target.free], np.zeros(target.white_size)])
    plain = data._replace(centre=centre, scale=np.ones(target.white_size), root=np.eye(K))
    with float64():
        if target.transported:
            mode, root = round_coordinates(target, jax.device_put(plain), K, target.size)
            return plain._replace(centre=np.append(centre[:K] + mode, centre[K:]), root=root)
        v, mean, rest = _mode(target, jax.device_put(plain))
        scale = _scales(target, data, held, mean, rest)
    return plain._replace(centre=np.append(centre[:K], v), scale=scale, root=HYPER_SCALE * np.eye(K))


def round_coordinates(target: LogDensity, data: Any, K: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The mode in the first K coordinates, the others zero, and a root in which the density is round there, (K, K)."""
    slope, others = slope_of(target), np.zeros(size - K)

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


def _mode(target: Target, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """White variables at their most probable, and mean and variance of f at the rows there."""
    K, slope = target.free.size, slope_of(target)

    def loss(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = slope(data, np.concatenate([np.zeros(K), v]))
        return -float(value), -np.asarray(gradient)[K:]

    options = {"maxiter": _MOST_STEPS, "ftol": 1e-9}
    v = minimize(loss, np.zeros(target.white_size), jac=True, method="L-BFGS-B", options=options).x
    mean, rest = (np.asarray(part) for part in _marginals(target)(data, np.concatenate([np.zeros(K), v])))
    return v, mean, rest


def _scales(target: Target, data: Data, t: np.ndarray, mean: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """1 / sqrt(1 + h) with h the curvature of the likelihood along every white variable."""
    rows = data.rows
    y, extra, w = (np.asarray(part) for part in (rows.y, rows.extra, rows.w))
    precision = -w * target.likelihood.expected(t[target.intercept + 1 :], y, extra, mean, rest).curvature
    found = []
    for term, places, points in zip(target.terms, target.places, rows.terms, strict=True):
        roots = term.roots([tuple(np.exp(t[place]) for place in own) for own in places.factors])
        white = [
            np.asarray(phi @ np.asarray(axis.coefficients(root, np.eye(axis.white_size))))
            for axis, root, phi in zip(term.axes, roots, points.features, strict=True)
        ]
        found.append(np.exp(t[places.variance]) * _curvature(term, points, [z**2 for z in white], precision))
    if target.centred:
        found.append(np.array([precision.sum() * target.intercept_prior(data.hyper)[1] ** 2]))
    return 1.0 / np.sqrt(1.0 + np.maximum(np.concatenate(found), 0.0))


def _curvature(term: TermShape, points: TermPoints, squares: list[np.ndarray], precision: np.ndarray) -> np.ndarray:
    """sum_n precision_n z_n^2 for every white variable of a term."""
    size = int(np.prod([len(z) for z in squares])) if term.lattice else len(squares[0])
    if isinstance(points.codes, Interpolated):
        at = _at_nodes(points.codes, precision, size)
    elif points.codes is not None:
        at = np.bincount(np.asarray(points.codes), precision, size)
    else:
        at = precision.reshape(size, term.copies).sum(axis=1)
    if not term.lattice:
        return projected(tuple(squares), at)
    tensor = at.reshape([len(z) for z in squares])
    for d, z in enumerate(squares):
        tensor = np.moveaxis(np.tensordot(z, tensor, axes=(0, d)), 0, d)
    return tensor.reshape(-1)


def _at_nodes(own: Interpolated, values: np.ndarray, size: int) -> np.ndarray:
    """Sums over rows to sums over nodes: the transpose of carrying."""
    weights = np.asarray(own.weights)
    by_row = np.append(values, 0.0)[np.asarray(own.row)].reshape(weights.shape[:2])
    total = np.zeros((size // weights.shape[2], weights.shape[2]))
    np.add.at(total, np.asarray(own.cell), np.einsum("brj,br->bj", weights, by_row))
    return total.reshape(-1)
