"""From moments to a fitted posterior: scale, start, learn, grow, and say what limits the bound."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from vff.factors import TailRows
from vff.inference.growth import Stage, grow, learn
from vff.inference.model import NOISE_BOUNDS, Setting, SumModel, capped, effective_by_term, shrunk
from vff.inference.notes import notes_on, supported
from vff.inference.optimise import Optimum
from vff.inference.posterior import AbstractSumPosterior
from vff.inference.probed_posterior import FEW_ROWS, ProbedPosterior, posterior_of
from vff.inference.start import Given, Start, highest_standing_out, look, sized_for
from vff.inference.target import REACH, TargetScale, standardised
from vff.inference.terms import Term
from vff.likelihoods import AbstractLikelihood
from vff.moments import Choice, Harmonics, Moments, Survey

if TYPE_CHECKING:
    from vff.inference.sampling.samples import Samples

_POOR_VARIANCE = 0.01  # relative standard error that is worth a note
BETTER_START = 10.0  # nats by which a start found in the data must beat the user's to be taken instead


@dataclass(frozen=True)
class TermPlan:
    """What is asked of one term."""

    name: str
    labels: tuple[str, ...]
    """What its columns are called in messages."""
    term: Term
    given: Given
    """The user's hyperparameters in the user's units, None where free."""
    M: tuple[int | None, ...]
    """Harmonics by factor, or None to find them (or for levels, which have none)."""
    extents: tuple[Survey, ...]
    """Where the data of its columns lie."""
    detail: int = 0
    """Highest harmonic that matters, when the term is one of several."""


@dataclass(frozen=True)
class Milestone:
    """One set of harmonics on the way to the last."""

    harmonics: Harmonics
    optimum: Optimum
    missed: float
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
    share: float
    """Variance of its effect over the rows, relative to the variance of y; above one where terms offset one another.

    With a likelihood that is not Gaussian, relative to the variance of f, rows weighted by what they tell about it.
    """
    effective: float
    """How many of its coefficients the data determine."""
    supported: bool
    """False when the data do not support it and its variance shrank to nothing."""


@dataclass(frozen=True)
class Climb:
    """Natural-gradient inference for a likelihood that is not Gaussian."""

    likelihood: AbstractLikelihood
    """With its parameters learnt, in the user's units."""
    asked: AbstractLikelihood
    """As it was before learning, in the units that learning saw."""
    sums: Moments
    """Of the sites, for all harmonics; targets as learning saw them."""
    psi: np.ndarray
    """The likelihood's parameters as learning saw them."""
    information: np.ndarray
    """Minus the Hessian of what all rows said about these, (R, R)."""
    constant: float
    """Posterior mean of the constant of the latent function, as learning saw it."""
    units: TargetScale
    """From y as learning saw it to the user's."""
    bounds: tuple[float, ...]
    """The bound after every accepted step on all rows, nats; it never falls."""
    visits: int
    """How often all rows were asked."""
    rows: int
    """Different rows; equal ones are taken together."""
    anchor: float = 0.0
    """Its prior mean."""
    choice: Choice | None = None
    """How rows met the function, where it was not by walking over them."""


@dataclass(frozen=True)
class Fit:
    """Everything a fit leaves behind, in the user's units."""

    posterior: AbstractSumPosterior
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
    climb: Climb | None = None
    """How a likelihood that is not Gaussian was fitted."""
    samples: "Samples | None" = None
    """Draws of the hyperparameters, where these were sampled."""


def fit_sum(
    moments: Moments,
    tails: tuple[TailRows, ...],
    plans: Sequence[TermPlan],
    noise: float | None,
    *,
    optimise: bool,
    normalise: bool,
    progress: Callable[[str], None],
) -> Fit:
    """Fit a sum of terms, those of the moments."""
    target = TargetScale.of(moments, tails, normalise)
    units = [units_of(moments, target, s, plan.term) for s, plan in enumerate(plans)]
    scaled, scaled_tails = standardised(moments, tails, target)
    constant = REACH**2 if normalise else None
    whole = SumModel(tuple(plan.term for plan in plans), scaled, scaled_tails, constant=constant)
    given = tuple(
        {name: None if value is None else value / unit[name] for name, value in plan.given.items()}
        for plan, unit in zip(plans, units, strict=True)
    )
    inner_noise = None if noise is None else noise / target.scale**2
    wanted = tuple(plan.M for plan in plans)
    details = [plan.detail for plan in plans] if len(plans) > 1 else [highest_standing_out(whole)]
    if inner_noise is not None and optimise:  # where learning may start
        inner_noise = float(np.clip(inner_noise, *NOISE_BOUNDS))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves float64 is no model
        stages = _learn_all(whole, given, inner_noise, wanted, details, optimise=optimise, progress=progress)
    final = stages[-1]
    setting = final.model.setting(final.optimum.theta)
    jacobian = final.model.weight * np.log(target.scale)
    posterior = posterior_of(final.closed, final.model, setting)
    return Fit(
        posterior,
        target,
        term_fits(final, setting, units, [plan.name for plan in plans]),
        setting.noise * target.scale**2,
        float(final.closed.elbo - jacobian),
        float(final.closed.error),
        float(final.closed.upper_bound() - jacobian),
        "iterative" if final.model.iterative else "direct",
        tuple(Milestone(stage.harmonics, stage.optimum, stage.missed, stage.tolerance) for stage in stages),
        notes_on(
            final,
            whole,
            [plan.extents for plan in plans],
            [plan.labels for plan in plans],
            [[M is None for M in harmonics] for harmonics in wanted],
        )
        + on_iterations(posterior),
    )


