"""Hyperparameters as ``priors`` speaks of them: what they are called, their units, and the priors of chains.

Names are those that a summary of the draws prints: ``variance[term]``, ``lengthscale[column]``, ``constant``,
``noise_variance``, and the likelihood's own. A prior may be given by such a name, or for all of a kind by the part
before the bracket; a number instead of a prior holds the hyperparameter there. What both are to methods that look for
the best hyperparameters, ``known`` says.

Priors that are not given: see docs/markov-chains.md, "Priors".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from vff.inference.methods.task import FitTask, TermPlan
from vff.inference.model.scale import TargetScale, Units
from vff.likelihoods import AbstractLikelihood
from vff.parameters import Support, refuse_bounds
from vff.priors import AbstractPrior, Gamma, HalfNormal, LogNormal, Normal, OfSd, penalised_sd
from vff.priors.base import from_t, to_t
from vff.words import shown

_ABOVE, _PROBABILITY = 3.0, 0.05
_REACH, _CUT, _VAGUE = 10.0, 5.0, 1.5
_SUPPORTS = {
    "real": "a real number, such as Normal",
    "positive": "a positive number, such as Gamma or LogNormal",
    "correlation": "a number between -1 and 1, such as LKJ",
}
_INNER = 0.005, 0.995  # quantiles of the prior between which a chain starts


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter. t is the logarithm of (value - lower) / unit, or (value - lower) / unit itself where real.

    Of a correlation r, t is the logarithm of (1 + r) / (1 - r).
    """

    kind: str
    label: str | None
    """Of the term or column it belongs to; None where there is only one of its kind."""
    prior: AbstractPrior | None
    """In the user's units; None where it is held."""
    start: float
    """Where it is held, or where chains begin, in the user's units."""
    lower: float = 0.0
    unit: float = 1.0
    real: bool = False
    correlation: bool = False

    @property
    def support(self) -> Support:
        """Which numbers it may be, but for ``lower``."""
        return "real" if self.real else "correlation" if self.correlation else "positive"

    @property
    def name(self) -> str:
        return self.kind if self.label is None else f"{self.kind}[{self.label}]"

    @property
    def form(self) -> AbstractPrior | None:
        """What compiled code depends on."""
        return None if self.prior is None else self.prior.form

    def to_t(self, value: float) -> float:
        return to_t(self.support, value, self.lower, self.unit)

    def values(self, t: np.ndarray) -> np.ndarray:
        """In the user's units."""
        return from_t(self.support, t, self.lower, self.unit)

    @property
    def t(self) -> float:
        """Where chains begin: what the fit has learnt, but where the prior can imagine it."""
        if self.prior is None:
            return self.to_t(self.start)
        low, high = self.prior.quantile(np.array(_INNER))
        return self.to_t(float(np.clip(self.start, low, high)))


def term_parameters(
    task: FitTask, learnt: Sequence[Sequence[float]], units: Units, *, walls: bool = False
) -> list[Parameter]:
    """The hyperparameters of every term; ``learnt`` are their values before the chains, in the user's units."""
    found: list[Parameter] = []
    for plan, values, some, labels in zip(task.plans, learnt, units.terms, labels_of(task.plans), strict=True):
        variance = some["variance"].size
        spread = penalised_sd(_ABOVE * float(np.sqrt(variance)), _PROBABILITY)
        own = Parameter("variance", plan.name, spread, values[0], unit=variance)
        found.append(held_or_bounded(own, plan.limits.get("variance"), walls=walls))
        for (name, d, own), label, value in zip(plan.term.parameters, labels, values[1:], strict=True):
            unit, correlation = some[name].size, own.support == "correlation"
            extent = plan.ranges[d].high - plan.ranges[d].low
            extent = extent if extent > 0.0 else 2.0 * unit
            prior = own.prior(extent)
            sampled = Parameter(own.name, label, prior, value, unit=unit, correlation=correlation)
            found.append(held_or_bounded(sampled, plan.limits.get(name), walls=walls))
    return found if task.optimise else [replace(own, prior=None) for own in found]


def held_or_bounded(own: Parameter, limits: tuple[float, float] | None, *, walls: bool = False) -> Parameter:
    """The parameter as it is drawn, where the user holds it; bounds are ``walls``, which chains do not climb."""
    if limits is None:
        return own
    low, high = limits
    if low < high and walls:
        return own
    if low < high:
        raise ValueError(
            f"{own.name} is bounded by between({low:g}, {high:g}), which is for inference='variational': chains run "
            "where a prior lets them; give one in priors= instead, such as LogNormal(median, sigma)"
        )
    return replace(own, prior=None, start=low)


def labels_of(plans: Sequence[TermPlan]) -> list[list[str]]:
    """Whose every hyperparameter beside the variances is: its column's, and the term's too where there are several.

    That of the one term of a column alone is the column's, whatever products there are beside it: these may join later.
    """
    every = [(own.name, plan.labels[d]) for plan in plans for _, d, own in plan.term.parameters]
    alone = [(own.name, plan.labels[0]) for plan in plans if _is_alone(plan) for _, _, own in plan.term.parameters]

    def label(plan: TermPlan, own: tuple[str, str]) -> str:
        of_column = every.count(own) == 1 or (_is_alone(plan) and alone.count(own) == 1)
        return _bare(own[1]) + ("" if of_column else f" in {plan.name}")

    return [[label(plan, (own.name, plan.labels[d])) for _, d, own in plan.term.parameters] for plan in plans]


