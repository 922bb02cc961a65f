"""Hyperparameters and harmonics by the collapsed bound of sums: of rows under Gaussian noise, or of sites.

With Gaussian noise sums over rows say all, and that is the whole method.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vff.inference.learning.growth import Stage, foreseen, grow, learn
from vff.inference.learning.harmonics import least_of_few
from vff.inference.learning.model import NOISE_BOUNDS, SumModel
from vff.inference.learning.rows import LearningRows
from vff.inference.learning.separated import LEAST_NOISE
from vff.inference.learning.sizes import capped, edf_by_term, shrunk
from vff.inference.learning.start import Given, Start, highest_standing_out, look, sized_for, within
from vff.inference.methods.fit import Fit, Milestone, TermShare, record
from vff.inference.methods.known import log_priors_of, with_held
from vff.inference.methods.notes import active, notes_on
from vff.inference.methods.notes_on_errors import on_error_bars
from vff.inference.methods.shares import Explained, concurvities, gram_of_mean
from vff.inference.methods.task import FitTask, Method, Spec
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.scale import REACH, TargetScale, standardised
from vff.inference.posterior import Posterior
from vff.inference.posterior.exact import ExactPosterior, TrainingRows
from vff.inference.solvers.direct import MOST_EXPANDED
from vff.linalg import threads_for
from vff.moments import MOST_FEW, FewRows, Harmonics, NoisySums
from vff.words import shown

_BETTER_START = 10.0  # nats by which a start found in the data must beat the user's, or the last, to be taken instead


class Collapsed(Method):
    """Hyperparameters by their best collapsed bound."""

    name = "collapsed"
    needs = "sums"

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise of one variance, and no structure."""
        if not spec.likelihood.conjugate or spec.hyperparameters == "integrate":
            return ""
        if spec.covariance != "full":
            return not_gaussian(spec)
        return None

    def fit(self, task: FitTask) -> Fit:
        """From the sums alone."""
        task = with_target(task)
        model = model_of(task)
        n = model.moments.n
        with threads_for(n if n <= MOST_FEW else model.factored):
            return self._fit(task, model)

    def _fit(self, task: FitTask, model: SumModel) -> Fit:
        stages = _stages(task, model)
        final = _with_averages(stages[-1], model)
        noise = 0.0 if task.without_noise else final.model.unpack(final.optimum.theta).noise
        likelihood: Any = task.likelihood  # which has a variance
        posterior = final.model.posterior(final.closed, final.optimum.theta)
        posterior, elbo = replace(posterior, training=training_rows(task, noise)), final.closed.elbo
        # of rows that are not Gaussian there is no upper bound
        upper_bound = np.nan if _scattered(task) else final.closed.upper_bound()
        if posterior.training is not None:
            elbo = upper_bound = ExactPosterior(posterior.terms, posterior.training).evidence
        return record_of_stages(
            task,
            [*stages[:-1], final],
            model,
            posterior,
            (*on_error_bars(final, task), *_on_held_noise(task), *_on_uncertain_inputs(task)),
            method=self.name,
            likelihood=replace(likelihood, variance=noise),
            weight=final.model.rows,
            n=model.moments.n + sum(tail.r.size for tail in model.tails),
            elbo=elbo,
            upper_bound=upper_bound,
            noise=noise,
            bounds=(elbo,),
            visits=1,
        )


def _scattered(task: FitTask) -> bool:
    return any(factor.scattered for term in task.terms for factor in term.factors)


def known_rows(task: FitTask) -> FewRows | None:
    """The rows of the fit, where they are few and lie inside, and nobody asked for so many frequencies."""
    few, asked = task.sums.few, any(M is not None for own in task.wanted for M in own)
    if few is None or asked or _scattered(task) or task.sums.tails or len(few.x) != task.sums.moments.n:
        return None
    return few


def training_rows(task: FitTask, noise: float) -> TrainingRows | None:
    """The same with their noise, as learning sees them."""
    few = known_rows(task)
    if few is None:
        return None
    y, errors = (few.y - task.target.mean) / task.target.scale, few.variances / task.target.scale**2
    return TrainingRows(few.x, y, few.w, noise + errors, REACH**2 if task.centred else None)


def not_gaussian(spec: Spec) -> str:
    """Why there is no structure to be had."""
    return (
        f"covariance={shown(spec.covariance)} is for likelihoods that are not Gaussian: with Gaussian noise the full "
        "covariance has a closed form; leave covariance='full'"
    )


def with_target(task: FitTask) -> FitTask:
    """The task with the scale of y that learning sees."""
    task = replace(task, target=TargetScale.of(task.sums.moments, task.sums.tails, task.centred))
    return with_held(task, task.sums.moments.request)


