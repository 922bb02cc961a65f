"""All that an estimator keeps of the rows it has seen, and how it reads more."""

from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from vff.estimators.binding import Binding, BoundTerm, joined
from vff.estimators.options import BY_ROW, Options, check_size
from vff.estimators.resolve import resolve_domain, resolve_term
from vff.estimators.table_summary import NOWHERE, Batch, TableSummary, renumbered
from vff.factors import TailRows, admitting, tails_together, tails_without
from vff.inference import MemoryRows, beside_levels, no_sums, rows_beyond
from vff.moments import (
    Choice,
    ColumnRequest,
    ColumnSummary,
    FewRows,
    Harmonics,
    MomentRequest,
    Moments,
    PassPlan,
    RowBlock,
    distinct_values_for,
    numbers,
    plan_pass,
    run_noisy_pass,
    run_pass,
)

Report = Callable[[int], None]
_MOST_CHECKED, _IMPOSSIBLE = 600, 1e-8  # features of a term, and a square that rounding does not make negative
_UNSEEN = 1e-4  # of the largest square of a feature: smaller ones are known to fewer digits


@dataclass(frozen=True)
class Statistics:
    """All that is kept of the rows of a fit."""

    binding: Binding
    options: Options
    """What was asked for when the first rows came, in writing: the user's objects may change."""
    harmonics: Harmonics
    """Harmonics as asked for, by factor; None when they are to be found, and for levels."""
    highest_frequencies: tuple[int, ...]
    """Highest harmonic that matters in every one-column term of a sum, as far as the first rows say."""
    domain_from_data: tuple[bool, ...]
    """Whether the domain of every column was taken from the first rows."""
    moments: Moments
    tails: tuple[TailRows, ...]
    """Rows beyond the domain of a single column, which must be kept as they are."""
    ranges: tuple[ColumnSummary, ...]
    """Where the data of every column lie."""
    choice: Choice
    """The engines of the last pass, and why."""
    n: int = 0
    """Rows, those beyond the domain and equal ones included."""
    left_out: int = 0
    """Rows that were given and are not among these, because cells of theirs were missing."""
    few: FewRows | None = None
    """The rows themselves, while they are few and it is known which they are."""

    @property
    def offset_column(self) -> Any:
        """The column that is added to the function; None where there is none."""
        written = self.options.offset
        return _meant(written) if isinstance(written, str) else written

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever gave the rows should know about them."""
        notes = []
        if self.left_out:
            rows = "1 row was" if self.left_out == 1 else f"{self.left_out:,} rows were"
            notes.append(f"{rows} left out because cells were missing or infinite")
        return (*notes, *self._on_missing())

    def _on_missing(self) -> list[str]:
        """How many missing values every column has."""
        both = zip(self.binding.columns, self.ranges, strict=True)
        counts = {column.label: extent.missing for column, extent in both if extent.missing}
        return [
            f"column {label} is missing in {count:,} of {self.n:,} rows, where it has an effect of its own"
            for label, count in counts.items()
        ]

    @property
    def terms(self) -> tuple[BoundTerm, ...]:
        return self.binding.terms

    def emptied(self) -> "Statistics":
        """What was settled, without the rows."""
        zero = Moments.zero(self.moments.request, self.moments.offset)
        ranges = (NOWHERE,) * len(self.ranges)
        return replace(self, moments=zero, tails=(), ranges=ranges, n=0, left_out=0, few=_no_rows(self.binding))

    def merged(self, other: "Statistics") -> "Statistics":
        """The rows of both together."""
        binding = joined(other.binding, self.binding)
        _check_same_functions(self, other)
        mine, theirs = (_aligned(rows.moments, binding, self.moments, other.moments) for rows in (self, other))
        shift = other.moments.offset - self.moments.offset
        tails = tails_together((*self.tails, *(replace(tail, y=tail.y + shift) for tail in other.tails)))
        harmonics = tuple(
            tuple(min(requested, M) if requested and M else requested for requested, M in zip(*term, strict=True))
            for term in zip(self.harmonics, mine.request.harmonics, strict=True)
        )
        few = FewRows.merged([few_over(rows, binding) for rows in (self, other)])
        sums = {"moments": mine + theirs, "tails": tails, "ranges": _united(self.ranges, other.ranges), "few": few}
        counts = {"n": self.n + other.n, "left_out": self.left_out + other.left_out}
        return replace(self, binding=binding, harmonics=harmonics, **sums, **counts)

    def without(self, other: "Statistics") -> "Statistics":
        """The rows that are left when the other's, which are among them, are taken out."""
        _check_same_functions(self, other)
        for mine, theirs in zip(self.binding.columns, other.binding.columns, strict=True):
            if not set(theirs.levels or ()) <= set(mine.levels or ()):
                raise ValueError(f"column {mine.label} of the rows to forget holds a level that was never seen")
        for mine, known, gone in zip(self.binding.columns, self.binding.gaps, other.binding.gaps, strict=True):
            if gone and not known:
                raise ValueError(f"column {mine.label} of the rows to forget is missing in some, and never was before")
        both = self.moments, other.moments
        mine, theirs = (_aligned(moments, self.binding, *both) for moments in both)
        left = mine - theirs
        if left.n < 2 or left.weight <= 0.0:
            raise ValueError(
                f"{theirs.n:,} rows of weight {theirs.weight:g} were to be taken out of {mine.n:,} of weight "
                f"{mine.weight:g}, which does not leave the two rows that a model needs"
            )
        if not _are_sums_of_rows(left, mine):
            raise ValueError(
                "what is left when these rows are taken out are the sums of no table: some of them were not among the "
                "rows seen, or had another y or another weight; give the rows as they were"
            )
        tails = tails_without(self.tails, other.tails, self.moments.offset)
        left_out = max(0, self.left_out - other.left_out)
        ranges = tuple(
            replace(own, missing=max(0, own.missing - gone.missing))
            for own, gone in zip(self.ranges, other.ranges, strict=True)
        )
        counts = {"n": self.n - other.n, "left_out": left_out}
        gone = few_over(other, self.binding)
        few = None if self.few is None or gone is None else self.few.without(gone)
        return replace(self, moments=left, tails=tails, ranges=ranges, few=few, **counts)


