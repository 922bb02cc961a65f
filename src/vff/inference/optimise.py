"""Maximise a bound over log hyperparameters, and keep a record of how it ended."""

from collections.abc import Callable
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


def maximise(model: Model, start: np.ndarray, progress: Callable[[str], None] | None = None) -> Optimum:
    """L-BFGS-B on the collapsed bound from one start."""

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        closed = model.at(theta)
        return -closed.elbo, -model.pull_back(theta, closed.cotangents())

    bounds = model.parameters.log_bounds
    start = model.parameters.clip(start)
    # Stop when a step gains less than 1e-6 nats, or less than rounding can tell (1e-12 of the bound).
    scale = max(1.0, abs(model.at(start).elbo))
    options = {"maxiter": 200, "ftol": max(1e-12, 1e-6 / scale), "gtol": 1e-5, "maxcor": 20}
    result = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    if progress:
        progress(f"{result.nit} steps, {result.nfev} evaluations, bound {-result.fun:.3f} nats")
    converged = bool(result.success)
    return Optimum(result.x, float(-result.fun), int(result.nit), int(result.nfev), converged, str(result.message))


def rescale(closed: ClosedForm) -> tuple[float, float]:
    """The factor on all variances (prior and noise together) that maximises the bound, and the bound there.

    The bound depends on it only through -1/2 [n log s + quadratic / s]; hence s = quadratic / n.
    """
    n = closed.equations.weight
    s = max(closed.quadratic / n, 1e-12)
    return s, closed.elbo - 0.5 * (n * np.log(s) + closed.quadratic * (1.0 / s - 1.0))
