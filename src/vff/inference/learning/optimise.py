"""Maximise a bound over log hyperparameters, and keep a record of how it ended."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy.optimize import minimize

from vff.inference.learning.newton import climb, positive
from vff.inference.learning.records import Model, Optimum, blocked
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.linalg import NotPositiveDefinite

_MOST_EVALUATIONS, _MOST_WITH_ERROR = 200, 12
_NOWHERE = 1e6  # nats, by which what is not a model is worse than one
_LARGE = 800  # features, above which a second try from the same start is not worth its time
_SMALL = 1e4  # nats, below which float64 tells small parts of one
_FLAT = 1e-2  # slope of the bound in coordinates in which it is round
_STEEP = 0.1  # the same where every parameter has a scale of its own: about so much squared, in nats, is left to gain
_TOO_STEEP = 10.0  # where a search that gains no more has not arrived
_NEWTON_STEPS = 12
_LONGEST_STEP, _SHORTEST_STEP = 0.5, 1e-11  # log units: farther away it is not the same optimum
_ROUNDING = 1e-16
_TOLD_APART = 1e-12  # of the bound
_MOST_PARAMETERS = 40  # for a Hessian by differences
_STEEPEST = 1e-13  # of the longest step that a search would take: what is shorter is rounding
_FLATTEST, _FLATTER = 0.1, 1e-3  # nats per squared log unit: flatter directions are taken to be this steep

F = TypeVar("F", bound=LinearGaussian)


def maximise(
    model: Model[F],
    start: np.ndarray,
    curvature: np.ndarray | None = None,
    elbo: float | None = None,
    free: np.ndarray | None = None,
    gain: float | None = None,
    first: F | None = None,
) -> tuple[Optimum, F]:
    """Newton steps from one start, or L-BFGS-B where curvature is not known; the optimum, and the model there.

    ``curvature`` is minus the Hessian at a nearby optimum and ``elbo`` the bound there, as a coarser model knows them;
    with these the bound looks round and a handful of steps are enough. Without, or where that does not converge, each
    parameter gets its own scale. Only the parameters marked ``free`` move. A step that gains less than ``gain`` nats is
    the last; the default leaves nothing to gain. ``first`` is the model at the start, where it is known already.
    """
    layout = model.parameters
    free = ~layout.held if free is None else free
    if first is None:
        start, first = with_enough_noise(model, layout.clip(start), free)
    if not free.any():
        return Optimum(start, float(first.objective), 0, 1, True, "nothing to learn", curvature), first
    if model.expands(first):
        optimum, closed = climb(model, start, first, free, gain)
        if optimum.converged:
            return optimum, closed
        start, first = optimum.theta, closed  # rounding misled the steps: a search that looks along lines goes on
    if curvature is not None and elbo is not None:
        root = np.linalg.cholesky(curvature[np.ix_(free, free)]).T
        rounded, closed = _lbfgs(model, start, free, root, None, elbo, gain, first.error)
        if closed.mean.size > _LARGE or (rounded.converged and _steepness(model, rounded.theta, closed, free) < _STEEP):
            return rounded, closed
        start = rounded.theta
        first = model.at(start)
    ends = [end for end, moves in zip(layout.log_bounds, free, strict=True) if moves]
    spent: Optimum | None = None
    while True:
        unit = _unit(model, first)[free]
        bounds = [(low * u, high * u) for (low, high), u in zip(ends, unit, strict=True)]
        optimum, closed = _lbfgs(model, start, free, np.diag(unit), bounds, first.objective, gain, first.error)
        gained = optimum.elbo - first.objective
        optimum = optimum if spent is None else optimum.after(spent)
        if closed.mean.size > _LARGE or _steepness(model, optimum.theta, closed, free) < _STEEP:
            return optimum, closed
        if gained <= _STEEP**2 or optimum.evaluations > _MOST_EVALUATIONS:
            if _steepness(model, optimum.theta, closed, free) > _TOO_STEEP:
                optimum = replace(optimum, converged=False, message="rounding hides what is left to gain")
            return optimum, closed
        start, first, spent = optimum.theta, closed, optimum


def with_enough_noise(model: Model[F], start: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, F]:
    """The start, with as much more noise as it takes for rounding to leave a model there, where the noise may move."""
    (noise,) = np.flatnonzero([name == "noise" for name in model.parameters.names])
    while True:
        try:
            closed = model.at(start)
            if np.isfinite(closed.objective):
                return start, closed
            failure = NotPositiveDefinite("the bound is not finite where learning starts; give other hyperparameters")
        except NotPositiveDefinite as error:
            failure = error
        louder = start.copy()
        louder[noise] += np.log(10.0)
        louder = model.parameters.clip(louder)
        if not free[noise] or louder[noise] == start[noise]:
            raise failure
        start = louder


def _unit(model: Model[F], closed: F) -> np.ndarray:
    """Root curvature: about n/2 in the log noise, and half the effective number of coefficients in the others."""
    return np.sqrt(0.5 * model.scales(closed))


def _steepness(model: Model[F], theta: np.ndarray, closed: F, free: np.ndarray) -> float:
    """The largest slope of the bound in parameters that may move, each in its own scale."""
    slopes = model.pull_back(theta, closed.objective_cotangents)
    moves = free & ~blocked(model.parameters, theta, slopes)
    return float(np.abs((slopes / _unit(model, closed))[moves]).max(initial=0.0))


def _lbfgs(
    model: Model[F],
    start: np.ndarray,
    free: np.ndarray,
    root: np.ndarray,
    bounds: list[tuple[float, float]] | None,
    elbo: float,
    gain: float | None,
    error: float,
) -> tuple[Optimum, F]:
    """L-BFGS-B over z = root theta, theta the free parameters.

    Where z has no bounds of its own, the function is continued beyond those of theta as a constant.
    """
    inverse, layout = np.linalg.inv(root), model.parameters
    best: tuple[float, np.ndarray, F, np.ndarray] | None = None

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        wish = start.copy()
        wish[free] = inverse @ z
        theta = layout.clip(wish)
        try:
            closed = model.at(theta)
            gradient = np.where(theta == wish, model.pull_back(theta, closed.objective_cotangents), 0.0)[free]
        except FloatingPointError:
            if best is None:
                raise
            return _NOWHERE - best[0], np.zeros(z.size)  # not a model: a search that came here turns back
        slopes = inverse.T @ gradient
        if best is None or closed.objective > best[0]:
            best = (closed.objective, theta, closed, slopes)
        return -closed.objective, -slopes

    # Stop when a step gains less than 1e-4 nats, or less than rounding can tell. Where it can tell more, go on to 1e-8,
    # so that what is learnt does not depend on the path.
    # A bound that is only known to an error is not climbed beyond it.
    least, slope = (1e-8, 1e-4) if abs(elbo) < _SMALL else (1e-4, _FLAT)
    gain = max(least if gain is None else gain, error)
    most = _MOST_EVALUATIONS if error == 0.0 else _MOST_WITH_ERROR
    options = {"ftol": max(1e-13, gain / max(1.0, abs(elbo))), "gtol": slope, "maxcor": 20, "maxfun": most}
    result = minimize(objective, root @ start[free], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert best is not None  # the objective was called
    value, theta, closed, slopes = best
    # a search that ends in rounding has arrived when nothing is left to climb
    converged, message = bool(result.success) or float(np.abs(slopes).max()) < _FLAT, str(result.message)
    curvature = _curvature_seen(result.hess_inv.todense(), root, free)
    return Optimum(theta, float(value), int(result.nit), int(result.nfev), converged, message, curvature), closed


def _curvature_seen(inverse: np.ndarray, root: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """Minus the Hessian as the steps of a search saw it; None where steps along a cliff saw none that could be."""
    if not np.isfinite(inverse).all():
        return None
    values, vectors = np.linalg.eigh(0.5 * (inverse + inverse.T))
    if values[0] <= _STEEPEST * values[-1]:
        return None
    half = (vectors / np.sqrt(values)).T @ root
    curvature = np.eye(free.size)
    curvature[np.ix_(free, free)] = half.T @ half
    return curvature


def curvature_at(
    model: Model[F], theta: np.ndarray, free: np.ndarray, flattest: float = _FLATTEST
) -> np.ndarray | None:
    """Minus the Hessian of the bound, by differences of its gradient where it is not known, made positive definite.

    None when that is too costly, or rounding leaves no model so near. Parameters that are not free get a unit diagonal.
    """
    if np.count_nonzero(free) > _MOST_PARAMETERS:
        return None
    if not free.any():
        return np.eye(theta.size)
    first = model.at(theta)
    if model.expands(first):
        return positive(-model.slopes(theta, first).hessian, free, flattest)
    # differences of a gradient that is rounded in proportion to the bound, of an error in proportion to the step
    step = max(1e-4, np.cbrt(_ROUNDING * abs(first.objective)))

    def gradient(at: np.ndarray) -> np.ndarray:
        return model.pull_back(at, model.at(at).objective_cotangents)[free]

    here = model.pull_back(theta, first.objective_cotangents)[free]
    try:
        hessian = np.array([(here - gradient(theta + step * unit)) / step for unit in np.eye(theta.size)[free]])
    except NotPositiveDefinite:
        return None
    if not np.isfinite(hessian).all():
        return None
    whole = np.eye(theta.size)
    whole[np.ix_(free, free)] = 0.5 * (hessian + hessian.T)
    return positive(whole, free, flattest)


def polish(model: Model[F], optimum: Optimum, closed: F, free: np.ndarray) -> tuple[Optimum, F]:
    """Newton steps from where a search ended, as long as there is something to gain: the same optimum by every path.

    Sums taken in another order differ in their last digits, which a search that stops early makes larger.
    """
    layout = model.parameters
    first = model.pull_back(optimum.theta, closed.objective_cotangents)
    inside = free & ~blocked(layout, optimum.theta, first)
    if (
        not inside.any()
        or closed.error > 0.0
        or closed.mean.size > _LARGE
        or (model.expands(closed) and optimum.converged)
    ):
        return optimum, closed
    curvature = curvature_at(model, optimum.theta, inside, _FLATTER)
    if curvature is None:
        return optimum, closed
    theta, evaluations = optimum.theta, optimum.evaluations + int(np.count_nonzero(inside)) + 1
    slope, longest = first, _LONGEST_STEP
    for _ in range(_NEWTON_STEPS):
        step = _newton(curvature, slope, inside)
        if not np.abs(step).max() > _SHORTEST_STEP:
            break
        wish = theta + step * min(1.0, longest / np.abs(step).max())
        there, evaluations = layout.clip(wish), evaluations + 1
        try:
            trial = model.at(there)
            new = model.pull_back(there, trial.objective_cotangents)
        except NotPositiveDefinite:  # the step led out of what rounding lets stand
            break
        rest = inside & (there == wish)  # what ran into a bound stays there
        # by the gain that is left: a plain norm of the slope would be that of rounding in the steepest direction
        nearer = _newton(curvature, new, rest) @ new < step @ slope
        if nearer or trial.objective > closed.objective + _TOLD_APART * abs(closed.objective):
            curvature = _secant(curvature, np.where(rest, there - theta, 0.0), np.where(rest, slope - new, 0.0))
            theta, slope, closed, inside = there, new, trial, rest
        elif longest < _LONGEST_STEP:  # a shorter step does not help either: rounding is all that is left
            break
        else:
            longest = 0.25 * np.abs(wish - theta).max()
    return replace(optimum, theta=theta, elbo=float(closed.objective), evaluations=evaluations), closed


def _newton(curvature: np.ndarray, slope: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Where the parameters that are inside their bounds would move."""
    step = np.zeros(slope.size)
    if inside.any():
        step[inside] = np.linalg.solve(curvature[np.ix_(inside, inside)], slope[inside])
    return step


def _secant(curvature: np.ndarray, moved: np.ndarray, fell: np.ndarray) -> np.ndarray:
    """The BFGS update of minus the Hessian after a step along which the slope fell."""
    bent = curvature @ moved
    if not fell @ moved > 1e-8 * np.linalg.norm(fell) * np.linalg.norm(moved):
        return curvature
    return curvature + np.outer(fell, fell) / (fell @ moved) - np.outer(bent, bent) / (moved @ bent)


def rescale(closed: LinearGaussian) -> tuple[float, float]:
    """The factor on all variances (prior and noise together) that maximises the bound, and the bound there.

    The bound depends on it only through -1/2 [n log s + quadratic / s]; hence s = quadratic / n. A constant whose prior
    says next to nothing takes one row.
    """
    form = closed.as_learnt
    n = form.count - form.of_intercept.edf
    if not n > 0.0:
        return 1.0, form.elbo
    s = max(form.quadratic / n, 1e-12)
    return s, form.elbo - 0.5 * (n * np.log(s) + form.quadratic * (1.0 / s - 1.0))
