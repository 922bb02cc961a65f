"""Any likelihood, by natural gradients: guess, learn on some rows, then on all of them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vff.inference.learning.growth import Stage
from vff.inference.learning.model import SumModel
from vff.inference.methods.collapsed import learn_from_sums, record_of_stages
from vff.inference.methods.fit import Fit, SiteMemory
from vff.inference.methods.known import log_priors_of, log_priors_of_likelihood, with_held, with_held_likelihood
from vff.inference.methods.natural.ascent import arrive, ascend, newton, positive
from vff.inference.methods.natural.oracle import MemoryRows, RowOracle
from vff.inference.methods.natural.sample import SEVERAL_ROWS, sampled, wider, with_room
from vff.inference.methods.natural.sites import SiteAscent, SiteProblem, SiteStep
from vff.inference.methods.task import FitTask, Method, Spec
from vff.inference.model.scale import TargetScale, Units
from vff.likelihoods import WIDEST_EXPONENT, best_constant
from vff.moments import Moments

_TOLERANCE = 3e-3, 1e-6  # nats, and nats per row, that a last step may still gain
_ROUGHLY = 30.0  # times that, on a sample
_FIRST_GAIN = 0.1  # nats: what is learnt from the first guess at the sites need not be learnt well
_HOPELESS = 10.0  # nats below no function at all
_FORETOLD = 0.1  # of the tolerance: where gains fall so that the next would be less, many rows are not asked again
_QUIET = (10.0, 1.0, 0.1)  # variances of a latent function that an ascent from nothing tries
_HEAVY = 2.1  # degrees of freedom
_MOST_REVIVALS = 5  # of terms that were switched off on the way
_KEPT_TOLERANCE = 1e-7  # nats, when hyperparameters are kept
_STRETCHES = 64  # of rows, in a batch
_EPOCHS, _LAST_STEPS, _MOST_BATCH_HALVINGS = 1, 10, 8
_STEADY, _FALL = 10.0, 0.7


class Natural(Method):
    """A Gaussian q with a full covariance, at the hyperparameters of the best bound."""

    name = "natural"
    needs = "visits"

    def accepts(self, spec: Spec) -> str | None:
        """Any likelihood but that for which there is a closed form."""
        return "" if spec.likelihood.conjugate or spec.covariance != "full" else None

    def fit(self, task: FitTask) -> Fit:
        """From the rows; those of an earlier fit, which are gone, are remembered by the sums of their sites."""
        return ascended(task).fit


@dataclass(frozen=True)
class Ascended:
    """Where natural gradients ended."""

    task: FitTask
    """As learning saw it."""
    problem: SiteProblem
    ascent: SiteAscent

    @cached_property
    def model(self) -> SumModel:
        """Of the sites."""
        model = self.ascent.last.iterate.model
        return replace(model, averages=self.problem.oracle.averages(model.moments.request))

    @cached_property
    def fit(self) -> Fit:
        """The record of the fit; of rows that came in pieces the bound is not known."""
        found = _fit_of(self.task, self.problem, self.ascent, self.model)
        return found if self.problem.memory is None else replace(found, elbo=np.nan)


def ascended(task: FitTask) -> Ascended:
    """To the top of the bound."""
    # a step that leaves float64 is refused by its bound
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if task.before is None or task.before.memory is None:
            return _of_first_rows(prepared(task))
        return _of_more_rows(task, task.before, task.before.memory)


def prepared(task: FitTask) -> FitTask:
    """The task as learning sees it: targets near one where f is in their units, and a likelihood with its levels."""
    task = with_held_likelihood(task)
    rows, target = task.visited, _scale_of(task)
    _check_given(task)
    inner = rows.in_units(target)
    sized = task.likelihood.sized(rows.observed.y if rows.targets is None else rows.targets)
    # values that are held are in the user's units
    start = sized.start(rows.observed.y, inner.observed.extra, inner.observed.w)
    psi = sized.with_values(start).in_units(1.0 / target.scale).psi
    return with_held(replace(task, rows=inner, likelihood=sized, target=target, psi=psi), inner.request)


def problem_of(task: FitTask, oracle: RowOracle, memory: SiteMemory | None = None) -> SiteProblem:
    """What natural gradients ascend."""
    how = task.likelihood, task.optimise, task.has_intercept, task.free_harmonics
    known, of_psi = log_priors_of(task, oracle.request), log_priors_of_likelihood(task)
    own = _tolerance(task, oracle)
    return SiteProblem(task.terms, oracle, *how, own, memory=memory, known=known, known_psi=of_psi)


def _check_given(task: FitTask) -> None:
    """Variances that are kept, and not only started from, leave the mean of y within float64."""
    units = Units.of(TargetScale(0.0, 1.0), task.terms, task.visited.request)  # of f, about as far as columns reach
    given = [own["variance"] or 0.0 for own in units.inner(plan.given for plan in task.plans)]
    if not task.optimise and task.likelihood.widest == WIDEST_EXPONENT and sum(given) > WIDEST_EXPONENT:
        raise ValueError(
            f"a latent function whose exponential is the mean of y was expected to have a variance of at most "
            f"{WIDEST_EXPONENT:g}, and the kernel was given {sum(given):g}, which float64 cannot hold the mean of; "
            "give a smaller variance, or leave optimizer='lbfgs' to learn it"
        )


def fit_prepared(task: FitTask) -> Fit:
    """Of rows that are the first."""
    return _of_first_rows(task).fit


def _of_first_rows(task: FitTask) -> Ascended:
    sample, oracle = sampled(task), task.visited.all
    if sample is None:
        problem, step = _begin(task, oracle)
        return Ascended(task, problem, _to_the_top(task, problem, step))
    if sample.n < oracle.n:
        task.progress(f"{oracle.n:,} rows, of which {sample.n:,} are learnt from first")
    problem, step = _begin(task, sample, _ROUGHLY)
    rough = ascend(problem, step, tolerance=problem.tolerance, foretold=_FORETOLD)
    asked = task.growing or task.batch is not None or not task.free_harmonics
    request = oracle.request if asked else with_room(oracle, rough.last.iterate, sample.weight)
    visits = 0
    while True:
        rows = oracle if request == oracle.request else oracle.narrowed(request)
        problem = replace(problem_of(task, rows), intercept_prior=problem.intercept_prior)
        step, gain = _onto_all_rows(problem, rough)
        request = wider(oracle.request, request, step.iterate)
        if request == rows.request:
            rough = _to_the_top(task, problem, step, gain)
            rough = replace(rough, visits=rough.visits + visits)
            request = wider(oracle.request, request, rough.last.iterate)
            if request == rows.request:
                return Ascended(task, problem, rough)
            visits = rough.visits
        else:
            rough, visits = replace(rough, last=step), visits + 2


def _to_the_top(task: FitTask, problem: SiteProblem, step: SiteStep, gained: float = 0.0) -> SiteAscent:
    if task.batch is not None and task.batch < problem.oracle.n:
        return _by_batches(problem, step, task.batch, task.progress)
    return _ascend_and_revive(problem, step, task.progress, gained)


def _tolerance(task: FitTask, oracle: RowOracle) -> float:
    """Nats that a last step may still gain: more where a step is dear, which heavy weights do not make it."""
    if not task.optimise and not np.any(task.likelihood.free):
        return _KEPT_TOLERANCE
    return max(_TOLERANCE[0], _TOLERANCE[1] * min(oracle.weight, oracle.n))


def _ascend_and_revive(
    problem: SiteProblem, step: SiteStep, progress: Callable[[str], None], gained: float = 0.0
) -> SiteAscent:
    """To the top; and on from there, as long as a term that was switched off on the way comes back to life."""
    how: dict[str, Any] = {"tolerance": problem.tolerance, "progress": progress}
    how["foretold"] = _FORETOLD if problem.oracle.n >= SEVERAL_ROWS else 0.0
    ascent = ascend(problem, step, gained=gained, **how)
    for _ in range(_MOST_REVIVALS if problem.optimise else 0):
        revived = problem.revived(ascent.last)
        if revived is None:
            return ascent
        more = ascend(problem, revived, **how)
        ascent = replace(more, bounds=(*ascent.bounds, *more.bounds), visits=ascent.visits + more.visits)
    return ascent


def _by_batches(
    problem: SiteProblem,
    first: SiteStep,
    size: int,
    progress: Callable[[str], None],
) -> SiteAscent:
    """Some epochs of steps on ``size`` rows each from a first q, and a few steps on all rows at the end.

        sums <- (1 - r_t) sums + r_t (n / n_batch) sums of the batch's sites,        r_t = (2 + t / t_0)^-0.7

    The likelihood's parameters follow at the same rate. Hyperparameters are held, since sums of a few rows, scaled up,
    would take the scatter of these rows for detail: they are learnt before, from a sample, and after, on all rows.
    """
    held, rows = replace(problem, optimise=False, grows=False), problem.oracle.in_memory
    assert rows is not None  # batches are dealt from rows in memory
    iterate, psi, sums = first.iterate, first.psi, first.sums
    rng, t = np.random.default_rng(0), 0
    for epoch in range(_EPOCHS):
        for some in _deal(rows, size, rng):
            rate = (2.0 + t / _STEADY) ** -_FALL
            batch = replace(held, oracle=some)
            visit = batch.visit(iterate, psi)
            wanted = visit.sums.scaled(float(rows.weight / some.weight))
            for halving in range(_MOST_BATCH_HALVINGS):  # negative sites of few rows may make no q at a high rate
                shorter = rate * 0.5**halving
                trial = replace(sums.blended(wanted, shorter), n=rows.n)
                moved = held.update(trial, iterate, shorter)
                if moved is not None:
                    sums, iterate, t = trial, moved, t + 1
                    psi = psi + shorter * newton(visit.gradient, positive(-visit.hessian))
                    break
        progress(f"epoch {epoch + 1} of {_EPOCHS}: {t} steps of {size:,} rows")
    last = arrive(problem, iterate, psi, sums)
    return ascend(problem, last, tolerance=problem.tolerance, most_steps=_LAST_STEPS, progress=progress)


def _deal(rows: MemoryRows, size: int, rng: np.random.Generator) -> Iterator[MemoryRows]:
    """All rows once, in batches of about ``size`` made of stretches from all over the table."""
    length = max(1, size // _STRETCHES)
    starts = rng.permutation(np.arange(0, rows.n, length))
    count = max(1, round(rows.n / size))
    for some in np.array_split(starts, count):
        pieces = [slice(int(start), min(int(start) + length, rows.n)) for start in some]
        yield MemoryRows(rows.prepared.taken(pieces), rows.observed.taken(pieces), counted=False)


def _of_more_rows(task: FitTask, before: Fit, memory: SiteMemory) -> Ascended:
    """The sites of the new rows, beside those of the old ones, from where these left everything."""
    observed = task.visited.observed
    if not memory.likelihood.standardised:
        memory.likelihood.check(observed.y, observed.extra)  # as it was sized by the first rows
    kept = {"likelihood": memory.likelihood, "target": memory.units, "psi": memory.psi}
    task = replace(task, rows=task.visited.in_units(memory.units), **kept)
    oracle, summed = task.visited.all, memory.sums.request
    oracle = oracle if oracle.request == summed else oracle.narrowed(summed)
    problem = replace(problem_of(task, oracle, memory), intercept_prior=memory.intercept_prior)
    sums, _ = problem.first_sums(memory.psi, memory.intercept)
    steps = _starts_of_more(task, problem, before, memory, sums)
    ascent = _ascend_and_revive(problem, max(steps, key=lambda step: step.elbo), task.progress)
    return Ascended(task, problem, ascent)


def _starts_of_more(
    task: FitTask, problem: SiteProblem, before: Fit, memory: SiteMemory, sums: Moments
) -> list[SiteStep]:
    """From the hyperparameters of before, and from new ones: few rows may have switched off what more of them show."""
    last = before.history[-1]
    iterates = [problem.given(sums, last.optimum.theta, last.harmonics)]
    if task.optimise:
        with suppress(FloatingPointError):  # negative sites of earlier rows
            stage = _first_stage(task, problem.model(sums), np.inf)
            iterates.append(problem.settled(sums, stage))
    steps = [arrive(problem, iterate, memory.psi, sums) for iterate in iterates if iterate is not None]
    if not steps:  # from what earlier rows say alone
        old = problem.given(memory.sums, last.optimum.theta, last.harmonics)
        assert old is not None  # it stood before
        steps = [arrive(problem, old, memory.psi, memory.sums)]
    return steps


def _scale_of(task: FitTask) -> TargetScale:
    """Where f is in the units of y, those in which y is near one; else as it is."""
    observed = task.visited.observed
    if not task.likelihood.standardised:
        return TargetScale(0.0, 1.0)
    # wild targets are what likelihoods are for that are not log-concave
    robust = task.likelihood.outliers
    return TargetScale.of_targets(observed.y, observed.w, centred=task.centred, robust=robust)


def _begin(task: FitTask, oracle: RowOracle, roughly: float = 1.0) -> tuple[SiteProblem, SiteStep]:
    """A first q from a guess at every row by itself."""
    problem, psi = problem_of(task, oracle), task.psi
    problem = replace(problem, tolerance=roughly * problem.tolerance)
    observed = (oracle.in_memory or task.visited).observed
    intercept = 0.0
    if problem.centred:
        if not task.likelihood.standardised:  # else y is measured from its middle already
            own = observed.y, observed.extra, observed.w, observed.offset
            intercept = best_constant(task.likelihood, psi, *own)
        problem = replace(problem, intercept_prior=intercept)
    sums, power = problem.first_sums(psi, intercept)
    stage = _first_stage(task, problem.model(sums), power)
    iterate = problem.settled(sums, stage)
    assert iterate is not None  # the first sites are positive
    step = arrive(problem, iterate, psi, sums)
    constant, known = observed.lifted(np.full(observed.y.size, intercept)), np.zeros(observed.y.size)
    flat = task.likelihood.expected(psi, observed.y, observed.extra, constant, known)
    nothing = float(observed.w @ flat.value) * oracle.weight / float(observed.w.sum())
    nothing -= max(_HOPELESS, 0.1 * abs(nothing))  # a guess that is not too bad will do
    return problem, step if step.elbo > nothing else _from_prior(problem, stage, psi, step)


def _from_prior(problem: SiteProblem, stage: Stage, psi: np.ndarray, other: SiteStep) -> SiteStep:
    """Where the first guess is worse than no function at all: from the prior uphill, hyperparameters held at first.

    Sites that know nothing yet would teach them that there is nothing to know.
    """
    # the constant is held too: under its own prior, a mean that grows like exp(f) would be all but infinite
    zero, held = Moments.zero(problem.oracle.request), replace(problem, optimise=False, grows=False, centred=False)
    stage, steps = replace(stage, free=stage.model.learnt), [other]
    for variance in _QUIET if problem.optimise else (None,):
        theta = stage.optimum.theta.copy()
        if variance is not None:
            theta[stage.model.variances] = np.log(variance / len(problem.terms))
        quiet = held.settled(zero, replace(stage, optimum=replace(stage.optimum, theta=theta)))
        if quiet is None:
            continue
        rough = ascend(held, arrive(held, quiet, psi, zero), tolerance=_ROUGHLY * problem.tolerance).last
        iterate = problem.settled(rough.sums, rough.iterate)
        if iterate is not None:
            steps.append(arrive(problem, iterate, rough.psi, rough.sums))
    return max((step for step in steps if np.isfinite(step.elbo)), key=lambda step: step.elbo, default=other)


def _onto_all_rows(problem: SiteProblem, rough: SiteAscent) -> tuple[SiteStep, float]:
    """The q that some rows taught, asked of all of them; then the q that their sites make, and what it gains."""
    last = rough.last
    visit = problem.visit(last.iterate, last.psi)
    sums = visit.sums
    here = replace(last.iterate, free=last.iterate.model.learnt, rough=True)
    iterate = problem.update(sums, here, 1.0)
    if iterate is None:  # negative sites: begin with those of every row by itself
        sums, _ = problem.first_sums(last.psi, problem.intercept_prior)
        iterate = problem.update(sums, here, 0.0)
    assert iterate is not None  # the first sites are positive
    there = arrive(problem, iterate, last.psi, sums)
    return there, there.elbo - visit.elbo


def _first_stage(task: FitTask, whole: SumModel, power: float) -> Stage:
    """Hyperparameters and harmonics for the first sums."""
    return learn_from_sums(task, whole, 1.0, power=power, known={"free": whole.learnt, "gain": _FIRST_GAIN})[-1]


def _fit_of(task: FitTask, problem: SiteProblem, ascent: SiteAscent, model: SumModel) -> Fit:
    """The record of the fit."""
    last, oracle, intercept_prior = ascent.last, problem.oracle, problem.intercept_prior
    stage = replace(last.iterate, model=model)
    known = stage.closed.intercept_posterior
    intercept = intercept_prior if known is None else intercept_prior + known.mean
    said = problem.log_prior(stage, last.psi)
    kept = task.likelihood, last.sums, last.psi, -last.visit.hessian, intercept, intercept_prior, task.target
    return record_of_stages(
        task,
        [stage],
        replace(model, moments=last.sums.recentred(intercept_prior)),
        model.posterior(stage.closed, stage.optimum.theta),
        (*_on_ascent(ascent), *_on_tails(task, last.psi)),
        method=Natural.name,
        likelihood=task.likelihood.with_values(last.psi),
        weight=oracle.weight,
        n=oracle.n,
        elbo=last.elbo - said,
        intercept=intercept_prior,
        bounds=tuple(bound - said for bound in ascent.bounds),
        visits=ascent.visits,
        memory=SiteMemory(*kept),
    )


def _on_tails(task: FitTask, psi: np.ndarray) -> tuple[str, ...]:
    """Student's t whose variance is all but infinite."""
    df = task.likelihood.with_values(psi).values.get("df")
    if df is None or df > _HEAVY or not task.likelihood.free.any():
        return ()
    return (
        f"the degrees of freedom ended at {df:.3g}, where the variance of a new observation is all but infinite: its "
        "standard deviation says nothing; use predict_quantiles",
    )


def _on_ascent(ascent: SiteAscent) -> tuple[str, ...]:
    if ascent.converged:
        return ()
    return (
        f"learning stopped after {len(ascent.bounds)} steps before the bound was at its top; the likelihood may not "
        "suit the targets: try another, or give hyperparameters to start from",
    )