def _is_alone(plan: TermPlan) -> bool:
    return len(plan.labels) == 1


def _bare(label: str) -> str:
    """A column's name without the quotes that sentences put around it."""
    return label[1:-1] if len(label) > 2 and label[0] == label[-1] == "'" else label


def intercept_parameter(intercept: float, intercept_prior: float, target: TargetScale, *, sampled: bool) -> Parameter:
    """The constant mean of f, in the user's units."""
    at, value = target.mean + target.scale * intercept_prior, target.mean + target.scale * intercept
    prior = Normal(at, _REACH * target.scale) if sampled else None
    return Parameter("constant", None, prior, value, lower=target.mean, unit=target.scale, real=True)


def noise_parameter(value: float, target: TargetScale) -> Parameter:
    """The variance of Gaussian noise."""
    return Parameter("noise_variance", None, OfSd(HalfNormal(target.scale)), value, unit=target.scale**2)


def likelihood_parameters(likelihood: AbstractLikelihood, psi: np.ndarray, target: TargetScale) -> list[Parameter]:
    """The likelihood's own; ``psi`` as learning saw them."""
    found = []
    for entry, value in zip(likelihood.entries, psi, strict=True):
        unit = target.scale**entry.power
        start = entry.from_psi(value) * unit
        own = Parameter(entry.name, None, None, start, entry.lower * unit, unit, entry.real)
        found.append(replace(own, prior=_default(own)) if entry.learnt else own)
    return found


def _default(parameter: Parameter) -> AbstractPrior:
    if parameter.kind == "df":
        return Gamma(2.0, 10.0)
    if parameter.real:
        return Normal(parameter.start, _CUT * parameter.unit)
    return LogNormal(parameter.start, _VAGUE)


def check_names(plans: Sequence[TermPlan], others: Sequence[str], given: Mapping[str, Any] | None) -> None:
    """Refuse names that no hyperparameter has, before any work is done."""
    names: list[str] = []
    for plan, labels in zip(plans, labels_of(plans), strict=True):
        both = zip(plan.term.parameters, labels, strict=True)
        names += [f"variance[{plan.name}]", *(f"{own.name}[{label}]" for (_, _, own), label in both)]
    names += others
    known = {*names, *(name.partition("[")[0] for name in names), *map(_earlier, names)}
    for key in given or {}:
        if key not in known:
            raise ValueError(f"priors names {shown(key)}, which the model does not have; it has {', '.join(names)}")


def with_priors(parameters: Sequence[Parameter], given: Mapping[str, Any] | None) -> list[Parameter]:
    """The parameters with the user's priors, and held where the user gave a number."""
    return [with_prior(own, requested_prior(own, given)) for own in parameters]


def requested_prior(own: Parameter, given: Mapping[str, Any] | None) -> Any:
    """What the user gave for a hyperparameter, by its name or for all of its kind."""
    requested = given or {}
    return next((requested[name] for name in (own.name, _earlier(own.name), own.kind) if name in requested), None)


def _earlier(name: str) -> str:
    """What ``lengthscale[x]`` was called beside products with x, and may still be: ``lengthscale[x in x]``."""
    kind, bracket, label = name.partition("[")
    return f"{kind}[{label[:-1]} in {label}" if bracket else name


def with_prior(own: Parameter, given: Any) -> Parameter:
    if given is None:
        return own
    if isinstance(given, AbstractPrior):
        if own.prior is None:
            raise ValueError(
                f"priors gives a prior for {own.name}, which is held at {own.start:g}; leave it to be learnt"
            )
        if given.support != own.support:
            wanted = _SUPPORTS[own.support]
            raise ValueError(f"priors gives {shown(given)} for {own.name}; give a prior for {wanted}")
        if own.support == "positive" and float(given.quantile(_INNER[1])) <= own.lower:
            raise ValueError(
                f"priors gives {shown(given)} for {own.name}, which stays above {own.lower:g} and would lie below it; "
                "give one that can be above"
            )
        return replace(own, prior=given)
    refuse_bounds(f"{own.name} in priors", given)
    possible = {
        "real": ("a number", lambda value: True),
        "positive": (f"a number above {own.lower:g}", lambda value: value > own.lower),
        "correlation": ("a number between -1 and 1", lambda value: -1.0 < value < 1.0),
    }
    wanted, fits = possible[own.support]
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not number or not np.isfinite(float(given)) or not fits(float(given)):
        nothing = own.kind == "noise_variance" and number and float(given) == 0.0
        raise ValueError(
            f"priors for {own.name} must be a prior of vff.priors, {wanted} to hold it at, or None; got {shown(given)}"
            + (
                "; where error bars are all the noise there is, GPRegressor(noise_variance=0) says so"
                if nothing
                else ""
            )
        )
    return replace(own, prior=None, start=float(given))
