"""From rows to a posterior whose covariance has a structure.

What is to be learnt (hyperparameters, a constant, parameters of the likelihood, harmonics) is learnt with the full
covariance and few features; then q is fitted with the structure at all frequencies that were asked for, and the rest
held. No matrix is larger than a factor of a term, or than a term where its covariance is dense.
"""

from dataclasses import replace
from math import prod

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.records import Optimum
from vff.inference.learning.solver import processes
from vff.inference.methods.collapsed import not_gaussian
from vff.inference.methods.fit import Fit, Milestone, record, shares_of_effects
from vff.inference.methods.natural.first import Learnt, learn_first, no_sums
from vff.inference.methods.natural.row_sites import is_positive
from vff.inference.methods.structured.fit import (
    KINDS,
    LARGEST_JOINT,
    Kind,
    ProductTerm,
    StructuredFit,
    fit_structured,
    means_with_intercept,
    with_intercept,
    without_intercept,
)
from vff.inference.methods.task import FitTask, Method, Spec, refuse_scattered
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.products import projected
from vff.inference.posterior import Pieces, Posterior
from vff.inference.solvers.records import InterceptPosterior
from vff.likelihoods.rules import counts_for
from vff.moments import Choice, MomentRequest
from vff.words import shown

_LARGE = 2000  # features, beyond which the last digits are not worth their time
_TOLERANCE, _TOLERANCE_WHEN_LARGE = 1e-5, 3e-3
_FEWEST_NODES = 32
_NUMBER = 8  # bytes
_COPIES = 5  # of the features that the search keeps, and of products of all but one factor
_WRITTEN = Choice("dense", "dense: a structured covariance has the features of every factor written out")
_VECTORS = 80  # of the size of q that L-BFGS keeps


class Structured(Method):
    """A Gaussian q whose covariance has a structure."""

    name = "structured"
    needs = "rows"

    def accepts(self, spec: Spec) -> str | None:
        """Likelihoods that are not Gaussian, when no more rows will come."""
        if spec.covariance not in KINDS or spec.hyperparameters == "integrate":
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
        refuse_scattered(task, f"covariance={shown(task.covariance)}")
        kind: Kind = task.covariance  # pyright: ignore[reportAssignmentType]
        # a step that leaves float64 is refused by its bound
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return _fit_structure(kind, learn_first(task))


def _fit_structure(kind: Kind, learnt: Learnt) -> Fit:
    task = learnt.task
    model = SumModel(task.terms, no_sums(learnt.request), sites=True)
    terms = _product_terms(task, model, learnt.setting)
    joined = with_intercept(kind, terms) if task.has_intercept else terms
    task.progress(f"{model.size:,} features, of which q has a covariance of kind {kind!r}")
    observed = task.visited.observed
    spread = np.sqrt(sum(np.max(term.prior_variance) for term in terms)) / task.likelihood.width(learnt.psi)
    fit = fit_structured(
        kind,
        joined,
        observed.y,
        observed.w,
        task.likelihood,
        learnt.psi,
        observed.extra,
        offset=observed.lifted(np.full(observed.y.size, learnt.intercept_prior)),
        means=_known_means(kind, model, learnt, centred=joined is not terms),
        nodes=max(_FEWEST_NODES, int(counts_for(np.array([spread]))[0])),
        tolerance=_TOLERANCE if model.size <= _LARGE else _TOLERANCE_WHEN_LARGE,
    )
    task.progress(f"bound {fit.elbo:.3f} nats for standardised y, {fit.evaluations} evaluations")
    intercept = None
    if joined is not terms:
        fit, intercept = without_intercept(kind, fit, terms, observed.w)
    return _record(learnt, model, terms, fit, intercept)


def _known_means(kind: Kind, model: SumModel, learnt: Learnt, *, centred: bool) -> list[np.ndarray] | None:
    """Of the coefficients of every term, as the full covariance has them; None where it had fewer harmonics."""
    if learnt.sums is None:
        return None
    form = replace(model, moments=learnt.sums.recentred(learnt.intercept)).at(model.pack(learnt.setting))
    if not is_positive(form):
        return None
    means = [form.mean[place] for place in learnt.request.slices]
    return means_with_intercept(kind, means, learnt.intercept - learnt.intercept_prior) if centred else means


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


def _product_terms(task: FitTask, model: SumModel, setting: Hyperparameters) -> list[ProductTerm]:
    """Every term at the rows."""
    every, source = slice(0, task.visited.prepared.n), task.visited.prepared.source
    terms = []
    for s, own in enumerate(model.moments.request.terms):
        factors = model.terms[s].priors(own.factors, setting.terms[s])
        features = (factor.features(source.read(c, every)) for c, factor in zip(own.columns, factors, strict=True))
        priors = (factor.K.mv(np.eye(factor.basis.size)) for factor in factors)
        variance, varying = setting.terms[s]["variance"], None
        if not model.terms[s].constant_variance:
            both = zip(own.columns, factors, strict=True)
            varying = np.asarray(variance * prod(factor.prior_variance(source.read(c, every)) for c, factor in both))
        terms.append(ProductTerm(tuple(features), tuple(priors), variance, varying))
    return terms


def _record(
    learnt: Learnt,
    model: SumModel,
    terms: list[ProductTerm],
    fit: StructuredFit,
    intercept: InterceptPosterior | None,
) -> Fit:
    """The record of the fit."""
    task, setting, w = learnt.task, learnt.setting, learnt.task.visited.observed.w
    covariance = Pieces(processes(model, setting), fit.factors, fit.whiteners)
    centre = np.concatenate([projected(term.features, w / w.sum()) for term in terms])
    mean = np.concatenate([m.ravel() for m in fit.means])
    posterior = Posterior(mean, covariance, centre, covariance.times(centre), intercept=intercept)
    optimum = Optimum(model.pack(setting), fit.elbo, 0, fit.evaluations, fit.converged, "hyperparameters held")
    source, every = task.visited.prepared.source, slice(0, task.visited.prepared.n)
    x = np.stack([source.column(c, every) for c in range(len(posterior.request.columns))], axis=1)
    effects = posterior.effects_of_mean(task.sources, x, posterior.rows(x))
    return record(
        task,
        method=Structured.name,
        likelihood=task.likelihood.with_values(learnt.psi),
        posterior=posterior,
        values=learnt.units.outer(setting.terms),
        shares=shares_of_effects(effects, w, fit.edf, learnt.active),
        history=(Milestone(learnt.request.harmonics, optimum, np.nan, np.nan),),
        solver=fit.kind,
        weight=float(w.sum()),
        n=task.visited.prepared.n,
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
