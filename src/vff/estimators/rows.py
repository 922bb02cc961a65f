"""All that an estimator keeps of the rows it has seen, and how it reads more."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.estimators.binding import BoundTerm, joined
from vff.estimators.options import (
    check_domain,
    check_edges,
    check_frequencies,
    check_resolution,
    check_size,
    for_column,
)
from vff.estimators.tables import Table, check_target, check_weights
from vff.features import TailRows
from vff.inference import (
    MaternTerm,
    choose_domain,
    choose_harmonics,
    largest_harmonic,
    rows_beyond,
    sample_rows,
)
from vff.moments import (
    Choice,
    ColumnRequest,
    MomentRequest,
    Moments,
    ReadingPlan,
    Source,
    Survey,
    books_for,
    plan_reading,
    read,
    survey_columns,
)

Say = Callable[[str], None]
_PATIENCE = 2.0  # seconds between lines of progress


class Options(NamedTuple):
    """The constructor's options that concern the columns."""

    frequencies: Any
    domain: Any
    edges: Any


class Batch(NamedTuple):
    """Checked rows: the terms with their levels, the rows as a source, and what a look at each column found."""

    terms: tuple[BoundTerm, ...]
    source: Source
    surveys: tuple[Survey, ...]


@dataclass(frozen=True)
class Rows:
    """All that is kept of the rows of a fit."""

    terms: tuple[BoundTerm, ...]
    options: Options
    """What was asked for when the first rows came, in writing: the user's objects may change."""
    harmonics: tuple[int | None, ...]
    """Harmonics as asked for; None when they are to be found, and for levels."""
    details: tuple[int, ...]
    """Highest harmonic that matters in every column of a sum, as far as the first rows say."""
    hugging: tuple[bool, ...]
    """Whether the domain was taken from the first rows."""
    moments: Moments
    tails: tuple[TailRows, ...]
    """Rows beyond the domain of a single column, which must be kept as they are."""
    extents: tuple[Survey, ...]
    """Where the data lie."""
    choice: Choice
    """The engines of the last pass, and why."""

    def merged(self, other: "Rows") -> "Rows":
        """The rows of both together."""
        terms = joined(other.terms, self.terms)
        _check_same_functions(self, other)
        mine, theirs = (_aligned(rows.moments, terms, self.moments, other.moments) for rows in (self, other))
        shift = other.moments.offset - self.moments.offset
        tails = (*self.tails, *(replace(tail, y=tail.y + shift) for tail in other.tails))
        extents = tuple(_union(*pair) for pair in zip(self.extents, other.extents, strict=True))
        summed = [column.basis.M if isinstance(column.basis, ColumnBasis) else None for column in mine.request.columns]
        harmonics = tuple(
            min(asked, M) if asked and M else asked for asked, M in zip(self.harmonics, summed, strict=True)
        )
        together = mine + theirs
        return replace(self, terms=terms, harmonics=harmonics, moments=together, tails=tails, extents=extents)


def _check_same_functions(mine: Rows, theirs: Rows) -> None:
    """Two models can be merged when their columns have the same domains and edge functions."""
    for s, term in enumerate(mine.terms):
        one, other = mine.moments.request.columns[s], theirs.moments.request.columns[s]
        if one.place != other.place:
            places = " and ".join(
                f"[{place.a:g}, {place.b:g}]" for place in (one.place, other.place) if isinstance(place, Interval)
            )
            raise ValueError(
                f"the two models have different domains for column {term.label}, {places}, so their sums are of "
                "different functions and do not add up; fit both with the same domain"
            )
        edges = [basis.q for basis in (one.basis, other.basis) if isinstance(basis, ColumnBasis)]
        if len(set(edges)) > 1:
            raise ValueError(
                f"the two models have {edges[0]} and {edges[1]} edge functions for column {term.label}, so their sums "
                "do not add up; fit both with the same edges"
            )


def _aligned(moments: Moments, terms: Sequence[BoundTerm], *both: Moments) -> Moments:
    """The moments over all levels of the terms, with the fewest harmonics of both."""
    wanted: list[int | None] = []
    for s in range(len(terms)):
        found = [one.request.columns[s].basis for one in both]
        wanted.append(min((basis.M for basis in found if isinstance(basis, ColumnBasis)), default=None))
    return with_levels(moments, terms).restricted(wanted)


