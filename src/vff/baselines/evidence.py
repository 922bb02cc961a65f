"""The exact Gaussian process: log p(y) = log N(y; 0, C), C = k(T, T) + constant + noise I, at O(N^3).

With alpha = C^-1 y (Rasmussen & Williams, eqs 2.30 and 5.9):

    log p(y)     = -1/2 [ y'alpha + log|C| + N log 2 pi ]
    d log p / d  =  1/2 [ alpha' dC alpha - tr(C^-1 dC) ] = 1/2 sum_ij W_ij dC_ij,    W = alpha alpha' - C^-1

C has few hyperparameters and N^2 entries, so no derivative of it is ever held: W and dC are multiplied block by block.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf  # pyright: ignore[reportAttributeAccessIssue]
from scipy.optimize import minimize

from vff.baselines.covariances import AbstractCovariance, Values, staircase
from vff.baselines.start import look
from vff.inference import Optimum
from vff.linalg import Factor, factorise

_LOOK_ROWS = 1000  # the starting ladder is judged on at most so many rows


@dataclass(frozen=True)
class Evidence:
    """The evidence at one setting of the hyperparameters; T (N, C) in half ranges of the data, y standardised."""

    covariance: AbstractCovariance
    values: Values
    T: np.ndarray
    y: np.ndarray
    intercept: float = 0.0
    """Prior variance of a constant beside the process."""

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of C."""
        # One N x N matrix, factorised where it stands. Where rounding defeats that, it is built again for
        # ``factorise``, which keeps a copy while it looks for the least jitter that helps.
        lower, info = dpotrf(self._lower_half(), lower=1, overwrite_a=1, clean=1)
        return Factor(lower, 0.0) if info == 0 else factorise(self._lower_half())

    def _lower_half(self) -> np.ndarray:
        """The lower half of C in Fortran order, zeros above."""
        C = np.zeros((self.y.size, self.y.size))
        for rows, columns in staircase(self.y.size):
            C[rows, columns] = self.covariance.block(self.values, self.T[rows], self.T[columns]) + self.intercept
        C[np.diag_indices_from(C)] += self.values.noise
        return C.T

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

    @property
    def of_intercept(self) -> float:
        """The part of the constant that the data determine: 1 - var(constant | y) / var(constant), from 0 to 1."""
        if not self.intercept:
            return 0.0
        return self.intercept * float(self.factor.solve(np.ones(self.y.size)).sum())

    def rescaled(self) -> tuple[float, float]:
        """The factor on the variances of process and noise together that maximises the evidence, and the evidence
        there. A constant, whose prior stays as it is and says next to nothing, takes one row.
        """
        n = self.y.size - self.of_intercept
        if not n > 0.0:
            return 1.0, self.value
        s = max(self.quadratic / n, 1e-12)
        return s, self.value - 0.5 * (n * float(np.log(s)) + self.quadratic * (1.0 / s - 1.0))

    def gradient(self) -> np.ndarray:
        """d log p / d theta, theta the logarithms of variances, lengthscales and noise."""
        inverse, gradient = self.factor.inverse(), np.zeros(self.values.theta.size)
        for rows, columns in staircase(self.y.size):
            W = np.multiply.outer(self.alpha[rows], self.alpha[columns])
            W -= inverse[rows, columns]
            W[:, rows.stop - rows.start :] *= 2.0  # what lies right of the diagonal block stands below it too
            gradient[:-1] += self.covariance.pull_back(self.values, self.T[rows], self.T[columns], W)
        gradient[-1] = self.values.noise * float(self.alpha @ self.alpha - np.trace(inverse))
        return 0.5 * gradient


@dataclass(frozen=True)
class Given:
    """The user's values in the units of the search, NaN where they start from the data."""

    variances: np.ndarray
    lengthscales: np.ndarray
    noise: float

    def completed(self, filled: Mapping[str, float]) -> Values:
        """One variance, shared by all terms, and one lengthscale for everything that is free."""
        variances = np.where(np.isnan(self.variances), filled["variance"] / self.variances.size, self.variances)
        lengthscales = np.where(np.isnan(self.lengthscales), filled["lengthscale"], self.lengthscales)
        return Values(variances, lengthscales, filled["noise"] if np.isnan(self.noise) else self.noise)

    def shared(self, first_lengthscale: float | None) -> dict[str, float | None]:
        """What is left of the search for one shared variance, lengthscale and noise; None where it is free."""
        known = self.variances[~np.isnan(self.variances)]
        return {
            # a free variance beside given ones starts at their mean
            "variance": float(self.variances.size * known.mean()) if known.size else None,
            "lengthscale": first_lengthscale if np.isnan(self.lengthscales).any() else 1.0,
            "noise": None if np.isnan(self.noise) else self.noise,
        }


def learn(
    covariance: AbstractCovariance,
    T: np.ndarray,
    y: np.ndarray,
    given: Given,
    *,
    intercept: float,
    optimise: bool,
    tolerance: float = 1e-11,
    progress: Callable[[str], None],
) -> Optimum:
    """Hyperparameters from the data, or as given; learning ends when a step gains less than this share of log p(y)."""
    start = _start(covariance, T, y, given, intercept).theta
    if not optimise:
        return Optimum(start, float("nan"), 0, 0, True, "kept as given")
    unit, layout = np.sqrt(0.5 * y.size), covariance.layout

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        evidence = Evidence(covariance, covariance.values(z / unit), T, y, intercept)
        return -evidence.value, -evidence.gradient() / unit

    bounds = [(low * unit, high * unit) for low, high in layout.log_bounds]
    options = {"maxiter": 200, "ftol": tolerance, "gtol": 1e-3}
    result = minimize(objective, layout.clip(start) * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    progress(f"log evidence {-result.fun:.3f} nats of {y.size} rows after {result.nit} steps")
    theta, value = result.x / unit, float(-result.fun)
    return Optimum(theta, value, int(result.nit), int(result.nfev), bool(result.success), str(result.message))


def _start(covariance: AbstractCovariance, T: np.ndarray, y: np.ndarray, given: Given, intercept: float) -> Values:
    rows = np.lexsort(T.T[::-1])  # by the first column, ties by the next
    rows = rows[np.linspace(0, y.size - 1, min(y.size, _LOOK_ROWS)).astype(int)]

    def score(values: Mapping[str, float], rescaled: bool) -> tuple[float, float]:
        evidence = Evidence(covariance, given.completed(values), T[rows], y[rows], intercept)
        return evidence.rescaled() if rescaled else (1.0, evidence.value)

    return given.completed(look(score, given.shared(covariance.first_lengthscale)))
