"""What a fit leaves behind: one record in the user's units, whichever method made it, and its one maker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vff.inference.learning.records import Optimum
from vff.inference.methods.task import FitTask, TermPlan
from vff.inference.model.scale import TargetScale
from vff.inference.posterior import Posterior
from vff.likelihoods import AbstractLikelihood
from vff.moments import Choice, Harmonics, Moments

if TYPE_CHECKING:
    from vff.inference.methods.chains.samples import Samples

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Milestone:
    """One set of harmonics on the way to the last."""

    harmonics: Harmonics
    optimum: Optimum
    bound_gap: float
    """How far below the evidence the bound is at least expected to lie, nats."""
    tolerance: float
    """How far it may, before M grows."""


@dataclass(frozen=True)
class TermFit:
    """What was learnt of one term, in the user's units."""

    name: str
    variance: float
    lengthscales: tuple[float, ...]
    """By column; a column of levels has none."""
    M: int | tuple[int | None, ...] | None
    """Harmonics; of a product, by column."""
    variance_share: float | None
    """Covariance of its pure effect with f over the rows, relative to the variance of y: all add up to var(f) / var(y).

    Below zero where it offsets others. With a likelihood that is not Gaussian, relative to the variance of f, rows
    weighted by what they tell about it: all add up to one. None where an older file does not say.
    """
    edf: float
    """How many of its coefficients the data determine."""
    active: bool
    """False when the data do not support it and its variance shrank to nothing."""
    concurvity: float | None = None
    """Share of the variance of its effect that the other terms could stand in for; None where that is not known."""


@dataclass(frozen=True)
class SiteMemory:
    """What is left of rows under a likelihood that is not Gaussian, for more rows to be added to."""

    likelihood: AbstractLikelihood
    """As it was before learning, in the units that learning saw."""
    sums: Moments
    """Of the sites, for all harmonics; targets as learning saw them."""
    psi: np.ndarray
    """The likelihood's parameters as learning saw them."""
    information: np.ndarray
    """Minus the Hessian of what all rows said about these, (R, R)."""
    intercept: float
    """Posterior mean of the constant of the latent function, as learning saw it."""
    intercept_prior: float
    """Its prior mean."""
    units: TargetScale
    """From y as learning saw it to the user's."""


@dataclass(frozen=True)
class Fit:
    """Everything a fit leaves behind, in the user's units."""

    method: str
    """Of inference, as ``METHODS`` has it."""
    likelihood: AbstractLikelihood
    """With its parameters learnt."""
    posterior: Posterior
    target: TargetScale
    terms: tuple[TermFit, ...]
    noise_variance: float
    """NaN where the likelihood is not Gaussian."""
    elbo: float
    elbo_error: float
    """How far the bound may be off by its computation, nats: zero where a factor was computed."""
    upper_bound: float
    solver: str
    """"direct" when a P x P matrix was factored, "iterative" when not."""
    history: tuple[Milestone, ...]
    notes: tuple[str, ...]
    n: int
    """Different rows; equal ones are taken together where rows were asked more than once."""
    bounds: tuple[float, ...]
    """The bound after every accepted step on all rows, nats; it never falls. Empty where there is none."""
    visits: int
    """How often all rows were asked."""
    samples: "Samples | None" = None
    """Draws of the hyperparameters, where these were sampled."""
    memory: SiteMemory | None = None
    """None where sums over rows say all, or where a method keeps nothing that rows could be added to."""
    engine: Choice | None = None
    """How the function was evaluated at rows, where not by the engines of the pass."""
    doubt: float | None = None
    """What not knowing the hyperparameters adds to variances, relative to them; None where it was not estimated."""

    @property
    def from_sums(self) -> bool:
        """Whether sums over rows said all, so that rows can be added and taken away: noise is Gaussian."""
        return bool(np.isfinite(self.noise_variance))


class TermShare(NamedTuple):
    """What the data say of one term."""

    variance_share: float | None
    edf: float
    active: bool
    concurvity: float | None = None


def shares_of_effects(
    effects: Sequence[np.ndarray], w: np.ndarray, edf: Sequence[float], active: Sequence[bool] | None = None
) -> list[TermShare]:
    """From the mean of every effect at rows of these weights: covariances with their sum, relative to its variance."""
    centred = [own - np.average(own, weights=w) for own in effects]
    f = np.sum(centred, axis=0)
    total = float(np.average(f**2, weights=w))
    shares = [float(np.average(own * f, weights=w)) / total if total > 0.0 else 0.0 for own in centred]
    return [TermShare(*own) for own in zip(shares, edf, active or [True] * len(shares), strict=True)]


def record(
    task: FitTask,
    *,
    likelihood: AbstractLikelihood,
    values: Sequence[Sequence[float]],
    shares: Sequence[TermShare],
    history: tuple[Milestone, ...],
    weight: float,
    elbo: float = np.nan,
    elbo_error: float = 0.0,
    upper_bound: float = np.nan,
    noise: float = np.nan,
    intercept: float = 0.0,
    bounds: tuple[float, ...] = (),
    visits: int = 0,
    **others: Any,
) -> Fit:
    """The record of a fit: the one place where what was learnt goes back to the user's units.

    ``values`` are variance and lengthscales of every term in the user's units, ``weight`` is that of all rows, and
    ``intercept`` what the posterior is measured from. Bounds, likelihood and noise are as learning saw them.
    """
    target, jacobian = task.target, weight * np.log(task.target.scale)
    exact = (_as_held(plan, own) for plan, own in zip(task.plans, values, strict=True))
    terms = tuple(
        TermFit(plan.name, own[0], tuple(own[1:]), M[0] if len(M) == 1 else M, *share)
        for plan, own, M, share in zip(task.plans, exact, history[-1].harmonics, shares, strict=True)
    )
    return Fit(
        likelihood=likelihood.in_units(target.scale),
        target=target.shifted(intercept),
        terms=terms,
        noise_variance=_same(noise * target.scale**2, task.noise_limits),
        elbo=float(elbo - jacobian),
        elbo_error=float(elbo_error),
        upper_bound=float(upper_bound - jacobian),
        history=history,
        bounds=tuple(float(bound - jacobian) for bound in bounds),
        visits=visits,
        **others,
    )


def _as_held(plan: TermPlan, values: Sequence[float]) -> list[float]:
    """What was learnt of a term; what was held to the last digit, which logarithms do not keep."""
    both = zip(plan.term.names, values, strict=True)
    return [_same(value, plan.limits.get(name)) for name, value in both]


def _same(value: float, limits: tuple[float, float] | None) -> float:
    """The number at which a value was held, where it is no other but for rounding."""
    if limits is None or limits[0] != limits[1]:
        return value
    return limits[0] if np.isclose(value, limits[0], rtol=_ROUNDING, atol=0.0) else value