def _no_rows(binding: Binding) -> FewRows:
    return FewRows(np.zeros((0, len(binding.columns))), *np.zeros((3, 0)))


def few_over(rows: Statistics, binding: Binding) -> FewRows | None:
    """The rows, with the codes that levels have in another binding."""
    if rows.few is None:
        return None
    both = zip(rows.few.x.T, rows.binding.columns, binding.columns, strict=True)
    columns = [renumbered(x, old.levels, new.levels) for x, old, new in both]
    return replace(rows.few, x=np.stack(columns, axis=1))


def _are_sums_of_rows(left: Moments, before: Moments) -> bool:
    """Whether the products of features and targets could be those of any rows: no combination has a negative square."""
    for s, size in enumerate(left.request.sizes):
        if size <= _MOST_CHECKED:
            squares = np.append(before.term(s).gram().diagonal(), before.target_squared)
            top = max(float(squares[:-1].max(initial=0.0)), np.finfo(float).tiny)
            # a wave that vanishes at all rows, as some do on a column of whole numbers, has the rounding of the others
            sizes, border = np.sqrt(np.maximum(squares, _UNSEEN * top)), (left.projects[s], left.target_squared)
            if left.term(s).gram().least_eigenvalue(sizes, border) < -_IMPOSSIBLE:
                return False
    return True


def _check_same_functions(mine: Statistics, theirs: Statistics) -> None:
    """Two models can be merged when their columns have the same domains and edge functions, and y the same offset."""
    for name in ("offset", "noise_std"):
        own, other = getattr(mine.options, name), getattr(theirs.options, name)
        if _meant(own) != _meant(other):
            raise ValueError(
                f"{name} of the two models differs, {own} and {other}, so their sums are not of the same thing; sum "
                f"both with the same {name}"
            )
    both = zip(mine.terms, mine.moments.request.terms, theirs.moments.request.terms, strict=True)
    for term, ours, others in both:
        parts = zip(mine.binding.labels(term), term.term.inner, ours.factors, others.factors, strict=True)
        for label, factor, one, other in parts:
            if one.domain.numbers != other.domain.numbers:
                places = " and ".join(place.describe() for place in (one.domain, other.domain))
                raise ValueError(
                    f"the two models have different domains for column {label}, {places}, so their sums are of "
                    "different functions and do not add up; fit both with the same domain"
                )
            edges = [factor.edges(basis.numbers) for basis in (one.basis, other.basis)]
            if edges[0] != edges[1]:
                raise ValueError(
                    f"the two models have {edges[0]} and {edges[1]} edge functions for column {label}, so their sums "
                    "do not add up; fit both with the same edges"
                )


