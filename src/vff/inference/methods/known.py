"""What the user knows beforehand, for methods that look for the best hyperparameters: priors, and numbers that hold.

``priors`` has the names and the meaning that chains give it (``hyper``): a prior pulls the maximum, which is the one a
posteriori of the logarithms, and a number holds a hyperparameter there.
"""

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from vff.inference.learning.log_prior import KnownPrior, LogPriors
from vff.inference.methods.hyper import (
    Parameter,
    check_names,
    likelihood_parameters,
    noise_parameter,
    requested_prior,
    term_parameters,
    with_prior,
)
from vff.inference.methods.task import FitTask, TermPlan
from vff.moments import MomentRequest
from vff.priors import AbstractPrior, LogNormal
from vff.words import shown

_ENOUGH_ROWS = 20  # fewer have weak priors of their own
_USUAL = {"variance": 0.5, "noise_variance": 0.1}  # of the variance of y
_VARIANCE_SIGMA, _LENGTH_SIGMA = 3.0, 2.0  # of logarithms
_ROUNDING = 1.0 + 1e-9


def with_held(task: FitTask, request: MomentRequest) -> FitTask:
    """The task with the hyperparameters held that ``priors`` has numbers for; names that nobody has are refused."""
    if task.likelihood.conjugate:
        _refuse_constant(task)
    own = [] if task.likelihood.conjugate else list(task.likelihood.parameters)
    check_names(task.plans, ["noise_variance"] if task.likelihood.conjugate else ["constant", *own], task.priors)
    if task.priors:
        every = iter(_unlearnt(task, request))
        plans = tuple(_held(plan, [next(every) for _ in plan.term.names], task.priors) for plan in task.plans)
        noise = _number(next(every), task.priors, task.noise_limits) if task.likelihood.conjugate else None
        held = {} if noise is None else {"noise": noise, "noise_limits": (noise, noise)}
        task = replace(task, plans=plans, **held)
    _refuse_wider(task, request)
    return task


def _refuse_wider(task: FitTask, request: MomentRequest) -> None:
    """Variances that the user holds, or bounds from below, are such that the likelihood lets be."""
    if task.likelihood.conjugate:
        return
    most = task.likelihood.widest / len(task.plans)
    for plan, units in zip(task.plans, task.units(request).terms, strict=True):
        low, high = plan.limits.get("variance", (0.0, 0.0))
        if units["variance"].inner(low) > most * _ROUNDING:
            said = f"held at {low:g}" if low == high else f"bounded by between({low:g}, {high:g})"
            raise ValueError(
                f"variance[{plan.name}] is {said}, and {type(task.likelihood).__name__} takes a variance of at most "
                f"{units['variance'].outer(most):g} of every term; hold or bound it lower, or leave it to be learnt"
            )


def with_held_likelihood(task: FitTask) -> FitTask:
    """The task with the likelihood's own parameters held that ``priors`` has numbers for."""
    given = task.priors or {}
    if task.chains is None:
        _refuse_constant(task)
    for name, value in task.likelihood.values.items():
        if isinstance(value, Real):
            _refuse_held(name, given.get(name), (float(value), float(value)))
    numbers = {name: given[name] for name in task.likelihood.values if isinstance(given.get(name), Real)}
    return replace(task, likelihood=replace(task.likelihood, **numbers)) if numbers else task  # pyright: ignore


def _refuse_constant(task: FitTask) -> None:
    """Chains sample the constant, unless noise is Gaussian; elsewhere it has its own prior."""
    if "constant" in (task.priors or {}):
        who, more = "inference='variational'", ", or inference='mcmc'"
        if task.likelihood.conjugate:
            who, more = "a fit with Gaussian noise", ""
        raise ValueError(
            f"priors names the constant, which {who} integrates out under its own weak prior; leave it out, set "
            f"normalize_y=False (fit_intercept=False for labels) for none{more}"
        )


def _held(plan: TermPlan, own: list[Parameter], given: Mapping[str, Any]) -> TermPlan:
    both = zip(plan.term.names, own, strict=True)
    numbers = {name: _number(one, given, plan.limits.get(name)) for name, one in both}
    known = {name: value for name, value in numbers.items() if value is not None}
    limits = {name: (value, value) for name, value in known.items()}
    return replace(plan, given={**plan.given, **known}, limits={**plan.limits, **limits})


