"""Weighted draws of hyperparameters around their mode, which stand for their posterior: theory §28.

With H the curvature of bound plus log prior at its mode, in the logarithms that learning moves in, draws come from a
Student-t with scale H^-1, whose tails cover what is not Gaussian, and are weighted by exp(bound + log prior) over their
own density. No row is looked at again: inside the domain features do not move with hyperparameters.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm, qmc

from vff.inference.learning.doubt import doubt
from vff.inference.learning.log_prior import KnownPrior, LogPriors
from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import maximise
from vff.inference.learning.records import Model
from vff.inference.learning.solver import LARGEST_DIRECT
from vff.inference.methods.hyper import Parameter
from vff.inference.methods.many import refuse_many
from vff.linalg import threads_for

DRAWS = 64
"""Of which the bound is asked."""
SETTINGS = 24
"""Over which the posterior averages."""
RESAMPLED = 240
"""Draws of equal weight, as which the weighted ones are reported; a multiple of the settings."""
INSTEAD = "hyperparameters='maximise'"
"""Which takes any number of coefficients."""
MATTERS = 0.1
"""Of variances: beyond it 95 % intervals would cover less than 94 %."""
_DF = 5.0  # of the proposal


class WeightedDraws(NamedTuple):
    """Hyperparameters and how much each counts."""

    theta: np.ndarray
    """(S, R)."""
    weights: np.ndarray
    """(S,), which sum to one."""
    objective: np.ndarray
    """Bound and log prior, nats, (S,)."""
    effective: float
    """How many draws of equal weight they are worth, before large weights were cut."""

    def resampled(self, n: int) -> np.ndarray:
        """Which of them are n draws of equal weight, each as often as it counts, in no order, (n,)."""
        ends = np.cumsum(self.weights)
        which = np.searchsorted(ends, (np.arange(n) + 0.5) / n * ends[-1])
        return np.random.default_rng(0).permutation(which)


def known_of(parameters: Sequence[Parameter]) -> LogPriors:
    """Their priors, as learning adds them to the bound."""
    return LogPriors(
        tuple(
            None if own.prior is None else KnownPrior(own.prior, own.support, own.lower, own.unit) for own in parameters
        )
    )


def drawn(whole: SumModel, parameters: Sequence[Parameter]) -> WeightedDraws:
    """Around the mode of bound and priors."""
    free = np.array([own.prior is not None for own in parameters])
    model = replace(whole, known=known_of(parameters)).climbed
    optimum, _ = maximise(model, model.parameters.clip(np.array([own.t for own in parameters])), free=free)
    curvature = optimum.curvature
    alone = WeightedDraws(optimum.theta[None], np.ones(1), np.array([optimum.elbo]), 1.0)
    if curvature is None:
        return alone
    own = np.flatnonzero(free)
    own = own[np.argsort(optimum.theta[own], kind="stable")]  # the same draws in whatever order columns come
    away, log_density = _student(own.size)
    theta = np.tile(optimum.theta, (len(away), 1))
    theta[:, own] += np.linalg.solve(np.linalg.cholesky(curvature[np.ix_(own, own)]).T, away.T).T
    objective = np.array([_objective(model, one) for one in theta])
    if not np.isfinite(objective).any():  # no model beside the mode
        return alone
    log_weights = objective - log_density
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    # no draw counts more than the square root of their number does (Ionides, 2008): the mean of few is then steadier
    cut = np.minimum(weights, 1.0 / np.sqrt(len(weights)))
    return WeightedDraws(theta, cut / cut.sum(), objective, float(1.0 / np.sum(weights**2)))


def _student(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a standard Student-t, more even than chance, and their log density but for a constant."""
    uniform = np.clip(qmc.Sobol(d + 1, rng=0).random(DRAWS), 1e-9, 1.0 - 1e-9)
    points = norm.ppf(uniform[:, :d]) / np.sqrt(chi2.ppf(uniform[:, d:], _DF) / _DF)
    return points, -0.5 * (_DF + d) * np.log1p(np.sum(points**2, axis=1) / _DF)


def _objective(model: Model[Any], theta: np.ndarray) -> float:
    """Bound and log prior; minus infinity where there is no model."""
    if not np.array_equal(model.parameters.clip(theta), theta):
        return -np.inf
    try:
        value = float(model.at(theta).objective)
    except FloatingPointError:
        return -np.inf
    return value if np.isfinite(value) else -np.inf


def matters_of(
    model: SumModel, theta: np.ndarray, parameters: Sequence[Parameter], *, asked: bool
) -> tuple[bool, float | None]:
    """Whether hyperparameters are to be averaged over, and what not knowing them adds to variances, if that is known.

    With ``asked``, wherever there is one that is not known.
    """
    if asked:
        refuse_many(model.moments.request, "hyperparameters='integrate'", INSTEAD)
    many = model.size > LARGEST_DIRECT
    if many and (model.iterative or model.factored > LARGEST_DIRECT):
        return False, None
    free = np.array([own.prior is not None for own in parameters])
    if not free.any():
        return False, None
    with threads_for(model.factored):
        closed = model.at(theta)
        found = doubt(model, theta, closed, free) if model.few is not None or model.expands(closed) else None
    return asked or (found is not None and found > MATTERS and not many), found


def on_doubt(averaged: bool, found: float | None) -> tuple[str, ...]:
    """A sentence where hyperparameters matter, and coefficients are too many for averages over them."""
    if averaged or found is None or found <= MATTERS:
        return ()
    return (
        f"not knowing the hyperparameters would add about {100.0 * found:.0f} % to variances, and coefficients are too "
        "many for averages over them, so that intervals are too narrow; give priors, or use fewer levels",
    )
