"""What one pass over the rows will sum, and which engine sums it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from math import prod

import numpy as np

from vff.basis.protocol import Axis, Basis
from vff.basis.several import merged, parts_of
from vff.moments.distinct import ColumnSummary, DistinctValues, summarise_column
from vff.moments.engines.base import LARGEST_CONTINGENCY, Choice, Job, Work
from vff.moments.engines.choice import ENGINES, choose
from vff.moments.gram import TermPair
from vff.moments.rows import ColumnRequest, ColumnRows, Place, TermRequest, joint
from vff.moments.statistics import MomentRequest, Pair
from vff.moments.threads import side_by_side

_CHUNK = 2**22  # rows of one column at a time
_CHUNK_OF_FEW = 2**20
_CHUNK_OF_SEVERAL = 2**18  # fresh memory costs more than the counting that is done in it
_MOST_CELLS = 2**26  # of all contingency tables together, half a gibibyte


@dataclass(frozen=True)
class RowBlock:
    """Rows to be read piece by piece, in the columns' own units."""

    n: int
    column: Callable[[int, slice], np.ndarray]
    """Number of the column and a stretch of rows -> its values there."""
    y: np.ndarray
    w: np.ndarray

    def read(self, place: Place, rows: slice) -> np.ndarray:
        """What a factor reads, (N,), or (N, D) of several columns."""
        if isinstance(place, tuple):
            return np.stack([self.column(c, rows) for c in place], axis=1)
        return self.column(place, rows)

    def taken(self, columns: int, pieces: Sequence[slice] | Sequence[np.ndarray]) -> "RowBlock":
        """The rows of some pieces, which are stretches or masks of the whole, in memory; columns numbered below."""
        kept = [np.concatenate([self._piece(c, piece) for piece in pieces]) for c in range(columns)]
        y, w = (np.concatenate([values[piece] for piece in pieces]) for values in (self.y, self.w))
        return RowBlock(y.size, lambda c, rows: kept[c][rows], y, w)

    def _piece(self, c: int, piece: slice | np.ndarray) -> np.ndarray:
        return self.column(c, piece) if isinstance(piece, slice) else self.column(c, slice(0, self.n))[piece]


