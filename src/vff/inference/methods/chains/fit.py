"""From rows to draws of the optimal posterior q̂(u) and the hyperparameters, under any likelihood."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import jax
import numpy as np

from vff.inference.learning.growth import tolerance
from vff.inference.learning.model import SumModel
from vff.inference.learning.records import Optimum
from vff.inference.methods.chains.density import Data, Hyper, Position, Sums, Target
from vff.inference.methods.chains.design import Design, design, features_at
from vff.inference.methods.chains.lattice import reduced, unfolded
from vff.inference.methods.chains.points import TermShape
from vff.inference.methods.chains.posterior import CoefficientDraws, sampled_posterior
from vff.inference.methods.chains.run import MOST_GRADIENTS, Drawn, compiled
from vff.inference.methods.chains.samples import Samples, evenly, on_gap, stats_of
from vff.inference.methods.chains.start import sampled
from vff.inference.methods.fit import Fit, Milestone, record, shares_of_effects
from vff.inference.methods.hyper import (
    Parameter,
    check_names,
    intercept_parameter,
    likelihood_parameters,
    term_parameters,
    with_priors,
)
from vff.inference.methods.natural.first import Learnt, learn_first, no_sums
from vff.inference.methods.natural.oracle import feature_averages
from vff.inference.methods.task import FitTask, refuse_scattered
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.posterior import Posterior
from vff.likelihoods.float64 import float64
from vff.likelihoods.rules import counts_for
from vff.linalg import product_rows
from vff.moments import Choice

_FEWEST_NODES = 4
_MARGIN = 3.0  # times what features leave out at the start: chains visit shorter lengthscales
_FEW_ROWS = 2000
_BATCH = 50
_SHARED_ROWS = 20_000  # from which the shares of the terms are told
_LEARNT_FEATURES = 400  # with which hyperparameters are learnt before they are sampled
_MOST_FACTORED = 500  # white variables, beyond which a factor of their covariance at every step takes too long
_MOST_OF_PRODUCTS = 150  # the same of products: rows say less about each of them than in sums
_WATCHED = 8  # rows at which it is looked how well the function was sampled


def sample_likelihood(given: FitTask) -> Fit:
    """Sample coefficients and hyperparameters together, from a fit by natural gradients with few features."""
    plan, rows = given.chains, given.visited
    assert plan is not None
    refuse_scattered(given, "inference='mcmc'")
    check_names(given.plans, ["constant", *given.likelihood.sized(rows.observed.y).parameters], given.priors)
    # a step that leaves float64 is refused by its bound
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        learnt = learn_first(given, most=_LEARNT_FEATURES, always=True)
    task, parameters = learnt.task, _parameters(learnt)
    model = SumModel(task.terms, no_sums(learnt.request), sites=True)
    how = {"engine": task.engine, "affine": task.likelihood.affine}
    points = design(model.terms, learnt.request, rows.prepared.source, task.visited.observed, **how)
    target, data = _target(learnt, parameters, points, _largest_rest(task, model, learnt.setting))
    task.progress(f"{target.size:,} variables to sample; {points.choice.reason}")
    started = time.perf_counter()
    data, drawn = sampled(target, data, plan, task.progress)
    task.progress("averaging over the draws")
    found = _draws_of(learnt, target, points.shapes, data, parameters, drawn, time.perf_counter() - started)
    return _record(learnt, model, points.choice, *found)


def _parameters(learnt: Learnt) -> list[Parameter]:
    """All hyperparameters, in the order of a target."""
    task, target = learnt.task, learnt.task.target
    found = term_parameters(task, learnt.units.outer(learnt.setting.terms), learnt.units)
    found.append(intercept_parameter(learnt.intercept, learnt.intercept_prior, target, sampled=task.has_intercept))
    return with_priors([*found, *likelihood_parameters(task.likelihood, learnt.psi, target)], task.priors)


def _largest_rest(task: FitTask, model: SumModel, setting: Hyperparameters) -> float:
    """The largest standard deviation of what the features leave out, at some of the rows."""
    n = task.visited.prepared.n
    some, total = slice(0, n, -(-n // _FEW_ROWS)), 0.0
    for s, own in enumerate(model.moments.request.terms):
        x = [task.visited.prepared.source.read(place, slice(0, n))[some] for place in own.columns]
        priors = model.terms[s].priors(own.factors, setting.terms[s])
        shares = [prior.carried(t) for prior, t in zip(priors, x, strict=True)]
        whole = prod(prior.prior_variance(t) for prior, t in zip(priors, x, strict=True))
        total = total + setting.terms[s]["variance"] * np.maximum(whole - np.prod(shares, axis=0), 0.0)
    return float(np.sqrt(np.max(total)))


def _target(learnt: Learnt, parameters: Sequence[Parameter], points: Design, rest: float) -> tuple[Target, Data]:
    hyper, likelihood, shapes = Hyper.of(parameters), learnt.task.likelihood, points.shapes
    most = _MOST_FACTORED if all(len(shape.axes) == 1 for shape in shapes) else _MOST_OF_PRODUCTS
    sums = _sums(learnt, parameters) if sum(shape.white_count for shape in shapes) <= most else None
    priors, transported, meeting = tuple(own.form for own in parameters), sums is not None, points.rows
    target = Target(priors=priors, transported=transported, terms=shapes, likelihood=likelihood.form, nodes=1)
    if not transported:
        shapes, meeting = reduced(shapes, points.rows, hyper.held)
        target = replace(target, terms=shapes)
    if not likelihood.closed_form:
        ratio = _MARGIN * rest / likelihood.width(hyper.held[target.intercept + 1 :])
        target = replace(target, nodes=max(_FEWEST_NODES, int(counts_for(np.array([ratio]))[0])))
    return target, Data.of(target, meeting, hyper, sums)


def _sums(learnt: Learnt, parameters: Sequence[Parameter]) -> Sums | None:
    """The factors that stood for the rows in the fit before, the constant measured from its prior mean."""
    if learnt.sums is None:
        return None
    intercept = parameters[sum(len(own) for own in learnt.setting.terms)]
    at = intercept.t if intercept.prior is None else intercept.to_t(intercept.prior.numbers[0])
    sums = Sums.of(learnt.sums.recentred(at))
    # sites of likelihoods that are not log-concave may be negative: the nearest that are not
    values, vectors = np.linalg.eigh(sums.G)
    return sums._replace(G=(vectors * np.maximum(values, 0.0)) @ vectors.T)


@lru_cache(maxsize=32)
def _functions(target: Target, full: tuple[TermShape, ...]) -> Any:
    """What positions say, with the coefficients of all functions, those that no row meets among them."""

    def told(data: Data, z: Any, key: Any) -> Position:
        position, found = target.at(data, z), []
        assert data.rows is not None
        parts = zip(full, data.rows.terms, target.white, position.coefficients, strict=True)
        for number, (term, points, place, c) in enumerate(parts):
            own = position.white[slice(*place)], jax.random.fold_in(key, number)
            found.append(unfolded(term, points, position.t, *own)[0] if points.tables else c)
        return position._replace(coefficients=tuple(found), roots=[])

    return compiled(jax.vmap(told, in_axes=(None, 0, 0)))


def _draws_of(
    learnt: Learnt,
    target: Target,
    full: tuple[TermShape, ...],
    data: Data,
    parameters: Sequence[Parameter],
    drawn: Sequence[Drawn],
    seconds: float,
) -> tuple[Samples, np.ndarray, list[float]]:
    """Hyperparameters; coefficients and the constant of the draws that are kept, (S, P + 1); every term's edf."""
    position = np.stack([own.position for own in drawn])
    chains, draws, _ = position.shape
    t, white, parts, kept, seen = [], [], [], evenly(chains, draws), []
    assert learnt.task.chains is not None
    watched, seed = _watched(learnt), learnt.task.chains.seed
    every = position.reshape(chains * draws, -1)
    with float64():
        for start in range(0, len(every), _BATCH):
            batch = every[start : start + _BATCH]
            padded = np.concatenate([batch, np.zeros((_BATCH - len(batch), batch.shape[1]))])
            keys = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(seed), start), _BATCH)
            found, n = jax.tree.map(np.asarray, _functions(target, full)(data, padded, keys)), len(batch)
            constant = found.t[:, target.intercept, None]
            c = np.concatenate([*(own.reshape(_BATCH, -1) for own in found.coefficients), constant], axis=1)[:n]
            t.append(found.t[:n])
            white.append(found.white[:n])
            parts.append(c[kept[(kept >= start) & (kept < start + _BATCH)] - start])
            seen.append(c @ watched.T)
    t = np.concatenate(t).reshape(chains, draws, -1)
    psi = t.reshape(chains * draws, -1)[kept, target.intercept + 1 :]
    f = np.concatenate(seen).reshape(chains, draws, -1)
    function = {f"f at row {n}": f[:, :, n] for n in range(f.shape[2])}
    others = psi, learnt.task.likelihood, learnt.task.target.scale, seconds, MOST_GRADIENTS, function
    samples = Samples(tuple(parameters), t, stats_of(drawn), kept, *others)
    # how many white variables of every term the data determine
    shrunk = 1.0 - np.concatenate(white).var(axis=0)
    determined = [float(max(shrunk[slice(*own)].sum(), 0.0)) for own in target.white]
    return samples, np.concatenate(parts), determined