def _aligned(moments: Moments, binding: Binding, *both: Moments) -> Moments:
    """The moments over all levels of the columns, with the fewest harmonics of both."""
    wanted = [
        [None if None in Ms else min(M for M in Ms if M is not None) for Ms in zip(*terms, strict=True)]
        for terms in zip(*(one.request.harmonics for one in both), strict=True)
    ]
    return with_levels(moments, binding).restricted(wanted)


def with_levels(moments: Moments, binding: Binding) -> Moments:
    """The moments over all levels that the columns now know, missing values among them."""
    for s, term in enumerate(binding.terms):
        for d, c in enumerate(term.columns):
            levels = binding.columns[c].levels if isinstance(c, int) else None
            if levels is not None:
                moments = moments.with_levels(s, d, levels)
            if term.gaps and term.gaps[d]:
                own = moments.request.terms[s].factors[d]
                domain, basis, change = admitting(own.domain, own.basis)
                moments = moments.with_request(s, d, ColumnRequest(domain, basis), change)
    return moments


def _united(one: Sequence[ColumnSummary], other: Sequence[ColumnSummary]) -> tuple[ColumnSummary, ...]:
    return tuple(first.extent.merged(second.extent).extent for first, second in zip(one, other, strict=True))


def resolved(summary: TableSummary, options: Options, *, growing: bool) -> Statistics:
    """Settle domains, edges and harmonics on the first rows; no row is summed yet."""
    binding = summary.binding
    found = {place: resolve_domain(place, summary, options, growing) for place in binding.places}
    domains = {place: domain for place, (domain, _) in found.items()}
    from_rows = {c: own for place, (_, own) in found.items() for c in numbers((place,))}
    from_data = tuple(from_rows[c] for c in range(len(binding.columns)))
    settled = [resolve_term(term, domains, summary, options, growing=growing) for term in binding.terms]
    requests, requested, highest_frequencies = zip(*settled, strict=True)
    request = beside_levels(MomentRequest(requests), requested, binding.exchangeable)
    names = [term.key for term in binding.terms]
    check_size(request, names, options.covariance, exchangeable=binding.exchangeable, most_rows=summary.n)
    offset = summary.target / summary.weight
    zero = Moments.zero(request, offset) if options.covariance == "full" else no_sums(request, offset)
    kept = Options(*map(repr, options)), requested, highest_frequencies, from_data
    ranges = (NOWHERE,) * len(binding.columns)
    return Statistics(binding, *kept, zero, (), ranges, Choice("", ""), few=_no_rows(binding))


def check_unchanged(settled: Options, now: Options) -> None:
    """Refuse other options than those the first rows were summed with; ``settled`` holds what these were written as."""
    for name, old, new in zip(Options._fields, settled, map(repr, now), strict=True):
        if _meant(old) != _meant(new):
            if name == "noise_std" and _meant(old) == BY_ROW:
                raise ValueError(
                    f"the rows seen so far came with error bars, given by row, and these come with noise_std={new}; "
                    "give noise_std to partial_fit, one standard deviation per row, or fit all rows again"
                )
            if name == "noise_std" and _meant(new) == BY_ROW:
                raise ValueError(
                    f"these rows come with error bars, given by row, and those seen so far with noise_std={old}; "
                    "leave noise_std out of partial_fit, or fit all rows again"
                )
            raise ValueError(
                f"{name} is now {new}, but the rows seen so far were summed with {name}={old}, which cannot be changed "
                "afterwards; set it back, or fit all rows again"
            )


def _meant(written: str) -> Any:
    """What an option says, whatever the order and the type of numbers that it was written with."""
    try:
        return literal_eval(written)
    except (ValueError, SyntaxError):  # an object of a user
        return written


class Summed(NamedTuple):
    """Sums over some rows, the rows beyond the domain, and the engines of the columns."""

    moments: Moments
    tails: tuple[TailRows, ...]
    choices: tuple[Choice, ...]
    few: FewRows | None = None
    """The rows themselves, where they are few."""

    def merged(self, other: "Summed") -> "Summed":
        """The sums over the rows of both."""
        tails = tails_together((*self.tails, *other.tails))
        few = FewRows.merged([self.few, other.few])
        return Summed(self.moments + other.moments, tails, self.choices or other.choices, few)


