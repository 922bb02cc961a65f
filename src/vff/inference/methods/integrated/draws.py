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
"""Of which the bound is asked at a time."""
SETTINGS = 24
"""Over which the posterior averages."""
RESAMPLED = 240
"""Draws of equal weight, as which the weighted ones are reported; a multiple of the settings."""
KEPT = np.arange(RESAMPLED // SETTINGS // 2, RESAMPLED, RESAMPLED // SETTINGS)
"""Which of these the posterior averages over."""
INSTEAD = "hyperparameters='maximise'"
"""Which takes any number of coefficients."""
ALONE = (
    "no model beside the mode of the hyperparameters could be evaluated, so that the best ones are taken for known; "
    "hold what the data do not determine, such as noise_variance=fixed(...)"
)
"""A note where they were to be averaged over."""
MATTERS = 0.02
"""Of variances; the estimate is of first order, and was seen to be a third to a half of what draws add."""
_MOST_ROUNDS = 4  # of draws, until these are worth as many as there are settings
_DF = 5.0  # of the proposal, at least
_HALVINGS = 20


class WeightedDraws(NamedTuple):
    """Hyperparameters and how much each counts."""

    theta: np.ndarray
    """(S, R)."""
    weights: np.ndarray
    """(S,), which sum to one."""
    objective: np.ndarray
    """Bound and log prior, nats, (S,)."""
    effective: float
    """How many draws of equal weight they are worth, before their weights were tempered."""

    @property
    def alone(self) -> bool:
        """Whether there is nothing but the mode."""
        return len(self.theta) == 1

    def resampled(self) -> np.ndarray:
        """Which of them are draws of equal weight, each as often as it counts, (RESAMPLED,).

        They are taken evenly along the direction in which they differ most, and so are those of ``KEPT``; stretches of
        that way come in no order.
        """
        away = self.theta - self.weights @ self.theta
        direction = np.linalg.eigh((away.T * self.weights) @ away)[1][:, -1]
        direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
        order = np.argsort(away @ direction, kind="stable")
        ends = np.cumsum(self.weights[order])
        which = order[np.searchsorted(ends, (np.arange(RESAMPLED) + 0.5) / RESAMPLED * ends[-1])]
        return np.random.default_rng(0).permutation(which.reshape(SETTINGS, -1)).ravel()


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
    root = np.linalg.cholesky(curvature[np.ix_(own, own)]).T
    sampler = qmc.Sobol(own.size + 1, rng=0)
    found, draws = [], alone
    while len(found) < _MOST_ROUNDS and draws.effective < SETTINGS:
        away, log_density = _student(sampler.random(DRAWS))
        theta = np.tile(optimum.theta, (DRAWS, 1))
        theta[:, own] += np.linalg.solve(root, away.T).T
        found.append((theta, np.array([_objective(model, one) for one in theta]), log_density))
        draws = _weighted(*(np.concatenate(part) for part in zip(*found, strict=True))) or alone
    return draws


def _weighted(theta: np.ndarray, objective: np.ndarray, log_density: np.ndarray) -> WeightedDraws | None:
    """Draws from a density but for a constant, weighted for what the objective says; None where no model is."""
    if not np.isfinite(objective).any():
        return None
    log_weights = objective - log_density
    weights = _normalised(log_weights)
    return WeightedDraws(theta, _tempered(log_weights, weights), objective, _effective(weights))


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _effective(weights: np.ndarray) -> float:
    """How many draws of equal weight they are worth."""
    return float(1.0 / np.sum(weights**2))


def _tempered(log_weights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights to the largest power, at most one, with which they are worth as many draws as there are settings.

    Where hyperparameters are many, a few draws would count for all, and their average is less than that of draws of
    the Gaussian at the mode, to which the power zero leads.
    """
    low, high, models = 0.0, 1.0, np.isfinite(log_weights)
    if _effective(weights) >= SETTINGS:
        return weights

    def tempered(power: float) -> np.ndarray:
        return _normalised(np.where(models, power * np.where(models, log_weights, 0.0), -np.inf))

    for _ in range(_HALVINGS):
        power = 0.5 * (low + high)
        low, high = (power, high) if _effective(tempered(power)) >= SETTINGS else (low, power)
    return tempered(low)


def _student(uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of a standard Student-t, more even than chance, and their log density but for a constant."""
    uniform = np.clip(uniform, 1e-9, 1.0 - 1e-9)
    d = uniform.shape[1] - 1
    df = max(_DF, d)  # in many dimensions, heavy tails are all that is drawn
    points = norm.ppf(uniform[:, :d]) / np.sqrt(chi2.ppf(uniform[:, d:], df) / df)
    return points, -0.5 * (df + d) * np.log1p(np.sum(points**2, axis=1) / df)


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
