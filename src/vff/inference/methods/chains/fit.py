"""From rows to draws of the optimal posterior q̂(u) and the hyperparameters, under any likelihood."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import Optimum
from vff.inference.methods.chains.compiling import compiled
from vff.inference.methods.chains.density import MOST_FACTORED, OVERDISPERSED, Data, Hyper, Sites, Target, entries_of
from vff.inference.methods.chains.design import Design, design, features_at
from vff.inference.methods.chains.hyper import (
    Parameter,
    check_names,
    intercept_parameter,
    likelihood_parameters,
    term_parameters,
    with_priors,
)
from vff.inference.methods.chains.posterior import CoefficientDraws, InterceptDraws, sampled_posterior
from vff.inference.methods.chains.run import MOST_GRADIENTS, Compilation, Drawn, run
from vff.inference.methods.chains.samples import Samples, evenly, on_gap, stats_of
from vff.inference.methods.chains.start import settled
from vff.inference.methods.fit import Fit, Milestone, TermShare, record
from vff.inference.methods.natural.feature_sums import feature_averages
from vff.inference.methods.natural.method import Prepared, prepared
from vff.inference.methods.structured.method import Learnt, learn_first, no_sums
from vff.inference.methods.task import FitTask
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.posterior import Posterior
from vff.likelihoods.float64 import float64
from vff.likelihoods.rules import counts_for
from vff.linalg import product_rows
from vff.moments import Choice, ColumnRows

_FEWEST_NODES = 4
_MARGIN = 3.0  # times what features leave out at the start: chains visit shorter lengthscales
_FEW_ROWS = 2000
_BATCH = 50
_SHARED_ROWS = 20_000  # from which the shares of the terms are told
_LEARNT_FEATURES = 400  # with which hyperparameters are learnt before they are sampled
_MOST_OF_PRODUCTS = 150  # white variables that are transported: rows say less about each of them than in sums
_WATCHED = 8  # rows at which it is looked how well the function was sampled


class First(NamedTuple):
    """What comes before the chains."""

    ready: Prepared
    learnt: Learnt

    @property
    def task(self) -> FitTask:
        """With targets as learning sees them."""
        return self.ready.task


class _Draws(NamedTuple):
    samples: Samples
    coefficients: np.ndarray
    """Of the draws that are kept, (S, P)."""
    determined: list[float]
    """How many coefficients of every term the data determine."""


def sample_likelihood(given: FitTask) -> Fit:
    """Sample coefficients and hyperparameters together, from a fit by natural gradients with few features."""
    plan, rows = given.chains, given.visited
    assert plan is not None
    check_names(given.plans, ["constant", *given.likelihood.sized(rows.observed.y).parameters], given.priors)
    # a step that leaves float64 is refused by its bound
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ready = prepared(given)
        first = First(ready, learn_first(ready, most=_LEARNT_FEATURES, always=True))
    task, learnt = first.task, first.learnt
    parameters = _parameters(first)
    model = SumModel(task.terms, no_sums(learnt.request), sites=True)
    observed, affine = task.visited.observed, task.likelihood.affine
    points = design(model.terms, learnt.request, rows.walk.source, observed, task.engine, affine=affine)
    target, data = _target(first, parameters, points, _largest_rest(task, model, learnt.setting))
    task.progress(f"{target.size:,} variables to sample; {points.choice.reason}")
    started = time.perf_counter()
    compilation = Compilation(target, plan.sampler, data, target.size)
    data, plan = settled(target, data), plan.settled(known=target.transported)
    rng = np.random.default_rng(plan.seed)
    starts = rng.standard_normal((plan.chains, target.size))
    starts[:, : target.n_hyper] *= OVERDISPERSED
    drawn = run(target, data, starts, plan, task.progress, compilation)
    task.progress("averaging over the draws")
    draws = _draws_of(first, target, data, parameters, drawn, time.perf_counter() - started)
    return _record(first, model, draws, points.choice)


def _parameters(first: First) -> list[Parameter]:
    """All hyperparameters, in the order of the entries of a target."""
    learnt, target, task = first.learnt, first.ready.target, first.task
    units = task.units(target, learnt.request)
    found = term_parameters(task.plans, units.outer(learnt.setting.terms), units)
    if not task.optimise:
        found = [replace(own, prior=None) for own in found]
    found.append(intercept_parameter(learnt.intercept, learnt.intercept_prior, target, sampled=task.has_intercept))
    found += likelihood_parameters(task.likelihood, learnt.psi, target)
    return with_priors(found, task.priors)


def _largest_rest(task: FitTask, model: SumModel, setting: Hyperparameters) -> float:
    """The largest standard deviation of what the features leave out, at some of the rows."""
    n = task.visited.walk.n
    some, total = slice(0, n, -(-n // _FEW_ROWS)), 0.0
    for s, own in enumerate(model.moments.request.terms):
        x = [task.visited.walk.source.column(c, slice(0, n))[some] for c in own.columns]
        priors = model.terms[s].priors(own.factors, setting.terms[s])
        shares = [prior.carried(t) for prior, t in zip(priors, x, strict=True)]
        total = total + setting.terms[s]["variance"] * np.maximum(1.0 - np.prod(shares, axis=0), 0.0)
    return float(np.sqrt(np.max(total)))


def _target(first: First, parameters: Sequence[Parameter], points: Design, rest: float) -> tuple[Target, Data]:
    entries = entries_of(parameters)
    hyper = Hyper.of(parameters)
    held = hyper.held
    likelihood = first.task.likelihood
    white = sum(int(np.prod(shape.white_shape)) for shape in points.shapes)
    most = MOST_FACTORED if all(len(shape.axes) == 1 for shape in points.shapes) else _MOST_OF_PRODUCTS
    sites = _sites(first.learnt, parameters) if white <= most else None
    target = Target(points.shapes, likelihood.form, 1, entries, sites is not None)
    if not likelihood.closed_form:
        ratio = _MARGIN * rest / likelihood.width(held[target.intercept + 1 :])
        target = replace(target, nodes=max(_FEWEST_NODES, int(counts_for(np.array([ratio]))[0])))
    K, S = target.free.size, target.white_size
    return target, Data(points.rows, hyper, np.zeros(K + S), np.ones(S), np.eye(K), sites)


def _sites(learnt: Learnt, parameters: Sequence[Parameter]) -> Sites | None:
    """The factors that stood for the rows in the fit before, also of the constant where it is sampled."""
    if learnt.sums is None:
        return None
    intercept = parameters[sum(len(own) for own in learnt.setting.terms)]
    at = intercept.t if intercept.prior is None else intercept.to_t(intercept.prior.numbers[0])
    sums = learnt.sums.recentred(at)
    h = np.concatenate(sums.features_sums)
    G = np.block([[sums.gram().dense(), h[:, None]], [h, np.array([[sums.weight]])]])
    # sites of likelihoods that are not log-concave may be negative: the nearest that are not
    values, vectors = np.linalg.eigh(G)
    return Sites((vectors * np.maximum(values, 0.0)) @ vectors.T, np.append(sums.project, sums.target))


@lru_cache(maxsize=32)
def _functions(target: Target) -> Any:
    return compiled(lambda data, z: jax.vmap(partial(target.function, data))(z))


def _draws_of(
    first: First, target: Target, data: Data, parameters: Sequence[Parameter], drawn: Sequence[Drawn], seconds: float
) -> _Draws:
    position = np.stack([own.position for own in drawn])
    chains, draws, _ = position.shape
    t, white, parts, kept, seen = [], [], [], evenly(chains, draws), []
    watched = _watched(first)
    every = position.reshape(chains * draws, -1)
    with float64():
        for start in range(0, len(every), _BATCH):
            batch = every[start : start + _BATCH]
            padded = np.concatenate([batch, np.zeros((_BATCH - len(batch), batch.shape[1]))])
            found = jax.tree.map(np.asarray, _functions(target)(data, padded))
            t.append(found.t[: len(batch)])
            white.append(found.white[: len(batch)])
            own = kept[(kept >= start) & (kept < start + _BATCH)] - start
            c = np.concatenate([tensor.reshape(_BATCH, -1) for tensor in found.coefficients], axis=1)[: len(batch)]
            parts.append(c[own])
            seen.append(found.t[: len(batch), target.intercept, None] + c @ watched.T)
    t = np.concatenate(t).reshape(chains, draws, -1)
    psi = t.reshape(chains * draws, -1)[kept, target.intercept + 1 :]
    likelihood, scale = first.task.likelihood, first.ready.target.scale
    f = np.concatenate(seen).reshape(chains, draws, -1)
    function = {f"f at row {n}": f[:, :, n] for n in range(f.shape[2])}
    told = psi, likelihood, scale, seconds, MOST_GRADIENTS, function
    samples = Samples(tuple(parameters), t, stats_of(drawn), kept, *told)
    # how many white variables of every term the data determine
    shrunk = 1.0 - np.concatenate(white).var(axis=0)
    determined = [float(max(shrunk[slice(*own)].sum(), 0.0)) for own in target.white]
    return _Draws(samples, np.concatenate(parts), determined)


def _watched(first: First) -> np.ndarray:
    """The features of all terms at some rows, (rows, P)."""
    source, every = first.task.visited.walk.source, slice(0, first.task.visited.walk.n)
    rows = np.unique(np.linspace(0, source.n - 1, _WATCHED).astype(int))
    blocks = [
        product_rows(features_at(own.factors, [source.column(c, every)[rows] for c in own.columns]))
        for own in first.learnt.request.terms
    ]
    return np.concatenate(blocks, axis=1)


def _record(first: First, model: SumModel, draws: _Draws, engine: Choice) -> Fit:
    """The record of the fit."""
    samples, coefficients, determined = draws
    learnt, task = first.learnt, first.task
    L = samples.t.shape[-1]
    t = samples.t.reshape(-1, L)[samples.kept]
    place = L - 1 - samples.psi.shape[1]
    intercept = float(t[:, place].mean())
    level, cloud = t[:, place] - intercept, CoefficientDraws.of(coefficients)
    w = task.visited.observed.w
    averages = feature_averages(task.visited.walk, learnt.request, w)
    settings = [model.unpack(np.append(row[:place], 0.0)) for row in t]  # of sites, the noise variance is one
    posterior = sampled_posterior(model, settings, cloud, averages, InterceptDraws.of(level, cloud))
    psi = np.median(samples.psi, axis=0)
    rows = _rows(task, model, posterior)
    bound_gap, tolerated = _bound_gap(first, posterior, psi, intercept, rows), _tolerated(task, determined)
    theta = np.median(t[:, :place], axis=0)
    optimum = Optimum(theta, np.nan, 0, int(samples.stats["n_steps"].sum()), True, "sampled")
    return record(
        task,
        task.units(first.ready.target, learnt.request),
        method="chains",
        likelihood=task.likelihood.with_values(psi),
        posterior=posterior,
        values=samples.medians([len(plan.term.names) for plan in task.plans]),
        shares=_shares(posterior, determined, rows),
        history=(Milestone(learnt.request.harmonics, optimum, bound_gap, tolerated),),
        solver="sampled",
        weight=float(w.sum()),
        n=task.visited.walk.n,
        intercept=intercept,
        notes=(*samples.notes(), *on_gap(bound_gap, tolerated)),
        samples=samples,
        engine=engine,
    )


class _Rows(NamedTuple):
    """Some rows of the fit, and how many rows each stands for."""

    x: np.ndarray
    columns: Sequence[ColumnRows]
    every: slice
    share: float


def _rows(task: FitTask, model: SumModel, posterior: Posterior) -> _Rows:
    n = task.visited.walk.n
    every = slice(0, n, -(-n // _SHARED_ROWS))
    x = np.stack(
        [task.visited.walk.source.column(c, slice(0, n))[every] for c in range(len(model.moments.request.columns))],
        axis=1,
    )
    return _Rows(x, posterior.rows(x), every, n / len(x))


def _bound_gap(first: First, posterior: Posterior, psi: np.ndarray, intercept: float, rows: _Rows) -> float:
    """What the features leave out on average over draws, nats: half the sum of precision times variance of the rest."""
    observed = first.task.visited.observed
    y, extra, w = (values[rows.every] for values in (observed.y, observed.extra, observed.w))
    mean, _ = posterior.marginals(rows.x, variances=False)
    rest = posterior.covariance.rest(rows.x)
    answer = first.task.likelihood.expected(psi, y, extra, intercept + mean, rest)
    return float(0.5 * rows.share * np.sum(w * np.maximum(-answer.curvature, 0.0) * rest))


def _tolerated(task: FitTask, determined: Sequence[float]) -> float:
    """What they may leave out, as where frequencies are chosen: half a nat, 1e-6 per row, 0.02 per coefficient."""
    return max(0.5, 1e-6 * float(task.visited.observed.w.sum()), 0.02 * sum(determined))


def _shares(posterior: Posterior, determined: Sequence[float], rows: _Rows) -> list[TermShare]:
    """What the mean of the function says of every term."""
    effects = posterior.effects_of_mean(rows.x, rows.columns)
    total = float(np.var(np.sum(effects, axis=0)))
    shares = [float(np.var(effect)) / total if total > 0.0 else 0.0 for effect in effects]
    return [TermShare(share, own, True) for share, own in zip(shares, determined, strict=True)]