def _watched(learnt: Learnt) -> np.ndarray:
    """The features of all terms, and of the constant, at some rows, (rows, P + 1)."""
    source = learnt.task.visited.prepared.source
    rows = np.unique(np.linspace(0, source.n - 1, _WATCHED).astype(int))
    x = _columns(learnt, rows)
    terms = learnt.request.terms
    blocks = [product_rows(features_at(own.factors, [x[:, c] for c in own.columns])) for own in terms]
    return np.concatenate([*blocks, np.ones((len(x), 1))], axis=1)


def _columns(learnt: Learnt, rows: np.ndarray | slice) -> np.ndarray:
    """The modelled columns of some rows, (N, C)."""
    prepared = learnt.task.visited.prepared
    every = slice(0, prepared.n)
    return np.stack([prepared.source.column(c, every)[rows] for c in range(len(learnt.request.columns))], axis=1)


def _record(
    learnt: Learnt, model: SumModel, engine: Choice, samples: Samples, coefficients: np.ndarray, determined: list[float]
) -> Fit:
    """The record of the fit."""
    task, L = learnt.task, samples.t.shape[-1]
    t = samples.t.reshape(-1, L)[samples.kept]
    place = L - 1 - samples.psi.shape[1]
    w = task.visited.observed.w
    averages = feature_averages(task.visited.prepared, learnt.request, w)
    settings = [model.unpack(np.append(row[:place], 0.0)) for row in t]  # of sites, the noise variance is one
    posterior, intercept = sampled_posterior(model, settings, CoefficientDraws.of(coefficients), averages)
    psi = np.median(samples.psi, axis=0)
    some = slice(0, w.size, -(-w.size // _SHARED_ROWS))
    x = _columns(learnt, some)
    # what features may leave out: as where frequencies are chosen
    bound_gap, tolerated = (
        _bound_gap(learnt, posterior, psi, intercept, x, some),
        tolerance(w.sum(), sum(determined)),
    )
    theta = np.median(t[:, :place], axis=0)
    optimum = Optimum(theta, np.nan, 0, int(samples.stats["n_steps"].sum()), True, "sampled")
    effects = posterior.effects_of_mean(task.sources, x, posterior.rows(x))
    return record(
        task,
        method="chains",
        likelihood=task.likelihood.with_values(psi),
        posterior=posterior,
        values=samples.medians([len(plan.term.names) for plan in task.plans]),
        shares=shares_of_effects(effects, w[some], determined),
        history=(Milestone(learnt.request.harmonics, optimum, bound_gap, tolerated),),
        solver="sampled",
        weight=float(w.sum()),
        n=task.visited.prepared.n,
        intercept=intercept,
        notes=(*samples.notes(), *on_gap(bound_gap, tolerated)),
        samples=samples,
        engine=engine,
    )


def _bound_gap(
    learnt: Learnt, posterior: Posterior, psi: np.ndarray, intercept: float, x: np.ndarray, some: slice
) -> float:
    """What the features leave out on average over draws, nats: half the sum of precision times variance of the rest."""
    observed = learnt.task.visited.observed
    own = observed.at(some)
    mean, _ = posterior.marginals(x, variances=False)
    rest = posterior.covariance.rest(x)
    answer = learnt.task.likelihood.expected(psi, own.y, own.extra, own.lifted(intercept + mean), rest)
    return float(0.5 * observed.w.size / len(x) * np.sum(own.w * np.maximum(-answer.curvature, 0.0) * rest))
