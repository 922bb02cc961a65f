"""Diagonal plus low rank, and the same with a border of a few dense rows. All verbs are O(P)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky

from vff.linalg.operators import AbstractInvertible


def _columns(v: np.ndarray) -> np.ndarray:
    return v[:, None] if v.ndim == 1 else v


@dataclass(frozen=True)
class DiagonalPlusLowRank(AbstractInvertible):
    """diag(d) + Z C Z', with d (H,) positive, Z (H, R) and C (R, R) symmetric positive definite."""

    d: np.ndarray
    Z: np.ndarray
    C: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return (self.d.size, self.d.size)

    def mv(self, v: np.ndarray) -> np.ndarray:
        V = _columns(v)
        return (self.d[:, None] * V + self.Z @ (self.C @ (self.Z.T @ V))).reshape(v.shape)

    def diagonal(self) -> np.ndarray:
        return self.d + np.einsum("hr,rs,hs->h", self.Z, self.C, self.Z)

    def add_to(self, dense: np.ndarray) -> np.ndarray:
        total = dense + (self.Z @ self.C) @ self.Z.T
        total.flat[:: self.d.size + 1] += self.d
        return total

    def inner(self, dense: np.ndarray) -> float:
        return float(self.d @ np.diagonal(dense) + np.sum(self.C * (self.Z.T @ dense @ self.Z)))

    def to_dense(self) -> np.ndarray:
        return np.diag(self.d) + self.Z @ self.C @ self.Z.T

    @cached_property
    def _root(self) -> np.ndarray:
        """W with W W' = Z C Z', so that the capacitance below is the identity plus a Gram matrix."""
        return self.Z @ cholesky(self.C, lower=True)

    @cached_property
    def _capacitance(self) -> tuple[np.ndarray, bool]:
        W = self._root
        return cho_factor(np.eye(W.shape[1]) + W.T @ (W / self.d[:, None]), lower=True)

    def solve(self, v: np.ndarray) -> np.ndarray:
        # Woodbury: (D + W W')^-1 = D^-1 - D^-1 W (I + W' D^-1 W)^-1 W' D^-1
        W, scaled = self._root, _columns(v) / self.d[:, None]
        return (scaled - (W / self.d[:, None]) @ cho_solve(self._capacitance, W.T @ scaled)).reshape(v.shape)

    def logdet(self) -> float:
        return float(np.log(self.d).sum() + 2.0 * np.log(np.diagonal(self._capacitance[0])).sum())

    def trace_solve(self, dense: np.ndarray) -> float:
        U = self._root / self.d[:, None]
        return float((np.diagonal(dense) / self.d).sum() - np.trace(cho_solve(self._capacitance, U.T @ dense @ U)))

    @property
    def sqrt_size(self) -> int:
        return self.d.size + self.Z.shape[1]

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        # R = [diag(d)^1/2, W]: paper, "Centring of variables for MCMC"
        V, H = _columns(v), self.d.size
        out = np.sqrt(self.d)[:, None] * V[:H] + self._root @ V[H:]
        return out.reshape(H, *v.shape[1:])


@dataclass(frozen=True)
class Bordered(AbstractInvertible):
    """[[core, border], [border', corner]] with core (H, H) structured, border (H, Q), corner (Q, Q), Q small."""

    core: DiagonalPlusLowRank
    border: np.ndarray
    corner: np.ndarray

    @property
    def _split(self) -> int:
        return self.core.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        P = self._split + self.corner.shape[0]
        return (P, P)

    def mv(self, v: np.ndarray) -> np.ndarray:
        V, H = _columns(v), self._split
        top = self.core.mv(V[:H]) + self.border @ V[H:]
        return np.concatenate([top, self.border.T @ V[:H] + self.corner @ V[H:]]).reshape(v.shape)

    def diagonal(self) -> np.ndarray:
        return np.concatenate([self.core.diagonal(), np.diagonal(self.corner)])

    def add_to(self, dense: np.ndarray) -> np.ndarray:
        H = self._split
        total = np.empty_like(dense)
        total[:H, :H] = self.core.add_to(dense[:H, :H])
        total[:H, H:] = dense[:H, H:] + self.border
        total[H:, :H] = dense[H:, :H] + self.border.T
        total[H:, H:] = dense[H:, H:] + self.corner
        return total

    def inner(self, dense: np.ndarray) -> float:
        H = self._split
        edge = 2.0 * np.sum(self.border * dense[:H, H:]) + np.sum(self.corner * dense[H:, H:])
        return self.core.inner(dense[:H, :H]) + float(edge)

    def to_dense(self) -> np.ndarray:
        return np.block([[self.core.to_dense(), self.border], [self.border.T, self.corner]])

    @cached_property
    def _reach(self) -> np.ndarray:
        """core^-1 border, (H, Q)."""
        return self.core.solve(self.border)

    @cached_property
    def _schur(self) -> tuple[np.ndarray, bool]:
        """Cholesky factor of corner - border' core^-1 border."""
        return cho_factor(self.corner - self.border.T @ self._reach, lower=True)

    def solve(self, v: np.ndarray) -> np.ndarray:
        V, H = _columns(v), self._split
        top = self.core.solve(V[:H])
        bottom = cho_solve(self._schur, V[H:] - self.border.T @ top)
        return np.concatenate([top - self._reach @ bottom, bottom]).reshape(v.shape)

    def logdet(self) -> float:
        return self.core.logdet() + float(2.0 * np.log(np.diagonal(self._schur[0])).sum())

    def trace_solve(self, dense: np.ndarray) -> float:
        # K^-1 = blkdiag(core^-1, 0) + J S^-1 J' with J = [-core^-1 border; I] and S the Schur complement
        H = self._split
        J = np.concatenate([-self._reach, np.eye(self.corner.shape[0])])
        return self.core.trace_solve(dense[:H, :H]) + float(np.trace(cho_solve(self._schur, J.T @ dense @ J)))

    @property
    def sqrt_size(self) -> int:
        return self.core.sqrt_size + self.corner.shape[0]

    def sqrt_mv(self, v: np.ndarray) -> np.ndarray:
        # With R0 R0' = core:  R = [[R0, 0], [border' core^-1 R0, chol(Schur)]]
        V, inner_size = _columns(v), self.core.sqrt_size
        top = self.core.sqrt_mv(V[:inner_size])
        bottom = self._reach.T @ top + np.tril(self._schur[0]) @ V[inner_size:]
        return np.concatenate([top, bottom]).reshape(self.shape[0], *v.shape[1:])
