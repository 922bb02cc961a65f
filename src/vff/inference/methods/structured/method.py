"""From rows to a posterior whose covariance has a structure.

What is to be learnt (hyperparameters, a constant, parameters of the likelihood, harmonics) is learnt with the full
covariance and few features; then q is fitted with the structure at all frequencies that were asked for, and the rest
held. No matrix is larger than a factor of a term, or than a term where its covariance is dense.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np

from vff.inference.learning.harmonics import fewer
from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import Optimum
from vff.inference.learning.solver import processes
from vff.inference.methods.collapsed import not_gaussian
from vff.inference.methods.fit import Fit, Milestone, TermShare, record
from vff.inference.methods.from_sums import given_setting
from vff.inference.methods.natural.method import Prepared, fit_prepared, prepared
from vff.inference.methods.natural.row_sites import is_positive
from vff.inference.methods.structured.fit import KINDS, LARGEST_JOINT, Kind, ProductTerm, StructuredFit, fit_structured
from vff.inference.methods.structured.intercept import means_with_intercept, with_intercept, without_intercept
from vff.inference.methods.task import FitTask, Spec
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.products import evaluated, projected
from vff.inference.posterior import Pieces, Posterior
from vff.inference.solvers.linear_gaussian import InterceptPosterior
from vff.likelihoods.rules import counts_for
from vff.moments import Choice, MomentRequest, Moments, PreparedRows, plan_pass
from vff.words import shown

_LEARNT_FEATURES, _LEAST_M = 600, 2
_LARGE = 2000  # features, beyond which the last digits are not worth their time
_TOLERANCE, _TOLERANCE_WHEN_LARGE = 1e-5, 3e-3
_FEWEST_NODES = 32
_NUMBER = 8  # bytes
_COPIES = 5  # of the features that the search keeps, and of products of all but one factor
_WRITTEN = Choice("dense", "dense: a structured covariance has the features of every factor written out")
_VECTORS = 80  # of the size of q that L-BFGS keeps


@dataclass(frozen=True)
class Learnt:
    """All that q is fitted at, as learning saw it."""

    setting: Hyperparameters
    psi: np.ndarray
    intercept: float
    intercept_prior: float
    """Prior mean of the constant."""
    request: MomentRequest
    """At the harmonics of q."""
    active: tuple[bool, ...]
    notes: tuple[str, ...] = ()
    sums: Moments | None = None
    """Of the sites that were learnt with, where these have all harmonics of q."""


class Structured:
    """A Gaussian q whose covariance has a structure."""

    name = "structured"
    inference = "variational"
    needs: Literal["rows"] = "rows"
    samples = False

    def accepts(self, spec: Spec) -> str | None:
        """Likelihoods that are not Gaussian, when no more rows will come."""
        if spec.covariance not in KINDS:
            return ""
        if spec.likelihood.normal:
            return not_gaussian(spec)
        if spec.growing:
            return (
                f"partial_fit remembers rows by sums that covariance={shown(spec.covariance)} does not keep; use "
                "covariance='full', or fit all rows together"
            )
        return None

    def fit(self, task: FitTask) -> Fit:
        """Learn with few features, then fit q with all of them."""
        kind: Kind = task.covariance  # pyright: ignore[reportAssignmentType]
        # a step that leaves float64 is refused by its bound
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ready = prepared(task)
            return _fit_structure(kind, ready, learn_first(ready))


def learn_first(ready: Prepared, *, most: int = _LEARNT_FEATURES, always: bool = False) -> Learnt:
    """Hyperparameters, constant, likelihood and harmonics, with the full covariance and few features.

    Where all of these are given, nothing is learnt, but for sites where they are ``always`` wanted.
    """
    given = None if always else _given(ready)
    return given or _learn(ready, most)


def _fit_structure(kind: Kind, ready: Prepared, learnt: Learnt) -> Fit:
    task = ready.task
    model = SumModel(task.terms, no_sums(learnt.request), sites=True)
    terms = _product_terms(task, model, learnt.setting)
    joined = with_intercept(kind, terms) if task.has_intercept else terms
    task.progress(f"{model.size:,} features, of which q has a covariance of kind {kind!r}")
    observed = task.visited.observed
    spread = np.sqrt(sum(term.variance for term in terms)) / task.likelihood.width(learnt.psi)
    fit = fit_structured(
        kind,
        joined,
        observed.y,
        observed.w,
        task.likelihood,
        learnt.psi,
        observed.extra,
        offset=learnt.intercept_prior,
        means=_known_means(kind, model, learnt, centred=joined is not terms),
        nodes=max(_FEWEST_NODES, int(counts_for(np.array([spread]))[0])),
        tolerance=_TOLERANCE if model.size <= _LARGE else _TOLERANCE_WHEN_LARGE,
    )
    task.progress(f"bound {fit.elbo:.3f} nats for standardised y, {fit.evaluations} evaluations")
    intercept = None
    if joined is not terms:
        fit, intercept = without_intercept(kind, fit, terms, observed.w)
    return _record(ready, learnt, model, terms, fit, intercept)


def _known_means(kind: Kind, model: SumModel, learnt: Learnt, *, centred: bool) -> list[np.ndarray] | None:
    """Of the coefficients of every term, as the full covariance has them; None where it had fewer harmonics."""
    if learnt.sums is None:
        return None
    form = replace(model, moments=learnt.sums.recentred(learnt.intercept)).at(model.pack(learnt.setting))
    if not is_positive(form):
        return None
    means = [form.mean[place] for place in learnt.request.slices]
    return means_with_intercept(kind, means, learnt.intercept - learnt.intercept_prior) if centred else means


def no_sums(request: MomentRequest, offset: float = 0.0) -> Moments:
    """Moments of no rows, without the blocks between terms, which may be larger than anything that is ever used."""
    grams = tuple(np.zeros(term.double_shape) for term in request.terms)
    projects = tuple(np.zeros(size) for size in request.sizes)
    return Moments(request, 0, 0.0, offset, 0.0, 0.0, grams, projects, {})


def structured_memory(kind: Kind, request: MomentRequest, rows: int) -> int:
    """Bytes that a fit takes at its peak: features by row and group, and what the search keeps of q."""
    pieces, per_row, size = (2 if kind == "two kroneckers" else 1), 0, 0
    for term in request.terms:
        groups = (term.size,) if kind == "factorised" else term.shape
        rest = prod(groups[1:]) if len(groups) > 1 else 0
        per_row += sum(term.shape) + (1 + pieces) * _COPIES * sum(groups) + _COPIES * rest
        size += term.size + pieces * sum(group**2 for group in groups)
    moved = size if kind == "two kroneckers" else min(size, LARGEST_JOINT)
    return _NUMBER * (rows * per_row + _COPIES * size + _VECTORS * moved)


def _given(ready: Prepared) -> Learnt | None:
    """What the user gave, if nothing is left to be learnt."""
    task = ready.task
    if task.optimise or task.free_harmonics or task.has_intercept or np.any(task.likelihood.free):
        return None
    request = task.visited.request
    given = task.units(ready.target, request).inner(plan.given for plan in task.plans)
    setting = given_setting(given, 1.0)
    return None if setting is None else Learnt(setting, ready.psi, 0.0, 0.0, request, (True,) * len(task.plans))


def _learn(ready: Prepared, most: int) -> Learnt:
    """With the full covariance and few features."""
    task, rows = ready.task, ready.task.visited
    whole = rows.request
    small = _few(whole, most)
    plans = tuple(
        replace(plan, M=tuple(None if M is None else most for M, most in zip(plan.M, own, strict=True)))
        for plan, own in zip(task.plans, small.harmonics, strict=True)
    )
    walk = PreparedRows(plan_pass(rows.walk.n, small, rows.walk.plan.distinct_values), rows.walk.source)
    task.progress(f"learning with the full covariance and at most {small.size} features")
    first = fit_prepared(replace(ready, task=replace(task, plans=plans, rows=replace(rows, walk=walk))))
    memory = first.memory
    assert memory is not None
    learnt = first.history[-1].optimum.theta
    setting = SumModel(task.terms, no_sums(small), sites=True).unpack(learnt)
    request = _request(task, small, first)
    active, notes = tuple(term.active for term in first.terms), _on_learning(task, first, small, request)
    sums = memory.sums.restricted(request.harmonics) if _holds(memory.sums.request, request) else None
    known = memory.psi, memory.intercept, memory.intercept_prior
    return Learnt(setting, *known, request, active, notes, sums)


def _holds(large: MomentRequest, small: MomentRequest) -> bool:
    """Whether sums for one request contain those for another."""
    both = zip(large.harmonics, small.harmonics, strict=True)
    return all(a is None or b is None or a >= b for own in both for a, b in zip(*own, strict=True))


def _on_learning(task: FitTask, first: Fit, small: MomentRequest, request: MomentRequest) -> tuple[str, ...]:
    what = "hyperparameters were" if task.optimise else "what was left open was"
    where = f"{what} learnt with the full covariance and at most {small.size} features"
    if small == task.visited.request:
        return tuple(f"{where}, and there: {note}" for note in first.notes)
    # that frequencies were few there is known
    others = (f"{where}, and there: {note}" for note in first.notes if "frequencies" not in note)
    return (f"{where}, where q has {request.size}", *others)


def _few(whole: MomentRequest, most: int) -> MomentRequest:
    """Fewer harmonics everywhere, few enough for the full covariance."""
    request, share = whole, 1.0
    while request.size > most and any(M and M > _LEAST_M for term in request.harmonics for M in term):
        share *= 0.9
        request = fewer(whole, share, _LEAST_M)
    return request


def _request(task: FitTask, small: MomentRequest, first: Fit) -> MomentRequest:
    """The harmonics asked for; where none were, those that learning was content with, or the most there may be."""
    terms, found = [], first.history[-1].harmonics
    for term, plan, own, most in zip(task.visited.request.terms, task.plans, found, small.harmonics, strict=True):
        for d, (asked, M, cap) in enumerate(zip(plan.M, own, most, strict=True)):
            if asked is None and M is not None and cap is not None and cap > M:
                term = term.with_basis(d, term.bases[d].resized(M))
        terms.append(term)
    return MomentRequest(tuple(terms))


def _product_terms(task: FitTask, model: SumModel, setting: Hyperparameters) -> list[ProductTerm]:
    """Every term at the rows."""
    every, source = slice(0, task.visited.walk.n), task.visited.walk.source
    terms = []
    for s, own in enumerate(model.moments.request.terms):
        factors = model.terms[s].priors(own.factors, setting.terms[s])
        features = (factor.features(source.column(c, every)) for c, factor in zip(own.columns, factors, strict=True))
        priors = (factor.K.mv(np.eye(factor.basis.size)) for factor in factors)
        terms.append(ProductTerm(tuple(features), tuple(priors), setting.terms[s]["variance"]))
    return terms


def _record(
    ready: Prepared,
    learnt: Learnt,
    model: SumModel,
    terms: list[ProductTerm],
    fit: StructuredFit,
    intercept: InterceptPosterior | None,
) -> Fit:
    """The record of the fit."""
    task, setting, w = ready.task, learnt.setting, ready.task.visited.observed.w
    covariance = Pieces(processes(model, setting), fit.factors, fit.whiteners)
    centre = np.concatenate([projected(term.features, w / w.sum()) for term in terms])
    mean = np.concatenate([m.ravel() for m in fit.means])
    posterior = Posterior(mean, covariance, centre, covariance.times(centre), intercept=intercept)
    optimum = Optimum(model.pack(setting), fit.elbo, 0, fit.evaluations, fit.converged, "hyperparameters held")
    units = task.units(ready.target, learnt.request)
    return record(
        task,
        units,
        method=Structured.name,
        likelihood=task.likelihood.with_values(learnt.psi),
        posterior=posterior,
        values=units.outer(setting.terms),
        shares=_shares(learnt, terms, fit, w),
        history=(Milestone(learnt.request.harmonics, optimum, np.nan, np.nan),),
        solver=fit.kind,
        weight=float(w.sum()),
        n=task.visited.walk.n,
        elbo=fit.elbo,
        intercept=learnt.intercept_prior,
        bounds=(fit.elbo,),
        visits=fit.evaluations,
        notes=(*learnt.notes, *_on_search(fit)),
        engine=_WRITTEN,
    )


def _on_search(fit: StructuredFit) -> tuple[str, ...]:
    if fit.converged:
        return ()
    return (
        f"the climb of the {fit.kind!r} covariance stopped after {fit.evaluations} evaluations before the bound was at "
        f"its top: a slope of {fit.slope:.2g} nats per standard deviation is left; use fewer frequencies, or another "
        "covariance",
    )


def _shares(learnt: Learnt, terms: list[ProductTerm], fit: StructuredFit, w: np.ndarray) -> list[TermShare]:
    effects = [evaluated(term.features, m) for term, m in zip(terms, fit.means, strict=True)]
    total = _spread(np.sum(effects, axis=0), w)
    shares = [_spread(effect, w) / total if total > 0.0 else 0.0 for effect in effects]
    return [TermShare(*own) for own in zip(shares, fit.edf, learnt.active, strict=True)]


def _spread(values: np.ndarray, w: np.ndarray) -> float:
    """Variance over the rows."""
    return float(np.average((values - np.average(values, weights=w)) ** 2, weights=w))
