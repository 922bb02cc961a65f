"""From sums over rows with Gaussian noise to draws of the hyperparameters, and a posterior that averages over them."""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.solver import LARGEST_DIRECT
from vff.inference.methods.chains.collapsed_density import (
    CollapsedData,
    CollapsedTarget,
    Registered,
    Sums,
    hyperparameters,
    settled,
)
from vff.inference.methods.chains.density import OVERDISPERSED, Hyper, entries_of
from vff.inference.methods.chains.design import axes_of
from vff.inference.methods.chains.hyper import (
    Parameter,
    check_names,
    noise_parameter,
    term_parameters,
    with_priors,
)
from vff.inference.methods.chains.points import TermShape
from vff.inference.methods.chains.posterior import CoefficientDraws, InterceptDraws, sampled_posterior
from vff.inference.methods.chains.run import MOST_GRADIENTS, Compilation, run
from vff.inference.methods.chains.samples import Samples, evenly, on_gap, stats_of
from vff.inference.methods.collapsed import Collapsed, model_of
from vff.inference.methods.fit import Fit, TermShare, record
from vff.inference.methods.task import FitTask
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.scale import Units
from vff.inference.posterior import Posterior, covariance_root
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.likelihoods import Gaussian

_MOST_DIFFERENTIATED = 250  # white variables: beyond, gradients by hand are faster
_SETTINGS, _EACH = 200, 5  # settings that the posterior averages over, and draws of coefficients at each


def sample_sum(task: FitTask) -> Fit:
    """Sample the hyperparameters of a sum of terms, those of the moments, from where learning ends."""
    plan = task.chains
    assert plan is not None
    check_names(task.plans, ["noise_variance"], task.priors)
    fit = Collapsed().fit(task)
    whole, units = model_of(task)
    model = whole.restricted(fit.history[-1].harmonics)
    if model.iterative:
        raise ValueError(
            f"inference='mcmc' factors a matrix of all {model.size} features at every step, and takes at most "
            f"{LARGEST_DIRECT}; use fewer frequencies, or inference='variational'"
        )
    parameters = with_priors(_parameters(fit, model, task), task.priors)
    started = time.perf_counter()
    with Registered(model) as number:
        target, data = _target(parameters, number, model)
        compilation = Compilation(target, plan.sampler, data, target.free.size)
        data, plan = settled(target, data), plan.settled(known=True)
        task.progress(f"{target.free.size} hyperparameters to sample on the sums of {model.moments.n:,} rows")
        starts = OVERDISPERSED * np.random.default_rng(plan.seed).standard_normal((plan.chains, target.free.size))
        drawn = run(target, data, starts, plan, task.progress, compilation)
    task.progress("averaging over the draws")
    t = hyperparameters(target, data, [own.position for own in drawn])
    some = evenly(plan.chains, plan.draws, _SETTINGS)
    flat = t.reshape(-1, t.shape[-1])[some]
    posterior, intercept = _posterior(model, flat, np.random.default_rng(plan.seed + 1))
    kept, seconds = np.repeat(some, _EACH), time.perf_counter() - started
    psi = np.repeat(flat[:, -1:], _EACH, axis=0)
    scale = units.target.scale
    samples = Samples(tuple(parameters), t, stats_of(drawn), kept, psi, Gaussian(), scale, seconds, MOST_GRADIENTS)
    return _record(task, fit, model, units, posterior, samples, intercept)


def _parameters(fit: Fit, model: SumModel, task: FitTask) -> list[Parameter]:
    learnt = [(own.variance, *own.lengthscales) for own in fit.terms]
    terms = term_parameters(task.plans, learnt, task.units(fit.target, model.moments.request))
    found = [*terms, noise_parameter(fit.noise_variance, fit.target)]
    return found if task.optimise else [*(replace(own, prior=None) for own in found[:-1]), found[-1]]


