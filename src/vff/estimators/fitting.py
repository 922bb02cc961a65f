"""Rows to a posterior: estimators, commands and tests come through here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from vff.estimators.intake import Intake, Stopwatch
from vff.estimators.options import check_choice, check_sampling_size, check_size
from vff.estimators.sampling import ChainOptions, check_installed, check_plan, plan_of
from vff.estimators.statistics import Statistics, after_visits
from vff.inference import (
    METHODS,
    Fit,
    FitTask,
    Method,
    Spec,
    Sums,
    TermPlan,
    Visited,
    choose,
    inferences,
    no_sums,
    on_coverage,
)

Say = Callable[[str], None]
_KEPT_TARGETS = 2**20  # that draws are kept with


@dataclass(frozen=True)
class FitSpec(Spec):
    """All that a user asks of a fit, but the rows."""

    engine: str = "auto"
    optimizer: str | None = "lbfgs"
    centred: bool = True
    """Whether the function has a constant mean that the data determine."""
    noise: float | None = None
    """Where the variance of Gaussian noise starts; None: from the data."""
    batch: int | None = None
    chains: ChainOptions = ChainOptions()  # noqa: RUF009  a named tuple

    def method(self) -> Method:
        """The method of inference for it; options that make no sense together are refused."""
        check_choice("inference", self.inference, inferences())
        method = choose(METHODS, self)
        if method.samples:
            check_installed()
            check_plan(self.chains)
        elif self.priors is not None:
            raise ValueError(
                "priors are for inference='mcmc': with inference='variational' the best hyperparameters are learnt and "
                "taken as known; set inference='mcmc', or leave priors=None"
            )
        return method


class Before(NamedTuple):
    """What came before: rows that were summed, and what was learnt from them, if anything was."""

    rows: Statistics
    fit: Fit | None


class Fitted(NamedTuple):
    """What rows became."""

    fit: Fit
    rows: Statistics


def fit(spec: FitSpec, intake: Intake, before: Before | None, clock: Stopwatch, say: Say) -> Fitted:
    """Rows to a posterior, on top of those that came before."""
    method, seen = spec.method(), None if before is None else before.rows
    if method.needs == "sums":
        rows = intake.summed(seen, spec.growing, clock)
        say(f"{rows.moments.n:,} rows summed; engine {rows.choice.reason}")
        with clock("learn"):
            found = learnt(spec, rows, before and before.fit, say)
        return Fitted(_with_targets(found, spec, rows, intake), rows)
    inner = method.needs == "rows"
    found = intake.walk(seen, spec.growing, clock, quiet=inner, sampled=not inner and spec.batch is None)
    rows, data = found.rows, Visited(found.walk, found.observed, found.everywhere, found.targets)
    with clock("learn"):
        check_room(spec, method, rows, data)
        found = method.fit(_task(spec, rows, data, _remembered(before and before.fit, rows), say))
    found = replace(found, notes=(*found.notes, *on_coverage(found, data.walk, data.observed)))
    return Fitted(_with_targets(found, spec, rows, intake), _afterwards(found, rows, data))


def learnt(spec: FitSpec, rows: Statistics, before: Fit | None, say: Say) -> Fit:
    """Hyperparameters and posterior from the sums alone, from where an earlier fit left them."""
    return spec.method().fit(_task(spec, rows, Sums(rows.moments, rows.tails), before, say))


def _task(spec: FitSpec, rows: Statistics, data: Sums | Visited, before: Fit | None, say: Say) -> FitTask:
    return FitTask(
        _plans(rows),
        spec.likelihood,
        data,
        spec.optimizer is not None,
        spec.centred,
        say,
        spec.noise,
        spec.batch,
        spec.covariance,
        spec.engine,
        plan_of(spec.chains) if spec.method().samples else None,
        spec.priors,
        before,
    )


def _plans(rows: Statistics) -> tuple[TermPlan, ...]:
    """What is asked of every term."""
    return tuple(
        TermPlan(
            term.name,
            rows.binding.labels(term),
            term.inner,
            term.given,
            M,
            tuple(rows.ranges[c] for c in term.columns),
            detail,
        )
        for term, M, detail in zip(rows.terms, rows.harmonics, rows.highest_frequencies, strict=True)
    )


def check_room(spec: FitSpec, method: Method, rows: Statistics, data: Visited) -> None:
    """Refuse what cannot fit in memory."""
    request, n = data.request, data.walk.n
    if method.samples:
        check_sampling_size(request, n, spec.chains.draws * spec.chains.chains)
    else:
        check_size(request, [term.key for term in rows.terms], spec.covariance, n)


def _remembered(before: Fit | None, rows: Statistics) -> Fit | None:
    """An earlier fit, with the sums of its sites over the levels that are known now."""
    if before is None or before.memory is None:
        return before
    return replace(before, memory=replace(before.memory, sums=rows.moments))


def _afterwards(found: Fit, rows: Statistics, data: Visited) -> Statistics:
    """What is kept of rows that were asked: sums of their sites, or nothing but what they were asked for."""
    if found.memory is None:
        return replace(rows, moments=no_sums(found.posterior.request), choice=found.engine or rows.choice)
    return after_visits(rows, (data.all.in_memory or data).walk, found.memory.sums)


def _with_targets(found: Fit, spec: FitSpec, rows: Statistics, intake: Intake) -> Fit:
    """Draws with the targets that they are of."""
    if found.samples is None or spec.growing or rows.n > _KEPT_TARGETS:
        return found
    return replace(found, samples=replace(found.samples, y=intake.targets()))
