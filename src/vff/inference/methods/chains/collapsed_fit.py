"""From sums over rows with Gaussian noise to draws of the hyperparameters, and a posterior that averages over them."""

import time

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.methods.averaged import EACH, averaged_posterior, hyperparameters_of, record_of_draws
from vff.inference.methods.chains.density import CollapsedTarget, Data, Hyper, Sums, registered
from vff.inference.methods.chains.points import shapes_of
from vff.inference.methods.chains.run import MOST_GRADIENTS
from vff.inference.methods.chains.samples import Samples, evenly, stats_of
from vff.inference.methods.chains.start import sampled
from vff.inference.methods.collapsed import Collapsed, model_of, with_target
from vff.inference.methods.fit import Fit
from vff.inference.methods.hyper import Parameter
from vff.inference.methods.many import refuse_many
from vff.inference.methods.task import FitTask, refuse_scattered

_MOST_DIFFERENTIATED = 250  # white variables: beyond, gradients by hand are faster
_SETTINGS = 200  # that the posterior averages over


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
    refuse_many(task.sums.moments.request, "inference='mcmc'", "inference='variational'", least=True)
    task = with_target(task)
    fit = Collapsed().fit(task)
    model = model_of(task).restricted(fit.history[-1].harmonics)
    refuse_many(model.moments.request, "inference='mcmc'", "inference='variational'")
    parameters = hyperparameters_of(fit, model, task)
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
    posterior, intercept = averaged_posterior(model, flat, np.random.default_rng(plan.seed + 1))
    kept, seconds = np.repeat(some, EACH), time.perf_counter() - started
    psi, scale = np.repeat(flat[:, -1:], EACH, axis=0), task.target.scale
    samples = Samples(tuple(parameters), t, stats_of(drawn), kept, psi, task.likelihood, scale, seconds, MOST_GRADIENTS)
    return record_of_draws(task, fit, model, posterior, samples, intercept, "collapsed chains", samples.notes())


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