def _target(
    parameters: Sequence[Parameter], number: np.ndarray, model: SumModel
) -> tuple[CollapsedTarget, CollapsedData]:
    entries = entries_of(parameters)
    axes = [axes_of(term, own) for term, own in zip(model.terms, model.moments.request.terms, strict=True)]
    shapes = tuple(TermShape(own, lattice=False) for own in axes)
    few = sum(prod(shape.white_shape) for shape in shapes) <= _MOST_DIFFERENTIATED and not model.tails
    target = CollapsedTarget(entries, shapes if few else None)
    if not target.free.size:
        raise ValueError(
            "inference='mcmc' with Gaussian noise samples hyperparameters, and all of them are held; the posterior at "
            "held ones is known: use inference='variational'"
        )
    K = target.free.size
    sums = Sums.of(model) if few else None
    bounds = np.array(model.parameters.log_bounds)
    return target, CollapsedData(number, Hyper.of(parameters), np.zeros(K), np.eye(K), bounds, sums)


def _posterior(model: SumModel, t: np.ndarray, rng: np.random.Generator) -> tuple[Posterior, float]:
    """Averages over settings of the posterior at each, measured from the average of the constant."""
    settings = [model.unpack(theta) for theta in t]
    P, S = model.size, len(t)
    means, covariance, moved = np.empty((S, P)), np.zeros((P, P)), np.empty((S, _EACH, P))
    constants, white, together, variance = np.zeros(S), np.zeros((S, _EACH)), np.zeros(P), 0.0
    for number, (theta, setting) in enumerate(zip(t, settings, strict=True)):
        form = model.at(theta)  # three matrices of all features: one setting at a time
        means[number], inverse = _raw(model, setting, form)
        covariance += inverse
        moved[number] = rng.standard_normal((_EACH, P)) @ covariance_root(inverse).T
        if form.intercept_posterior is not None:
            follows = -model.transform(setting).transpose(form.intercept_posterior.answer)
            covariance += form.intercept_posterior.variance * np.multiply.outer(follows, follows)
            together += form.intercept_posterior.variance * follows
            variance += form.intercept_posterior.variance
            white[number] = np.sqrt(form.intercept_posterior.variance) * rng.standard_normal(_EACH)
            moved[number] += np.multiply.outer(white[number], follows)
            constants[number] = form.intercept_posterior.mean
    intercept = float(np.mean(constants))
    apart = constants - intercept
    mean = means.mean(axis=0)
    covariance += (means - mean).T @ (means - mean)
    cloud = CoefficientDraws(mean, covariance / S, (means[:, None] + moved).reshape(-1, P))
    together, variance = together + apart @ (means - mean), variance + float(apart @ apart)
    level = InterceptDraws((apart[:, None] + white).reshape(-1), together / S, variance / S)
    averages = [total / model.moments.weight for total in model.moments.features_sums]
    return sampled_posterior(model, settings, cloud, averages, level), intercept


def _raw(model: SumModel, setting: Hyperparameters, closed: LinearGaussian) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the coefficients of the functions that are summed over rows, and covariance with the constant held."""
    transform = model.transform(setting)
    inverse = transform.transpose(transform.transpose(closed.covariance()).T)
    return transform.transpose(closed.mean), 0.5 * (inverse + inverse.T)


def _record(
    task: FitTask,
    fit: Fit,
    model: SumModel,
    units: Units,
    posterior: Posterior,
    samples: Samples,
    intercept: float,
) -> Fit:
    """The fit with medians in place of optima; the bound is the one there."""
    theta = np.median(samples.t.reshape(-1, samples.t.shape[-1]), axis=0)
    closed = model.at(theta)
    bound_gap = float(model.bound_gap_by_term(closed, theta).sum())
    noise = float(np.mean(samples.parameters[-1].values(samples.t[:, :, -1]))) / units.target.scale**2
    return record(
        task,
        units,
        method="collapsed chains",
        likelihood=Gaussian(noise),
        posterior=posterior,
        values=samples.medians([len(plan.term.names) for plan in task.plans]),
        shares=[TermShare(own.variance_share, own.edf, True) for own in fit.terms],
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
