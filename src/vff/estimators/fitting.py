"""Rows to a posterior: estimators, commands and tests come through here."""

from dataclasses import replace
from typing import NamedTuple

from vff.data import Source
from vff.estimators.options import check_sampling_size, check_size
from vff.estimators.passes import RowPasses, Stopwatch
from vff.estimators.sampling import plan_of
from vff.estimators.spec import FitSpec
from vff.estimators.statistics import Statistics, after_visits
from vff.inference import Fit, FitTask, Method, Sums, TermPlan, Visited, no_sums, on_coverage

_KEPT_TARGETS = 2**20  # that draws are kept with


class Fitted(NamedTuple):
    """What rows became: their sums, and what was learnt from them, if anything was."""

    statistics: Statistics
    fit: Fit | None
    seconds: dict[str, float]
    """By phase."""


def fit(spec: FitSpec, source: Source, before: Fitted | None = None) -> Fitted:
    """Rows to a posterior, on top of those that came before."""
    method, watch = spec.method(), Stopwatch()
    seen, last = (None, None) if before is None else (before.statistics, before.fit)
    passes = RowPasses(spec, source, watch)
    if method.needs == "sums":
        rows = passes.summed(seen)
        spec.progress(f"{rows.moments.n:,} rows summed; engine {rows.choice.reason}")
        with watch("learn"):
            found = learnt(spec, rows, Sums(rows.moments, rows.tails), last)
    else:
        rows, data = passes.visited(seen, method)
        with watch("learn"):
            _check_memory(spec, method, rows, data)
            found = learnt(spec, rows, data, _remembered(last, rows))
        found = replace(found, notes=(*found.notes, *on_coverage(found, data.walk, data.observed)))
        rows = _afterwards(found, rows, data)
    if found.samples is not None and not spec.growing and rows.n <= _KEPT_TARGETS:
        found = replace(found, samples=replace(found.samples, y=passes.targets()))
    return Fitted(rows, found, watch.seconds)


def learnt(spec: FitSpec, rows: Statistics, data: Sums | Visited, before: Fit | None) -> Fit:
    """Hyperparameters and posterior, from where an earlier fit left them."""
    method = spec.method()
    chains = plan_of(spec.chains) if method.samples else None
    task = FitTask(
        _plans(rows), spec.likelihood, data, spec.optimizer is not None, spec.centred, spec.progress, spec.noise,
        spec.batch, spec.covariance, spec.engine, chains, spec.priors, before,
    )  # fmt: skip
    return method.fit(task)


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


def _check_memory(spec: FitSpec, method: Method, rows: Statistics, data: Visited) -> None:
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
    """What is kept of rows that were visited: sums of their sites, or nothing but what they were visited for."""
    if found.memory is None:
        return replace(rows, moments=no_sums(found.posterior.request), choice=found.engine or rows.choice)
    return after_visits(rows, (data.all.in_memory or data).walk, found.memory.sums)