@dataclass(frozen=True)
class SetPlan:
    """The sums over one set of axes: what for, and how."""

    axes: tuple[Axis, ...]
    choice: Choice | None
    """None: chosen for every chunk."""
    term_pairs: Mapping[Pair, TermPair]
    """Pairs s <= t of terms that live on exactly these axes together."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the rows behind the axes, one after another."""
        return tuple(c for axis in self.axes for c in axis.columns)

    @property
    def terms(self) -> dict[int, TermRequest]:
        """Those of which these are the axes, by number."""
        return {s: term_pair.left for (s, t), term_pair in self.term_pairs.items() if s == t}

    def order(self, term: TermRequest) -> list[int]:
        """Where the axes of one of them stand."""
        return [self.axes.index(axis) for axis in term.axes]

    @cached_property
    def alone(self) -> ColumnRequest | None:
        """What to sum of an axis by itself: a basis that holds those of all terms on it alone."""
        if len(self.axes) > 1:
            return None
        factors = [term.factors[0] for term in self.terms.values()]
        return replace(factors[0], basis=reduce(joint, [factor.basis for factor in factors]))

    @cached_property
    def wanted(self) -> tuple[Job, ...]:
        """What to sum, in the order of pairs of terms and of terms; for an axis by itself, what holds them all."""
        if self.alone is not None:
            return Job((self.alone.basis.double,)), Job((self.alone.basis.single,), targets=True)
        singles = [[term.bases[term.axes.index(axis)].single for axis in self.axes] for term in self.terms.values()]
        grams = (Job(term_pair.axis_letters) for term_pair in self.term_pairs.values())
        return (*grams, *(Job(tuple(own), targets=True) for own in singles))

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """The same as engines sum it, with letters for every column."""
        return tuple(Job(parts_of(job.letters), job.targets) for job in self.wanted)

    def in_own_bases(self, found: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
        """From the sums of its jobs, those of double letters by pair of terms and of single ones by term."""
        sums = [merged(job.letters, own) for job, own in zip(self.wanted, found, strict=True)]
        if self.alone is None:
            return sums[: len(self.term_pairs)], sums[len(self.term_pairs) :]
        changes = {
            pair: self.alone.basis.to(joint(own.left.bases[0], own.right.bases[0]))
            for pair, own in self.term_pairs.items()
        }
        doubles = [change.double(sums[0]) for change in changes.values()]
        return doubles, [changes[s, s].single(sums[1]) for s in self.terms]


@dataclass(frozen=True)
class PassPlan:
    """What is summed over which sets of axes, and by which engine."""

    request: MomentRequest
    distinct_values: tuple[DistinctValues | None, ...]
    """The distinct values of every column of the rows, where they are few."""
    alone: tuple[SetPlan, ...]
    """Columns that have terms of their own."""
    sets: tuple[SetPlan, ...]
    """Sets of two or more columns."""
    engine: str = "auto"
    """As asked."""
    n: int = 0
    """Rows for which it was chosen."""

    def of_rows(self, n: int) -> "PassPlan":
        """The same for so many of the rows, for which other engines may be faster."""
        return plan_pass(n, self.request, self.distinct_values, self.engine) if self.engine == "auto" else self

    def narrowed(self, request: MomentRequest) -> "PassPlan":
        """For fewer features of the same terms."""
        return plan_pass(self.n, request, self.distinct_values, self.engine)

    @property
    def chunk(self) -> int:
        """Rows at a time, so that memory does not depend on how many there are."""
        if len(self.distinct_values) == 1:
            return _CHUNK
        return _CHUNK_OF_FEW if len(self.distinct_values) <= 3 else _CHUNK_OF_SEVERAL

    def requests(self, one: SetPlan) -> Sequence[ColumnRequest]:
        """What is asked of the columns of a set."""
        whole = [one.alone] if one.alone is not None else [self.request.axes[axis] for axis in one.axes]
        return [part for own in whole for part in own.parts]

    def empty(self, one: SetPlan) -> list[ColumnRows]:
        """The columns of a set, and no rows."""
        both = zip(self.requests(one), one.columns, strict=True)
        return [ColumnRows(own, np.empty(0), self.distinct_values[c]) for own, c in both]


def term_pairs_of(
    request: MomentRequest, apart: Sequence[int] | None = None
) -> dict[tuple[Axis, ...], dict[Pair, TermPair]]:
    """Pairs s <= t of terms, by the set of axes they live on together; of those ``apart``, each with itself alone."""
    sets: dict[tuple[Axis, ...], dict[Pair, TermPair]] = {}
    every = combinations_with_replacement(range(len(request.terms)), 2)
    for s, t in every if apart is None else ((s, s) for s in apart):
        term_pair = TermPair(request.terms[s], request.terms[t])
        sets.setdefault(term_pair.axes, {})[s, t] = term_pair
    return sets


def plan_pass(
    n: int,
    request: MomentRequest,
    distinct_values: Sequence[DistinctValues | None],
    engine: str = "auto",
    apart: Sequence[int] | None = None,
) -> PassPlan:
    """Choose by cost, or as asked. ``apart``: sums of these terms, each by itself, and of no others."""
    every = [SetPlan(axes, None, term_pairs) for axes, term_pairs in term_pairs_of(request, apart).items()]
    every.sort(key=lambda one: one.columns)
    plan = PassPlan(
        request,
        tuple(distinct_values),
        tuple(one for one in every if len(one.columns) == 1),
        tuple(one for one in every if len(one.columns) > 1),
        engine,
        n,
    )
    whole = None  # rows that form a lattice of all columns are one piece of work
    if engine != "auto" and len(distinct_values) > 1:
        columns = [
            ColumnRows(own, np.empty(0), distinct)
            for own, distinct in zip(request.columns, distinct_values, strict=True)
        ]
        whole = ENGINES[engine].requested_of_all(Work(n, (), columns))
    alone = tuple(replace(one, choice=whole or _choice_alone(n, plan, one, engine)) for one in plan.alone)
    room, chosen = _MOST_CELLS, {}
    # all tables live at once, so that they share what memory is for them, small ones first
    for one in sorted(plan.sets, key=lambda one: _cells(distinct_values, one.columns)):
        work = Work(n, one.jobs, plan.empty(one), min(room, LARGEST_CONTINGENCY))
        chosen[one.axes] = whole or _choice(work, engine)
        room -= ENGINES[chosen[one.axes].name].cells(work)
    sets = tuple(replace(one, choice=chosen[one.axes]) for one in plan.sets)
    return replace(plan, alone=alone, sets=sets)


def _choice(work: Work, engine: str) -> Choice:
    """As asked, where all letters are trigonometric; others go where they are best."""
    if engine == "auto" or work.bands is None:
        return choose(work)
    return ENGINES[engine].requested(work)


def _choice_alone(n: int, plan: PassPlan, one: SetPlan, engine: str) -> Choice | None:
    """Of a column by itself; None where every chunk chooses, as it may unless sums wait for all rows."""
    work = Work(n, one.jobs, plan.empty(one))
    (column,) = work.columns
    if column.request.domain.discrete:
        return choose(work)
    if engine != "auto" and (work.bands is not None or ENGINES[engine].cost(work).seconds is not None):
        return ENGINES[engine].requested(work)
    if column.distinct is None:
        return None
    choice = choose(work)
    return choice if ENGINES[choice.name].by_value else None


def _cells(distinct_values: Sequence[DistinctValues | None], columns: Sequence[int]) -> int:
    """Cells of the contingency table of some columns; 0 when there is none."""
    some = [distinct_values[c] for c in columns]
    return prod(distinct.size for distinct in some if distinct is not None) if None not in some else 0


def summarise_columns(source: RowBlock, columns: Iterable[int]) -> list[ColumnSummary]:
    """A look at some columns, side by side."""
    with side_by_side(source.n) as each:
        return each(lambda s: summarise_column(source.n, lambda rows: source.column(s, rows)), columns)


def distinct_values_for(
    engine: str, request: MomentRequest, summaries: Sequence[ColumnSummary], source: RowBlock | None
) -> list[DistinctValues | None]:
    """The distinct values to work with: those that were found, and with engine "table" those of every column.

    Without a source, whose rows are not in memory, these must have been found.
    """
    distinct_values = [found.distinct for found in summaries]
    if engine != "auto" and ENGINES[engine].by_value:
        distinct_values = [
            distinct or DistinctValues(_every_value(s, summaries[s], source))
            for s, distinct in enumerate(distinct_values)
        ]
    both = zip(request.columns, distinct_values, strict=True)
    return [_level_codes(column.basis) if column.domain.discrete else distinct for column, distinct in both]


def _every_value(s: int, found: ColumnSummary, source: RowBlock | None) -> np.ndarray:
    if found.values is not None:
        return np.append(found.values, np.nan) if found.missing else found.values
    if source is None:
        raise ValueError(
            f"engine='table' works on distinct values, and column {s} of the model has too many of them for rows that "
            "come in chunks; use engine='auto', or round the column"
        )
    return np.unique(source.column(s, slice(0, source.n)))  # missing ones are one value, the last


def _level_codes(basis: Basis) -> DistinctValues:
    codes = DistinctValues(np.arange(float(basis.numbers.size)), 0.0, 1.0)
    return codes if basis.numbers is basis else codes.or_missing
