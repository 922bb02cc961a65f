"""Gaussian noise: sums over rows say all, and the bound is collapsed over the coefficients."""

from dataclasses import replace

import numpy as np

from vff.inference.learning.growth import Stage
from vff.inference.learning.model import NOISE_BOUNDS, SumModel
from vff.inference.methods.fit import Fit
from vff.inference.methods.from_sums import learn_from_sums, record_of_stages
from vff.inference.methods.task import FitTask, Method, Spec
from vff.inference.model.scale import REACH, TargetScale, standardised
from vff.likelihoods import Gaussian
from vff.words import shown


class Collapsed(Method):
    """Hyperparameters by their best collapsed bound."""

    name = "collapsed"
    needs = "sums"

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise of one variance, and no structure."""
        if not spec.likelihood.conjugate:
            return ""
        if spec.covariance != "full":
            return not_gaussian(spec)
        return None

    def fit(self, task: FitTask) -> Fit:
        """From the sums alone."""
        task = with_target(task)
        model = model_of(task)
        stages = _stages(task, model)
        final = stages[-1]
        noise = final.model.unpack(final.optimum.theta).noise
        return record_of_stages(
            task,
            stages,
            model,
            final.model.posterior(final.closed, final.optimum.theta),
            method=self.name,
            likelihood=Gaussian(noise),
            weight=final.model.weight,
            n=model.moments.n + sum(tail.r.size for tail in model.tails),
            elbo=final.closed.elbo,
            upper_bound=final.closed.upper_bound(),
            noise=noise,
            bounds=(final.closed.elbo,),
            visits=1,
        )


def not_gaussian(spec: Spec) -> str:
    """Why there is no structure to be had."""
    return (
        f"covariance={shown(spec.covariance)} is for likelihoods that are not Gaussian: with Gaussian noise the full "
        "covariance has a closed form; leave covariance='full'"
    )


def with_target(task: FitTask) -> FitTask:
    """The task with the scale of y that learning sees."""
    return replace(task, target=TargetScale.of(task.sums.moments, task.sums.tails, task.centred))


def model_of(task: FitTask) -> SumModel:
    """The model of the sums, as learning sees it."""
    inner = standardised(task.sums.moments, task.sums.tails, task.target)
    return SumModel(task.terms, *inner, intercept=REACH**2 if task.centred else None)


def _stages(task: FitTask, model: SumModel) -> list[Stage]:
    noise = None if task.noise is None else task.noise / task.target.scale**2
    if noise is not None and task.optimise:  # where learning may start
        noise = float(np.clip(noise, *NOISE_BOUNDS))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves float64 is no model
        return learn_from_sums(task, model, noise)
