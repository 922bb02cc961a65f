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
    converged: bool
    """Whether the residuals of all columns fell below the tolerance."""
    tridiagonal: tuple[tuple[np.ndarray, np.ndarray], ...]
    """Diagonal and off-diagonal of the matrix of every column."""

    def quadrature(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """b' f(A) b / b'b of every column b, by Gauss quadrature (Golub and Meurant, 1994), (S,)."""
        every = (eigh_tridiagonal(*own) for own in self.tridiagonal)
        return np.array([float(vectors[0] ** 2 @ function(eigenvalues)) for eigenvalues, vectors in every])


def conjugate_gradients(mv: Callable[[np.ndarray], np.ndarray], B: np.ndarray, tolerance: float, most: int) -> Solution:
    """Solve A X = B, (P, S), for a symmetric positive definite A given by its products; columns stop by themselves."""
    X, R = np.zeros_like(B), B.copy()
    D = R.copy()
    norms = np.einsum("ps,ps->s", B, B)
    squares, goal = norms.copy(), tolerance**2 * norms
    alphas: list[list[float]] = [[] for _ in range(B.shape[1])]
    betas: list[list[float]] = [[] for _ in range(B.shape[1])]
    active = np.flatnonzero(squares > goal)
    for _ in range(most):
        if not active.size:
            break
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
    return Solution(X, not active.size, tuple(_tridiagonal(a, b) for a, b in zip(alphas, betas, strict=True)))


def _tridiagonal(alphas: Sequence[float], betas: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of Lanczos from the coefficients of conjugate gradients."""
    a, b = np.array(alphas), np.array(betas)
    if a.size == 0:
        return np.ones(1), np.zeros(0)
    diagonal = 1.0 / a
    diagonal[1:] += b[:-1] / a[:-1]
    return diagonal, np.sqrt(b[:-1]) / a[:-1]
