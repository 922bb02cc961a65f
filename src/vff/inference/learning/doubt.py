"""What not knowing the hyperparameters adds to the variance of f at the rows, relative to it: theory (28.2).

Coefficients m = A^-1 tau b follow a hyperparameter by J_i = -A^-1 K_i m, and log noise by -A^-1 K m. With H the
curvature of what is climbed, learning adds sum_ij (H^-1)_ij J_i' G J_j to the squared errors over all rows, where the
posterior has edf times the noise variance: the correction of Wood, Pya and Säfken (2016).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.newton import positive
from vff.inference.solvers.linear_gaussian import LinearGaussian

_FLATTEST = 0.1  # nats per squared log unit: weak priors leave no direction more open


@dataclass(frozen=True)
class _Bordered:
    """Products with A^-1 and K, the constant last where there is one."""

    closed: LinearGaussian

    @property
    def mean(self) -> np.ndarray:
        known = self.closed.intercept_posterior
        return self.closed.mean if known is None else np.append(self.closed.mean, known.mean)

    def solve(self, v: np.ndarray) -> np.ndarray:
        known, P = self.closed.intercept_posterior, self.closed.mean.size
        if known is None:
            return self.closed.solve(v)
        u = np.append(-known.answer, 1.0)
        return np.pad(self.closed.solve(v[:P]), (0, 1)) + known.variance * float(u @ v) * u

    def prior_times(self, v: np.ndarray) -> np.ndarray:
        own, P = self.closed.intercept, self.closed.mean.size
        if own is None:
            return self.closed.prior.mv(v)
        return np.append(self.closed.prior.mv(v[:P]), v[P:] / own.variance)


def doubt(model: SumModel, theta: np.ndarray, closed: LinearGaussian, free: np.ndarray) -> float:
    """The larger of the two: of f over the rows, and of the noise of a new one.

    Where a variance came to nothing, small changes of its logarithm change nothing, and yet it might have been
    something: each counts as a degree of freedom. Where the noise came to nothing, there is no doubt of that kind.
    """
    if not free.any():
        return 0.0
    climbed = model.climbed
    slopes = climbed.slopes(theta, closed if model.few is None else climbed.at(theta))
    inverse = np.linalg.inv(positive(-slopes.hessian, free, _FLATTEST))
    inverse = np.where(np.multiply.outer(free, free), inverse, 0.0)
    squares = float(np.sum(inverse * _squares(model, theta, closed)))
    nothing = free & (theta <= np.array([low for low, _ in model.parameters.log_bounds]))
    edf = max(1.0, float(closed.cotangents.edf))
    if nothing[-1]:
        return squares / edf
    return max((squares + np.count_nonzero(nothing)) / edf, float(inverse[-1, -1]))


def _squares(model: SumModel, theta: np.ndarray, closed: LinearGaussian) -> np.ndarray:
    """tau J_i' G J_j, from tau G = A - K, (R, R)."""
    whole = _Bordered(closed)
    pushed = np.array([*_pushed(model, theta, closed, whole.mean), whole.prior_times(whole.mean)])
    moved = np.array([whole.solve(one) for one in pushed])
    return moved @ pushed.T - moved @ np.array([whole.prior_times(one) for one in moved]).T


def _pushed(model: SumModel, theta: np.ndarray, closed: LinearGaussian, mean: np.ndarray) -> Sequence[np.ndarray]:
    """K_i m of every hyperparameter of the terms."""
    prior, setting, found = closed.block_prior, model.unpack(theta), []
    for s, (term, columns, values) in enumerate(zip(model.terms, model.columns, setting.terms, strict=True)):
        own = prior.slices[s]
        for product in term.changes(columns, values, prior.blocks[s]):
            found.append(np.zeros(mean.size))
            found[-1][own] = product(mean[own])
    return found
