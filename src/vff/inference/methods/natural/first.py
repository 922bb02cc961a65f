"""What comes before a covariance with a structure, and before chains: all but q, learnt with few features.

Hyperparameters, a constant, parameters of the likelihood and harmonics, with the full covariance.
"""

from dataclasses import dataclass, replace

import numpy as np

from vff.inference.learning.harmonics import fewer
from vff.inference.learning.model import SumModel
from vff.inference.methods.collapsed import given_setting
from vff.inference.methods.fit import Fit
from vff.inference.methods.natural.method import fit_prepared, prepared
from vff.inference.methods.task import FitTask
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.scale import Units
from vff.moments import MomentRequest, Moments, PreparedRows, plan_pass

_LEARNT_FEATURES, _LEAST_M = 600, 2


@dataclass(frozen=True)
class Learnt:
    """All that q is fitted at, as learning saw it."""

    task: FitTask
    """With targets as learning sees them."""
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

    @property
    def units(self) -> Units:
        return self.task.units(self.request)


def learn_first(given: FitTask, *, most: int = _LEARNT_FEATURES, always: bool = False) -> Learnt:
    """Where all is given, nothing is learnt, but for sites where they are ``always`` wanted."""
    task = prepared(given)
    return (None if always else _given(task)) or _learn(task, most)


def _given(task: FitTask) -> Learnt | None:
    """What the user gave, if nothing is left to be learnt."""
    if task.optimise or task.free_harmonics or task.has_intercept or np.any(task.likelihood.free):
        return None
    request = task.visited.request
    given = task.units(request).inner(plan.given for plan in task.plans)
    setting = given_setting(given, 1.0)
    known = task.psi, 0.0, 0.0, request, (True,) * len(task.plans)
    return None if setting is None else Learnt(task, setting, *known)


def _learn(task: FitTask, most: int) -> Learnt:
    """With the full covariance and few features."""
    rows = task.visited
    small = _few(rows.request, most)
    plans = tuple(
        replace(plan, M=tuple(None if M is None else most for M, most in zip(plan.M, own, strict=True)))
        for plan, own in zip(task.plans, small.harmonics, strict=True)
    )
    prepared = PreparedRows(plan_pass(rows.prepared.n, small, rows.prepared.plan.distinct_values), rows.prepared.source)
    task.progress(f"learning with the full covariance and at most {small.size} features")
    first = fit_prepared(replace(task, plans=plans, rows=replace(rows, prepared=prepared)))
    memory = first.memory
    assert memory is not None
    learnt = first.history[-1].optimum.theta
    setting = SumModel(task.terms, no_sums(small), sites=True).unpack(learnt)
    request = _request(task, small, first)
    active, notes = tuple(term.active for term in first.terms), _on_learning(task, first, small, request)
    sums = memory.sums.restricted(request.harmonics) if _holds(memory.sums.request, request) else None
    known = memory.psi, memory.intercept, memory.intercept_prior
    return Learnt(task, setting, *known, request, active, notes, sums)


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
        for d, (requested, M, cap) in enumerate(zip(plan.M, own, most, strict=True)):
            if requested is None and M is not None and cap is not None and cap > M:
                term = term.with_basis(d, term.bases[d].resized(M))
        terms.append(term)
    return MomentRequest(tuple(terms))


def no_sums(request: MomentRequest, offset: float = 0.0) -> Moments:
    """Moments of no rows, without the blocks between terms, which may be larger than anything that is ever used."""
    grams = tuple(np.zeros(term.double_shape) for term in request.terms)
    projects = tuple(np.zeros(size) for size in request.sizes)
    return Moments(request, 0, 0.0, offset, 0.0, 0.0, grams, projects, {})
