"""The one way up: Newton steps in a trust region, whoever knows the curvature.

Curvature is exact where a form has an expansion; elsewhere it is what a coarser model, or the scales of the parameters,
say of it, corrected by how slopes change on the way (symmetric rank one). Hyperparameters at a bound that would go
beyond it are held there; the others move by the step that is best within the region in which the expansion to second
order has proved right. Where rounding hides what a step gains, the slopes at its two ends judge it: these are known
where a small difference of bounds is not (the approximate conditions of Hager and Zhang, 2005; theory (27.5)).
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from vff.inference.learning.records import Form, Model, Optimum, blocked
from vff.inference.solvers.expansion import Slopes

_MOST, _MOST_WITH_ERROR = 200, 12  # evaluations; of a bound that is known to an error, and costly
_LARGEST_RADIUS, _SMALLEST_RADIUS = 4.0, 1e-9  # log units per root of hyperparameters, and log units
_FIRST_RADIUS = 1.0, 4.0  # log units times the root of hyperparameters, and over it: one of many is soon too far
_LEAST, _POOR, _GOOD = 0.1, 0.25, 0.75  # what was gained of what was expected
_AT_ITS_END = 0.9  # of the radius, from where on a step would have gone further
_NOTHING, _NOTHING_GUESSED = 1e-8, 1e-10  # nats, before the last step; where curvature is guessed it leaves more
_ROUNDED = 1e-13  # of what is climbed: smaller gains are rounding
_TOLD_APART = 100.0  # times how far the bound is known: from there on it tells what a step gained
_SLACK = 10.0  # times the same, by which a step that slopes approve of may seem to lose
_LITTLE = 1e-4  # nats: so near the optimum a search that cannot go on has arrived
_DYING, _ALIKE = 1.0, 0.25  # nats, and how like an exponential what is left of a variance must be
_MOST_HALVINGS = 100
_AS_LONG = 1e-3  # how close a step comes to its radius
_STRAIGHT = 1e-14  # of the steepest curvature
_RIGHT_ANGLE = 1e-8  # how nearly a correction of the curvature may be orthogonal to the step

F = TypeVar("F", bound=Form)


@dataclass
class _Climb(Generic[F]):
    """Where a climb stands."""

    model: Model[F]
    theta: np.ndarray
    closed: F
    slopes: Slopes
    radius: float
    exact: bool
    """Whether second derivatives are known, and not guessed."""
    jumped: np.ndarray
    """Which hyperparameters were tried at their lower bound."""
    steps: int = 0
    evaluations: int = 1
    gained: float = np.nan

    @classmethod
    def begun(
        cls, model: Model[F], start: np.ndarray, first: F, free: np.ndarray, curvature: np.ndarray | None
    ) -> "_Climb[F]":
        """At the start."""
        exact, root = model.expands(first), float(np.sqrt(max(1, np.count_nonzero(free))))
        if exact:
            slopes = model.slopes(start, first)
        else:
            guess = np.diag(0.5 * model.scales(first)) if curvature is None else curvature
            slopes = Slopes(model.pull_back(start, first.objective_cotangents), -guess)
        return cls(
            model,
            start,
            first,
            slopes,
            min(_FIRST_RADIUS[0] * root, _FIRST_RADIUS[1] / root),
            exact,
            np.zeros(free.size, bool),
        )

    @property
    def known(self) -> float:
        """How far the bound is known where the climb stands, nats."""
        return self.closed.as_learnt.rounding

    def slopes_at(self, theta: np.ndarray, closed: F) -> Slopes:
        """There; curvature that is guessed learns from how slopes changed, whether the step is taken or not."""
        if self.exact:
            return self.model.slopes(theta, closed)
        gradient, (before, guess) = self.model.pull_back(theta, closed.objective_cotangents), self.slopes
        corrected = secant(guess, theta - self.theta, gradient - before, self.known)
        self.slopes = Slopes(before, corrected)
        return Slopes(gradient, corrected)

    def move(self, theta: np.ndarray, closed: F, slopes: Slopes | None, gained: float) -> None:
        """Go on from there."""
        self.slopes = self.slopes_at(theta, closed) if slopes is None else slopes
        self.theta, self.closed, self.gained, self.steps = theta, closed, gained, self.steps + 1

    def tried(self, theta: np.ndarray) -> tuple[F | None, float]:
        """The model there, and how much more it has; None where rounding leaves no model."""
        self.evaluations += 1
        try:
            trial = self.model.at(theta)
            gained = float(trial.objective) - float(self.closed.objective)
        except FloatingPointError:
            return None, -np.inf
        return (trial, gained) if np.isfinite(gained) else (None, -np.inf)

    def judged(self, there: np.ndarray, expected: float) -> tuple[F | None, Slopes | None, float]:
        """The model there, its slopes where these were asked for, and what the step has gained."""
        trial, gained = self.tried(there)
        told = expected > _TOLD_APART * self.known
        if trial is None or (told and self.exact):
            return trial, None, gained
        if not told and gained < -_SLACK * max(self.known, trial.as_learnt.rounding):
            return trial, None, gained
        try:
            slopes = self.slopes_at(there, trial)
        except FloatingPointError:
            return None, None, -np.inf
        if not told:
            gained = 0.5 * float((self.slopes.gradient + slopes.gradient) @ (there - self.theta))
        return trial, slopes, gained

    def finite(self, free: np.ndarray) -> bool:
        """Whether slopes are within the range of float64."""
        gradient, hessian = self.slopes
        return bool(np.isfinite(gradient[free]).all() and np.isfinite(hessian[np.ix_(free, free)]).all())


def climb(
    model: Model[F],
    start: np.ndarray,
    first: F,
    free: np.ndarray,
    gain: float | None,
    curvature: np.ndarray | None = None,
) -> tuple[Optimum, F]:
    """From one start to where no step would gain more than ``gain`` nats; by default, none that rounding can tell.

    ``curvature`` is minus the Hessian as somebody else knows it, for where it is not known exactly.
    """
    now = _Climb.begun(model, start, first, free, curvature)
    first_radius, largest = now.radius, _LARGEST_RADIUS * float(np.sqrt(np.count_nonzero(free)))
    most = _MOST if first.error == 0.0 else _MOST_WITH_ERROR
    message, converged = f"more than {most} evaluations", False
    while now.evaluations < most:
        if not now.finite(free):
            message = "slopes left the range of float64"
            break
        moves = free & ~blocked(model.parameters, now.theta, now.slopes.gradient)
        there, expected = _proposed(now, moves, now.radius)
        length, least = float(np.linalg.norm(there - now.theta)), _nothing(now) if gain is None else gain
        if expected <= least and (now.radius >= first_radius or length < _AT_ITS_END * now.radius):
            message, converged = "nothing left to gain", True
            if gain is None or now.exact:
                _finish(now, there)
            break
        if now.exact and _jumped(now, moves):
            continue
        trial, slopes, gained = now.judged(there, expected)
        if gained < _POOR * expected:
            now.radius = _POOR * length
        elif gained > _GOOD * expected and length > _AT_ITS_END * now.radius:
            now.radius = min(2.0 * now.radius, largest)
        if trial is not None and gained > _LEAST * expected:
            now.move(there, trial, slopes, gained)
        elif (left := _proposed(now, moves, largest)[1]) < now.known or now.radius < _SMALLEST_RADIUS:
            message, converged = "rounding hides what is left to gain", left < max(_LITTLE, least, now.known)
            break
    return _recorded(now, free, message, converged=converged), now.closed


def _nothing(now: _Climb[F]) -> float:
    """Nats below which the next step is the last: what it leaves falls with their square."""
    return (_NOTHING if now.exact else _NOTHING_GUESSED) + _ROUNDED * abs(now.closed.objective)


def _recorded(now: _Climb[F], free: np.ndarray, message: str, *, converged: bool) -> Optimum:
    """How the climb ended."""
    layout, theta, own = now.model.parameters, now.theta, now.closed
    gradient = now.model.pull_back(theta, own.objective_cotangents)
    curvature = positive(-now.slopes.hessian, free) if now.finite(free) else None
    slope, moves = np.nan, free & ~blocked(layout, theta, gradient)
    if curvature is not None and np.isfinite(gradient).all():
        slope = float(np.sqrt(gradient[moves] @ np.linalg.solve(curvature[np.ix_(moves, moves)], gradient[moves])))
    ends = tuple(f"{name} at its {end} bound" for name, end in layout.at_bounds(theta).items())
    spent = now.steps, now.evaluations
    return Optimum(theta, float(own.objective), *spent, converged, message, curvature, now.gained, slope, ends)


def _jumped(now: _Climb[F], moves: np.ndarray) -> bool:
    """Whether hyperparameters that die away went all the way to their lower bounds, where that gains.

    What a vanishing variance still costs falls like the variance, so that Newton steps would creep down one by one.
    """
    gradient, own = now.slopes.gradient, np.diagonal(now.slopes.hessian)
    dying = moves & ~now.jumped & (gradient < 0.0) & (gradient > -_DYING) & (own < 0.0)
    dying &= np.abs(gradient - own) < _ALIKE * np.abs(own)
    if not dying.any():
        return False
    now.jumped |= dying
    there = np.where(dying, [low for low, _ in now.model.parameters.log_bounds], now.theta)
    trial, gained = now.tried(there)
    if trial is None or gained < -0.5 * float(gradient[dying].sum()):
        return False
    now.move(there, trial, None, gained)
    return True


def _finish(now: _Climb[F], theta: np.ndarray) -> None:
    """The last step, of which only digits are left: with it, what is learnt does not depend on the path."""
    trial, gained = now.tried(theta)
    if trial is not None and gained > -_SLACK * max(now.known, trial.as_learnt.rounding):
        now.theta, now.closed = theta, trial


def _proposed(now: _Climb[F], moves: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """The next place within bounds and a radius, and what it should gain; those that run into a bound stay there."""
    layout, (gradient, hessian) = now.model.parameters, now.slopes
    step, there = np.zeros(now.theta.size), now.theta
    while moves.any():
        rest = gradient + hessian @ np.where(moves, 0.0, step)
        step[moves] = within(-hessian[np.ix_(moves, moves)], rest[moves], radius)
        there = layout.clip(now.theta + step)
        out = moves & (there != now.theta + step)
        step[out] = (there - now.theta)[out]
        if not out.any():
            break
        moves = moves & ~out
    expected = float(gradient @ step + 0.5 * step @ hessian @ step)
    return there, expected


def secant(hessian: np.ndarray, step: np.ndarray, change: np.ndarray, least: float = 0.0) -> np.ndarray:
    """The Hessian corrected so that slopes change along a step as they did (symmetric rank one).

    Where a correction is worth less than ``least`` nats, it is rounding.
    """
    missed = change - hessian @ step
    along = float(missed @ step)
    if not abs(along) > max(least, _RIGHT_ANGLE * float(np.linalg.norm(missed) * np.linalg.norm(step))):
        return hessian
    return hessian + np.multiply.outer(missed, missed) / along


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