def with_levels(moments: Moments, terms: Sequence[BoundTerm]) -> Moments:
    """The moments over all levels that the terms now know."""
    for s, term in enumerate(terms):
        if term.levels is not None:
            moments = moments.with_levels(s, term.levels)
    return moments


def _union(first: Survey, second: Survey) -> Survey:
    return Survey(min(first.low, second.low), max(first.high, second.high), None)


def take_batch(table: Table, terms: tuple[BoundTerm, ...], y: Any, sample_weight: Any, *, first: bool) -> Batch:
    """The rows the user gave, checked; those of weight zero are left out, as if they were not there."""
    w, target = check_weights(sample_weight, table.n_rows), check_target(y, table.n_rows)
    if table.n_rows < (2 if first else 1):
        raise ValueError(f"X has {table.n_rows} sample(s) and a minimum of 2 is required: one row shows no trend")

    def column(s: int, rows: slice) -> np.ndarray:
        term = terms[s]
        if term.levels is not None:
            return table.codes(term.index, term.levels, rows)
        return table.numbers(term.index, rows)

    source = Source(table.n_rows, column, target, w)
    if w.min() == 0.0:
        source = _without(source, len(terms), w > 0.0)
        if first and source.n < 2:
            raise ValueError(
                "sample_weight is positive in 1 row and a minimum of 2 is required: one row shows no trend"
            )
    return Batch(terms, source, tuple(survey_columns(source, len(terms))))


def _without(source: Source, columns: int, kept: np.ndarray) -> Source:
    """The rows that are kept, in memory."""
    whole = slice(0, source.n)
    columns_kept = [source.column(s, whole)[kept] for s in range(columns)]
    return Source(int(kept.sum()), lambda s, rows: columns_kept[s][rows], source.y[kept], source.w[kept])


class Settled(NamedTuple):
    """What one term will be summed over."""

    request: ColumnRequest
    asked: int | None
    detail: int
    hugging: bool


def begin(batch: Batch, options: Options, *, growing: bool) -> Rows:
    """Settle domains, edges and harmonics on the first rows; no row is summed yet."""
    sample = sample_rows(batch.source, len(batch.terms)) if len(batch.terms) > 1 else batch.source
    settled = [_settle(s, batch, sample, options, growing=growing) for s in range(len(batch.terms))]
    requests, asked, details, hugging = zip(*settled, strict=True)
    request = MomentRequest(requests)
    check_size(request.size, max(zip(request.sizes, batch.terms, strict=True), key=lambda pair: pair[0])[1].label)
    offset = float(np.average(batch.source.y, weights=batch.source.w))
    nowhere = tuple(Survey(np.inf, -np.inf, None) for _ in batch.terms)
    said = Options(*map(repr, options))
    zero = Moments.zero(request, offset)
    return Rows(batch.terms, said, asked, details, hugging, zero, (), nowhere, Choice("", ""))


def _settle(s: int, batch: Batch, sample: Source, options: Options, *, growing: bool) -> Settled:
    """The functions of one term; a number of harmonics that was left open is chosen here."""
    term, found, inner = batch.terms[s], batch.surveys[s], batch.terms[s].inner
    if not isinstance(inner, MaternTerm):
        return Settled(ColumnRequest(Codes(), LevelBasis(term.levels or ())), None, 0, False)
    everybody = frozenset().union(*(other.aliases for other in batch.terms))
    M, domain, edges = (for_column(option, name, term.aliases, everybody) for name, option in options._asdict().items())
    asked = check_frequencies(M, term.label)
    q = check_edges(edges, inner.p, asked)
    given = check_domain(domain, term.label)
    interval = given or choose_domain(found, q, growing=growing)
    if not found.constant:
        check_resolution(interval, term.label)
    terms, distinct = len(batch.terms), max(other.distinct for other in batch.surveys)
    most, usual = (largest_harmonic(found, q, among, distinct, growing=growing) for among in (1, terms))
    M, detail = asked or most, 0
    if asked is None and terms > 1:
        M, detail = choose_harmonics(sample, s, interval, inner.p, q, usual, most)
    return Settled(ColumnRequest(interval, ColumnBasis(M, q)), asked, detail, given is None)


