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


def maximise(model: Model, start: np.ndarray) -> Optimum:
    """L-BFGS-B on the collapsed bound from one start."""
    layout = model.parameters
    start = layout.clip(start)
    first = model.at(start)
    # Scaled so that the curvature is about one in every direction: n/2 in the log noise, half the effective number of
    # coefficients in the others.
    others = max(1.0, first.cotangents.effective)
    unit = np.sqrt(0.5 * np.array([first.equations.weight if name == "noise" else others for name in layout.names]))

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        closed = model.at(z / unit)
        return -closed.elbo, -model.pull_back(z / unit, closed.cotangents) / unit

    bounds = [(low * u, high * u) for (low, high), u in zip(layout.log_bounds, unit, strict=True)]
    # Stop when a step gains less than 1e-5 nats, or less than rounding can tell.
    options = {"maxiter": 200, "ftol": max(1e-13, 1e-5 / max(1.0, abs(first.elbo))), "gtol": 1e-3, "maxcor": 20}
    result = minimize(objective, start * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    theta, converged = result.x / unit, bool(result.success)
    return Optimum(theta, float(-result.fun), int(result.nit), int(result.nfev), converged, str(result.message))


def rescale(closed: ClosedForm) -> tuple[float, float]:
    """The factor on all variances (prior and noise together) that maximises the bound, and the bound there.

    The bound depends on it only through -1/2 [n log s + quadratic / s]; hence s = quadratic / n.
    """
    n = closed.equations.weight
    s = max(closed.quadratic / n, 1e-12)
    return s, closed.elbo - 0.5 * (n * np.log(s) + closed.quadratic * (1.0 / s - 1.0))
