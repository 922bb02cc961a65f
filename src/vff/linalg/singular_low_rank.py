"""A singular diagonal that a low rank makes positive: the prior of a process whose state is known only by its start.

[[diag(d), 0], [0, root root']] + Z C Z', where the first part vanishes at as many places as C has rows, the *free*
ones. Functions that have no state beside the free ones would make it block diagonal: with N = E (Z_free')^-1, E the
unit vectors of the free places, and S = I - N Z',

    K^-1 = S D+ S' + N C^-1 N'        D+ the inverse where D is not zero

so nothing is ever divided by the zeros. All verbs are O(P) per right-hand side.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.linalg.diagonal_low_rank import Bordered
from vff.linalg.operators import AbstractInvertible, AbstractSymmetric
from vff.linalg.views import StructuredCotangent


@dataclass(frozen=True)
class SingularLowRank(Bordered, AbstractInvertible):
    """The matrix above; d (H,), root (Q, Q) lower triangular, Z (P, R), C (R, R)."""

    d: np.ndarray
    root: np.ndarray
    Z: np.ndarray
    C: np.ndarray
    free: tuple[int, ...]
    """Places of the zeros of d and of the diagonal of root, R of them; their rows in root are zero."""

    @property
    def border(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]  # there is none
        return np.zeros((self.d.size, len(self.root)))

    @cached_property
    def corner(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]  # follows from the others
        return self.root @ self.root.T

    def scaled(self, factor: float) -> "SingularLowRank":
        return SingularLowRank(factor * self.d, np.sqrt(factor) * self.root, self.Z, factor * self.C, self.free)

    @cached_property
    def _held(self) -> np.ndarray:
        """Which places are not free, (P,)."""
        held = np.ones(self.shape[0], bool)
        held[list(self.free)] = False
        return held

    @cached_property
    def _edge_root(self) -> np.ndarray:
        """The rows and columns of root that are not zero."""
        held = self._held[self.d.size :]
        return self.root[np.ix_(held, held)]

    @cached_property
    def _inverse_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """e (P,), U (P, k) and V = U Lambda with K^-1 = diag(e) + U Lambda U'."""
        (P, _), H, R = self.shape, self.d.size, len(self.C)
        e, N = np.zeros(P), np.zeros((P, R))
        harmonics = np.flatnonzero(self._held[:H])
        e[harmonics] = 1.0 / self.d[harmonics]
        N[list(self.free)] = np.linalg.inv(self.Z[list(self.free)]).T
        edges = np.zeros((P, len(self._edge_root)))
        edges[H + np.flatnonzero(self._held[H:])] = np.linalg.inv(self._edge_root).T
        edges -= N @ (self.Z.T @ edges)
        reach = e[:, None] * self.Z
        inside = self.Z.T @ reach + np.linalg.inv(self.C)
        inside = 0.5 * (inside + inside.T)
        return e, np.concatenate([N, reach, edges], axis=1), np.concatenate([N @ inside - reach, -N, edges], axis=1)

    def solve(self, v: np.ndarray) -> np.ndarray:
        e, U, V = self._inverse_parts
        return (e * v.T).T + V @ (U.T @ v)

    def logdet(self) -> float:
        pivots = np.concatenate([self.d[self._held[: self.d.size]], np.diagonal(self._edge_root) ** 2])
        state = self.Z[list(self.free)]
        return float(np.log(pivots).sum() + np.linalg.slogdet(state @ self.C @ state.T)[1])

    def trace_solve(self, G: AbstractSymmetric) -> float:
        e, U, V = self._inverse_parts
        return float(e @ G.diagonal() + np.sum(U * (G @ V)))

    def project_inverse(self) -> StructuredCotangent:
        e, U, V = self._inverse_parts
        return StructuredCotangent((e + np.einsum("pr,pr->p", U, V), self.solve(self.probes)))

    def project_sandwich(self, G: AbstractSymmetric) -> StructuredCotangent:
        e, U, V = self._inverse_parts
        image = G @ U
        cross = 2.0 * e * np.einsum("pr,pr->p", image, V)
        diagonal = e**2 * G.diagonal() + cross + np.einsum("pr,pr->p", V @ (U.T @ image), V)
        return StructuredCotangent((diagonal, self.solve(G @ self.solve(self.probes))))
