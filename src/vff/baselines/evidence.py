"""The exact Gaussian process: log p(y) = log N(y; 0, C), C = variance k(t, t) + noise I, at O(N^3).

With alpha = C^-1 y (Rasmussen & Williams, eqs 2.30 and 5.9):

    log p(y)     = -1/2 [ y'alpha + log|C| + N log 2 pi ]
    d log p / d  =  1/2 [ alpha' dC alpha - tr(C^-1 dC) ]
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from vff.baselines.start import LAYOUT, look
from vff.inference import Optimum
from vff.kernels import HalfInteger
from vff.linalg import Factor, factorise

_LOOK_ROWS = 1000  # the starting ladder is judged on at most so many rows


@dataclass(frozen=True)
class Evidence:
    """The evidence at one setting of the hyperparameters; t in half ranges of the data, y standardised."""

    kernel: HalfInteger
    variance: float
    noise: float
    t: np.ndarray
    y: np.ndarray

    @classmethod
    def at(cls, values: Mapping[str, float], p: int, t: np.ndarray, y: np.ndarray) -> "Evidence":
        kernel = HalfInteger.from_lengthscale(p, values["lengthscale"])
        return cls(kernel, values["variance"], values["noise"], t, y)

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of C."""
        C = self.kernel.covariance(np.subtract.outer(self.t, self.t))
        C *= self.variance
        C[np.diag_indices_from(C)] += self.noise
        return factorise(C)

    @cached_property
    def alpha(self) -> np.ndarray:
        """C^-1 y, (N,)."""
        return self.factor.solve(self.y)

    @property
    def quadratic(self) -> float:
        """y' C^-1 y."""
        return float(self.y @ self.alpha)

    @cached_property
    def value(self) -> float:
        """log p(y), nats."""
        return -0.5 * (self.quadratic + self.factor.logdet() + self.y.size * float(np.log(2.0 * np.pi)))

    def rescaled(self) -> tuple[float, float]:
        """The factor on variance and noise together that maximises the evidence, and the evidence there."""
        N = self.y.size
        s = max(self.quadratic / N, 1e-12)
        return s, self.value - 0.5 * (N * float(np.log(s)) + self.quadratic * (1.0 / s - 1.0))

    def gradient(self) -> np.ndarray:
        """d log p / d log (variance, lengthscale, noise)."""
        inverse = self.factor.inverse()
        # sum_ij (alpha alpha' - C^-1)_ij C_ij = y'alpha - N, of which the noise has its share
        d_noise = self.noise * float(self.alpha @ self.alpha - np.trace(inverse))
        lag = np.subtract.outer(self.t, self.t)
        # dk / d log lengthscale = -lag k'(lag)
        slope = self.kernel.covariance_derivative(lag, 1)
        slope *= lag
        d_lengthscale = -self.variance * float(self.alpha @ (slope @ self.alpha) - np.vdot(inverse, slope))
        return 0.5 * np.array([self.quadratic - self.y.size - d_noise, d_lengthscale, d_noise])


def learn(
    p: int,
    t: np.ndarray,
    y: np.ndarray,
    given: Mapping[str, float | None],
    *,
    optimise: bool,
    progress: Callable[[str], None],
) -> Optimum:
    """Hyperparameters from the data, or as given."""
    start = LAYOUT.pack(_start(p, t, y, given))
    if not optimise:
        return Optimum(start, Evidence.at(LAYOUT.unpack(start), p, t, y).value, 0, 1, True, "kept as given")
    unit = np.sqrt(0.5 * y.size)

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        evidence = Evidence.at(LAYOUT.unpack(z / unit), p, t, y)
        return -evidence.value, -evidence.gradient() / unit

    bounds = [(low * unit, high * unit) for low, high in LAYOUT.log_bounds]
    options = {"maxiter": 200, "ftol": 1e-11, "gtol": 1e-3}
    result = minimize(objective, LAYOUT.clip(start) * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    progress(f"log evidence {-result.fun:.3f} nats after {result.nit} steps")
    theta, value = result.x / unit, float(-result.fun)
    return Optimum(theta, value, int(result.nit), int(result.nfev), bool(result.success), str(result.message))


def _start(p: int, t: np.ndarray, y: np.ndarray, given: Mapping[str, float | None]) -> dict[str, float]:
    rows = np.argsort(t, kind="stable")
    rows = rows[np.linspace(0, t.size - 1, min(t.size, _LOOK_ROWS)).astype(int)]

    def score(values: Mapping[str, float], rescaled: bool) -> tuple[float, float]:
        evidence = Evidence.at(values, p, t[rows], y[rows])
        return evidence.rescaled() if rescaled else (1.0, evidence.value)

    return look(score, given)