def summed(
    rows: RowBlock,
    binding: Binding,
    plan: PassPlan,
    offset: float,
    beyond: bool,
    report: Report | None = None,
    variances: np.ndarray | None = None,
) -> Summed:
    """Sums over rows in memory, of known variances if they have any; ``beyond``: some may lie beyond the domain."""
    told = () if report is None else (report,)
    few = FewRows.of(rows, len(binding.columns), variances)
    if variances is not None:
        if beyond:
            raise ValueError(
                f"rows lie beyond the domain {plan.request.columns[0].domain.describe()}, and rows with error bars "
                "must lie inside: widen the domain"
            )
        moments, choices = run_noisy_pass(plan, rows, variances, offset, *told)
        return Summed(moments, (), tuple(choices), few)
    moments, choices = run_pass(plan, rows, offset, *told)
    tails: tuple[TailRows, ...] = ()
    if beyond:
        (factor,) = binding.terms[0].inner.factors
        tails = rows_beyond(factor, plan.request.columns[0].domain, rows, offset)
    return Summed(moments, tails, tuple(choices), few)


def with_sums(seen: Statistics, plan: PassPlan, new: Summed) -> Statistics:
    """The sums of more rows on top of those seen, which know of them already."""
    tails = tails_together((*seen.tails, *new.tails)) if new.tails else seen.tails
    moments, choice = seen.moments + new.moments, engines_used(new.choices, plan, seen)
    if moments.nodes:
        choice = replace(
            choice, reason=f"{choice.reason}; error bars: sums at {len(moments.nodes)} nodes of their squares"
        )
    return replace(seen, moments=moments, tails=tails, choice=choice, few=FewRows.merged([seen.few, new.few]))


def extended(seen: Statistics, summary: TableSummary) -> Statistics:
    """The rows seen, over the levels and the ranges of the new ones too, of which none is summed yet."""
    ranges = _united(seen.ranges, summary.summaries)
    moments = with_levels(seen.moments, summary.binding)
    more = {"n": seen.n + summary.n, "few": few_over(seen, summary.binding)}
    return replace(seen, binding=summary.binding, moments=moments, ranges=ranges, **more)


def check_ranges(seen: Statistics, *, outside: bool = True) -> bool:
    """Whether rows lie outside the domain that the user gave to a model of one column; elsewhere they are refused."""
    alone = outside and len(seen.ranges) == 1 and len(seen.binding.terms) == 1
    parts = zip(seen.moments.request.columns, seen.domain_from_data, seen.ranges, seen.binding.columns, strict=True)
    beyond = False
    for axis in seen.moments.request.axes:
        if seen.n:
            extents = [(seen.ranges[c].low, seen.ranges[c].high) for c in axis.columns]
            axis.domain.refuse(extents, [seen.binding.columns[c].label for c in axis.columns])
    for column, found, extent, bound in parts:
        domain = column.domain
        if domain.holds(extent.low, extent.high):
            continue
        reach = f"column {bound.label} reaches [{extent.low:g}, {extent.high:g}], beyond the domain {domain.describe()}"
        if found:
            raise ValueError(
                f"{reach} taken from the rows seen so far; give domain=(a, b) wide enough for all rows to come"
            )
        if not alone:
            raise ValueError(
                f"{reach} it was given; with several terms or columns, or another likelihood than the Gaussian, all "
                "rows must lie inside: widen its domain"
            )
        beyond = True
    return beyond


def rows_to_visit(seen: Statistics, batch: Batch, summary: TableSummary, engine: str) -> tuple[Statistics, MemoryRows]:
    """The rows of a batch, to be visited many times: equal ones taken together, and none outside its domain."""
    rows = extended(seen, summary)
    check_ranges(rows, outside=False)
    request = rows.moments.request
    distinct_values = distinct_values_for(engine, request, summary.summaries, batch.source)
    return rows, batch.prepared(lambda n: plan_pass(n, request, distinct_values, engine), distinct_values)


def engines_used(choices: Sequence[Choice], plan: PassPlan, rows: Statistics) -> Choice:
    """One name and one text for all columns and pairs."""
    labels = [column.label for column in rows.binding.columns]
    if not plan.sets and len(choices) == 1:
        return choices[0]
    used: dict[str, list[str]] = {}
    for one, choice in ((one, one.choice) for one in plan.sets if one.choice is not None):
        why = choice.reason.removeprefix(f"{choice.name}: ")
        used.setdefault(choice.name, []).append(f"{' x '.join(labels[c] for c in one.columns)}: {why}")
    names = sorted(used, key=lambda name: -len(used[name]))
    parts = [f"{name} for {len(used[name])} set(s) of columns, such as {used[name][0]}" for name in names]
    name = names[0] if len({*names, *(choice.name for choice in choices)}) == 1 else "mixed"
    if name == "mixed" and choices:
        parts.append("columns by themselves: " + ", ".join(choice.name for choice in choices))
    return Choice(name, "; ".join(parts))
