"""Slopes and curvature of the bound where a product with levels is eliminated: theory (29.5).

Of all coefficients, the covariance is [[V, -V X'], [-X V, D + X V X']] with D and X by level; K_i of the term that is
eliminated is the same on every level, so what enters is summed over levels:

    Q_i = sum X'K_i X,      p_i = sum X'K_i m,      Y = X V X'
    1/2 tr(V K_i V K_j) + m'K_i V K_j m  of the whole is, for i of levels and j of others,
        1/2 tr(V Q_i V K_j) - p_i'V K_j m
    and for both of levels
        1/2 [sum tr(D K_i D K_j) + 2 sum tr(D K_i Y K_j) + tr(V Q_i V Q_j)] + sum m'K_i D K_j m + p_i'V p_j

A constant beside the features is one more of the others. The noise is a direction like the others in which K itself
stands for a change (27.2); that of levels is minus the change by their variance, the first of their hyperparameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vff.inference.solvers.expansion import DirectExpansion, Expansion, Product, Slopes
from vff.linalg import MatrixView, SummedView

if TYPE_CHECKING:
    from vff.inference.solvers.block_eliminated import BlockEliminatedLinearGaussian


class _OverLevels(NamedTuple):
    """What changes K_i of the prior of levels make of the covariance and the mean, summed over levels."""

    Q: np.ndarray
    """(I, R, R)."""
    p: np.ndarray
    """(I, R)."""
    spread: np.ndarray
    """tr(V K_i V K_j) without the part of V Q_i V Q_j, (I, I)."""
    pulled: np.ndarray
    """sum m'K_i D K_j m, (I, I)."""