def _number(own: Parameter, given: Mapping[str, Any], limits: tuple[float, float] | None) -> float | None:
    """At which ``priors`` holds a hyperparameter; None where it does not."""
    wanted = requested_prior(own, given)
    _refuse_held(own.name, wanted, limits)
    if wanted is None or isinstance(wanted, AbstractPrior):
        return None
    return with_prior(own, wanted).start


def _refuse_held(name: str, wanted: Any, limits: tuple[float, float] | None) -> None:
    """What ``priors`` says of a hyperparameter does not contradict what the model says of it."""
    if limits is None or not isinstance(wanted, AbstractPrior | Real):
        return
    (low, high), number = limits, isinstance(wanted, Real)
    if number and low <= float(wanted) <= high:  # pyright: ignore[reportArgumentType]
        return
    what = "a prior" if isinstance(wanted, AbstractPrior) else shown(wanted)
    if low == high:
        raise ValueError(f"priors gives {what} for {name}, which is held at {low:g}; leave it to be learnt")
    if number:
        raise ValueError(
            f"priors gives {what} for {name}, which is bounded by between({low:g}, {high:g}); give one of the two"
        )


def _unlearnt(task: FitTask, request: MomentRequest) -> list[Parameter]:
    """The hyperparameters of all terms, and of the noise, before anything is learnt."""
    units = task.units(request)
    ones = units.outer([dict.fromkeys(plan.term.names, 1.0) for plan in task.plans])
    bare = replace(task, optimise=True, plans=tuple(replace(plan, limits={}) for plan in task.plans))
    return [*term_parameters(bare, ones, units), noise_parameter(task.target.scale**2, task.target)]


def log_priors_of(task: FitTask, request: MomentRequest) -> LogPriors | None:
    """What is known of the hyperparameters of terms and of the noise; None where that is nothing, or none is learnt.

    Of those that the user says nothing of, weak priors keep a handful of rows from absurd answers (``_ENOUGH_ROWS``).
    """
    every, few = _unlearnt(task, request), task.weight < _ENOUGH_ROWS and task.optimise
    found = [_log_prior(own, task.priors) for own in every]
    if few:
        lone = [plan.term.lone for plan in task.plans for _ in plan.term.names] + [not task.likelihood.conjugate]
        both = zip(found, every, lone, strict=True)
        found = [said or (None if alone else _weak(own)) for said, own, alone in both]
    return LogPriors(tuple(found)) if any(found) and task.optimise else None


def _weak(own: Parameter) -> KnownPrior | None:
    """Of variances, noise and lengthscales: within a factor of some hundreds of what is usual, and no more is said."""
    if own.kind == "lengthscale" and own.prior is not None:
        return KnownPrior(LogNormal(own.prior.median, _LENGTH_SIGMA), unit=own.unit)
    usual = _USUAL.get(own.kind)
    return None if usual is None else KnownPrior(LogNormal(usual * own.unit, _VARIANCE_SIGMA), unit=own.unit)


def log_priors_of_likelihood(task: FitTask) -> LogPriors | None:
    """The same of the likelihood's own, in the order of psi."""
    own = likelihood_parameters(task.likelihood, task.psi, task.target)
    found = [_log_prior(one, task.priors) for one in own]
    return LogPriors(tuple(found)) if any(found) else None


def _log_prior(own: Parameter, given: Mapping[str, Any] | None) -> KnownPrior | None:
    wanted = requested_prior(own, given)
    if wanted is None or isinstance(wanted, Real):
        return None
    prior = with_prior(own, wanted).prior
    return None if prior is None else KnownPrior(prior, own.support, own.lower, own.unit)


def psi_slopes(known: LogPriors | None, psi: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """log p of a likelihood's parameters, its gradient (R,), and its Hessian (R, R)."""
    if known is None:
        return 0.0, np.zeros(psi.size), np.zeros((psi.size, psi.size))
    slope, curvature = known.slopes(psi)
    return known.value(psi), slope, np.diag(curvature)
