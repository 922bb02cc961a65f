"""Slopes and curvature of the bound where two columns of levels are eliminated: those of what is left, and along t.

The ratios t_i = noise / variance move the sums of the other terms, theory (30.3): with W = M^-1 Z and P_i the levels of
one column,

    dE / d log t_i = -t_i W'P_i W,      d2E / d log t_i d log t_j = t_i t_j (W'P_i M^-1 P_j W + its transpose) - ...

and what follows from them is theory (29.3), once for each ratio and once for both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vff.inference.solvers.expansion import DirectExpansion, Expansion, Product, Slopes
from vff.linalg import DenseView, MatrixView

if TYPE_CHECKING:
    from vff.inference.solvers.crossed import CrossedLinearGaussian


class Change(NamedTuple):
    """Of what the other terms sum to, along log t, the constant last."""

    A: np.ndarray
    beta: np.ndarray
    square: float
    logs: float


@dataclass(frozen=True)
class AlongRatios:
    """Derivatives in log t_i, what is left held."""

    model: "CrossedLinearGaussian"

    @cached_property
    def rest(self) -> DirectExpansion:
        """That of the other terms."""
        return DirectExpansion(self.model.remaining)

    def change(self, E: np.ndarray, logs: float) -> Change:
        """From a matrix over (a, h, y)."""
        tau, kept = self.model.tau, slice(None, -2 if self.model.intercept is None else -1)
        return Change(tau * E[kept, kept], tau * E[kept, -1], tau * float(E[-1, -1]), logs)

    @cached_property
    def changes(self) -> tuple[Change, Change]:
        """Of both."""
        model, traces = self.model, self.model.solved.at.traces
        both = zip(model.ratios, model.squares, traces, model.sizes, strict=True)
        one, two = (self.change(t * square, t * trace - L) for t, square, trace, L in both)
        return one, two

    def slope(self, change: Change) -> float:
        """Theory (29.3)."""
        V, m = self.rest.V, self.rest.m
        fit = change.square - 2.0 * float(m @ change.beta) + float(m @ change.A @ m)
        return -0.5 * (float(np.sum(V * change.A)) + fit + change.logs)

    @cached_property
    def slopes(self) -> tuple[float, float]:
        """Of the bound, in log t of both."""
        one, two = map(self.slope, self.changes)
        return one, two


@dataclass(frozen=True)
class CrossedExpansion(Expansion):
    """Of the bound, at one setting."""

    model: "CrossedLinearGaussian"

    @property
    def _along(self) -> AlongRatios:
        return self.model.along

    def view(self, s: int) -> MatrixView:
        terms = self.model.sums.terms
        if s not in terms:
            return self._along.rest.view(s - sum(e < s for e in terms))
        return DenseView(np.zeros((0, 0)))  # its only change is along t

    @property
    def in_trace(self) -> float:
        return self._along.rest.in_trace

    @cached_property
    def _pulls(self) -> np.ndarray:
        """g = beta_t - A_t m of both, (2, R)."""
        return np.array([change.beta - change.A @ self._along.rest.m for change in self._along.changes])

    @cached_property
    def _twice(self) -> np.ndarray:
        """Second derivatives in log t, (2, 2)."""
        model, V = self.model, self._along.rest.V
        at, t, (one, two) = model.solved.at, np.array(model.ratios), model.solved.W
        squares, found = at.squares, np.empty((2, 2))
        assert squares is not None
        moved = at.solve((one, np.zeros_like(two))), at.solve((np.zeros_like(one), two))  # M^-1 P_j W
        images = [V @ change.A for change in self._along.changes]
        for i in range(2):
            for j in range(2):
                half = (one, two)[i].T @ moved[j][i]
                E = -t[i] * t[j] * model.moved(half + half.T)
                logs = -t[i] * t[j] * squares[i, j]
                if i == j:
                    E, logs = E + t[i] * model.squares[i], logs + t[i] * at.traces[i]
                found[i, j] = self._along.slope(self._along.change(E, logs))
                found[i, j] += 0.5 * float(np.sum(images[i] * images[j].T))
        return found + self._pulls @ V @ self._pulls.T

    def _across(self, changes: Sequence[Sequence[Product]]) -> np.ndarray:
        """Second derivatives in log t of both and everything else, the noise last, (2, R + 1)."""
        rest, found = self._along.rest, []
        V, m = rest.V, rest.m
        for change, pull in zip(self._along.changes, self._pulls, strict=True):
            moved, turned, own = V @ change.A @ V, V @ pull, []
            for place, some in zip(self.model.remaining.block_prior.slices, changes, strict=True):
                for K in some:
                    own.append(0.5 * float(np.trace(K(moved[place])[:, place])) - float(K(m[place]) @ turned[place]))
            # of the noise K stands for K_i, and beta, q and A_t are proportional to its inverse
            of_noise = 0.5 * float(np.trace(rest.prior_times(moved))) - float(rest.prior_times(m) @ turned)
            fit = change.square - 2.0 * float(m @ change.beta) + float(m @ change.A @ m)
            found.append([*own, of_noise + 0.5 * fit])
        return np.array(found)

    def slopes(self, changes: Sequence[Sequence[Product]], traces: np.ndarray) -> Slopes:
        terms, ends = self.model.sums.terms, np.cumsum([0, *(len(own) for own in changes)])
        places = [int(ends[e]) for e in terms]
        others = [own for s, own in enumerate(changes) if s not in terms]
        kept = np.delete(np.arange(traces.size + 1), places)
        gradient, hessian = np.zeros(traces.size + 1), np.zeros((traces.size + 1, traces.size + 1))
        gradient[kept], hessian[np.ix_(kept, kept)] = self._along.rest.slopes(others, np.delete(traces, places))
        # log t = log noise - log variance
        turn = np.zeros((2, traces.size + 1))
        turn[:, -1], turn[[0, 1], places] = 1.0, -1.0
        across = np.zeros_like(turn)
        across[:, kept] = self._across(others)
        gradient += np.array(self._along.slopes) @ turn
        hessian += turn.T @ self._twice @ turn + turn.T @ across + across.T @ turn
        # the prior variance of each, and what its features carry of it, which is all
        for e, seen in zip(places, self.model.of_levels, strict=True):
            carried = 0.5 * self.model.tau * seen
            left = self.in_trace * traces[e] + carried
            gradient[e] += left
            hessian[e, e] += carried
            hessian[e, -1] -= left
            hessian[-1, e] -= left
        return Slopes(gradient, hessian)
