"""Natural gradients for any likelihood: a climb on the bound that asks the rows twice per step and never goes down.

q(c) = N(m, A^-1) in coefficient space, and with g and h the first two derivatives of log p(y | f),

    bound = sum_n w_n E[log p(y_n | f_n)] - KL[q || p],        f_n ~ N(mu_n, v_n) under q
    A = K + Phi' S Phi,   A m = Phi' l,          s_n = -w_n E[h_n],  l_n = w_n E[g_n] + s_n mu_n

The *sites* (s, l) enter only through their sums Phi' S Phi and Phi' l, which are the natural parameters of q less those
of the prior (the dual parameterisation). A natural-gradient step of rate r replaces the sums by (1 - r) old + r new
(Khan & Lin, 2017), so nothing as long as the table is kept between steps, rows may come in chunks, and a minibatch is
the same step with scaled sums.

With the sums held, a model with Gaussian targets l / s and precisions s has the same q, and where the sites have
settled, the same gradient in the hyperparameters: dE[log p] / dv = E[h] / 2 is all that the likelihood has to say about
them. So hyperparameters are learnt on the collapsed bound of the sums, at no cost in rows, and the true bound accepts
the step or not.
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


class Standing(Protocol):
    """A q that the climb can stand on."""

    @property
    def divergence(self) -> float:
        """KL[q || p], nats."""
        ...

    @property
    def error(self) -> float:
        """How far the divergence may be off by its computation, nats."""
        ...


S = TypeVar("S", bound=Sums)
Q = TypeVar("Q", bound=Standing)


@dataclass(frozen=True)
class Visit(Generic[S]):
    """What the rows answer to a q."""

    value: float
    """sum w E[log p], nats."""
    sums: S
    """Those of the sites that q asks for."""
    gradient: np.ndarray
    """Of the value in the likelihood's parameters, (R,)."""
    hessian: np.ndarray
    """(R, R)."""


class Problem(Protocol[S, Q]):
    """Rows and a prior."""

    def stand(self, sums: S, here: Q, learn: float, /) -> Q | None:
        """q for these sums, its hyperparameters ``learn`` of the way from ``here`` to where the sums want them.

        None when the sums make no q: sites of a likelihood that is not log-concave may be negative.
        """
        ...

    def visit(self, standing: Q, psi: np.ndarray, /) -> Visit[S]:
        """Ask the rows."""
        ...


@dataclass(frozen=True)
class Step(Generic[S, Q]):
    """Where the climb stands, and what the rows said there."""

    standing: Q
    psi: np.ndarray
    sums: S
    visit: Visit[S]
    elbo: float
    curvature: np.ndarray
    """Minus the Hessian of the bound in psi, with q following, as far as the steps saw it, (R, R)."""


@dataclass(frozen=True)
class Ascent(Generic[S, Q]):
    """How a climb went."""

    last: Step[S, Q]
    bounds: tuple[float, ...]
    """The bound after every accepted step; it never falls."""
    visits: int
    converged: bool


def arrive(problem: Problem[S, Q], standing: Q, psi: np.ndarray, sums: S) -> Step[S, Q]:
    """Stand on a q and ask the rows."""
    visit = problem.visit(standing, psi)
    return Step(standing, psi, sums, visit, visit.value - standing.divergence, positive(-visit.hessian))


def ascend(
    problem: Problem[S, Q],
    first: Step[S, Q],
    *,
    tolerance: float = 1e-6,
    most_steps: int = _MOST_STEPS,
    progress: Callable[[str], None] = lambda message: None,
) -> Ascent[S, Q]:
    """Climb until a step gains less than ``tolerance`` nats, or no step gains anything."""
    here, bounds, visits, rate = first, [first.elbo], 1, 1.0
    for _ in range(most_steps):
        least = max(tolerance, _ROUNDING * abs(here.elbo))
        there, tried, rate, lost = _step(problem, here, rate, least)
        visits += tried
        if there is None:
            return Ascent(here, tuple(bounds), visits, lost <= least + here.standing.error)
        gain, here = there.elbo - here.elbo, there
        bounds.append(here.elbo)
        progress(f"bound {here.elbo:.4f} nats after {visits} looks at the rows")
        if gain < max(tolerance, _NEGLIGIBLE * abs(here.elbo)) * rate:
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
        if trial <= 0.5 and lost <= tolerance + there.standing.error:
            break  # a whole step may go past the top and end as high as it began; half a step gains nothing only there
    return None, tried, rate, lost


def _try(problem: Problem[S, Q], here: Step[S, Q], rate: float, psi: np.ndarray) -> Step[S, Q] | None:
    """One trial; None when it leads nowhere that can be stood on."""
    sums = here.sums.blended(here.visit.sums, rate)
    standing = problem.stand(sums, here.standing, rate)
    if standing is None:
        return None
    there = arrive(problem, standing, psi, sums)
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
