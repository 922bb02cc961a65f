"""Coordinates for the edge functions in which K_uu is known without cancellation.

Harmonics and edge functions R_n (see ``vff.basis``) are far from orthogonal in the RKHS. Add to each R_n the harmonics
that make it so under L = (D + rate)^(p+1):

    E_n = R_n + Re sum_(m=1..M) x_n(m) exp(i omega s) = B_n + Re sum_(m=1..M) e_n(m) exp(i omega s)
    x_n(m) =  sum_(j>=n) C(p+1, j) rate^(p+1-j) (i omega)^(j-n) / (rate + i omega)^(p+1)        zero for n > p + 1
    e_n(m) = -sum_(j<n)  C(p+1, j) rate^(p+1-j) (i omega)^(j-n) / (rate + i omega)^(p+1)

Then L E_n has no harmonic 1 ... M. What is left is a constant, C(p+1, n) rate^(p+1-n) (-1/2), and the frequencies above
M, with coefficients sum_k Lambda[n, k] (i omega)^-k, Lambda[n, k] = C(p+1, n-k) rate^(p+1-n+k), whose inner products
are Hurwitz zeta functions.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb

import numpy as np
from scipy.linalg import cholesky
from scipy.special import zeta

from vff.basis import CONSTANT, ColumnBasis


@cache
def tail_root(M: int, q: int) -> np.ndarray:
    """Lower triangular root of the Gram matrix of R_1 ... R_q in L2, (q, q)."""
    k = np.arange(1, q + 1)
    total, quarter_turns = np.add.outer(k, k), np.subtract.outer(k, k)
    sign = np.where(quarter_turns % 2 == 1, 0.0, np.where(quarter_turns % 4 == 0, 1.0, -1.0))
    # scaled by (pi (M + 1))^k first, so that the factorisation sees numbers near one
    gram = sign * (M + 1.0) ** total * zeta(total, M + 1.0)
    return cholesky(gram, lower=True) / (np.pi * (M + 1.0)) ** k[:, None] if q else np.zeros((0, 0))


def remainder_matrix(q: int, order: int, rate: float) -> np.ndarray:
    """Lambda (q, q) for (D + rate)^order: what it makes of the frequencies above M."""
    matrix = np.zeros((q, q))
    for n in range(q):
        for k in range(max(0, n - order), n + 1):
            matrix[n, k] = comb(order, n - k) * rate ** (order - n + k)
    return matrix


def constant_part(q: int, order: int, rate: float) -> np.ndarray:
    """The constant of (D + rate)^order E_n, (q,)."""
    return np.array([comb(order, n) * rate ** (order - n) * CONSTANT if n <= order else 0.0 for n in range(1, q + 1)])


def _waves(M: int, p: int, rate: float, n: int, orders: range) -> np.ndarray:
    """Cosine-then-sine coefficients of sum_j C(p+1, j) rate^(p+1-j) (i omega)^(j-n) / (rate + i omega)^(p+1)."""
    wave = 1j * np.pi * np.arange(1, M + 1)
    total = sum((comb(p + 1, j) * rate ** (p + 1 - j) * wave ** float(j - n) for j in orders), np.zeros(M, complex))
    total = total / (rate + wave) ** (p + 1)
    # Re(a exp(i omega s)) = Re a cos - Im a sin
    return np.concatenate([[0.0], total.real, -total.imag])


def bernoulli_waves(basis: ColumnBasis, p: int, rate: float) -> np.ndarray:
    """e_n, (q, H): the harmonics of E_n beside B_n."""
    orders = [range(min(n, p + 2)) for n in range(1, basis.q + 1)]
    rows = [-_waves(basis.M, p, rate, n + 1, orders[n]) for n in range(basis.q)]
    return np.array(rows).reshape(basis.q, basis.harmonics)


@dataclass(frozen=True)
class EdgeTransform:
    """T = [[I, 0], [X, I]]: harmonics and R_n to harmonics and E_n."""

    X: np.ndarray
    """x_n, (q, H): the harmonics of E_n beside R_n."""

    def forward(self, v: np.ndarray) -> np.ndarray:
        """T v for v (P,) or (P, S)."""
        H = self.X.shape[1]
        return np.concatenate([v[:H], self.X @ v[:H] + v[H:]])

    def transpose(self, v: np.ndarray) -> np.ndarray:
        """T' v: coefficients of the new functions to coefficients of the old."""
        H = self.X.shape[1]
        return np.concatenate([v[:H] + self.X.T @ v[H:], v[H:]])


@dataclass(frozen=True)
class StackedTransform:
    """diag(T_1, ..., T_S): the transforms of several columns, side by side."""

    transforms: tuple[EdgeTransform, ...]

    @cached_property
    def _places(self) -> list[tuple[EdgeTransform, slice, slice]]:
        """Every transform that does something, with the places of its harmonics and of its edge functions."""
        places, start = [], 0
        for transform in self.transforms:
            q, H = transform.X.shape
            if q:
                places.append((transform, slice(start, start + H), slice(start + H, start + H + q)))
            start += H + q
        return places

    def forward(self, v: np.ndarray) -> np.ndarray:
        """T v for v (P,) or (P, S)."""
        image = v.copy()
        for transform, harmonics, edges in self._places:
            image[edges] += transform.X @ v[harmonics]
        return image

    def transpose(self, v: np.ndarray) -> np.ndarray:
        """T' v."""
        image = v.copy()
        for transform, harmonics, edges in self._places:
            image[harmonics] += transform.X.T @ v[edges]
        return image

    def gram(self, G: np.ndarray) -> np.ndarray:
        """T G T' for a symmetric G; exactly symmetric."""
        if not self._places:
            return G
        edges = np.concatenate([np.arange(place.start, place.stop) for _, _, place in self._places])
        rows = np.concatenate([T.X @ G[harmonics] + G[place] for T, harmonics, place in self._places])
        corner = self.forward(rows.T)[edges]
        total = G.copy()
        total[edges] = rows
        total[:, edges] = rows.T
        total[np.ix_(edges, edges)] = 0.5 * (corner + corner.T)
        return total


def edge_transform(basis: ColumnBasis, p: int, rate: float) -> EdgeTransform:
    """T at this rate."""
    rows = [_waves(basis.M, p, rate, n, range(n, p + 2)) for n in range(1, basis.q + 1)]
    return EdgeTransform(np.array(rows).reshape(basis.q, basis.harmonics))
