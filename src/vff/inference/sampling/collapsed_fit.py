"""From sums over rows with Gaussian noise to draws of the hyperparameters, and a posterior that averages over them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from vff.factors import TailRows
from vff.inference.collapsed import ClosedForm
from vff.inference.fit import Fit, TermPlan, fit_sum
from vff.inference.model import LARGEST_DIRECT, Setting, SumModel
from vff.inference.posterior import covariance_root
from vff.inference.sampling.chains import MOST_GRADIENTS, Compilation, Plan, run
from vff.inference.sampling.collapsed import CollapsedData, CollapsedTarget, Registered, Sums, hyperparameters, settled
from vff.inference.sampling.design import axes_of
from vff.inference.sampling.hyper import (
    Parameter,
    TermValues,
    check_names,
    noise_parameter,
    term_parameters,
    units_of_factors,
    with_priors,
)
from vff.inference.sampling.posterior import Cloud, Level, SampledPosterior, constant_function, sampled_posterior
from vff.inference.sampling.rows import TermShape
from vff.inference.sampling.samples import Samples, evenly, on_missed, stats_of
from vff.inference.sampling.target import OVERDISPERSED, Hyper, entries_of
from vff.inference.target import REACH, TargetScale, standardised
from vff.likelihoods import Gaussian
from vff.moments import Moments

_MOST_DIFFERENTIATED = 250  # white variables: beyond, gradients by hand are faster
_SETTINGS, _EACH = 200, 5  # settings that the posterior averages over, and draws of coefficients at each


def sample_sum(
    moments: Moments,
    tails: tuple[TailRows, ...],
    plans: Sequence[TermPlan],
    noise: float | None,
    *,
    optimise: bool,
    normalise: bool,
    progress: Callable[[str], None],
    plan: Plan,
    priors: Mapping[str, Any] | None,
) -> Fit:
    """Sample the hyperparameters of a sum of terms, those of the moments, from where learning ends."""
    check_names(plans, ["noise_variance"], priors)
    fit = fit_sum(moments, tails, plans, noise, optimise=optimise, normalise=normalise, progress=progress)
    last = fit.history[-1]
    constant = REACH**2 if normalise else None
    model = SumModel(tuple(own.term for own in plans), *standardised(moments, tails, fit.target), constant=constant)
    model = model.restricted(last.harmonics)
    if model.iterative:
        raise ValueError(
            f"inference='mcmc' factors a matrix of all {model.size} features at every step, and takes at most "
            f"{LARGEST_DIRECT}; use fewer frequencies, or inference='variational'"
        )
    parameters = with_priors(_parameters(fit, model, plans, optimise=optimise), priors)
    started = time.perf_counter()
    with Registered(model) as number:
        target, data = _target(parameters, number, model)
        compilation = Compilation(target, plan.sampler, data, target.free.size)
        data, plan = settled(target, data), plan.settled(known=True)
        progress(f"{target.free.size} hyperparameters to sample on the sums of {moments.n:,} rows")
        starts = OVERDISPERSED * np.random.default_rng(plan.seed).standard_normal((plan.chains, target.free.size))
        drawn = run(target, data, starts, plan, progress, compilation)
    progress("averaging over the draws")
    t = hyperparameters(target, data, [own.position for own in drawn])
    some = evenly(plan.chains, plan.draws, _SETTINGS)
    flat = t.reshape(-1, t.shape[-1])[some]
    posterior, constant = _posterior(model, flat, np.random.default_rng(plan.seed + 1))
    target_scale = TargetScale(fit.target.mean + fit.target.scale * constant, fit.target.scale)
    kept, seconds = np.repeat(some, _EACH), time.perf_counter() - started
    psi = np.repeat(flat[:, -1:], _EACH, axis=0)
    samples = Samples(
        tuple(parameters), t, stats_of(drawn), kept, psi, Gaussian(), fit.target.scale, seconds, MOST_GRADIENTS
    )
    return replace(_record(fit, model, posterior, samples), target=target_scale)


def _parameters(fit: Fit, model: SumModel, plans: Sequence[TermPlan], *, optimise: bool) -> list[Parameter]:
    units = units_of_factors(plans, model.moments.request)
    learnt = [TermValues(own.variance, own.lengthscales) for own in fit.terms]
    found = [*term_parameters(plans, learnt, fit.target, units), noise_parameter(fit.noise_variance, fit.target)]
    return found if optimise else [*(replace(own, prior=None) for own in found[:-1]), found[-1]]


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


def _posterior(model: SumModel, t: np.ndarray, rng: np.random.Generator) -> tuple[SampledPosterior, float]:
    """Averages over settings of the posterior at each, measured from the average of the constant."""
    settings = [model.setting(theta) for theta in t]
    one = constant_function(model.terms, model.moments.request.terms)
    P, S = model.size, len(t)
    means, covariance, moved = np.empty((S, P)), np.zeros((P, P)), np.empty((S, _EACH, P))
    constants, white, together, variance = np.zeros(S), np.zeros((S, _EACH)), np.zeros(P), 0.0
    for number, (theta, setting) in enumerate(zip(t, settings, strict=True)):
        form = model.at(theta)  # three matrices of all features: one setting at a time
        assert isinstance(form, ClosedForm)
        means[number], inverse = _raw(model, setting, form)
        covariance += inverse
        moved[number] = rng.standard_normal((_EACH, P)) @ covariance_root(inverse).T
        if form.level is not None:
            # the first term writes the constant; the coefficients answer to it
            follows = one - model.transform(setting).transpose(form.level.answer)
            covariance += form.level.variance * np.multiply.outer(follows, follows)
            together += form.level.variance * follows
            variance += form.level.variance
            white[number] = np.sqrt(form.level.variance) * rng.standard_normal(_EACH)
            moved[number] += np.multiply.outer(white[number], follows)
            constants[number] = form.level.mean
    constant = float(np.mean(constants))
    apart = constants - constant
    means += np.multiply.outer(apart, one)
    mean = means.mean(axis=0)
    covariance += (means - mean).T @ (means - mean)
    cloud = Cloud(mean, covariance / S, (means[:, None] + moved).reshape(-1, P))
    together, variance = together + apart @ (means - mean), variance + float(apart @ apart)
    level = Level((apart[:, None] + white).reshape(-1), together / S, variance / S)
    averages = [total / model.moments.weight for total in model.moments.features_sums]
    return sampled_posterior(model, settings, cloud, averages, level), constant


def _raw(model: SumModel, setting: Setting, closed: ClosedForm) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the coefficients of the functions that are summed over rows, and covariance with the constant held."""
    transform = model.transform(setting)
    inverse = transform.transpose(transform.transpose(closed.inverse.matrix).T)
    return transform.transpose(closed.mean), 0.5 * (inverse + inverse.T)


def _record(fit: Fit, model: SumModel, posterior: SampledPosterior, samples: Samples) -> Fit:
    """The fit with medians in place of optima; the bound is the one there."""
    at, terms, theta = 0, [], []
    for own in fit.terms:
        size = 1 + len(own.lengthscales)
        values = [samples.median(at + n) for n in range(size)]
        terms.append(replace(own, variance=values[0], lengthscales=tuple(values[1:]), supported=True))
        at += size
    theta = np.median(samples.t.reshape(-1, samples.t.shape[-1]), axis=0)
    closed = model.at(theta)
    missed = float(model.missed_by_term(closed, theta).sum())
    jacobian = model.weight * np.log(fit.target.scale)
    noise = float(np.mean(samples.parameters[-1].values(samples.t[:, :, -1])))
    return replace(
        fit,
        posterior=posterior,
        terms=tuple(terms),
        noise_variance=noise,
        elbo=float(closed.elbo - jacobian),
        upper_bound=float(closed.upper_bound() - jacobian),
        notes=(*fit.notes, *samples.notes(), *on_missed(missed, fit.history[-1].tolerance)),
        history=(*fit.history, replace(fit.history[-1], missed=missed)),
        samples=samples,
    )
