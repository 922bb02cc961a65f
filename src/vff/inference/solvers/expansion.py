"""What learning climbs to second order: slopes and curvature in all log hyperparameters, from one solution.

With V = A^-1, K_i = dK / d theta_i in the blocks of its term, W = K^-1 G K^-1 and D = dELBO / dK, theory (27.1):

    d2 / d theta_i d theta_j = <D, K_ij> + 1/2 tr(V K_i V K_j) + m'K_i V K_j m
                               - 1/2 tr(K^-1 K_i K^-1 K_j) + tau tr(K_i K^-1 K_j W) - tau/2 d2 sum w k(x, x)

the last line, and K_ij, within a term alone. The noise is a direction like the others, because tau G = A - K: where K_i
stands for a change of K, K stands for one of log noise. A constant beside the features is a row and a column of A more.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from vff.inference.solvers.cotangents import ROUNDING
from vff.linalg import DenseView, MatrixView, OuterView

if TYPE_CHECKING:
    from vff.inference.solvers.direct import DirectLinearGaussian
    from vff.inference.solvers.low_rank import LowRankLinearGaussian

Product = Callable[[np.ndarray], np.ndarray]


class Slopes(NamedTuple):
    """To second order, the noise last; of hyperparameters of the terms, without what <D, K_ij> adds."""

    gradient: np.ndarray
    """(R + 1,)."""
    hessian: np.ndarray
    """(R + 1, R + 1)."""


class Expansion(ABC):
    """Of what learning climbs at one setting."""

    @abstractmethod
    def view(self, s: int) -> MatrixView:
        """D in the block of a term."""

    @property
    @abstractmethod
    def in_trace(self) -> float:
        """The derivative in sum w k(x, x)."""

    @abstractmethod
    def slopes(self, changes: Sequence[Sequence[Product]], traces: np.ndarray) -> Slopes:
        """From products with K_i, by term, and the derivatives of sum w k(x, x), (R,)."""


@dataclass(frozen=True)
class _Direction:
    """A hyperparameter of a term: what its K_i makes of everything."""

    own: slice
    """The term's rows and columns."""
    change: Product
    image: np.ndarray
    """K_i V, (P_s, P)."""
    pulled: np.ndarray
    """K_i m, (P_s,)."""
    relative: np.ndarray
    """K_i K^-1, (P_s, P_s)."""


@dataclass(frozen=True)
class DirectExpansion(Expansion):
    """Of the bound, with A^-1 written out: products of structured matrices with it are O(P^2) each."""

    model: "DirectLinearGaussian"

    @cached_property
    def V(self) -> np.ndarray:
        """Covariance of the coefficients, and of the constant where there is one."""
        inverse, known = self.model.inverse.matrix, self.model.intercept_posterior
        if known is None:
            return inverse
        u = np.append(-known.answer, 1.0)
        return np.pad(inverse, (0, 1)) + known.variance * np.multiply.outer(u, u)

    @cached_property
    def m(self) -> np.ndarray:
        known = self.model.intercept_posterior
        return self.model.mean if known is None else np.append(self.model.mean, known.mean)

    def prior_times(self, v: np.ndarray) -> np.ndarray:
        """K v, the precision of the constant last."""
        own = self.model.intercept
        if own is None:
            return self.model.prior.mv(v)
        return np.concatenate([self.model.prior.mv(v[:-1]), v[-1:] / own.variance])

    @cached_property
    def _inverses(self) -> list[np.ndarray]:
        """K^-1 of every term, written out."""
        return [block.solve(np.eye(block.shape[0])) for block in self.model.block_prior.blocks]

    @cached_property
    def _seen(self) -> list[np.ndarray]:
        """K^-1 G of every term."""
        G = self.model.seen_gram
        return [block.solve(G[own, own]) for block, own in self.model.block_prior.each()]

    @cached_property
    def _sandwiches(self) -> list[np.ndarray]:
        """W of every term."""
        return [block.solve(seen.T) for block, seen in zip(self.model.block_prior.blocks, self._seen, strict=True)]

    def view(self, s: int) -> MatrixView:
        own = self.model.block_prior.slices[s]
        moment = self.V[own, own] + np.multiply.outer(self.m[own], self.m[own])
        return DenseView(-0.5 * (moment - self._inverses[s] + self.model.tau * self._sandwiches[s]))

    @property
    def in_trace(self) -> float:
        return -0.5 * self.model.tau * (1.0 + ROUNDING)

    def slopes(self, changes: Sequence[Sequence[Product]], traces: np.ndarray) -> Slopes:
        V, m, tau = self.V, self.m, self.model.tau
        directions, within, seen = [], [], []
        for s, (own, some) in enumerate(zip(self.model.block_prior.slices, changes, strict=True)):
            part = [_Direction(own, K, K(V[own]), K(m[own]), K(self._inverses[s])) for K in some]
            within.append(self._within(part, self._sandwiches[s]))
            seen += [float(np.sum(one.relative * self._seen[s])) for one in part]  # tr(K_i W)
            directions += part
        noise, pulled = self.prior_times(V), self.prior_times(m)  # K V, K m
        R = len(directions)
        gradient, hessian = np.zeros(R + 1), np.zeros((R + 1, R + 1))
        hessian[:R, :R] = block_diag(*within)
        for i, one in enumerate(directions):
            by_noise = float(np.trace(one.image[:, one.own]))  # tr(V K_i)
            of_prior = float(np.trace(one.relative))
            gradient[i] = -0.5 * (by_noise + one.pulled @ m[one.own] - of_prior + tau * seen[i])
            turned = V[one.own].T @ one.pulled  # V K_i m
            for j, other in enumerate(directions[: i + 1]):
                spread = 0.5 * float(np.sum(one.image[:, other.own] * other.image[:, one.own].T))
                hessian[i, j] += spread + turned[other.own] @ other.pulled
                hessian[j, i] = hessian[i, j]
            of_both = float(np.sum(one.image * noise[:, one.own].T)) + 2.0 * turned @ pulled
            missed = tau * ((1.0 + ROUNDING) * traces[i] + seen[i])
            hessian[i, R] = hessian[R, i] = -0.5 * (by_noise - of_both - missed)
        gradient[:R] += self.in_trace * traces
        gradient[R] = self.model.cotangents.log_noise
        hessian[R, R] = self._along_noise(noise, pulled)
        return Slopes(gradient, hessian)

    def _within(self, part: Sequence[_Direction], W: np.ndarray) -> np.ndarray:
        """-1/2 tr(K^-1 K_i K^-1 K_j) + tau tr(K_i K^-1 K_j W) of one term."""
        return np.array([
            [
                -0.5 * np.sum(one.relative * other.relative.T)
                + self.model.tau * np.sum(one.change(other.relative.T) * W)
                for other in part
            ]
            for one in part
        ])  # fmt: skip

    def _along_noise(self, noise: np.ndarray, pulled: np.ndarray) -> float:
        """The second derivative in log noise, from K V and K m."""
        model = self.model
        spread = float(np.trace(noise)) - float(np.sum(noise * noise.T))
        fit = model.tau * (model.yy - model.pulled + model.residual) - model.penalty
        return -0.5 * (spread + fit - 2.0 * float(pulled @ self.V @ pulled))