@dataclass(frozen=True)
class BlockExpansion(Expansion):
    """Of the bound, at one setting."""

    model: "BlockEliminatedLinearGaussian"

    @cached_property
    def _rest(self) -> DirectExpansion:
        return DirectExpansion(self.model.remaining)

    @cached_property
    def _others(self) -> np.ndarray:
        """V in the functions that are summed over rows, the constant last."""
        V, transform = self._rest.V, self.model.elimination.transform
        R = self.model.elimination.levels.others

        def back(v: np.ndarray) -> np.ndarray:
            return np.concatenate([transform.transpose(v[:R]), v[R:]])

        return back(back(V).T)

    @cached_property
    def _mean(self) -> np.ndarray:
        """Of the levels, (L, m)."""
        model = self.model
        return model.own.axes.apart(model.mean[model.prior.slices[model.elimination.term]])

    @cached_property
    def _moment(self) -> np.ndarray:
        """Covariance and square of the mean of all levels together, (m, m)."""
        model, known = self.model, self.model.intercept_posterior
        found = model.own_covariance + self._mean.T @ self._mean
        if known is None:
            return found
        answer = model.own.axes.apart(known.answer[model.prior.slices[model.elimination.term]])
        return found + known.variance * (answer.T @ answer)

    @cached_property
    def _sandwich(self) -> np.ndarray:
        """K^-1 G K^-1 of all levels together."""
        factored = self.model.factored
        return factored.inverse @ factored.total @ factored.inverse

    def view(self, s: int) -> MatrixView:
        e, factored = self.model.elimination.term, self.model.factored
        if s != e:
            return self._rest.view(s - (s > e))
        count = self.model.own.axes.count
        return SummedView(-0.5 * (self._moment - count * factored.inverse + self.model.tau * self._sandwich))

    @property
    def in_trace(self) -> float:
        return self._rest.in_trace

    def _over_levels(self, changes: np.ndarray) -> _OverLevels:
        """Of changes K_i of one level, (I, m, m)."""
        V, noise = self._others, self.model.noise
        R, n = len(V), len(changes)
        found = _OverLevels(np.zeros((n, R, R)), np.zeros((n, R)), np.zeros((n, n)), np.zeros((n, n)))
        for some in self.model.factored.stretches():
            X, m, D = some.reached[:, :, :R], self._mean[some.levels], noise * some.inverse
            flat = X.reshape(m.size, R)
            Y = (flat @ V).reshape(X.shape) @ X.transpose(0, 2, 1)
            pushed = m @ changes  # K_i m, (I, l, m)
            own, crossed = [D @ K for K in changes], [Y @ K for K in changes]
            for i, K in enumerate(changes):
                found.Q[i] += flat.T @ (K @ X).reshape(m.size, R)
                found.p[i] += pushed[i].reshape(-1) @ flat
                solved = (D @ pushed[i][:, :, None])[:, :, 0]
                for j in range(n):
                    twice = own[j] + 2.0 * crossed[j]
                    found.spread[i, j] += float(np.sum(own[i] * twice.transpose(0, 2, 1)))
                    found.pulled[i, j] += float(np.sum(solved * pushed[j]))
        return found

    def slopes(self, changes: Sequence[Sequence[Product]], traces: np.ndarray) -> Slopes:
        model, e = self.model, self.model.elimination.term
        first, count = sum(len(own) for own in changes[:e]), len(changes[e])
        mine = slice(first, first + count)
        others = [own for s, own in enumerate(changes) if s != e]
        gradient, hessian = self._rest.slopes(others, np.delete(traces, mine))
        eye = np.eye(model.own.axes.each)
        K = np.array([change(eye) for change in changes[e]])
        over = self._over_levels(K)
        moved = self._in_prior(self._others @ over.Q @ self._others)  # V Q_i V
        turned = np.array([self._in_prior_rows(self._others @ own) for own in over.p])  # V p_i
        across = self._across(others, moved, turned)
        within = self._within(K, over, traces[mine])
        slopes = np.insert(gradient[:-1], first, self._gradient(K, traces[mine]))
        both = np.zeros((len(slopes) + 1,) * 2)
        rest = np.delete(np.arange(len(slopes)), np.arange(mine.start, mine.stop))
        both[np.ix_(rest, rest)] = hessian[:-1, :-1]
        both[mine, rest] = across
        both[rest, mine] = across.T
        both[mine, mine] = within
        along = np.zeros(len(slopes))
        along[rest] = hessian[-1, :-1] - across[0]  # K of levels is minus the change by their variance
        along[mine] = self._along_noise_within(K, over, moved, turned, traces[mine])
        both[-1, :-1] = both[:-1, -1] = along
        both[-1, -1] = self._along_noise(over, moved, turned)
        return Slopes(np.append(slopes, model.cotangents.log_noise), both)

    def _in_prior_rows(self, v: np.ndarray) -> np.ndarray:
        """Coefficients of the functions that are summed over rows to those of the prior's: T^-T v."""
        R = self.model.elimination.levels.others
        inverse = self.model.elimination.inverse
        return np.concatenate([inverse.transpose(v[:R]), v[R:]])

    def _in_prior(self, every: np.ndarray) -> np.ndarray:
        """The same of symmetric matrices, from both sides."""
        return np.array([self._in_prior_rows(self._in_prior_rows(own).T) for own in every])

    def _across(self, others: Sequence[Sequence[Product]], moved: np.ndarray, turned: np.ndarray) -> np.ndarray:
        """Second derivatives in one of levels and one of the others, (I, J)."""
        m, found = self._rest.m, []
        for own, some in zip(self.model.remaining.block_prior.slices, others, strict=True):
            for K in some:
                pulled = K(m[own])
                found.append([
                    0.5 * float(np.trace(K(M[own, own]))) - float(v[own] @ pulled)
                    for M, v in zip(moved, turned, strict=True)
                ])  # fmt: skip
        return np.array(found).reshape(len(found), len(moved)).T

    def _gradient(self, K: np.ndarray, traces: np.ndarray) -> np.ndarray:
        view = self.view(self.model.elimination.term)
        assert isinstance(view, SummedView)
        return np.einsum("imn,mn->i", K, view.matrix) + self.in_trace * traces

    def _whole(self, over: _OverLevels) -> tuple[np.ndarray, np.ndarray]:
        """tr(V K_i V K_j) and m'K_i V K_j m within levels, (I, I)."""
        V = self._others
        images = V @ over.Q
        shared = np.einsum("iab,jba->ij", images, images)
        return over.spread + shared, over.pulled + over.p @ V @ over.p.T

    def _within(self, K: np.ndarray, over: _OverLevels, traces: np.ndarray) -> np.ndarray:
        """Second derivatives in two of levels, without what <D, K_ij> adds."""
        factored, tau = self.model.factored, self.model.tau
        spread, pulled = self._whole(over)
        relative = K @ factored.inverse
        own = -0.5 * self.model.own.axes.count * np.einsum("iab,jba->ij", relative, relative)
        own += tau * np.einsum("iab,jbc,ca->ij", relative, K, self._sandwich)
        return 0.5 * spread + pulled + own

    def _along_noise_within(
        self, K: np.ndarray, over: _OverLevels, moved: np.ndarray, turned: np.ndarray, traces: np.ndarray
    ) -> np.ndarray:
        """Second derivatives in the noise and one of levels."""
        model, rest = self.model, self._rest
        spread, pulled = self._whole(over)
        both = -spread[0] - 2.0 * pulled[0]
        pushed = rest.prior_times(rest.m)
        for i, (M, v) in enumerate(zip(moved, turned, strict=True)):
            both[i] += float(np.trace(rest.prior_times(M))) - 2.0 * float(v @ pushed)
        covariance = self._moment - self._mean.T @ self._mean
        by_noise = np.einsum("imn,mn->i", K, covariance)
        seen = np.einsum("imn,mn->i", K, self._sandwich)
        missed = model.tau * seen - 2.0 * self.in_trace * traces
        return -0.5 * (by_noise - both - missed)

    def _along_noise(self, over: _OverLevels, moved: np.ndarray, turned: np.ndarray) -> float:
        """The second derivative in log noise."""
        model, rest = self.model, self._rest
        noise, pushed = rest.prior_times(rest.V), rest.prior_times(rest.m)
        spread, pulled = self._whole(over)
        covariance = self._moment - self._mean.T @ self._mean
        first = float(np.trace(noise)) + float(np.sum(model.factored.written * covariance))
        crossed = -float(np.trace(rest.prior_times(moved[0])))  # of K of levels
        squares = float(np.sum(noise * noise.T)) + 2.0 * crossed + spread[0, 0]
        fit = float(pushed @ rest.V @ pushed) + 2.0 * float(turned[0] @ pushed) + pulled[0, 0]
        left = model.tau * (model.yy - model.pulled + model.residual) - model.penalty
        return -0.5 * (first - squares + left - 2.0 * fit)
