"""Conjugate gradients for many right-hand sides at once, and what their coefficients say of the spectrum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal


@dataclass(frozen=True)
class Solution:
    """A^-1 B, and the tridiagonal matrices of Lanczos that the iterations built on the way."""

    X: np.ndarray
    """(P, S)."""
    iterations: int
    residual: float
    """The largest of the columns' residuals, relative to B."""
    converged: bool
    """Whether all of them fell below the tolerance."""
    diagonals: tuple[np.ndarray, ...]
    """Of the tridiagonal matrix of every column."""
    off_diagonals: tuple[np.ndarray, ...]

    def quadrature(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """b' f(A) b / b'b of every column b, by Gauss quadrature (Golub and Meurant, 1994), (S,)."""
        values = []
        for diagonal, off in zip(self.diagonals, self.off_diagonals, strict=True):
            eigenvalues, vectors = eigh_tridiagonal(diagonal, off)
            values.append(float(vectors[0] ** 2 @ function(eigenvalues)))
        return np.array(values)


def conjugate_gradients(mv: Callable[[np.ndarray], np.ndarray], B: np.ndarray, tolerance: float, most: int) -> Solution:
    """Solve A X = B, (P, S), for a symmetric positive definite A given by its products; columns stop by themselves."""
    X, R = np.zeros_like(B), B.copy()
    D = R.copy()
    norms = np.einsum("ps,ps->s", B, B)
    squares, goal = norms.copy(), tolerance**2 * norms
    alphas: list[list[float]] = [[] for _ in range(B.shape[1])]
    betas: list[list[float]] = [[] for _ in range(B.shape[1])]
    active = np.flatnonzero(squares > goal)
    iterations = 0
    while active.size and iterations < most:
        iterations += 1
        some = D[:, active]
        image = mv(some)
        alpha = squares[active] / np.einsum("ps,ps->s", some, image)
        X[:, active] += alpha * some
        R[:, active] -= alpha * image
        now = np.einsum("ps,ps->s", R[:, active], R[:, active])
        beta = now / squares[active]
        D[:, active] = R[:, active] + beta * some
        squares[active] = now
        for number, s in enumerate(active):
            alphas[s].append(float(alpha[number]))
            betas[s].append(float(beta[number]))
        active = active[now > goal[active]]
    residual = float(np.sqrt(np.max(squares / np.where(norms > 0.0, norms, 1.0)))) if norms.size else 0.0
    tridiagonal = [_tridiagonal(a, b) for a, b in zip(alphas, betas, strict=True)]
    return Solution(
        X, iterations, residual, not active.size, tuple(d for d, _ in tridiagonal), tuple(e for _, e in tridiagonal)
    )


def _tridiagonal(alphas: Sequence[float], betas: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of Lanczos from the coefficients of conjugate gradients."""
    a, b = np.array(alphas), np.array(betas)
    if a.size == 0:
        return np.ones(1), np.zeros(0)
    diagonal = 1.0 / a
    diagonal[1:] += b[:-1] / a[:-1]
    return diagonal, np.sqrt(b[:-1]) / a[:-1]
