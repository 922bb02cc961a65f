"""From rows to a fitted posterior under any likelihood: guess, learn on some rows, then on all of them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vff.basis import ColumnBasis
from vff.inference.asking import AbstractCrowd, Walked
from vff.inference.batches import by_batches
from vff.inference.fit import (
    BETTER_START,
    Climb,
    Fit,
    Milestone,
    TermPlan,
    either,
    given_setting,
    given_start,
    on_iterations,
    term_fits,
    units_of,
)
from vff.inference.growth import Stage, grow, learn
from vff.inference.model import SumModel, capped
from vff.inference.natural import Ascent, Step, arrive, ascend
from vff.inference.notes import notes_on
from vff.inference.row_sites import Observed
from vff.inference.scout import sample_pieces
from vff.inference.sites import Memory, SiteProblem, SiteStanding
from vff.inference.start import Given, highest_standing_out, look
from vff.inference.target import TargetScale
from vff.likelihoods import WIDEST_EXPONENT, AbstractLikelihood, best_constant
from vff.moments import MomentRequest, Moments, TermRequest, Walk

_MANY_ROWS = 2**18  # more are first learnt from a sample of them
_TOLERANCE = 3e-3, 1e-6  # nats, and nats per row, that a last step may still gain
_ROUGHLY = 30.0  # times that, on a sample
_FEATURES_OF_SAMPLE, _LEAST_SHARE, _LEAST_M = 400, 0.05, 8
_FIRST_GAIN = 0.1  # nats: what is learnt from the first guess at the sites need not be learnt well
_HOPELESS = 10.0  # nats below no function at all
_QUIET = (10.0, 1.0, 0.1)  # variances of a latent function that a climb from nothing tries
_HEAVY = 2.1  # degrees of freedom
_MOST_REVIVALS = 5  # of terms that were switched off on the way
_KEPT_TOLERANCE = 1e-7  # nats, when hyperparameters are kept


@dataclass(frozen=True)
class LikelihoodTask:
    """What is asked: rows, a likelihood, terms."""

    walk: Walk
    observed: Observed
    likelihood: AbstractLikelihood
    plans: tuple[TermPlan, ...]
    optimise: bool
    centred: bool
    """Whether the latent function has a constant mean that is learnt; without, its prior mean is zero."""
    progress: Callable[[str], None]
    batch: int | None = None
    """Rows per step; None: all of them."""
    everywhere: AbstractCrowd | None = None
    """All rows, where these are not in memory: then ``walk`` and ``observed`` are a sample of them."""
    targets: np.ndarray | None = None
    """The different values of y, where the sample may not have all of them."""

    @property
    def crowd(self) -> AbstractCrowd:
        """All rows."""
        return Walked(self.walk, self.observed) if self.everywhere is None else self.everywhere

    @property
    def free_harmonics(self) -> bool:
        """Whether some harmonics are to be found."""
        sized = zip(self.plans, self.walk.plan.request.harmonics, strict=True)
        return any(M is None and most is not None for plan, own in sized for M, most in zip(plan.M, own, strict=True))

    def problem(self, crowd: AbstractCrowd, memory: Memory | None = None) -> SiteProblem:
        terms = tuple(plan.term for plan in self.plans)
        constant = self.centred and not self.likelihood.locates
        tolerance = _tolerance(self, crowd)
        return SiteProblem(
            terms,
            crowd,
            self.likelihood,
            self.optimise,
            constant,
            self.free_harmonics,
            tolerance,
            memory=memory,
        )


class Before(NamedTuple):
    """An earlier fit, and the sums of its sites over the levels that are known now."""

    fit: Fit
    sums: Moments


def fit_likelihood(task: LikelihoodTask, before: Before | None = None) -> Fit:
    """Fit a sum of terms under a likelihood that is not Gaussian; ``before`` are rows seen earlier, which are gone."""
    # a step that leaves float64 is refused by its bound
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _fit_first(task) if before is None else _fit_more(task, before)


def prepared(task: LikelihoodTask) -> tuple[LikelihoodTask, np.ndarray, TargetScale]:
    """The task with targets as learning sees them, the first parameters of its likelihood, and the way back."""
    target = _scale_of(task)
    _check_given(task)
    observed = task.observed.in_units(target)
    everywhere = None if task.everywhere is None else task.everywhere.in_units(target)
    asked = task.likelihood.sized(task.observed.y if task.targets is None else task.targets)
    # values that are held are in the user's units
    start = asked.start(task.observed.y, observed.extra, observed.w)
    psi = asked.with_values(start).in_units(1.0 / target.scale).psi
    return replace(task, observed=observed, likelihood=asked, everywhere=everywhere), psi, target


def _check_given(task: LikelihoodTask) -> None:
    """Variances that are kept, and not only started from, leave the mean of y within float64."""
    given = [plan.given["variance"] or 0.0 for plan in task.plans]
    if not task.optimise and task.likelihood.widest == WIDEST_EXPONENT and sum(given) > WIDEST_EXPONENT:
        raise ValueError(
            f"a latent function whose exponential is the mean of y was expected to have a variance of at most "
            f"{WIDEST_EXPONENT:g}, and the kernel was given {sum(given):g}, which float64 cannot hold the mean of; "
            "give a smaller variance, or leave optimizer='lbfgs' to learn it"
        )


def _fit_first(task: LikelihoodTask) -> Fit:
    task, psi, target = prepared(task)
    sample, crowd = _sample(task), task.crowd
    if sample is not None:
        task.progress(f"{crowd.n:,} rows, of which {sample.n:,} are learnt from first")
        first = _begin(task, sample, psi, target)
        rough = ascend(*first, tolerance=_ROUGHLY * _tolerance(task, sample))
        problem = replace(task.problem(crowd), anchor=first[0].anchor)
        step = _onto_all_rows(problem, rough)
    else:
        problem, step = _begin(task, crowd, psi, target)
    if task.batch is not None and task.batch < crowd.n:
        ascent = by_batches(problem, step, task.batch, task.progress)
    else:
        ascent = _climb(problem, step, task.progress)
    return _fit_of(task, ascent, target, problem.anchor)


def _tolerance(task: LikelihoodTask, crowd: AbstractCrowd) -> float:
    """Nats that a last step may still gain: more where a step is dear, which heavy weights do not make it."""
    if not task.optimise and not np.any(task.likelihood.free):
        return _KEPT_TOLERANCE
    return max(_TOLERANCE[0], _TOLERANCE[1] * min(crowd.weight, crowd.n))


def _climb(
    problem: SiteProblem, step: Step[Moments, SiteStanding], progress: Callable[[str], None]
) -> Ascent[Moments, SiteStanding]:
    """To the top; and on from there, as long as a term that was switched off on the way comes back to life."""
    ascent = ascend(problem, step, tolerance=problem.tolerance, progress=progress)
    for _ in range(_MOST_REVIVALS if problem.optimise else 0):
        revived = problem.revived(ascent.last)
        if revived is None:
            return ascent
        more = ascend(problem, revived, tolerance=problem.tolerance, progress=progress)
        ascent = replace(more, bounds=(*ascent.bounds, *more.bounds), visits=ascent.visits + more.visits)
    return ascent


def _fit_more(task: LikelihoodTask, before: Before) -> Fit:
    """The sites of the new rows, beside those of the old ones, from where these left everything."""
    climb = before.fit.climb
    assert climb is not None
    if not climb.asked.standardised:
        climb.asked.check(task.observed.y, task.observed.extra)  # as it was sized by the first rows
    target = climb.units
    everywhere = None if task.everywhere is None else task.everywhere.in_units(target)
    observed = task.observed.in_units(target)
    task = replace(task, observed=observed, likelihood=climb.asked, everywhere=everywhere)
    problem = task.problem(task.crowd, Memory(before.sums, climb.psi, climb.information))
    problem = replace(problem, anchor=climb.anchor)
    sums, _ = problem.first_sums(climb.psi, climb.constant)
    step = max(_starts_of_more(task, problem, before.fit, sums), key=lambda step: step.elbo)
    ascent = _climb(problem, step, task.progress)
    return replace(_fit_of(task, ascent, target, problem.anchor), elbo=np.nan)


def _starts_of_more(
    task: LikelihoodTask, problem: SiteProblem, before: Fit, sums: Moments
) -> list[Step[Moments, SiteStanding]]:
    """From the hyperparameters of before, and from new ones: few rows may have switched off what more of them show."""
    climb, last = before.climb, before.history[-1]
    assert climb is not None
    standings = [problem.given(sums, last.optimum.theta, last.harmonics)]
    if task.optimise:
        with suppress(FloatingPointError):  # negative sites of earlier rows
            stage = _first_stage(task, problem.model(sums), climb.units, np.inf)
            standings.append(problem.settled(sums, stage))
    steps = [arrive(problem, standing, climb.psi, sums) for standing in standings if standing is not None]
    if not steps:  # from what earlier rows say alone
        assert problem.memory is not None
        old = problem.given(problem.memory.sums, last.optimum.theta, last.harmonics)
        assert old is not None  # it stood before
        steps = [arrive(problem, old, climb.psi, problem.memory.sums)]
    return steps


def _scale_of(task: LikelihoodTask) -> TargetScale:
    """Where f is in the units of y, those in which y is near one; else as it is."""
    observed = task.observed
    if not task.likelihood.standardised:
        return TargetScale(0.0, 1.0)
    # wild targets are what likelihoods are for that are not log-concave
    robust = not task.likelihood.log_concave
    return TargetScale.of_targets(observed.y, observed.w, centred=task.centred, robust=robust)


def _sample(task: LikelihoodTask) -> Walked | None:
    """Some of the rows, when they are many."""
    walk, observed = task.walk, task.observed
    if task.everywhere is not None:
        return Walked(walk.taken([slice(0, walk.n)], _coarser(task)), observed) if task.optimise else None
    few = task.batch if task.batch is not None else _MANY_ROWS
    if walk.n <= few or not (task.optimise or task.batch):
        return None
    pieces = sample_pieces(walk.n) if task.batch is None else sample_pieces(walk.n, task.batch)
    return Walked(walk.taken(pieces, _coarser(task)), observed.taken(pieces))


def _coarser(task: LikelihoodTask) -> MomentRequest:
    """Fewer harmonics where they are to be found: a sample shows hyperparameters, and not the last detail."""
    whole, share = task.walk.plan.request, 1.0
    request = whole
    while request.size > _FEATURES_OF_SAMPLE and share > _LEAST_SHARE:
        share *= 0.8
        terms = zip(whole.terms, task.plans, strict=True)
        request = MomentRequest(tuple(_fewer(term, plan.M, share) for term, plan in terms))
    return request


def _fewer(term: TermRequest, asked: tuple[int | None, ...], share: float) -> TermRequest:
    for d, (basis, M) in enumerate(zip(term.bases, asked, strict=True)):
        if M is None and isinstance(basis, ColumnBasis):
            term = term.with_basis(d, replace(basis, M=max(min(_LEAST_M, basis.M), int(share * basis.M))))
    return term


def _begin(
    task: LikelihoodTask, crowd: AbstractCrowd, psi: np.ndarray, target: TargetScale
) -> tuple[SiteProblem, Step[Moments, SiteStanding]]:
    """A first q from a guess at every row by itself."""
    problem = task.problem(crowd)
    observed = crowd.observed if isinstance(crowd, Walked) else task.observed
    constant = 0.0
    if problem.centred:
        if not task.likelihood.standardised:  # else y is measured from its middle already
            constant = best_constant(task.likelihood, psi, observed.y, observed.extra, observed.w)
        problem = replace(problem, anchor=constant)
    sums, power = problem.first_sums(psi, constant)
    stage = _first_stage(task, problem.model(sums), target, power)
    standing = problem.settled(sums, stage)
    assert standing is not None  # the first sites are positive
    step = arrive(problem, standing, psi, sums)
    flat = task.likelihood.expected(psi, observed.y, observed.extra, *_flat(constant, observed))
    nothing = float(observed.w @ flat.value) * crowd.weight / float(observed.w.sum())
    nothing -= max(_HOPELESS, 0.1 * abs(nothing))  # a guess that is not too bad will do
    return problem, step if step.elbo > nothing else _from_prior(problem, stage, psi, step)


def _flat(constant: float, observed: Observed) -> tuple[np.ndarray, np.ndarray]:
    """A function that is constant and known."""
    return np.full(observed.y.size, constant), np.zeros(observed.y.size)


def _from_prior(
    problem: SiteProblem, stage: Stage, psi: np.ndarray, other: Step[Moments, SiteStanding]
) -> Step[Moments, SiteStanding]:
    """Where the first guess is worse than no function at all: from the prior uphill, hyperparameters held at first.

    Sites that know nothing yet would teach them that there is nothing to know.
    """
    # the constant is held too: under its own prior, a mean that grows like exp(f) would be all but infinite
    zero, held = Moments.zero(problem.crowd.request), replace(problem, optimise=False, grows=False, centred=False)
    stage, steps = replace(stage, free=stage.model.all_but_noise), [other]
    for variance in _QUIET if problem.optimise else (None,):
        theta = stage.optimum.theta.copy()
        if variance is not None:
            theta[stage.model.variances] = np.log(variance / len(problem.terms))
        quiet = held.settled(zero, replace(stage, optimum=replace(stage.optimum, theta=theta)))
        if quiet is None:
            continue
        rough = ascend(held, arrive(held, quiet, psi, zero), tolerance=_ROUGHLY * problem.tolerance).last
        standing = problem.settled(rough.sums, rough.standing.stage)
        if standing is not None:
            steps.append(arrive(problem, standing, rough.psi, rough.sums))
    return max((step for step in steps if np.isfinite(step.elbo)), key=lambda step: step.elbo, default=other)


def _onto_all_rows(problem: SiteProblem, rough: Ascent[Moments, SiteStanding]) -> Step[Moments, SiteStanding]:
    """The q that some rows taught, asked of all of them, and then the q that their sites make."""
    last = rough.last
    sums = problem.visit(last.standing, last.psi).sums
    stage = replace(last.standing.stage, free=last.standing.stage.model.all_but_noise)
    here = replace(last.standing, stage=stage)
    standing = problem.stand(sums, here, 1.0)
    if standing is None:  # negative sites: begin with those of every row by itself
        sums, _ = problem.first_sums(last.psi, problem.anchor)
        standing = problem.stand(sums, here, 0.0)
    assert standing is not None  # the first sites are positive
    return arrive(problem, standing, last.psi, sums)


def _first_stage(task: LikelihoodTask, whole: SumModel, target: TargetScale, power: float) -> Stage:
    """Hyperparameters and harmonics for the first sums."""
    units = [units_of(whole.moments, target, s, plan.term) for s, plan in enumerate(task.plans)]
    given = tuple(
        {name: None if value is None else value / unit[name] for name, value in plan.given.items()}
        for plan, unit in zip(task.plans, units, strict=True)
    )
    wanted = tuple(plan.M for plan in task.plans)
    most = either(wanted, whole.harmonics)
    sized, setting = whole.restricted(most), given_setting(given, 1.0)
    if setting is not None and not task.optimise and not task.free_harmonics:
        return learn(sized, sized.pack(setting), optimise=False, progress=task.progress)
    details = [plan.detail for plan in task.plans] if len(task.plans) > 1 else [highest_standing_out(whole, power)]
    start = given_start(sized, setting) or look(sized, given, 1.0, details)
    if task.optimise and any(value for term in given for value in term.values()):
        nothing: tuple[Given, ...] = tuple(dict.fromkeys(term) for term in given)
        free = look(sized, nothing, 1.0, details)
        start = free if free.elbo > start.elbo + BETTER_START else start
    harmonics = capped(either(wanted, start.harmonics), most)
    known: dict[str, Any] = {"free": sized.all_but_noise, "gain": _FIRST_GAIN}
    how: dict[str, Any] = {"optimise": task.optimise, "progress": task.progress}
    if task.free_harmonics:
        return grow(sized, start.theta, harmonics, known=known, **how)[-1]
    return learn(sized, start.theta, **known, **how)


def _fit_of(task: LikelihoodTask, ascent: Ascent[Moments, SiteStanding], target: TargetScale, anchor: float) -> Fit:
    """The record of the fit, in the user's units."""
    last, standing = ascent.last, ascent.last.standing
    averages = task.crowd.averages(standing.stage.model.moments.request)
    model = replace(standing.stage.model, averages=averages)
    stage = replace(standing.stage, model=model)
    standing = replace(standing, stage=stage)
    setting = model.setting(stage.optimum.theta)
    units = [units_of(model.moments, target, s, plan.term) for s, plan in enumerate(task.plans)]
    jacobian = task.crowd.weight * np.log(target.scale)
    whole = replace(model, moments=last.sums.recentred(anchor))
    level = stage.closed.level
    chosen = [[M is None for M in plan.M] for plan in task.plans]
    notes = notes_on(stage, whole, [plan.extents for plan in task.plans], [plan.labels for plan in task.plans], chosen)
    return Fit(
        standing.posterior,
        TargetScale(target.mean + target.scale * anchor, target.scale),
        term_fits(stage, setting, units, [plan.name for plan in task.plans]),
        np.nan,
        float(last.elbo - jacobian),
        float(stage.closed.error),
        np.nan,
        "iterative" if model.iterative else "direct",
        (Milestone(stage.harmonics, stage.optimum, stage.missed, stage.tolerance),),
        (*notes, *on_iterations(standing.posterior), *_on_climb(ascent), *_on_tails(task, last.psi)),
        Climb(
            task.likelihood.with_values(last.psi).in_units(target.scale),
            task.likelihood,
            last.sums,
            last.psi,
            -last.visit.hessian,
            anchor if level is None else anchor + level.mean,
            target,
            tuple(bound - jacobian for bound in ascent.bounds),
            ascent.visits,
            task.crowd.n,
            anchor,
        ),
    )


def _on_tails(task: LikelihoodTask, psi: np.ndarray) -> tuple[str, ...]:
    """Student's t whose variance is all but infinite."""
    df = task.likelihood.with_values(psi).values.get("df")
    if df is None or df > _HEAVY or not task.likelihood.free.any():
        return ()
    return (
        f"the degrees of freedom ended at {df:.3g}, where the variance of a new observation is all but infinite: its "
        "standard deviation says nothing; use predict_quantiles",
    )


def _on_climb(ascent: Ascent[Moments, SiteStanding]) -> tuple[str, ...]:
    if ascent.converged:
        return ()
    return (
        f"learning stopped after {len(ascent.bounds)} steps before the bound was at its top; the likelihood may not "
        "suit the targets: try another, or give hyperparameters to start from",
    )
