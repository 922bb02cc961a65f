"""Slopes and curvature of the bound where one term is eliminated: those of what is left, and those along t.

t = noise / variance of the term moves the sums of the other terms, theory (29.3): with A_t, beta_t, q_t and l_t the
derivatives in log t of A, tau b, tau sum y^2 and the logarithms of the levels, V = A^-1, g = beta_t - A_t m,

    d / d log t             = -1/2 [tr(V A_t) + q_t - 2 m'beta_t + m'A_t m + l_t]
    d2 / d log t d theta_i  = 1/2 tr(V K_i V A_t) - (K_i m)'V g
    d2 / d log t2           = -1/2 [tr(V A_tt) - tr(V A_t V A_t) + q_tt - 2 m'beta_tt + m'A_tt m + l_tt] + g'V g

A constant beside the features is a row and a column of A more. The variance of the term acts through t alone, and the
noise through t, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vff.inference.solvers.expansion import DirectExpansion, Expansion, Product, Slopes
from vff.linalg import DenseView, MatrixView

if TYPE_CHECKING:
    from vff.inference.solvers.eliminated import EliminatedLinearGaussian


class _Change(NamedTuple):
    """Of what the other terms sum to, along log t, the constant last."""

    A: np.ndarray
    beta: np.ndarray
    square: float
    logs: float


@dataclass(frozen=True)
class EliminatedExpansion(Expansion):
    """Of the bound, at one setting."""

    model: "EliminatedLinearGaussian"

    @cached_property
    def _rest(self) -> DirectExpansion:
        return DirectExpansion(self.model.remaining)

    def _change(self, E: np.ndarray, logs: float) -> _Change:
        """From a matrix over (a, h, y)."""
        tau = self.model.tau
        kept = slice(None, -2) if self.model.intercept is None else slice(None, -1)
        return _Change(tau * E[kept, kept], tau * E[kept, -1], tau * float(E[-1, -1]), logs)

    @cached_property
    def _first(self) -> _Change:
        t, model = self.model.ratio, self.model
        return self._change(t * model.elimination.total(t, 2), -model.levels.seen(t))

    @cached_property
    def _second(self) -> _Change:
        t, model = self.model.ratio, self.model
        E = t * model.elimination.total(t, 2) - 2.0 * t**2 * model.elimination.total(t, 3)
        return self._change(E, t * model.levels.seen(t, 2))

    @cached_property
    def _g(self) -> np.ndarray:
        return self._first.beta - self._first.A @ self._rest.m

    def _slope(self, change: _Change) -> float:
        V, m = self._rest.V, self._rest.m
        fit = change.square - 2.0 * float(m @ change.beta) + float(m @ change.A @ m)
        return -0.5 * (float(np.sum(V * change.A)) + fit + change.logs)

    @cached_property
    def along_ratio(self) -> float:
        """The derivative in log t."""
        return self._slope(self._first)

    def view(self, s: int) -> MatrixView:
        e = self.model.elimination.term
        if s != e:
            return self._rest.view(s - (s > e))
        return DenseView(np.zeros((0, 0)))  # its only change is along t

    @property
    def in_trace(self) -> float:
        return self._rest.in_trace

    def slopes(self, changes: Sequence[Sequence[Product]], traces: np.ndarray) -> Slopes:
        e = self.model.elimination.term
        before = sum(len(own) for own in changes[:e])
        others = [own for s, own in enumerate(changes) if s != e]
        gradient, hessian = self._rest.slopes(others, np.delete(traces, before))
        across = self._across(others)
        return self._joined(gradient, hessian, across, before, float(traces[before]))

    def _across(self, changes: Sequence[Sequence[Product]]) -> np.ndarray:
        """Second derivatives in log t and everything else, the noise last."""
        V, m, change, rest = self._rest.V, self._rest.m, self._first, self._rest
        moved, turned = V @ change.A @ V, V @ self._g
        found = []
        for own, some in zip(self.model.remaining.block_prior.slices, changes, strict=True):
            for K in some:
                found.append(0.5 * float(np.trace(K(moved[own])[:, own])) - float(K(m[own]) @ turned[own]))
        # of the noise K stands for K_i, and beta, q and A_t are proportional to its inverse
        of_noise = 0.5 * float(np.trace(rest.prior_times(moved))) - float(rest.prior_times(m) @ turned)
        fit = change.square - 2.0 * float(m @ change.beta) + float(m @ change.A @ m)
        return np.array([*found, of_noise + 0.5 * fit])

    def _twice(self) -> float:
        """The second derivative in log t."""
        V, change = self._rest.V, self._first
        image = V @ change.A
        return self._slope(self._second) + 0.5 * float(np.sum(image * image.T)) + float(self._g @ V @ self._g)

    def _joined(self, gradient: np.ndarray, hessian: np.ndarray, across: np.ndarray, e: int, trace: float) -> Slopes:
        """In the variance of the term, the e-th of all numbers, and in the noise: log t = log noise - log variance."""
        twice, ratio, rest = self._twice(), self.along_ratio, self.model.remaining
        hessian = hessian.copy()
        hessian[-1, :] += across
        hessian[:, -1] += across
        hessian[-1, -1] += twice
        own = np.insert(-across, e, twice)
        own[-1] -= twice
        # the prior variance of the term, and what its features carry of it, which is all
        carried = 0.5 * self.model.tau * rest.of_levels
        left = self.in_trace * trace + carried
        own[e] += carried
        own[-1] -= left
        whole = np.insert(np.insert(hessian, e, 0.0, axis=0), e, 0.0, axis=1)
        whole[e], whole[:, e] = own, own
        slopes = np.insert(gradient, e, left - ratio)
        slopes[-1] += ratio
        return Slopes(slopes, whole)
