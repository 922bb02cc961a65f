"""What a fit has to say for itself: what limits the bound, which terms came to nothing, and how learning ended."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc

from vff.basis import Domain
from vff.inference.learning.column_scan import sample_pieces
from vff.inference.learning.growth import Stage
from vff.inference.learning.model import SumModel
from vff.inference.learning.start import highest_standing_out, power_of, stands_out
from vff.inference.methods.natural.row_sites import Observed
from vff.moments import ColumnSummary, PreparedRows

if TYPE_CHECKING:
    from vff.inference.methods.fit import Fit
    from vff.inference.methods.task import FitTask, TermPlan

_FEW_ROWS = 20  # below which 95 % intervals of pure noise were seen to hold less than 91 % of new rows
_LOOKED_AT = 2048  # rows
_NEARLY = 0.9  # of the features that a term may have
_EXPECTED = 0.002  # of rows outside their own 99.8 % interval
_MANY, _CHANCE = 0.02, 1e-4  # a share that is worth a note, if it has at most this probability


def notes_on(final: Stage, whole: SumModel, task: "FitTask", *, exact: bool = False) -> tuple[str, ...]:
    """Sentences for the user; ``whole`` is the model with all harmonics that were summed.

    ``exact``: the rows themselves answer, and no bound lies low, unless it was learnt from.
    """
    notes: list[str] = []
    plans = task.plans
    for term, plan in zip(final.model.moments.request.terms, plans, strict=True):
        for factor, extent, label in zip(term.factors, plan.ranges, plan.labels, strict=True):
            if not factor.domain.discrete and len(factor.domain.parts) == 1:
                notes += [note for note in _on_domain(final, factor.domain, extent, label) if note not in notes]
    if len(plans) == 1 and len(plans[0].labels) == 1 and not final.model.sites:
        notes += _on_detail(final, whole, plans[0].labels[0])
    unlike = final.closed.as_learnt is not final.closed
    learnt_from_evidence = unlike or final.model.few is not None or not final.optimum.steps
    bound = () if exact and learnt_from_evidence else _on_bound(final, whole, task)
    return (*notes, *bound, *_on_learning(final, task))


def _names(plans: "Sequence[TermPlan]") -> list[str]:
    return [" * ".join(plan.labels) for plan in plans]


def _on_detail(final: Stage, whole: SumModel, label: str) -> list[str]:
    """Of a model of one column; with several, detail in one may be the echo of another."""
    detail = highest_standing_out(whole)
    if not detail or _follows(final, detail) or not _left_out(final, whole, detail):
        return []
    return [
        f"the targets stand out of noise at harmonic {detail} of the domain of {label}, which the fit "
        f"(M = {final.harmonics[0][0]}) takes for noise; set frequencies to several times {detail}, or start from a "
        "shorter lengthscale"
    ]


def _follows(final: Stage, detail: int) -> bool:
    """Whether the fitted prior leaves a harmonic enough variance for the data to speak in it."""
    (term,), setting, ((M,),) = final.model.terms, final.model.unpack(final.optimum.theta), final.harmonics
    if M is None:
        return True
    values = setting.terms[0]
    density = term.prior(0, final.model.columns[0], values).power(detail)
    informed = 0.5 * final.closed.weight * final.closed.tau * values["variance"] * density > 1.0
    return bool(detail <= M and informed)


def _left_out(final: Stage, whole: SumModel, detail: int) -> bool:
    """Whether a harmonic still stands out of what the fit leaves; edge functions follow a line in all harmonics."""
    model, closed, moments = final.model, final.closed, whole.moments
    raw = model.transform(model.unpack(final.optimum.theta)).transpose(closed.mean)
    change = whole.columns[0][0].basis.to(model.columns[0][0].basis)
    left = moments.project - moments.gram() @ change.single_transpose(raw)
    if closed.intercept_posterior is not None:
        left = left - closed.intercept_posterior.mean * moments.features_sums[0]
    (M,) = whole.harmonics[0]
    return M is None or bool(stands_out(power_of(left, M), moments.target_squared)[detail - 1])


def _on_domain(final: Stage, domain: Domain, extent: ColumnSummary, label: str) -> list[str]:
    notes = []
    outside = sum(tail.r.size for tail in final.model.tails)
    if outside:
        notes.append(
            f"{outside} rows lie outside the domain {domain.describe()}, where the features can hardly "
            f"follow them; the data reach from {extent.low:g} to {extent.high:g}: widen domain"
        )
    share = (extent.high - extent.low) / (2.0 * domain.unit())
    if extent.constant:
        there = " where it is not missing" if extent.missing else ""
        notes.append(
            f"column {label} holds one value, {extent.low:g}, in all rows{there}; its effect cannot be told from a "
            "constant: leave it out"
        )
    elif share < 0.05 and domain.ends is not None:
        notes.append(
            f"the data of column {label} take up {100 * share:.2g} % of the domain {domain.describe()}, "
            "and the harmonics are spread over all of it; narrow domain to where predictions are wanted"
        )
    return notes


def _on_bound(final: Stage, whole: SumModel, task: "FitTask") -> list[str]:
    plans = task.plans
    bound_gap, worst = final.bound_gap, int(np.argmax(final.bound_gap_by_term))
    chosen, name = all(M is None for M in plans[worst].M), _names(plans)[worst]
    full = final.model.moments.request.sizes[worst] > _NEARLY * task.budgets[worst]
    ended = chosen and (full or final.harmonics[worst] == whole.harmonics[worst])
    # who left M to the fit is told when it ended before it was content; who gave it, when it is far too small
    limit = final.tolerance if ended else 10.0 * final.tolerance
    if final.closed.allowance > 0.5 * max(bound_gap, final.tolerance):
        return [
            "the signal stands so far above the noise that float64 limits the bound: "
            f"{final.closed.allowance:.3g} nats are allowed for rounding"
            + ("" if final.model.sites else "; a larger noise_variance would cost nothing")
        ]
    if bound_gap <= limit:
        return []
    where = f"column {name}" if len(plans[worst].labels) == 1 else name
    if final.closed.as_learnt is not final.closed:
        return [
            f"the bound lies about {bound_gap:.3g} nats low: noise is small beside what the features of {where} miss; "
            "what was learnt from so few rows, and predictions, do not depend on it"
        ]
    if _stalled(final, worst):
        return [
            f"the domain limits the bound: it may gain about {bound_gap:.3g} nats, most of it in {where}, but not "
            "from a larger M; widen domain beyond the data, or leave edges='auto'"
        ]
    own = final.harmonics[worst]
    M = f"{own[0]}" if len(own) == 1 else f"({', '.join(str(M) for M in own)})"
    last = f"M = {M} is the largest this pass allows" if chosen else f"frequencies = {M} was given"
    return [
        f"M limits the bound: it may gain about {bound_gap:.3g} nats, most of it in {where}, and {last}; "
        f"set frequencies to more than {M}"
    ]


def _on_learning(final: Stage, task: "FitTask") -> list[str]:
    plans = task.plans
    notes, names = [], _names(plans)
    if not final.optimum.converged:
        notes.append(
            "learning stopped where no step raises the bound, before its gradient vanished "
            f"({final.optimum.message.strip(' :')}); try another start"
            + ("" if final.model.sites else ", or a larger noise_variance")
        )
    nothing = [s for s in range(len(names)) if not active(final, s)]
    if nothing:
        many = len(nothing) > 1
        beside = _containing(final, nothing)
        more = f" beside {', '.join(names[s] for s in beside)}, which can take up theirs" if beside else ""
        notes.append(
            f"the data do not support {'effects' if many else 'an effect'} of {', '.join(names[s] for s in nothing)}"
            f"{more}: {'their variances' if many else 'its variance'} shrank to nothing"
        )
    ends = final.model.parameters.at_bounds(final.optimum.theta)
    for (s, d, kind), end in ((key, ends[str(key)]) for key in final.model.keys if str(key) in ends):
        if final.optimum.steps and (s is None or (active(final, s) and not _loose(final, s, d, kind))):
            of = "" if s is None else _of(names[s], plans[s].labels, d, alone=len(names) == 1)
            said = _given_bound(task, s, d, kind, end)
            why = "; the data do not determine it"
            if said is not None:
                why = f", {said:g}, as it was given: the data may want it {'lower' if end == 'lower' else 'higher'}"
            notes.append(f"{kind}{of} ended at its {end} bound{why}")
    if final.closed.jitter:
        notes.append(
            f"{final.closed.jitter:g} was added to the scaled diagonal of the posterior precision to factor it; "
            "the noise is very small against the signal"
        )
    return notes


def _given_bound(task: "FitTask", s: int | None, d: int | None, kind: str, end: str) -> float | None:
    """The user's own bound at which a hyperparameter ended; None where it is ours."""
    limits = task.noise_limits
    if s is not None:
        plan = task.plans[s]
        named = {(own.name, e): name for name, e, own in plan.term.parameters}
        limits = plan.limits.get("variance" if d is None else named[kind, d])
    return None if limits is None else limits[end == "upper"]


