"""How well the constant of a fit is known, which learning takes as a number.

With sites of precision s at the rows, the constant c under its prior and f = c + phi'coefficients are jointly Gaussian,
and the part of f that follows c is found by generalised least squares, with h = Phi' S 1:

    var c = 1 / (sum s - h'A^-1 h + 1 / reach^2),      df(x)/dc = 1 - phi(x)'A^-1 h
"""

from dataclasses import dataclass

import numpy as np

from vff.inference.fit import Fit
from vff.inference.posterior import AbstractSumPosterior, SumPosterior, stretches
from vff.inference.probed_posterior import ProbedPosterior
from vff.inference.row_sites import REACH


@dataclass(frozen=True)
class Level:
    """The constant of a fit: its variance, and how f follows it."""

    posterior: AbstractSumPosterior
    variance: float
    answer: np.ndarray
    """A^-1 h, (P,): what the coefficients give back when the constant rises by one."""

    def deviation(self, x: np.ndarray) -> np.ndarray:
        """Standard deviation that the constant adds to f at every row, with the sign in which f moves, (N,)."""
        follows = np.empty(len(x))
        for rows in stretches(len(x), self.answer.size):
            features = np.concatenate([term.features(x[rows]) for term in self.posterior.terms], axis=1)
            follows[rows] = 1.0 - features @ self.answer
        return np.sqrt(self.variance) * follows


def level_of(fit: Fit) -> Level:
    """Of a fit by natural gradients, whose sites are still known by their sums."""
    posterior = fit.posterior
    assert fit.climb is not None
    sums = fit.climb.sums.restricted(posterior.request.harmonics)
    parts = zip(posterior.terms, sums.features_sums, strict=True)
    h = np.concatenate([term.transform.forward(raw) for term, raw in parts])
    answer = _solved(posterior, h)
    return Level(posterior, 1.0 / (sums.weight - float(h @ answer) + REACH**-2), answer)


def _solved(posterior: AbstractSumPosterior, h: np.ndarray) -> np.ndarray:
    """A^-1 h."""
    if isinstance(posterior, ProbedPosterior):
        return posterior.form.solve(h[:, None])[:, 0]
    assert isinstance(posterior, SumPosterior)
    return posterior.coefficient_covariance() @ h