def model_of(task: FitTask) -> SumModel:
    """The model of the sums, as learning sees it."""
    moments, tails = standardised(task.sums.moments, task.sums.tails, task.target)
    noisy = NoisySums(moments) if moments.nodes else None
    noise = NOISE_BOUNDS if task.noise_limits is None else held_above_rounding(task)
    how: dict[str, Any] = {"noise_limits": noise, "known": log_priors_of(task, moments.request), "noisy": noisy}
    plain, few = replace(moments, nodes={}), known_rows(task)
    if few is not None:
        few = few.different  # a row of weight two is two rows, to the last digit
        y, errors = (few.y - task.target.mean) / task.target.scale, few.variances / task.target.scale**2
        how["few"] = LearningRows(few.x, y, few.w, errors)
    return SumModel(task.terms, plain, tails, intercept=REACH**2 if task.centred else None, **how)


def held_above_rounding(task: FitTask) -> tuple[float, float]:
    """The user's bounds of the noise variance as learning sees them, where float64 resolves them."""
    assert task.noise_limits is not None
    low, high = (max(end / task.target.scale**2, LEAST_NOISE) for end in task.noise_limits)
    return low, high


def _on_held_noise(task: FitTask) -> tuple[str, ...]:
    """A sentence where the user's noise is less than float64 tells from none."""
    if task.noise_limits is None or task.noise_limits[0] >= LEAST_NOISE * task.target.scale**2:
        return ()
    least = LEAST_NOISE * task.target.scale**2
    return (
        f"noise_variance was asked to be {task.noise_limits[0]:g}, and beside the variance of y float64 does not tell "
        f"less than {least:.3g} from none, which was used instead; give that, or more",
    )


def _on_uncertain_inputs(task: FitTask) -> tuple[str, ...]:
    """A sentence about what their bound does to the function."""
    names = [plan.name for plan in task.plans if any(factor.scattered for factor in plan.term.factors)]
    return tuple(
        f"the inputs of {name} are uncertain, by its std, and their bound flattens the function where the errors are a "
        "good part of its wavelength; compare with a fit without std, and see docs/rows.md"
        for name in names
    )


def _with_averages(final: Stage, model: SumModel) -> Stage:
    """The stage with averages of features over the rows, where its sums have other weights than these."""
    if final.model.row_noise is None:
        return final
    plain = model.moments.restricted(final.harmonics)
    averages = tuple(total / plain.weight for total in plain.features_sums)
    return replace(final, model=replace(final.model, averages=averages))


def _stages(task: FitTask, model: SumModel) -> list[Stage]:
    if task.without_noise:
        # error bars are all the noise there is: weights are known, and beside them it is one
        exact = task.sums.moments.nodes.get(0.0)
        if exact is not None and exact.weight > 0.0:
            raise ValueError(
                f"{exact.weight:g} row(s) have an error bar of zero, and with noise_variance=0 no noise at all; leave "
                "noise_variance=None to learn what is beside the error bars, or give these rows one"
            )
        model = model.weighed(0.0)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return learn_from_sums(task, model, 1.0, known={"free": model.learnt})
    noise = None if task.noise is None else task.noise / task.target.scale**2
    if noise is not None and (task.optimise or task.noise_limits is not None):  # where learning may start
        noise = float(np.clip(noise, *model.noise_limits))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves float64 is no model
        return learn_from_sums(task, model, noise)


def learn_from_sums(
    task: FitTask,
    model: SumModel,
    noise: float | None,
    *,
    power: float | None = None,
    known: dict[str, Any] | None = None,
) -> list[Stage]:
    """Learn from where the user's values, the last optimum or a look at the data say, at more and more harmonics.

    ``power`` is that of the targets in any harmonic; ``known`` is what the first stage may be told (see
    ``growth.learn``), and that the noise variance is.
    """
    optimise, progress, wanted = task.optimise, task.progress, task.wanted
    given = task.units(model.moments.request).inner(plan.given for plan in task.plans)
    many = len(task.plans) > 1
    details = [plan.highest_frequency for plan in task.plans] if many else [highest_standing_out(model, power)]
    most = either(wanted, model.harmonics)
    sized = _few(model, wanted, most)
    most = sized.harmonics
    all_given = either(wanted, ((None,) * len(term) for term in model.harmonics)) == most
    setting, held = given_setting(given, noise), noise if known else None
    if setting is not None and all_given and not optimise:
        return [learn(sized, sized.pack(setting), optimise=False, progress=progress)]
    start = look(sized, given, noise, details) if setting is None else _start_at(sized, setting)
    started = any(value for term in given for value in term.values())
    if optimise and (started or (noise and not known and not model.noise_held)):
        nothing = tuple(dict.fromkeys(term) for term in given)
        start = _better(look(sized, nothing, held, details), start)
    if optimise:
        start = _better(start, _last(task, sized, start))
    progress(f"start: bound {start.elbo:.3f} nats")
    harmonics = capped(either(wanted, start.harmonics), most)
    how: dict[str, Any] = {"optimise": optimise, "progress": progress}
    if not all_given and sized.rank is not None:  # rows are so few that all harmonics cost next to nothing
        return [learn(sized, start.theta, **(known or {}), **how)]
    if not all_given:
        return grow(sized, start.theta, harmonics, known=known, budgets=task.budgets, **how)
    if known or not optimise or sized.factored <= MOST_EXPANDED or shrunk(sized).size > MOST_EXPANDED:
        return [learn(sized, start.theta, **(known or {}), **how)]
    # what is too large to be expanded, or factored, starts from what fewer harmonics learnt, and has its curvature
    small = learn(shrunk(sized), start.theta, **how)
    more = {"curvature": small.optimum.curvature, "free": small.free}
    return [small, learn(sized, foreseen(small, sized), rough=True, **more, **how)]


