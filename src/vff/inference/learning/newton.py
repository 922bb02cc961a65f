"""Newton steps in a trust region, where slopes and curvature are known: a handful of factors to the optimum.

Hyperparameters at a bound that would go beyond it are held there; the others move by the step that is best within the
region in which the expansion to second order has proved right.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from vff.inference.learning.records import Model, Optimum, blocked
from vff.inference.solvers.expansion import Slopes
from vff.inference.solvers.linear_gaussian import LinearGaussian

_MOST_STEPS = 100
_FIRST_RADIUS, _LARGEST_RADIUS, _SMALLEST_RADIUS = 1.0, 4.0, 1e-9  # log units per root of hyperparameters
_LEAST, _POOR, _GOOD = 0.1, 0.25, 0.75  # what was gained of what was expected
_NOTHING = 1e-10, 1e-13  # nats, and of what is climbed, before the last step
_TOLD_APART = 1e-10, 1e-12  # nats, and of what is climbed: smaller gains are rounding
_LITTLE = 1e-4  # nats: so near the optimum a step of the right curvature fails by rounding alone
_DYING, _ALIKE = 1.0, 0.25  # nats, and how like an exponential what is left of a variance must be
_MOST_HALVINGS = 100
_AS_LONG = 1e-3  # how close a step comes to its radius
_STRAIGHT = 1e-14  # of the steepest curvature

F = TypeVar("F", bound=LinearGaussian)


@dataclass
class _Climb(Generic[F]):
    """Where a climb stands."""

    theta: np.ndarray
    closed: F
    slopes: Slopes
    radius: float
    jumped: np.ndarray
    """Which hyperparameters were tried at their lower bound."""
    steps: int = 0
    evaluations: int = 1

    def move(self, model: Model[F], theta: np.ndarray, closed: F) -> None:
        """Go on from there."""
        self.theta, self.closed, self.slopes, self.steps = theta, closed, model.slopes(theta, closed), self.steps + 1


def climb(model: Model[F], start: np.ndarray, first: F, free: np.ndarray, gain: float | None) -> tuple[Optimum, F]:
    """From one start to where no step would gain more than ``gain`` nats; by default, none that rounding can tell."""
    radius = _FIRST_RADIUS * np.sqrt(max(1, np.count_nonzero(free)))
    now = _Climb(start, first, model.slopes(start, first), radius, np.zeros(free.size, bool))
    largest = _LARGEST_RADIUS / _FIRST_RADIUS * now.radius
    message, converged = f"more than {_MOST_STEPS} steps", False
    while now.steps < _MOST_STEPS:
        if not all(np.isfinite(own).all() for own in (now.slopes.gradient[free], now.slopes.hessian[free][:, free])):
            message = "slopes left the range of float64"
            break
        moves = free & ~blocked(model.parameters, now.theta, now.slopes.gradient)
        there, expected = _proposed(model, now, moves)
        if expected <= (_nothing(now.closed.objective) if gain is None else gain):
            message, converged = "nothing left to gain", True
            _finish(model, there, now)
            break
        if _jumped(model, now, moves):
            continue
        trial, gained = _tried(model, there, now)
        taken = gained > _LEAST * expected
        if not taken and (expected < _LITTLE or now.radius < _SMALLEST_RADIUS):
            message, converged = "rounding hides what is left to gain", expected < _LITTLE
            break
        length = float(np.linalg.norm(there - now.theta))
        if gained < _POOR * expected:
            now.radius = 0.25 * length
        elif gained > _GOOD * expected and length > 0.9 * now.radius:
            now.radius = min(2.0 * now.radius, largest)
        if trial is not None and taken:
            now.move(model, there, trial)
    curvature = positive(-now.slopes.hessian, free) if np.isfinite(now.slopes.hessian).all() else None
    optimum = Optimum(now.theta, float(now.closed.objective), now.steps, now.evaluations, converged, message, curvature)
    return optimum, now.closed


def _nothing(objective: float) -> float:
    """Nats below which the next step is the last: what it leaves falls with their square."""
    return _NOTHING[0] + _NOTHING[1] * abs(objective)


def _jumped(model: Model[F], now: _Climb[F], moves: np.ndarray) -> bool:
    """Whether hyperparameters that die away went all the way to their lower bounds, where that gains.

    What a vanishing variance still costs falls like the variance, so that Newton steps would creep down one by one.
    """
    gradient, own = now.slopes.gradient, np.diagonal(now.slopes.hessian)
    dying = moves & ~now.jumped & (gradient < 0.0) & (gradient > -_DYING) & (own < 0.0)
    dying &= np.abs(gradient - own) < _ALIKE * np.abs(own)
    if not dying.any():
        return False
    now.jumped |= dying
    there = np.where(dying, [low for low, _ in model.parameters.log_bounds], now.theta)
    trial, gained = _tried(model, there, now)
    if trial is None or gained < -0.5 * float(gradient[dying].sum()):
        return False
    now.move(model, there, trial)
    return True


def _finish(model: Model[F], theta: np.ndarray, now: _Climb[F]) -> None:
    """The last step, of which only digits are left: with it, what is learnt does not depend on the path."""
    trial, gained = _tried(model, theta, now)
    if trial is not None and gained > -_TOLD_APART[0] - _TOLD_APART[1] * abs(trial.objective):
        now.theta, now.closed = theta, trial


def _tried(model: Model[F], theta: np.ndarray, now: _Climb[F]) -> tuple[F | None, float]:
    """The model there, and how much more it has; None where rounding leaves no model."""
    now.evaluations += 1
    try:
        trial = model.at(theta)
        gained = float(trial.objective) - float(now.closed.objective)
    except FloatingPointError:
        return None, -np.inf
    return (trial, gained) if np.isfinite(gained) else (None, -np.inf)


def _proposed(model: Model[F], now: _Climb[F], moves: np.ndarray) -> tuple[np.ndarray, float]:
    """The next place within bounds and trust, and what it should gain; those that run into a bound stay there."""
    layout, (gradient, hessian) = model.parameters, now.slopes
    step, there = np.zeros(now.theta.size), now.theta
    while moves.any():
        rest = gradient + hessian @ np.where(moves, 0.0, step)
        step[moves] = within(-hessian[np.ix_(moves, moves)], rest[moves], now.radius)
        there = layout.clip(now.theta + step)
        out = moves & (there != now.theta + step)
        step[out] = (there - now.theta)[out]
        if not out.any():
            break
        moves = moves & ~out
    expected = float(gradient @ step + 0.5 * step @ hessian @ step)
    return there, expected


def within(curvature: np.ndarray, slope: np.ndarray, radius: float) -> np.ndarray:
    """The p with |p| <= radius for which slope'p - 1/2 p'curvature p is largest (Moré and Sorensen, 1983)."""
    steepest = max(float(np.abs(curvature).max()), float(np.abs(slope).max()) / radius)
    if steepest == 0.0:
        return np.zeros(slope.size)
    values, vectors = np.linalg.eigh(curvature / steepest)  # in which no number leaves the ordinary
    along, least = vectors.T @ (slope / steepest), _STRAIGHT
    if values[0] > least:
        step = along / values
        if np.linalg.norm(step) <= radius:
            return vectors @ step
    # the shift of all curvatures with which the step is as long as the radius, counted from the flattest of them
    above, low = values - values[0], max(least, values[0])

    def length(flattest: float) -> float:
        return float(np.linalg.norm(along / (above + flattest)))

    if length(low) < radius:  # the flattest direction has no slope: along it to the end, either way
        step = along / (above + low)
        step[0] = np.copysign(np.sqrt(max(0.0, radius**2 - np.sum(step[1:] ** 2))), along[0])
        return vectors @ step
    high = low + float(np.linalg.norm(along)) / radius
    for _ in range(_MOST_HALVINGS):
        middle = float(np.sqrt(low) * np.sqrt(high))
        low, high = (middle, high) if length(middle) > radius else (low, middle)
        if high <= (1.0 + _AS_LONG) * low:
            break
    return vectors @ (along / (above + high))


def positive(curvature: np.ndarray, free: np.ndarray, flattest: float = 0.1) -> np.ndarray:
    """A curvature made positive definite; parameters that are not free get a unit diagonal."""
    found = np.eye(free.size)
    if free.any():
        values, vectors = np.linalg.eigh(curvature[np.ix_(free, free)])
        found[np.ix_(free, free)] = (vectors * np.maximum(np.abs(values), flattest)) @ vectors.T
    return found
