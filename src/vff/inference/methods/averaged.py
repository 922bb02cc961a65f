"""Averages over hyperparameters of a sum of terms with Gaussian noise: what draws of them make of the posterior."""

from dataclasses import replace
from typing import Any

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.methods.chains.posterior import CoefficientDraws, sampled_posterior
from vff.inference.methods.chains.samples import Samples, on_gap
from vff.inference.methods.fit import Fit, TermFit, TermShare, record
from vff.inference.methods.hyper import Parameter, held_or_bounded, noise_parameter, term_parameters, with_priors
from vff.inference.methods.shares import shares_of_sums
from vff.inference.methods.task import FitTask
from vff.inference.posterior import Posterior, covariance_root

EACH = 5
"""Draws of coefficients at every setting."""


def hyperparameters_of(fit: Fit, model: SumModel, task: FitTask, *, walls: bool = False) -> list[Parameter]:
    """All of a sum of terms with Gaussian noise, with the priors of draws; ``walls``: these may run into bounds."""
    learnt = [(own.variance, *own.lengthscales) for own in fit.terms]
    terms = term_parameters(task, learnt, task.units(model.moments.request), walls=walls)
    noise = held_or_bounded(noise_parameter(fit.noise_variance, task.target), task.noise_limits, walls=walls)
    return with_priors([*terms, noise], task.priors)


def averaged_posterior(
    model: SumModel, t: np.ndarray, rng: np.random.Generator, *, centred: bool = False
) -> tuple[Posterior, float]:
    """Averages over settings of the posterior at each, measured from the average of the constant.

    ``centred``: draws of coefficients have the mean of their setting, which the same few of every fit else miss alike.
    """
    settings = [model.unpack(theta) for theta in t]
    P, S = model.size, len(t)
    means, moved, covariance = np.zeros((S, P + 1)), np.zeros((S, EACH, P + 1)), np.zeros((P + 1, P + 1))
    for number, (theta, setting) in enumerate(zip(t, settings, strict=True)):
        form = model.at(theta)  # three matrices of all features: one setting at a time
        # of the functions that are summed over rows, the constant held
        transform = model.transform(setting)
        inverse = transform.transpose(transform.transpose(form.covariance()).T)
        inverse = 0.5 * (inverse + inverse.T)
        means[number, :P] = transform.transpose(form.mean)
        covariance[:P, :P] += inverse
        moved[number, :, :P] = _white(rng, P, centred=centred) @ covariance_root(inverse).T
        known = form.intercept_posterior
        if known is not None:
            along = np.append(-transform.transpose(known.answer), 1.0)  # how they follow the constant, and itself
            covariance += known.variance * np.multiply.outer(along, along)
            moved[number] += np.sqrt(known.variance) * _white(rng, 1, centred=centred) * along
            means[number, P] = known.mean
    mean = means.mean(axis=0)
    covariance += (means - mean).T @ (means - mean)
    drawn = CoefficientDraws(mean, covariance / S, (means[:, None] + moved).reshape(-1, P + 1))
    averages = model.averages or [total / model.moments.weight for total in model.moments.features_sums]
    return sampled_posterior(model, settings, drawn, averages)


def _white(rng: np.random.Generator, size: int, *, centred: bool) -> np.ndarray:
    """Standard normal draws at one setting, (EACH, size); those about their mean have variance one again."""
    found = rng.standard_normal((EACH, size))
    return np.sqrt(EACH / (EACH - 1.0)) * (found - found.mean(axis=0)) if centred else found


def with_shares_of(posterior: Posterior, fit: Fit, model: SumModel, task: FitTask) -> tuple[TermFit, ...]:
    """The terms of a fit with the shares of the mean that draws have, from the same sums; concurvity stays.

    ``posterior`` says nothing of rows beyond the domain, so that shares stay, too, where there are some.
    """
    if model.tails:
        return fit.terms
    if model.noisy is not None:
        model = model.weighed(fit.noise_variance / task.target.scale**2)
    shares = shares_of_sums(posterior, model.moments, task.sources, None if model.sites else 1.0)
    return tuple(replace(own, variance_share=float(share)) for own, share in zip(fit.terms, shares, strict=True))


def record_of_draws(
    task: FitTask,
    fit: Fit,
    model: SumModel,
    posterior: Posterior,
    samples: Samples,
    intercept: float,
    method: str,
    notes: tuple[str, ...],
) -> Fit:
    """The fit with medians in place of optima; the bound is the one there."""
    theta = np.median(samples.t.reshape(-1, samples.t.shape[-1]), axis=0)
    closed = model.at(theta)
    bound_gap = float(model.bound_gap_by_term(closed, theta).sum())
    likelihood: Any = task.likelihood  # which has a variance
    noise = float(np.mean(samples.parameters[-1].values(samples.t[:, :, -1]))) / task.target.scale**2
    return record(
        task,
        method=method,
        likelihood=replace(likelihood, variance=noise),
        posterior=posterior,
        values=samples.medians([len(plan.term.names) for plan in task.plans]),
        shares=[TermShare(own.variance_share, own.edf, True, own.concurvity) for own in fit.terms],
        history=(*fit.history, replace(fit.history[-1], bound_gap=bound_gap)),
        solver=fit.solver,
        weight=model.weight,
        n=fit.n,
        elbo=closed.elbo,
        elbo_error=fit.elbo_error,
        upper_bound=closed.upper_bound(),
        noise=noise,
        intercept=intercept,
        bounds=(closed.elbo,),
        visits=fit.visits,
        notes=(*fit.notes, *notes, *on_gap(bound_gap, fit.history[-1].tolerance)),
        samples=samples,
    )
