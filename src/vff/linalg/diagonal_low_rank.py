"""Diagonal plus low rank, with a border of a few dense rows. All verbs are O(P) per right-hand side.

The border may be empty (Q = 0), which leaves diag(d) + Z C Z'.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve, cholesky
from scipy.linalg.blas import dsyrk

from vff.linalg.operators import AbstractInvertible, Summary


def _columns(v: np.ndarray) -> np.ndarray:
    return v[:, None] if v.ndim == 1 else v


@dataclass(frozen=True)
class BorderedDiagonal(AbstractInvertible):
    """[[diag(d) + Z C Z', border], [border', corner]].

    Shapes: d (H,), Z (H, R), C (R, R), border (H, Q), corner (Q, Q), with R and Q a handful and P = H + Q. To be solved
    with, d must be positive, C and the whole positive definite; a derivative of such a matrix need not be.
    """

    d: np.ndarray
    Z: np.ndarray
    C: np.ndarray
    border: np.ndarray
    corner: np.ndarray

    @property
    def _H(self) -> int:
        return self.d.size

    @property
    def shape(self) -> tuple[int, int]:
        P = self.d.size + self.corner.shape[0]
        return (P, P)

    def scaled(self, factor: float) -> "BorderedDiagonal":
        """factor times this matrix."""
        return BorderedDiagonal(
            factor * self.d, self.Z, factor * self.C, factor * self.border, factor * self.corner
        )

    def mv(self, v: np.ndarray) -> np.ndarray:
        V, H = _columns(v), self._H
        top = self.d[:, None] * V[:H] + self.Z @ (self.C @ (self.Z.T @ V[:H])) + self.border @ V[H:]
        return np.concatenate([top, self.border.T @ V[:H] + self.corner @ V[H:]]).reshape(v.shape)

    def diagonal(self) -> np.ndarray:
        return np.concatenate([self.d + np.einsum("hr,rs,hs->h", self.Z, self.C, self.Z), np.diagonal(self.corner)])

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        H, P = self._H, self.shape[0]
        total = np.asfortranarray(dense.T)  # symmetric: the transpose of a C array is the Fortran array, free
        root = np.zeros((P, self.Z.shape[1]), order="F")
        root[:H] = self._root
        total = dsyrk(1.0, root, beta=1.0, c=total, lower=1, overwrite_c=1)
        total[H:, :H] += self.border.T
        total[H:, H:] += self.corner
        total.T.flat[: H * (P + 1) : P + 1] += self.d
        return total

    @property
    def probes(self) -> np.ndarray:
        return block_diag(self.Z, np.eye(self.corner.shape[0]))

    def inner(self, other: Summary) -> float:
        H, R = self._H, self.Z.shape[1]
        core = self.d @ other.diagonal[:H] + np.sum(self.C * (self.Z.T @ other.image[:H, :R]))
        edge = 2.0 * np.sum(self.border * other.image[:H, R:]) + np.sum(self.corner * other.image[H:, R:])
        return float(core + edge)

    def to_dense(self) -> np.ndarray:
        core = np.diag(self.d) + self.Z @ self.C @ self.Z.T
        return np.block([[core, self.border], [self.border.T, self.corner]])

    @cached_property
    def _root(self) -> np.ndarray:
        """W with W W' = Z C Z', so that the capacitance below is the identity plus a Gram matrix."""
        return self.Z @ cholesky(self.C, lower=True)

    @cached_property
    def _capacitance(self) -> tuple[np.ndarray, bool]:
        W = self._root
        return cho_factor(np.eye(W.shape[1]) + W.T @ (W / self.d[:, None]), lower=True)

    def _core_solve(self, V: np.ndarray) -> np.ndarray:
        # Woodbury: (D + W W')^-1 = D^-1 - D^-1 W (I + W' D^-1 W)^-1 W' D^-1
        W, scaled = self._root, V / self.d[:, None]
        return scaled - (W / self.d[:, None]) @ cho_solve(self._capacitance, W.T @ scaled)

    @cached_property
    def _reach(self) -> np.ndarray:
        """core^-1 border, (H, Q)."""
        return self._core_solve(self.border)

    @cached_property
    def _schur(self) -> tuple[np.ndarray, bool]:
        """Cholesky factor of corner - border' core^-1 border."""
        if not self.corner.size:
            return np.empty((0, 0)), True
        return cho_factor(self.corner - self.border.T @ self._reach, lower=True)

    def _schur_solve(self, V: np.ndarray) -> np.ndarray:
        return cho_solve(self._schur, V) if self.corner.size else V

    def solve(self, v: np.ndarray) -> np.ndarray:
        V, H = _columns(v), self._H
        top = self._core_solve(V[:H])
        bottom = self._schur_solve(V[H:] - self.border.T @ top)
        return np.concatenate([top - self._reach @ bottom, bottom]).reshape(v.shape)

    def logdet(self) -> float:
        pivots = np.concatenate([np.diagonal(self._capacitance[0]), np.diagonal(self._schur[0])])
        return float(np.log(self.d).sum() + 2.0 * np.log(pivots).sum())

    @cached_property
    def _inverse_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(e, U, B) with K^-1 = diag(e) + U B U': e (P,), U (P, R + Q), B symmetric.

        K^-1 = blkdiag(core^-1, 0) + J S^-1 J' with J = [-core^-1 border; I] and S the Schur complement.
        """
        R, Q = self.Z.shape[1], self.corner.shape[0]
        e = np.concatenate([1.0 / self.d, np.zeros(Q)])
        U = np.block([[self._root / self.d[:, None], -self._reach], [np.zeros((Q, R)), np.eye(Q)]])
        return e, U, block_diag(-cho_solve(self._capacitance, np.eye(R)), self._schur_solve(np.eye(Q)))

    def inverse_diagonal(self) -> np.ndarray:
        e, U, B = self._inverse_parts
        return e + np.einsum("pr,pr->p", U @ B, U)

    def trace_solve(self, dense: np.ndarray) -> float:
        e, U, B = self._inverse_parts
        return float(e @ np.diagonal(dense) + np.sum(B * (U.T @ (dense @ U))))

    def sandwich_diagonal(self, dense: np.ndarray) -> np.ndarray:
        e, U, B = self._inverse_parts
        image = dense @ U
        UB = U @ B
        cross = np.einsum("pr,pr->p", image, UB)
        return e**2 * np.diagonal(dense) + 2.0 * e * cross + np.einsum("pr,pr->p", UB @ (U.T @ image), UB)

    @property
    def sqrt_size(self) -> int:
        return self.shape[0] + self.Z.shape[1]

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        # core = R0 R0' with R0 = [diag(d)^1/2, W] (paper, "Centring of variables for MCMC"), and
        # R = [[R0, 0], [border' core^-1 R0, chol(Schur)]]
        V, H, inner = _columns(v), self._H, self._H + self.Z.shape[1]
        top = np.sqrt(self.d)[:, None] * V[:H] + self._root @ V[H:inner]
        bottom = self._reach.T @ top + np.tril(self._schur[0]) @ V[inner:]
        return np.concatenate([top, bottom]).reshape(self.shape[0], *v.shape[1:])