def _few(model: SumModel, wanted: Harmonics, most: Harmonics) -> SumModel:
    """The model with all harmonics; of few rows, those that cost next to nothing, however many were summed."""
    if model.moments.n <= MOST_FEW:
        usual = least_of_few(len(model.terms))
        caps = tuple((usual,) if len(term) == 1 and term[0] is not None else term for term in most)
        few = model.restricted(capped(most, either(wanted, caps)))
        if few.rank is not None:
            return few
    return model.restricted(most)


def _better(found: Start, start: Start | None) -> Start:
    """What was found in the data, where it is far better."""
    return found if start is None or found.elbo > start.elbo + _BETTER_START else start


def given_setting(given: tuple[Given, ...], noise: float | None) -> Hyperparameters | None:
    """The user's values, when all are given."""
    values = [{name: value for name, value in term.items() if value is not None} for term in given]
    if noise is None or any(len(some) < len(term) for some, term in zip(values, given, strict=True)):
        return None
    return Hyperparameters(tuple(values), noise)


def _start_at(model: SumModel, setting: Hyperparameters, *, clipped: bool = False) -> Start:
    sized = sized_for(model, setting)
    theta = sized.pack(setting)
    theta = within(sized, sized.parameters.clip(theta) if clipped else theta)
    return Start(theta, sized.harmonics, sized.climbed.at(theta).objective)


def _last(task: FitTask, model: SumModel, found: Start) -> Start | None:
    """Where the fit before ended, on the scale of the targets of now.

    Terms that came to nothing start where the data say: more rows may show what few did not.
    """
    before = task.before
    if before is None or not before.from_sums:
        return None
    values, units = [], task.units(model.moments.request).terms
    for plan, own, unit, other in zip(task.plans, before.terms, units, model.unpack(found.theta).terms, strict=True):
        kept = {name: unit[name].inner(value) for name, value in plan.named(own).items()}
        values.append(kept if own.active else other)
    noise = 1.0 if task.without_noise else before.noise_variance / task.target.scale**2
    setting = Hyperparameters(tuple(values), noise)
    return _start_at(model, setting, clipped=True)


def either(wanted: Harmonics, others: Iterable[tuple[int | None, ...]]) -> Harmonics:
    """The harmonics that were asked for, and others where none were."""
    return tuple(
        tuple(other if M is None else M for M, other in zip(*both, strict=True))
        for both in zip(wanted, others, strict=True)
    )


def record_of_stages(
    task: FitTask,
    stages: Sequence[Stage],
    whole: SumModel,
    posterior: Posterior,
    notes: tuple[str, ...] = (),
    **more: Any,
) -> Fit:
    """The record of a fit whose hyperparameters are those of the last stage; ``whole`` has all that was summed."""
    final = stages[-1]
    units = task.units(final.model.moments.request)
    return record(
        task,
        posterior=posterior,
        values=units.outer(final.model.unpack(final.optimum.theta).terms),
        shares=shares_of(final, posterior, task.sources),
        history=_history(stages, exact=posterior.exact is not None),
        solver=final.model.solver.name,
        elbo_error=final.closed.error,
        notes=(*notes_on(final, whole, task, exact=posterior.exact is not None), *posterior.covariance.notes(), *notes),
        **more,
    )


def _history(stages: Sequence[Stage], *, exact: bool) -> tuple[Milestone, ...]:
    """Every set of harmonics on the way; ``exact``: nothing is missed in the end."""
    found = [Milestone(own.harmonics, own.optimum, own.bound_gap, own.tolerance) for own in stages]
    return (*found[:-1], replace(found[-1], bound_gap=0.0) if exact else found[-1])


def shares_of(final: Stage, posterior: Posterior, sources: Sequence[Sequence[str]]) -> list[TermShare]:
    """What the data say of every term."""
    closed, edf = final.closed, edf_by_term(final.closed)
    model, setting = final.model.weighed_at(final.model.unpack(final.optimum.theta))
    T, W = len(model.terms), model.weight
    shares, alike = np.zeros(T), [None] * T
    if W > 0.0:  # sites that know nothing leave nothing to share
        # of sites, first and second moments are both weighted by their precisions
        centre = replace(model, averages=None).centre(setting)
        explained = Explained.of(posterior, sources, gram_of_mean(closed), centre, W)
        # sites have no targets of their own
        total = float(explained.covariances.sum()) if model.sites else closed.yy / W - (model.target / W) ** 2
        shares, alike = explained.shares(total), concurvities(explained, closed, centre, W)
    return [
        TermShare(float(share), float(own), active(final, s), one)
        for s, (share, own, one) in enumerate(zip(shares, edf, alike, strict=True))
    ]
