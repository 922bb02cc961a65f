"""Gaussian noise: sums over rows say all, and the bound is collapsed over the coefficients."""

from typing import Literal

import numpy as np

from vff.inference.learning.growth import Stage
from vff.inference.learning.model import NOISE_BOUNDS, SumModel
from vff.inference.learning.start import highest_standing_out
from vff.inference.methods.fit import Fit, Milestone, record
from vff.inference.methods.from_sums import Last, learn_from_sums, shares_of
from vff.inference.methods.notes import notes_on
from vff.inference.methods.task import FitTask, Spec
from vff.inference.model.scale import REACH, TargetScale, Units, standardised
from vff.likelihoods import Gaussian
from vff.words import shown


class Collapsed:
    """Hyperparameters by their best collapsed bound."""

    name = "collapsed"
    inference = "variational"
    needs: Literal["sums"] = "sums"
    samples = False

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise of one variance, and no structure."""
        if not spec.likelihood.conjugate:
            return ""
        if spec.covariance != "full":
            return not_gaussian(spec)
        return None

    def fit(self, task: FitTask) -> Fit:
        """From the sums alone."""
        model, units = model_of(task)
        stages = _stages(task, model, units)
        final = stages[-1]
        setting = final.model.unpack(final.optimum.theta)
        posterior = final.model.posterior(final.closed, final.optimum.theta)
        return record(
            task,
            units,
            method=self.name,
            likelihood=Gaussian(setting.noise),
            posterior=posterior,
            values=units.outer(setting.terms),
            shares=shares_of(final),
            history=tuple(Milestone(own.harmonics, own.optimum, own.bound_gap, own.tolerance) for own in stages),
            solver=final.model.solver.name,
            weight=final.model.weight,
            n=model.moments.n + sum(tail.r.size for tail in model.tails),
            elbo=final.closed.elbo,
            elbo_error=final.closed.error,
            upper_bound=final.closed.upper_bound(),
            noise=setting.noise,
            bounds=(final.closed.elbo,),
            visits=1,
            notes=(*notes_on(final, model, task.plans), *posterior.covariance.notes()),
        )


def not_gaussian(spec: Spec) -> str:
    """Why there is no structure to be had."""
    return (
        f"covariance={shown(spec.covariance)} is for likelihoods that are not Gaussian: with Gaussian noise the full "
        "covariance has a closed form; leave covariance='full'"
    )


def model_of(task: FitTask) -> tuple[SumModel, Units]:
    """The model of the sums, as learning sees it, and the way back."""
    moments, tails = task.sums.moments, task.sums.tails
    target = TargetScale.of(moments, tails, task.centred)
    intercept = REACH**2 if task.centred else None
    model = SumModel(task.terms, *standardised(moments, tails, target), intercept=intercept)
    return model, task.units(target, moments.request)


def _stages(task: FitTask, model: SumModel, units: Units) -> list[Stage]:
    noise = units.inner_noise(task.noise)
    if noise is not None and task.optimise:  # where learning may start
        noise = float(np.clip(noise, *NOISE_BOUNDS))
    many = len(task.plans) > 1
    details = [plan.detail for plan in task.plans] if many else [highest_standing_out(model)]
    given = units.inner(plan.given for plan in task.plans)
    how = {"optimise": task.optimise, "progress": task.progress, "last": _last(task, units)}
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves float64 is no model
        return learn_from_sums(model, given, noise, task.wanted, details, **how)


def _last(task: FitTask, units: Units) -> Last | None:
    """Where the fit before ended, on the scale of the targets of now."""
    before = task.before
    if before is None or not before.from_sums:
        return None
    values = [plan.named(own) for plan, own in zip(task.plans, before.terms, strict=True)]
    inner = [
        {name: value / unit[name] for name, value in own.items()} for own, unit in zip(values, units.terms, strict=True)
    ]
    kept = [own if term.active else None for own, term in zip(inner, before.terms, strict=True)]
    return Last(kept, before.noise_variance / units.target.scale**2)