@dataclass(frozen=True)
class RowExpansion(Expansion):
    """Of the evidence of few rows, none of them alike, with what the features miss of each taken for noise.

    In the columns of L, rows are N(0, Sigma), Sigma = S + (s + r) I + kappa h h' with S = L'K^-1 L, r what features
    miss of a row on average, kappa the variance of the constant and h its column; so all of it is the exact process's,

        d2 / d theta_i d theta_j = 1/2 tr(W Sigma_ij) + 1/2 tr(Sigma^-1 Sigma_i Sigma^-1 Sigma_j)
                                   - a'Sigma_i Sigma^-1 Sigma_j a,        a = Sigma^-1 beta, W = a a' - Sigma^-1
    """

    model: "LowRankLinearGaussian"

    @cached_property
    def _precision(self) -> np.ndarray:
        """Sigma^-1."""
        loud, own = self.model.as_learnt, self.model.intercept
        inverse = loud.whitened.T @ loud.whitened
        if own is None:
            return inverse
        h = loud.sides[:, 1]
        u = inverse @ h
        return inverse - np.multiply.outer(u, u) / (1.0 / own.variance + h @ u)

    @cached_property
    def _a(self) -> np.ndarray:
        return self._precision @ self.model.sides[:, 0]

    @cached_property
    def _W(self) -> np.ndarray:
        return np.multiply.outer(self._a, self._a) - self._precision

    @property
    def _share(self) -> float:
        """That of every row in what the features miss; none where rounding is all that they miss."""
        return 1.0 / self.model.weight if self.model.residual > 0.0 else 0.0

    @cached_property
    def _beside(self) -> np.ndarray:
        """W, less what S takes from r: the derivative in S is half of it."""
        return self._W - self._share * float(np.trace(self._W)) * np.eye(len(self._W))

    def view(self, s: int) -> MatrixView:
        reached = self.model.reached[self.model.block_prior.slices[s]]
        return OuterView(-0.5 * (reached @ self._beside), reached)

    @property
    def in_trace(self) -> float:
        return 0.5 * self._share * float(np.trace(self._W))

    def slopes(self, changes: Sequence[Sequence[Product]], traces: np.ndarray) -> Slopes:
        model, a, eye = self.model, self._a, np.eye(len(self._W))
        moved, within = [], []
        for (block, own), some in zip(model.block_prior.each(), changes, strict=True):
            reached = model.reached[own]
            images = [change(reached) for change in some]
            moved += [-reached.T @ image for image in images]
            solved = [block.solve(image) @ self._beside for image in images]
            within.append(np.array([[np.sum(image * other) for other in solved] for image in images]))
        moves = [S + self._share * (trace - np.trace(S)) * eye for S, trace in zip(moved, traces, strict=True)]
        spread = np.array([*moves, model.noise * eye])  # Sigma_i, that of log noise last, (R, n, n)
        gradient, R = 0.5 * np.einsum("nm,rnm->r", self._W, spread), len(spread)
        relative, pulled = self._precision @ spread, spread @ a
        both = relative.reshape(R, -1) @ relative.transpose(0, 2, 1).reshape(R, -1).T
        hessian = 0.5 * both - pulled @ self._precision @ pulled.T
        hessian[: R - 1, : R - 1] += np.asarray(block_diag(*within))
        hessian[R - 1, R - 1] += gradient[-1]  # noise is its own derivative in its logarithm
        return Slopes(gradient, 0.5 * (hessian + hessian.T))
