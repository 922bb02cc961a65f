"""Diagonal, border and low rank: the structure of one column's prior. All verbs are O(P) per right-hand side.

    BorderedLowRank          [[diag(d), border], [border', corner]] + Z C Z'                      applied, contracted
    PositiveBorderedLowRank  the same with corner = border' diag(1/d) border + root root'         also solved with

The positive one is given by the root of its Schur complement, not by its corner, because that is what its author knows
without cancellation. Shapes: d (H,), border (H, Q), corner (Q, Q), root (Q, S), Z (P, R), C (R, R); Q, R and S are a
handful, possibly zero for Q, and P = H + Q.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dsyrk  # pyright: ignore[reportAttributeAccessIssue]
from scipy.linalg.lapack import dtrtri  # pyright: ignore[reportAttributeAccessIssue]

from vff.linalg.operators import AbstractInvertible, AbstractOperator, AbstractSymmetric
from vff.linalg.views import MatrixView, StructuredCotangent


def _inverse_transpose(lower: np.ndarray) -> np.ndarray:
    """L^-T of a handful by a handful: a product with it is cheaper than a call to a triangular solver."""
    return dtrtri(lower, lower=1)[0].T if lower.size else lower


def _columns(v: np.ndarray) -> np.ndarray:
    return v[:, None] if v.ndim == 1 else v


class Bordered(AbstractOperator):
    """What all of them do, by their parts."""

    d: np.ndarray
    border: np.ndarray
    corner: np.ndarray
    Z: np.ndarray
    C: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        P = self.Z.shape[0]
        return (P, P)

    def mv(self, v: np.ndarray) -> np.ndarray:
        V, H = _columns(v), self.d.size
        base = np.concatenate(
            [self.d[:, None] * V[:H] + self.border @ V[H:], self.border.T @ V[:H] + self.corner @ V[H:]]
        )
        return (base + self.Z @ (self.C @ (self.Z.T @ V))).reshape(v.shape)

    def lower_plus(self, dense: np.ndarray) -> np.ndarray:
        H, P = self.d.size, self.shape[0]
        total = np.asfortranarray(dense.T)  # symmetric: the transpose of a C array is the Fortran array, free
        # derivatives of a state are decades apart in size, which eigenvectors would lose: their scales go out first
        scale = np.sqrt(np.abs(np.diagonal(self.C)))
        scale[scale == 0.0] = 1.0
        values, vectors = np.linalg.eigh(self.C / np.multiply.outer(scale, scale))
        for sign in (1.0, -1.0):
            part = sign * values > 0.0
            if part.any():
                states = scale[:, None] * vectors[:, part] * np.sqrt(np.abs(values[part]))
                root = np.asfortranarray(self.Z @ states)
                total = dsyrk(sign, root, beta=1.0, c=total, lower=1, overwrite_c=1)
        total[H:, :H] += self.border.T
        total[H:, H:] += self.corner
        total.T.flat[: H * (P + 1) : P + 1] += self.d
        return total

    @property
    def probes(self) -> np.ndarray:
        P, Q = self.shape[0], self.corner.shape[0]
        return np.concatenate([self.Z, np.eye(P, Q, Q - P)], axis=1)

    def project(self, view: MatrixView) -> StructuredCotangent:
        return StructuredCotangent((view.diagonal(), view.times(self.probes)))

    def inner(self, other: StructuredCotangent) -> float:
        H, R, (diagonal, image) = self.d.size, self.Z.shape[1], other.arrays()
        low_rank = np.sum(self.C * (self.Z.T @ image[:, :R]))
        edge = 2.0 * np.sum(self.border * image[:H, R:]) + np.sum(self.corner * image[H:, R:])
        return float(self.d @ diagonal[:H] + low_rank + edge)

    def blended(self, own: float, other: "Bordered", weight: float) -> "BorderedLowRank":
        mine, theirs = ((each.d, each.border, each.corner, each.C) for each in (self, other))
        d, border, corner, C = (own * one + weight * two for one, two in zip(mine, theirs, strict=True))
        return BorderedLowRank(d, border, corner, self.Z, C)

    def sheared(self, X: np.ndarray) -> "BorderedLowRank":
        """R K R' with R = [[I, 0], [X, I]], X (Q, H): about functions that take multiples of the first with them."""
        H, scaled, across = self.d.size, X * self.d, X @ self.border
        corner = self.corner + across + across.T + scaled @ X.T
        Z = np.concatenate([self.Z[:H], self.Z[H:] + X @ self.Z[:H]])
        return BorderedLowRank(self.d, self.border + scaled.T, corner, Z, self.C)

    def to_dense(self) -> np.ndarray:
        base = np.block([[np.diag(self.d), self.border], [self.border.T, self.corner]])
        return base + self.Z @ self.C @ self.Z.T


@dataclass(frozen=True)
class BorderedLowRank(Bordered):
    """[[diag(d), border], [border', corner]] + Z C Z'. Symmetric, of any sign."""

    d: np.ndarray
    border: np.ndarray
    corner: np.ndarray
    Z: np.ndarray
    C: np.ndarray


