"""The one dense factorisation of the library, and the only place that may add to a diagonal."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

# Multiples of machine precision tried in turn. A is scaled to a unit diagonal first, so they are relative.
_JITTERS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of S A S with S = diag(A)^-1/2, kept with the scaling."""

    lower: np.ndarray
    """L with L L' = S A S, lower triangle; Fortran order."""
    scale: np.ndarray
    """The diagonal of S."""
    jitter: float
    """What was added to the unit diagonal; 0.0 unless rounding made A indefinite."""

    def solve(self, v: np.ndarray) -> np.ndarray:
        """A^-1 v."""
        scale = self.scale if v.ndim == 1 else self.scale[:, None]
        solution, _ = dpotrs(self.lower, scale * v, lower=1)
        return scale * solution

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        """S^-1 L v: maps white noise to draws with covariance A."""
        scale = self.scale if v.ndim == 1 else self.scale[:, None]
        return (np.tril(self.lower) @ v) / scale

    def logdet(self) -> float:
        """log |A|."""
        return float(2.0 * (np.log(np.diagonal(self.lower)).sum() - np.log(self.scale).sum()))

    def inverse(self) -> np.ndarray:
        """A^-1, dense and symmetric, at the cost of ``potri``."""
        inverse, _ = dpotri(self.lower, lower=1)
        lower = np.tril(inverse)
        full = lower + lower.T
        np.fill_diagonal(full, np.diagonal(inverse))
        full *= self.scale
        full *= self.scale[:, None]
        return full


def factorise(A: np.ndarray) -> Factor:
    """Factor a symmetric positive definite A; when rounding defeats it, add the least that helps and say how much."""
    diagonal = np.diagonal(A)
    if not np.all(np.isfinite(diagonal)) or np.any(diagonal <= 0.0):
        raise FloatingPointError(
            f"the posterior precision has a diagonal entry of {diagonal[~(diagonal > 0.0)][:1]}; "
            "a positive number was expected, so a hyperparameter has left the range of float64"
        )
    scale = 1.0 / np.sqrt(diagonal)
    scaled = (A * scale) * scale[:, None]
    for jitter in _JITTERS:
        trial = np.array(scaled, order="F")
        trial.flat[:: A.shape[0] + 1] += jitter
        lower, info = dpotrf(trial, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            return Factor(lower, scale, jitter)
    raise FloatingPointError(
        f"a {A.shape[0]} x {A.shape[0]} posterior precision is not positive definite even with {_JITTERS[-1]:g} "
        "added to its unit diagonal; raise noise_variance or lower frequencies"
    )
