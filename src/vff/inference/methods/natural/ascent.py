"""Natural gradients for any likelihood: an ascent of the bound that never goes down (theory §9).

Sites enter only through their sums, so nothing as long as the table is kept between steps. Hyperparameters are learnt
on the collapsed bound of the sums, at no cost in rows, and the true bound accepts the step or not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

_MOST_STEPS, _MOST_HALVINGS, _FASTER = 200, 16, 1.5
_MOST_VISITS = 300  # looks at the rows, of which most ascents need a few dozen
_NEGLIGIBLE = 1e-8  # of the bound, which heavy rows make large
_ROUNDING = 1e-11  # of the bound: a loss this small is none
_SECANT = 1e-3  # of the slope that was expected to vanish: less than this is not a measurement
_LONGEST_STEP = 1.0  # of a likelihood parameter on its unconstrained scale


class Sums(Protocol):
    """Sums over sites."""

    def blended(self, other: Any, rate: float, /) -> Self:
        """(1 - rate) these + rate others."""
        ...


S = TypeVar("S", bound=Sums)
Q = TypeVar("Q")  # a q on the way


@dataclass(frozen=True)
class Visit(Generic[S]):
    """What the rows answer to a q."""

    elbo: float
    """sum w E[log p] - KL[q || p], nats."""
    error: float
    """How far the divergence may be off by its computation, nats."""
    sums: S
    """Those of the sites that q asks for."""
    gradient: np.ndarray
    """Of the bound in the likelihood's parameters, (R,)."""
    hessian: np.ndarray
    """(R, R)."""


class Problem(Protocol[S, Q]):
    """Rows and a prior."""

    def update(self, sums: S, here: Q, learn: float, /) -> Q | None:
        """q for these sums, its hyperparameters ``learn`` of the way from ``here`` to where the sums want them.

        None when the sums make no q: sites of a likelihood that is not log-concave may be negative.
        """
        ...

    def visit(self, iterate: Q, psi: np.ndarray, /) -> Visit[S]:
        """Ask the rows."""
        ...


@dataclass(frozen=True)
class Step(Generic[S, Q]):
    """An iterate, and what the rows said there."""

    iterate: Q
    psi: np.ndarray
    sums: S
    visit: Visit[S]
    curvature: np.ndarray
    """Minus the Hessian of the bound in psi, with q following, as far as the steps saw it, (R, R)."""

    @property
    def elbo(self) -> float:
        return self.visit.elbo


@dataclass(frozen=True)
class Ascent(Generic[S, Q]):
    """How an ascent went."""

    last: Step[S, Q]
    bounds: tuple[float, ...]
    """The bound after every accepted step; it never falls."""
    visits: int
    converged: bool


def arrive(problem: Problem[S, Q], iterate: Q, psi: np.ndarray, sums: S) -> Step[S, Q]:
    """Stand on a q and ask the rows."""
    visit = problem.visit(iterate, psi)
    return Step(iterate, psi, sums, visit, positive(-visit.hessian))


def ascend(
    problem: Problem[S, Q],
    first: Step[S, Q],
    *,
    tolerance: float = 1e-6,
    most_steps: int = _MOST_STEPS,
    foretold: float = 0.0,
    gained: float = 0.0,
    progress: Callable[[str], None] = lambda message: None,
) -> Ascent[S, Q]:
    """Climb until a step gains less than ``tolerance`` nats, or no step gains anything.

    Or until gains fall, the one before having been ``gained``, so that the next should be less than ``foretold`` of it.
    """
    here, bounds, visits, rate, gain = first, [first.elbo], 1, 1.0, gained
    for _ in range(most_steps):
        least = max(tolerance, _ROUNDING * abs(here.elbo))
        there, tried, rate, lost = _step(problem, here, rate, least)
        visits += tried
        if there is None:
            return Ascent(here, tuple(bounds), visits, lost <= least + here.visit.error)
        before, gain, here = gain, there.elbo - here.elbo, there
        bounds.append(here.elbo)
        progress(f"bound {here.elbo:.4f} nats after {visits} looks at the rows")
        enough = max(tolerance, _NEGLIGIBLE * abs(here.elbo)) * rate
        if gain < enough or (rate == 1.0 and gain**2 < foretold * enough * before):
            return Ascent(here, tuple(bounds), visits, True)
        if visits >= _MOST_VISITS:
            break
        rate = min(1.0, _FASTER * rate)
    return Ascent(here, tuple(bounds), visits, False)


def _step(
    problem: Problem[S, Q], here: Step[S, Q], rate: float, tolerance: float
) -> tuple[Step[S, Q] | None, int, float, float]:
    """A step that does not lower the bound, or None; how often the rows were asked for it; its rate; the least loss.

    Sites, hyperparameters and the likelihood's parameters go the same part of their ways: each way leads uphill. Losses
    are per rate, so that a short way downhill is not taken for the top.
    """
    way, tried, lost = newton(here.visit.gradient, here.curvature), 0, np.inf
    for trial in rate * 0.5 ** np.arange(_MOST_HALVINGS):
        there = _try(problem, here, trial, here.psi + trial * way)
        if there is None:
            continue
        tried += 1
        lost = min(lost, (here.elbo - there.elbo) / trial)
        if lost <= 0.0:
            return there, tried, trial, lost
        if trial <= 0.5 and lost <= tolerance + there.visit.error:
            break  # a whole step may go past the top and end as high as it began; half a step gains nothing only there
    return None, tried, rate, lost


def _try(problem: Problem[S, Q], here: Step[S, Q], rate: float, psi: np.ndarray) -> Step[S, Q] | None:
    """One trial; None when it leads nowhere that can be stood on."""
    sums = here.sums.blended(here.visit.sums, rate)
    iterate = problem.update(sums, here.iterate, rate)
    if iterate is None:
        return None
    there = arrive(problem, iterate, psi, sums)
    return replace(there, curvature=_secant(here, there)) if np.isfinite(there.elbo) else None


def newton(gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """A step uphill in the likelihood's parameters."""
    if gradient.size == 0:
        return gradient
    step = np.linalg.solve(curvature, gradient)
    return step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))


def positive(curvature: np.ndarray) -> np.ndarray:
    """Where the bound is not concave, its curvature is taken as if it were."""
    if curvature.size == 0:
        return curvature
    values, vectors = np.linalg.eigh(curvature)
    steep = np.maximum(np.abs(values), 1e-8 * max(1.0, float(np.abs(values).max())))
    return (vectors * steep) @ vectors.T


def _secant(here: Step[S, Q], there: Step[S, Q]) -> np.ndarray:
    """What the slope in psi did on the way (Broyden, Fletcher, Goldfarb & Shanno, 1970).

    The Hessian at a held q is too steep where q follows psi, as the level of f follows cut points, and Newton's steps
    with it would creep.
    """
    step, fall, B = there.psi - here.psi, here.visit.gradient - there.visit.gradient, here.curvature
    if not float(step @ fall) > _SECANT * float(step @ B @ step) > 0.0:
        return there.curvature
    steep = B @ step
    return B - np.outer(steep, steep) / float(step @ steep) + np.outer(fall, fall) / float(step @ fall)