def check_unchanged(settled: Options, now: Options) -> None:
    """Refuse other options than those the first rows were summed with; ``settled`` holds what these were written as."""
    for name, old, new in zip(Options._fields, settled, map(repr, now), strict=True):
        if old != new:
            raise ValueError(
                f"{name} is now {new}, but the rows seen so far were summed with {name}={old}, which cannot be changed "
                "afterwards; set it back, or fit all rows again"
            )


def add(seen: Rows, batch: Batch, engine: str, say: Say) -> Rows:
    """Read the rows of a batch on top of those seen."""
    moments = with_levels(seen.moments, batch.terms)
    request = moments.request
    extents = tuple(_union(*pair) for pair in zip(seen.extents, batch.surveys, strict=True))
    outside = [
        _check_inside(*parts, alone=len(extents) == 1)
        for parts in zip(request.columns, seen.hugging, extents, batch.terms, strict=True)
    ]
    books = books_for(engine, request, batch.surveys, batch.source)
    plan = plan_reading(batch.source.n, request, books, engine)
    say(_plan_text(plan, batch.source.n))
    new, choices = read(plan, batch.source, moments.offset, _reporter(batch.source.n, say))
    tails = seen.tails
    if any(outside):
        place = request.columns[0].place
        assert isinstance(place, Interval)
        tails = (*tails, *rows_beyond(place, batch.source, moments.offset))
    summary = _summary(choices, plan, [term.label for term in batch.terms])
    return replace(seen, terms=batch.terms, moments=moments + new, tails=tails, extents=extents, choice=summary)


def _check_inside(column: ColumnRequest, hugging: bool, extent: Survey, term: BoundTerm, *, alone: bool) -> bool:
    """Whether rows lie outside a domain that the user gave to a model of one column; elsewhere they are refused."""
    place = column.place
    if not isinstance(place, Interval) or (place.a <= extent.low and extent.high <= place.b):
        return False
    reach = (
        f"column {term.label} reaches [{extent.low:g}, {extent.high:g}], beyond the domain [{place.a:g}, {place.b:g}]"
    )
    if hugging:
        raise ValueError(
            f"{reach} taken from the rows seen so far; give domain=(a, b) wide enough for all rows to come"
        )
    if not alone:
        raise ValueError(f"{reach} it was given; in a sum of terms all rows must lie inside: widen its domain")
    return True


def _plan_text(plan: ReadingPlan, n: int) -> str:
    P = plan.request.size
    return f"{n:,} rows to sum for at most {P} features; the matrices need about {5 * 8 * P**2 / 2**20:.0f} MiB"


def _reporter(n: int, say: Say) -> Callable[[int], None]:
    """A line of progress every two seconds or so."""
    started = last = time.perf_counter()

    def report(done: int) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last > _PATIENCE:
            last = now
            say(f"{done:,} of {n:,} rows, {done / (now - started):,.0f} rows/s")

    return report


def _summary(choices: Sequence[Choice], plan: ReadingPlan, labels: Sequence[str]) -> Choice:
    """One name and one text for all columns and pairs."""
    if len(choices) == 1:
        return choices[0]
    used: dict[str, list[str]] = {}
    for (s, t), choice in plan.pairs.items():
        why = choice.reason.removeprefix(f"{choice.name}: ")
        used.setdefault(choice.name, []).append(f"{labels[s]} x {labels[t]}: {why}")
    names = sorted(used, key=lambda name: -len(used[name]))
    parts = [f"{name} for {len(used[name])} pair(s) of columns, such as {used[name][0]}" for name in names]
    name = names[0] if len({*names, *(choice.name for choice in choices)}) == 1 else "mixed"
    if name == "mixed":
        parts.append("columns by themselves: " + ", ".join(choice.name for choice in choices))
    return Choice(name, "; ".join(parts))