def on_iterations(posterior: AbstractSumPosterior) -> tuple[str, ...]:
    """Where the iterative solver falls short of what it aims at."""
    if not isinstance(posterior, ProbedPosterior):
        return ()
    notes = []
    if not posterior.form.converged:
        notes.append(
            "the iterations for so many features stopped at their limit before they converged: mean, bound and "
            "variances are rough; use fewer frequencies, or a larger noise_variance"
        )
    if posterior.relative_error > _POOR_VARIANCE:
        notes.append(
            f"variances of the function at more than {FEW_ROWS} rows at a time carry a standard error of about "
            f"{100 * posterior.relative_error:.2g} %; ask for fewer rows at a time, which are solved for exactly, or "
            "use fewer frequencies"
        )
    return tuple(notes)


def units_of(moments: Moments, target: TargetScale, s: int, term: Term) -> dict[str, float]:
    """What every hyperparameter of a term is measured in, in the user's units."""
    columns = moments.request.terms[s].factors
    units = {name: columns[d].place.unit(own.unit) for name, d, own in term.parameters}
    return {"variance": target.scale**2, **units}


def term_fits(
    final: Stage, setting: Setting, units: Sequence[dict[str, float]], names: Sequence[str]
) -> tuple[TermFit, ...]:
    model, closed, effective = final.model, final.closed, effective_by_term(final.closed)
    # of sites, first and second moments are both weighted by their precisions
    known = model.weight > 0.0  # sites that know nothing leave nothing to share
    centre = replace(model, averages=None).centre(setting) if known else np.zeros(closed.mean.size)
    energies = np.array(closed.energies()) / model.weight if known else np.zeros(len(model.terms))
    total = _spread_of_targets(final, centre) if known else 0.0
    fits = []
    for s, place in enumerate(model.moments.request.slices):
        values, m = setting.terms[s], closed.mean[place]
        spread = float(energies[s] - (centre[place] @ m) ** 2)
        lengthscales = tuple(values[name] * units[s][name] for name in values if name != "variance")
        variance = values["variance"] * units[s]["variance"]
        share = max(0.0, spread) / total if total > 0.0 else 0.0
        M = model.harmonics[s]
        fits.append(
            TermFit(
                names[s],
                variance,
                lengthscales,
                M[0] if len(M) == 1 else M,
                share,
                float(effective[s]),
                supported(final, s),
            )
        )
    return tuple(fits)


def _spread_of_targets(final: Stage, centre: np.ndarray) -> float:
    """Variance of the targets over the rows; of sites, which have none of their own, that of the fitted function."""
    model, closed = final.model, final.closed
    if model.sites:
        level = 0.0 if closed.level is None else closed.level.mean
        return closed.energy / model.weight - (float(centre @ closed.mean) + level) ** 2
    return closed.yy / model.weight - (model.target / model.weight) ** 2


def given_setting(given: tuple[Given, ...], noise: float | None) -> Setting | None:
    """The user's values, when all are given."""
    values = [{name: value for name, value in term.items() if value is not None} for term in given]
    if noise is None or any(len(some) < len(term) for some, term in zip(values, given, strict=True)):
        return None
    return Setting(tuple(values), noise)


def given_start(model: SumModel, setting: Setting | None) -> Start | None:
    if setting is None:
        return None
    sized = sized_for(model, setting)
    theta = sized.pack(setting)
    return Start(theta, sized.harmonics, sized.at(theta).elbo)


def _learn_all(
    model: SumModel,
    given: tuple[Given, ...],
    noise: float | None,
    wanted: Harmonics,
    details: Sequence[int],
    *,
    optimise: bool,
    progress: Callable[[str], None],
) -> list[Stage]:
    most = either(wanted, model.harmonics)
    sized = model.restricted(most)
    all_given = either(wanted, ((None,) * len(term) for term in model.harmonics)) == most
    setting = given_setting(given, noise)
    if setting is not None and all_given and not optimise:
        return [learn(sized, sized.pack(setting), optimise=False, progress=progress)]
    start = given_start(sized, setting) or look(sized, given, noise, details)
    if optimise and (noise or any(value for term in given for value in term.values())):
        nothing = tuple(dict.fromkeys(term) for term in given)
        free = look(sized, nothing, None, details)
        start = free if free.elbo > start.elbo + BETTER_START else start
    progress(f"start: bound {start.elbo:.3f} nats")
    if all_given:
        return _learn_given(sized, start.theta, optimise=optimise, progress=progress)
    return grow(sized, start.theta, capped(either(wanted, start.harmonics), most), optimise=optimise, progress=progress)


def _learn_given(model: SumModel, start: np.ndarray, *, optimise: bool, progress: Callable[[str], None]) -> list[Stage]:
    """Learn at the harmonics asked for; what is too large to factor starts from what fewer harmonics learnt."""
    if not optimise or not model.iterative:
        return [learn(model, start, optimise=optimise, progress=progress)]
    small = learn(shrunk(model), start, optimise=True, progress=progress)
    more = {"curvature": small.optimum.curvature, "elbo": small.optimum.elbo, "free": small.free}
    return [small, learn(model, small.optimum.theta, optimise=True, progress=progress, rough=True, **more)]


def either(wanted: Harmonics, others: Iterable[tuple[int | None, ...]]) -> Harmonics:
    """The harmonics that were asked for, and others where none were."""
    return tuple(
        tuple(other if M is None else M for M, other in zip(*both, strict=True))
        for both in zip(wanted, others, strict=True)
    )
