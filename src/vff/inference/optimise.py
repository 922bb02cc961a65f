"""Maximise a bound over log hyperparameters, and keep a record of how it ended."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from vff.inference.collapsed import ClosedForm, Cotangents
from vff.parameters import PositiveVector


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


def maximise(model: Model, start: np.ndarray, curvature: np.ndarray | None = None) -> Optimum:
    """L-BFGS-B on the collapsed bound from one start.

    ``curvature`` is minus the Hessian at a nearby optimum, as a coarser model knows it; with it the bound looks round
    and a handful of steps are enough. Without it, or where a bound is met, each parameter gets its own scale.
    """
    layout = model.parameters
    start = layout.clip(start)
    first = model.at(start)
    if curvature is not None:
        rounded = _lbfgs(model, start, np.linalg.cholesky(curvature).T, None, first.elbo)
        if rounded.converged and np.array_equal(rounded.theta, layout.clip(rounded.theta)):
            return rounded
    # Curvature is about n/2 in the log noise, and half the effective number of coefficients in the others.
    others = max(1.0, first.cotangents.effective)
    scale = np.array([first.equations.weight if name == "noise" else others for name in layout.names])
    unit = np.sqrt(0.5 * scale)
    bounds = [(low * u, high * u) for (low, high), u in zip(layout.log_bounds, unit, strict=True)]
    return _lbfgs(model, start, np.diag(unit), bounds, first.elbo)


def _lbfgs(
    model: Model, start: np.ndarray, root: np.ndarray, bounds: list[tuple[float, float]] | None, elbo: float
) -> Optimum:
    """L-BFGS-B over z = root theta."""
    inverse = np.linalg.inv(root)

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        theta = inverse @ z
        closed = model.at(theta)
        return -closed.elbo, -(inverse.T @ model.pull_back(theta, closed.cotangents))

    # Stop when a step gains less than 1e-5 nats, or less than rounding can tell.
    options = {"maxiter": 200, "ftol": max(1e-13, 1e-5 / max(1.0, abs(elbo))), "gtol": 1e-3, "maxcor": 20}
    result = minimize(objective, root @ start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    theta, converged = inverse @ result.x, bool(result.success)
    return Optimum(theta, float(-result.fun), int(result.nit), int(result.nfev), converged, str(result.message))


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
