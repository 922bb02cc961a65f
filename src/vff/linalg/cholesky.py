"""The one dense factorisation of the library, and the only place that may add to a diagonal."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtri  # pyright: ignore[reportAttributeAccessIssue]

# Relative to each diagonal entry, tried in turn. Cholesky does not care about diagonal scaling, so this is all.
_BLOCK = 256
_JITTERS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)


class NotPositiveDefinite(FloatingPointError, ValueError):
    """A matrix that rounding, or a hyperparameter out of range, left without a factor."""


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of a symmetric positive definite A."""

    lower: np.ndarray
    """L with L L' = A; Fortran order, zeros above the diagonal."""
    jitter: float
    """What was added to the diagonal, relative to it; 0.0 unless rounding made A indefinite."""

    def solve(self, v: np.ndarray) -> np.ndarray:
        """A^-1 v."""
        return dpotrs(self.lower, v, lower=1)[0] if self.lower.size else np.array(v)  # LAPACK knows no empty matrix

    def logdet(self) -> float:
        """log |A|."""
        return float(2.0 * np.log(np.diagonal(self.lower)).sum())

    def inverse(self) -> np.ndarray:
        """A^-1, dense and symmetric, at the cost of ``potri``."""
        if not self.lower.size:
            return self.lower.copy()
        inverse = dpotri(self.lower, lower=1)[0]
        for start in range(0, inverse.shape[0], _BLOCK):  # the lower triangle mirrored, block by block
            stop = min(start + _BLOCK, inverse.shape[0])
            inverse[:start, start:stop] = inverse[start:stop, :start].T
            corner = np.tril(inverse[start:stop, start:stop])
            inverse[start:stop, start:stop] = corner + np.tril(corner, -1).T
        return inverse

    def inverse_diagonal(self) -> np.ndarray:
        """diag(A^-1): the squared columns of L^-1, at half the cost of the inverse."""
        inverse = dtrtri(self.lower, lower=1)[0] if self.lower.size else self.lower
        return np.einsum("ij,ij->j", inverse, inverse)


def factorise(A: np.ndarray) -> Factor:
    """Factor a symmetric positive definite A, of which the lower triangle is read.

    When rounding defeats it, the least that helps is added to the diagonal, and the factor says how much.
    """
    diagonal = np.diagonal(A).copy()
    wrong = ~(np.isfinite(diagonal) & (diagonal > 0.0))
    if wrong.any():
        raise NotPositiveDefinite(
            f"the posterior precision has a diagonal entry of {diagonal[wrong][0]:g}, where a positive number was "
            "expected: a hyperparameter has left the range of float64; give one nearer to the scale of the data"
        )
    for jitter in _JITTERS:
        trial = np.array(A, order="F")
        trial[np.diag_indices_from(trial)] += jitter * diagonal
        lower, info = dpotrf(trial, lower=1, overwrite_a=1, clean=1)
        if info == 0:
            return Factor(lower, jitter)
    raise NotPositiveDefinite(
        f"a {A.shape[0]} x {A.shape[0]} posterior precision is not positive definite even with {_JITTERS[-1]:g} "
        "of its diagonal added; use fewer frequencies, or a model with more noise"
    )
