"""Maximise a bound over log hyperparameters, and keep a record of how it ended."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from vff.inference.collapsed import ClosedForm, Cotangents
from vff.parameters import PositiveVector

_MOST_EVALUATIONS = 200
_LARGE = 800  # features, above which a second try from the same start is not worth its time


class Model(Protocol):
    """Hyperparameters in, linear-Gaussian model out, and the chain rule back."""

    @property
    def parameters(self) -> PositiveVector:
        """The layout of theta; 'noise' is among the names."""
        ...

    def at(self, theta: np.ndarray) -> ClosedForm:
        """The model at these log hyperparameters."""
        ...

    def pull_back(self, theta: np.ndarray, cotangents: Cotangents) -> np.ndarray:
        """d elbo / d theta."""
        ...


@dataclass(frozen=True)
class Optimum:
    """Where learning ended."""

    theta: np.ndarray
    elbo: float
    steps: int
    evaluations: int
    converged: bool
    message: str


def maximise(
    model: Model, start: np.ndarray, curvature: np.ndarray | None = None, elbo: float | None = None
) -> tuple[Optimum, ClosedForm]:
    """L-BFGS-B on the collapsed bound from one start; the optimum, and the model there.

    ``curvature`` is minus the Hessian at a nearby optimum and ``elbo`` the bound there, as a coarser model knows them;
    with these the bound looks round and a handful of steps are enough. Without, or where a bound of a parameter is met,
    each parameter gets its own scale.
    """
    layout = model.parameters
    start = layout.clip(start)
    if curvature is not None and elbo is not None:
        rounded, closed = _lbfgs(model, start, np.linalg.cholesky(curvature).T, None, elbo)
        inside = np.array_equal(rounded.theta, layout.clip(rounded.theta))
        if inside and (rounded.converged or closed.mean.size > _LARGE):
            return rounded, closed
    first = model.at(start)
    # Curvature is about n/2 in the log noise, and half the effective number of coefficients in the others.
    others = max(1.0, first.cotangents.effective)
    scale = np.array([first.equations.weight if name == "noise" else others for name in layout.names])
    unit = np.sqrt(0.5 * scale)
    bounds = [(low * u, high * u) for (low, high), u in zip(layout.log_bounds, unit, strict=True)]
    return _lbfgs(model, start, np.diag(unit), bounds, first.elbo)


def _lbfgs(
    model: Model, start: np.ndarray, root: np.ndarray, bounds: list[tuple[float, float]] | None, elbo: float
) -> tuple[Optimum, ClosedForm]:
    """L-BFGS-B over z = root theta."""
    inverse = np.linalg.inv(root)
    best: tuple[float, np.ndarray, ClosedForm] | None = None

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        theta = inverse @ z
        closed = model.at(theta)
        gradient = model.pull_back(theta, closed.cotangents)
        if best is None or closed.elbo > best[0]:
            best = (closed.elbo, theta, closed)
        return -closed.elbo, -(inverse.T @ gradient)

    # Stop when a step gains less than 1e-4 nats, or less than rounding can tell.
    options = {"ftol": max(1e-13, 1e-4 / max(1.0, abs(elbo))), "gtol": 1e-2, "maxcor": 20, "maxfun": _MOST_EVALUATIONS}
    result = minimize(objective, root @ start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert best is not None  # the objective was called
    value, theta, closed = best
    converged, message = bool(result.success), str(result.message)
    return Optimum(theta, float(value), int(result.nit), int(result.nfev), converged, message), closed


def curvature_at(model: Model, theta: np.ndarray) -> np.ndarray | None:
    """Minus the Hessian of the bound by differences of its gradient; None where it is not positive definite."""
    step = 1e-4

    def gradient(at: np.ndarray) -> np.ndarray:
        return model.pull_back(at, model.at(at).cotangents)

    here = gradient(theta)
    hessian = np.array([(here - gradient(theta + step * unit)) / step for unit in np.eye(theta.size)])
    symmetric = 0.5 * (hessian + hessian.T)
    smallest = np.linalg.eigvalsh(symmetric)[0]
    return symmetric if smallest > 1e-3 else None


def rescale(closed: ClosedForm) -> tuple[float, float]:
    """The factor on all variances (prior and noise together) that maximises the bound, and the bound there.

    The bound depends on it only through -1/2 [n log s + quadratic / s]; hence s = quadratic / n.
    """
    n = closed.equations.weight
    s = max(closed.quadratic / n, 1e-12)
    return s, closed.elbo - 0.5 * (n * np.log(s) + closed.quadratic * (1.0 / s - 1.0))