def _loose(final: Stage, s: int, d: int | None, name: str) -> bool:
    """Whether a hyperparameter may end at a bound without a word."""
    term = final.model.terms[s]
    if d is None:
        return term.lone
    return any(own.loose for own in term.factors[d].parameters if own.name == name)


def _containing(final: Stage, nothing: Sequence[int]) -> list[int]:
    """Products in play that hold the columns of a term that is not."""
    columns = [set(term.numbers) for term in final.model.moments.request.terms]
    every = range(len(columns))
    return [t for t in every if active(final, t) and any(columns[s] < columns[t] for s in nothing)]


def _of(name: str, columns: Sequence[str], d: int | None, *, alone: bool) -> str:
    """Whose hyperparameter it is."""
    if d is not None and len(columns) > 1:
        return f" along {columns[d]}" + ("" if alone else f" of {name}")
    return "" if alone else f" of {name}"


def active(final: Stage, s: int) -> bool:
    """Whether the term is still in play."""
    return bool(final.free[final.model.variances[s]]) or final.model.terms[s].needed


def _stalled(stage: Stage, s: int) -> bool:
    """Whether harmonics have stopped helping: half of them miss hardly more than all of them.

    In the worst case, a Matérn-1/2, what is missed halves when M doubles; harmonics that must take one value at both
    ends of the data stop far above that.
    """
    now = stage.harmonics[s]
    if all(M is None or M == 1 for M in now):
        return False
    halved = tuple(M if M is None else max(1, M // 2) for M in now)
    fewer = stage.model.restricted((*stage.harmonics[:s], halved, *stage.harmonics[s + 1 :]))
    bound_gap = fewer.bound_gap_by_term(fewer.at(stage.optimum.theta), stage.optimum.theta)[s]
    return bool(stage.bound_gap_by_term[s] > 0.75 * bound_gap)


def on_few_rows(fit: "Fit") -> tuple[str, ...]:
    """A sentence where few rows leave hyperparameters open and the best are taken for known."""
    if fit.samples is not None or fit.n >= _FEW_ROWS or not fit.history[-1].optimum.steps:
        return ()
    return (
        f"{fit.n} rows hardly determine hyperparameters, and intervals that take the best ones as known are too "
        "narrow; hyperparameters='integrate', or inference='mcmc', averages over them",
    )


# --- whether the rows of a fit lie where it expects them: a likelihood that does not suit them leaves many outside ----


def on_coverage(fit: "Fit", prepared: PreparedRows, observed: Observed) -> tuple[str, ...]:
    """A sentence where far more rows than should lie outside their own 99.8 % predictive interval.

    Rows and targets are in the user's units, and in memory; where they are many, some of them are looked at.
    """
    if not fit.likelihood.complete:
        return ()
    pieces = sample_pieces(prepared.n, _LOOKED_AT)
    some = observed.taken(pieces)
    outside = _outside(fit, np.concatenate([_rows_of(prepared, rows) for rows in pieces]), some)
    share, count = float(some.w @ outside / some.w.sum()), float(some.w.sum() ** 2 / (some.w @ some.w))
    if _far_more(share, count):
        return (f"{_share_text(share)}: {fit.likelihood.misfit}",)
    share = float(outside.mean())
    if _far_more(share, outside.size):
        return (
            f"{_share_text(share)}, but few of those that weigh most: the fit heeds the others little; see whether "
            "sample_weight, as numbers of equal rows, says what you mean",
        )
    return ()


def _share_text(share: float) -> str:
    found, expected = f"{100 * share:.2g} %", f"{100 * _EXPECTED:g} %"
    return f"{found} of the rows of the fit lie outside their own 99.8 % interval, where {expected} were expected"


def _rows_of(prepared: PreparedRows, rows: slice) -> np.ndarray:
    """The modelled columns of some rows, (N, C)."""
    return np.stack([prepared.source.column(c, rows) for c in range(len(prepared.plan.request.columns))], axis=1)


def _outside(fit: "Fit", x: np.ndarray, observed: Observed) -> np.ndarray:
    """Which rows lie outside; those of a discrete y are where all of the interval is on one side of them."""
    likelihood, (mean, variance) = fit.likelihood, fit.posterior.marginals(x)
    f = observed.lifted(fit.target.mean + fit.target.scale * mean), fit.target.scale**2 * variance
    new = likelihood.predictive(*f, observed.extra)
    upto = new.cdf(observed.y)
    below = new.cdf(observed.y - 1.0) if likelihood.discrete else upto
    return (upto < 0.5 * _EXPECTED) | (below >= 1.0 - 0.5 * _EXPECTED)


def _far_more(share: float, count: float) -> bool:
    """Whether so large a share of ``count`` rows is no accident: the tail of a binomial distribution."""
    reached = share * count
    return share >= _MANY and bool(betainc(reached, count - reached + 1.0, _EXPECTED) < _CHANCE)
