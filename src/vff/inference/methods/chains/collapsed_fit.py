"""From sums over rows with Gaussian noise to draws of the hyperparameters, and a posterior that averages over them."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.solver import LARGEST_DIRECT
from vff.inference.methods.chains.density import CollapsedTarget, Data, Hyper, Sums, registered
from vff.inference.methods.chains.points import shapes_of
from vff.inference.methods.chains.posterior import CoefficientDraws, sampled_posterior
from vff.inference.methods.chains.run import MOST_GRADIENTS
from vff.inference.methods.chains.samples import Samples, evenly, on_gap, stats_of
from vff.inference.methods.chains.start import sampled
from vff.inference.methods.collapsed import Collapsed, model_of, with_target
from vff.inference.methods.fit import Fit, TermShare, record
from vff.inference.methods.hyper import Parameter, held_or_bounded, noise_parameter, term_parameters, with_priors
from vff.inference.methods.task import FitTask, refuse_scattered
from vff.inference.posterior import Posterior, covariance_root

_MOST_DIFFERENTIATED = 250  # white variables: beyond, gradients by hand are faster
_SETTINGS, _EACH = 200, 5  # settings that the posterior averages over, and draws of coefficients at each


def sample_sum(task: FitTask) -> Fit:
    """Sample the hyperparameters of a sum of terms, those of the moments, from where learning ends."""
    plan = task.chains
    assert plan is not None
    refuse_scattered(task, "inference='mcmc'")
    if task.without_noise:
        raise ValueError(
            "inference='mcmc' samples the noise variance beside error bars, and noise_variance=0 holds none; leave "
            "noise_variance=None, or use inference='variational'"
        )
    task = with_target(task)
    fit = Collapsed().fit(task)
    model = model_of(task).restricted(fit.history[-1].harmonics)
    if model.iterative:
        raise ValueError(
            f"inference='mcmc' factors a matrix of all {model.size} features at every step, and takes at most "
            f"{LARGEST_DIRECT}; use fewer frequencies, or inference='variational'"
        )
    parameters = _parameters(fit, model, task)
    target = _target(parameters, model)
    started = time.perf_counter()
    task.progress(f"{target.n_hyper} hyperparameters to sample on the sums of {model.moments.n:,} rows")
    with registered(model) as number:
        sums = None if target.terms is None else Sums.of(model.moments, model.intercept, model.varying)
        bounds = np.array(model.parameters.log_bounds)
        data = Data.of(target, None, Hyper.of(parameters), sums, number=number, bounds=bounds)
        data, drawn = sampled(target, data, plan, task.progress)
    task.progress("averaging over the draws")
    t = np.tile(np.asarray(data.hyper.held), (plan.chains, plan.draws, 1))
    t[:, :, target.free] = data.centre + np.stack([own.position for own in drawn]) @ np.asarray(data.root).T
    some = evenly(plan.chains, plan.draws, _SETTINGS)
    flat = t.reshape(-1, t.shape[-1])[some]
    posterior, intercept = _posterior(model, flat, np.random.default_rng(plan.seed + 1))
    kept, seconds = np.repeat(some, _EACH), time.perf_counter() - started
    psi, scale = np.repeat(flat[:, -1:], _EACH, axis=0), task.target.scale
    samples = Samples(tuple(parameters), t, stats_of(drawn), kept, psi, task.likelihood, scale, seconds, MOST_GRADIENTS)
    return _record(task, fit, model, posterior, samples, intercept)


def _parameters(fit: Fit, model: SumModel, task: FitTask) -> list[Parameter]:
    learnt = [(own.variance, *own.lengthscales) for own in fit.terms]
    terms = term_parameters(task, learnt, task.units(model.moments.request))
    noise = held_or_bounded(noise_parameter(fit.noise_variance, task.target), task.noise_limits)
    return with_priors([*terms, noise], task.priors)


def _target(parameters: list[Parameter], model: SumModel) -> CollapsedTarget:
    shapes = shapes_of(model.terms, model.moments.request)
    few = sum(shape.white_count for shape in shapes) <= _MOST_DIFFERENTIATED and not model.tails and model.noisy is None
    target = CollapsedTarget(priors=tuple(own.form for own in parameters), terms=shapes if few else None)
    if not target.n_hyper:
        raise ValueError(
            "inference='mcmc' with Gaussian noise samples hyperparameters, and all of them are held; the posterior at "
            "held ones is known: use inference='variational'"
        )
    return target


def _posterior(model: SumModel, t: np.ndarray, rng: np.random.Generator) -> tuple[Posterior, float]:
    """Averages over settings of the posterior at each, measured from the average of the constant."""
    settings = [model.unpack(theta) for theta in t]
    P, S = model.size, len(t)
    means, moved, covariance = np.zeros((S, P + 1)), np.zeros((S, _EACH, P + 1)), np.zeros((P + 1, P + 1))
    for number, (theta, setting) in enumerate(zip(t, settings, strict=True)):
        form = model.at(theta)  # three matrices of all features: one setting at a time
        # of the functions that are summed over rows, the constant held
        transform = model.transform(setting)
        inverse = transform.transpose(transform.transpose(form.covariance()).T)
        inverse = 0.5 * (inverse + inverse.T)
        means[number, :P] = transform.transpose(form.mean)
        covariance[:P, :P] += inverse
        moved[number, :, :P] = rng.standard_normal((_EACH, P)) @ covariance_root(inverse).T
        known = form.intercept_posterior
        if known is not None:
            along = np.append(-transform.transpose(known.answer), 1.0)  # how they follow the constant, and itself
            covariance += known.variance * np.multiply.outer(along, along)
            moved[number] += np.multiply.outer(np.sqrt(known.variance) * rng.standard_normal(_EACH), along)
            means[number, P] = known.mean
    mean = means.mean(axis=0)
    covariance += (means - mean).T @ (means - mean)
    drawn = CoefficientDraws(mean, covariance / S, (means[:, None] + moved).reshape(-1, P + 1))
    averages = [total / model.moments.weight for total in model.moments.features_sums]
    return sampled_posterior(model, settings, drawn, averages)


def _record(task: FitTask, fit: Fit, model: SumModel, posterior: Posterior, samples: Samples, intercept: float) -> Fit:
    """The fit with medians in place of optima; the bound is the one there."""
    theta = np.median(samples.t.reshape(-1, samples.t.shape[-1]), axis=0)
    closed = model.at(theta)
    bound_gap = float(model.bound_gap_by_term(closed, theta).sum())
    likelihood: Any = task.likelihood  # which has a variance
    noise = float(np.mean(samples.parameters[-1].values(samples.t[:, :, -1]))) / task.target.scale**2
    return record(
        task,
        method="collapsed chains",
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
        notes=(*fit.notes, *samples.notes(), *on_gap(bound_gap, fit.history[-1].tolerance)),
        samples=samples,
    )