@dataclass(frozen=True)
class PositiveBorderedLowRank(Bordered, AbstractInvertible):
    """[[diag(d), border], [border', border' diag(1/d) border + root root']] + Z C Z', positive definite.

    With W W' = Z C Z' and the border eliminated (W_e <- W_e - border' D^-1 W_h), the harmonics' Schur complement is

        S = root root' + W_e (I + W_h' D^-1 W_h)^-1 W_e'

    a sum of squares, so it is factored by QR of its root and never by subtraction. The inverse is

        K^-1 = diag(1/d, 0) - U1 U1' + U2 U2'.
    """

    d: np.ndarray
    border: np.ndarray
    root: np.ndarray
    Z: np.ndarray
    C: np.ndarray

    @cached_property
    def corner(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]  # follows from the others
        return self.border.T @ (self.border / self.d[:, None]) + self.root @ self.root.T

    def scaled(self, factor: float) -> "PositiveBorderedLowRank":
        """factor times this matrix, factor > 0."""
        return PositiveBorderedLowRank(
            factor * self.d, factor * self.border, np.sqrt(factor) * self.root, self.Z, factor * self.C
        )

    @cached_property
    def _W(self) -> np.ndarray:
        return self.Z @ np.linalg.cholesky(self.C)

    @cached_property
    def _capacitance(self) -> np.ndarray:
        """Lower Cholesky factor of I + W_h' D^-1 W_h, (R, R)."""
        W = self._W[: self.d.size]
        return np.linalg.cholesky(np.eye(W.shape[1]) + W.T @ (W / self.d[:, None]))

    @cached_property
    def _edge(self) -> np.ndarray:
        """(W_e - border' D^-1 W_h) L^-T with L L' the capacitance, (Q, R)."""
        H = self.d.size
        W = self._W[H:] - self.border.T @ (self._W[:H] / self.d[:, None])
        return W @ _inverse_transpose(self._capacitance)

    @cached_property
    def _schur(self) -> np.ndarray:
        """Lower triangular root of the Schur complement, (Q, Q), with a positive diagonal."""
        upper: np.ndarray = np.linalg.qr(np.concatenate([self.root.T, self._edge.T]), mode="r")  # pyright: ignore
        return (upper * np.where(np.diagonal(upper) < 0.0, -1.0, 1.0)[:, None]).T

    @cached_property
    def _inverse_roots(self) -> tuple[np.ndarray, np.ndarray]:
        """(U1, U2), (P, R) and (P, Q), with K^-1 = diag(1/d, 0) - U1 U1' + U2 U2'."""
        H, Q = self.d.size, self.root.shape[0]
        scaled = self._W[:H] / self.d[:, None]
        first = scaled @ _inverse_transpose(self._capacitance)
        reach = -first @ self._edge.T - self.border / self.d[:, None]
        second = np.concatenate([reach, np.eye(Q)]) @ _inverse_transpose(self._schur)
        return np.concatenate([first, np.zeros((Q, first.shape[1]))]), second

    def solve(self, v: np.ndarray) -> np.ndarray:
        V, (U1, U2) = _columns(v), self._inverse_roots
        solution = U2 @ (U2.T @ V) - U1 @ (U1.T @ V)
        solution[: self.d.size] += V[: self.d.size] / self.d[:, None]
        return solution.reshape(v.shape)

    def logdet(self) -> float:
        pivots = np.concatenate([np.diagonal(self._capacitance), np.diagonal(self._schur)])
        return float(np.log(self.d).sum() + 2.0 * np.log(pivots).sum())

    def _inverse_diagonal(self) -> np.ndarray:
        U1, U2 = self._inverse_roots
        diagonal = np.einsum("pr,pr->p", U2, U2) - np.einsum("pr,pr->p", U1, U1)
        diagonal[: self.d.size] += 1.0 / self.d
        return diagonal

    def project_inverse(self) -> StructuredCotangent:
        return StructuredCotangent((self._inverse_diagonal(), self.solve(self.probes)))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        return StructuredCotangent((self._sandwich_diagonal(G), self.solve(G @ self.solve(self.probes))))

    def trace_solve(self, G: AbstractSymmetric) -> float:
        U1, U2 = self._inverse_roots
        low_rank = np.sum(U2 * (G @ U2)) - np.sum(U1 * (G @ U1))
        return float(np.sum(G.diagonal()[: self.d.size] / self.d) + low_rank)

    def _sandwich_diagonal(self, G: AbstractSymmetric) -> np.ndarray:
        U = np.concatenate(self._inverse_roots, axis=1)
        signed = U * np.repeat([-1.0, 1.0], [self.Z.shape[1], self.root.shape[0]])
        e = np.concatenate([1.0 / self.d, np.zeros(self.root.shape[0])])
        image = G @ U
        cross = 2.0 * e * np.einsum("pr,pr->p", image, signed)
        return e**2 * G.diagonal() + cross + np.einsum("pr,pr->p", signed @ (U.T @ image), signed)
