"""Passes over rows: the sums that a plan asks for, of rows that are read once, read often, or counted by others.

Rows are read chunk by chunk, so that nothing as long as the table is kept but the table itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vff.moments.distinct import summarise_column
from vff.moments.engines.base import Accumulator, Choice, Job, Strengths, Totals, Work
from vff.moments.engines.choice import ENGINES, choose
from vff.moments.plan import PassPlan, RowBlock, SetPlan, distinct_values_for, plan_pass
from vff.moments.rows import ColumnRows
from vff.moments.statistics import MomentRequest, Moments
from vff.moments.threads import Each, side_by_side
from vff.moments.written import KEPT, Layout, WrittenStretch, WrittenSums, layout_of

_KEPT = 2**30  # bytes of prepared rows that are kept from pass to pass
_PER_CELL = 24  # bytes: the value, its place and its code

Step = Callable[[slice, Sequence[ColumnRows]], tuple[np.ndarray, np.ndarray]]
"""A stretch of rows and its columns -> weights w and weighted targets w y, (N,) each."""


def moments_of_arrays(
    request: MomentRequest,
    columns: Sequence[np.ndarray],
    y: np.ndarray,
    w: np.ndarray,
    engine: str = "auto",
    offset: float = 0.0,
) -> Moments:
    """The moments of rows in memory, in the columns' own units."""
    source = RowBlock(y.size, lambda s, rows: columns[s][rows], y, w)
    if y.size == 0:
        return Moments.zero(request, offset)
    summaries = [summarise_column(y.size, lambda rows, x=x: x[rows]) for x in columns]
    plan = plan_pass(y.size, request, distinct_values_for(engine, request, summaries, source), engine)
    return run_pass(plan, source, offset)[0]


def run_pass(
    plan: PassPlan, source: RowBlock, offset: float = 0.0, progress: Callable[[int], None] = lambda rows: None
) -> tuple[Moments, list[Choice]]:
    """The moments of the rows that lie inside all domains, and the engine of every column, with the reason."""
    sums = Sums(plan)
    with side_by_side(source.n) as each:
        for rows in _chunks(source.n, plan.chunk):
            stretch = _prepared(plan, source, rows, each)
            residual, w, stretch = _inside(plan, stretch, source.y[rows] - offset, source.w[rows])
            _prepare_sets(plan, stretch, each)
            sums.add(stretch, w, w * residual, float((w * residual) @ residual), each)
            progress(rows.stop)
    return sums.moments(offset), sums.choices


class PreparedRows:
    """The rows of a source, to be passed over as often as one likes: what they are is worked out once (theory §9).

    All must lie inside the domains of their columns.
    """

    def __init__(self, plan: PassPlan, source: RowBlock):
        self.plan, self.source = plan, source
        self.layout = layout_of(plan, source.n)
        written = 0 if self.layout is None else 8 * source.n * self.layout.size
        self._keeps = source.n * len(plan.distinct_values) * _PER_CELL <= _KEPT
        self._keeps_written = self._keeps and written <= KEPT
        self._kept: list[list[ColumnRows]] = []
        self.choices: list[Choice] = []

    @property
    def n(self) -> int:
        """Rows."""
        return self.source.n

    def taken(self, pieces: Sequence[slice], request: MomentRequest | None = None) -> "PreparedRows":
        """Some of the rows, perhaps for other features of the same columns."""
        source = self.source.taken(len(self.plan.distinct_values), pieces)
        return PreparedRows(plan_pass(source.n, request or self.plan.request, self.plan.distinct_values), source)

    def narrowed(self, request: MomentRequest) -> "PreparedRows":
        """The same rows for fewer features of the same terms."""
        return PreparedRows(self.plan.narrowed(request), self.source)

    def chunks(self) -> Iterator[tuple[slice, list[ColumnRows]]]:
        """Stretches of rows with their columns; the same every time."""
        layout = self.layout
        for number, rows in enumerate(_chunks(self.n, self.plan.chunk if layout is None else layout.chunk)):
            if number < len(self._kept):
                columns = self._kept[number]
                again = layout is not None and not isinstance(columns, WrittenStretch)
                yield rows, WrittenStretch(columns, layout) if layout is not None and again else columns
                continue
            with side_by_side(self.n) as each:
                columns = _prepared(self.plan, self.source, rows, each)
                if layout is None:
                    _prepare_sets(self.plan, columns, each)
            written = columns if layout is None else WrittenStretch(columns, layout)
            if self._keeps:
                self._kept.append(written if self._keeps_written else columns)
            yield rows, written

    def sum(self, step: Step) -> Moments:
        """One pass: the sums with the weights and weighted targets that ``step`` finds at every stretch."""
        if self.layout is not None and self.n:
            return self._sum_of_written(self.layout, step)
        sums = Sums(self.plan)
        with side_by_side(self.n) as each:
            for rows, columns in self.chunks():
                sums.add(columns, *step(rows, columns), 0.0, each)
        self.choices = sums.choices
        return sums.moments(0.0)

    def _sum_of_written(self, layout: Layout, step: Step) -> Moments:
        sums, last = WrittenSums(layout), None
        for rows, columns in self.chunks():
            assert isinstance(columns, WrittenStretch)
            sums.add(columns, *step(rows, columns))
            last = columns
        assert last is not None  # there are rows
        self.choices = [layout.choice] * len(self.plan.alone)
        return sums.moments(last)


class Cells(NamedTuple):
    """Combinations of distinct values of some columns, with the sums of their rows."""

    columns: tuple[np.ndarray, ...]
    """(cells,) each."""
    w: np.ndarray
    weighted: np.ndarray
    """sum w (y - offset)."""


class Whole(NamedTuple):
    """What all rows sum to."""

    n: int
    weight: float
    target: float
    """sum w (y - offset)."""
    target_squared: float


def moments_of_cells(
    plan: PassPlan, cells: Callable[[tuple[int, ...]], Cells], whole: Whole, offset: float
) -> tuple[Moments, list[Choice]]:
    """The moments of rows that all lie inside and that somebody else has counted, and the engine of every column.

    ``cells`` is asked for sets of columns; it may hand out a cell in several parts. Sums are linear in w and
    w (y - offset), so a cell is as good as a row that carries the weight and the weighted target of all its rows.
    """
    sums = Sums(plan)
    sums.whole = whole
    for one, own in (*sums.alone, *sums.sets):
        wanted = tuple(dict.fromkeys(one.columns))
        columns, w, weighted = cells(wanted)
        values = dict(zip(wanted, columns, strict=True))
        empty = zip(plan.empty(one), one.columns, strict=True)
        own.add([replace(column, x=values[c], remembered={}) for column, c in empty], w, weighted)
    return sums.moments(offset), sums.choices


class Sums:
    """All sums of a plan, taken chunk by chunk."""

    def __init__(self, plan: PassPlan):
        self.plan = plan
        self.alone = [(one, _accumulator(plan, one)) for one in plan.alone]
        self.sets = [(one, _accumulator(plan, one)) for one in plan.sets]
        self.whole = Whole(0, 0.0, 0.0, 0.0)

    def add(
        self, stretch: Sequence[ColumnRows], w: np.ndarray, weighted: np.ndarray, squares: float, each: Each
    ) -> None:
        """Take in rows that lie inside, with their weights, weighted targets and w (y - offset)^2 summed.

        Sets and columns side by side, one core each, but for engines that use all cores by themselves, and for a set
        or a column alone.
        """
        self.add_each((), stretch, [(w, weighted, squares)], each)

    def add_each(
        self,
        others: "Sequence[Sums]",
        stretch: Sequence[ColumnRows],
        strengths: Sequence[tuple[np.ndarray, np.ndarray, float]],
        each: Each,
    ) -> None:
        """The same rows for these and other sums of the plan, which count them with other weights."""
        for own, (w, weighted, squares) in zip((self, *others), strengths, strict=True):
            n, weight, target, before = own.whole
            own.whole = Whole(n + w.size, weight + float(w.sum()), target + weighted.sum(), before + squares)
        if not strengths[0][0].size:
            return
        pairs = [(w, weighted) for w, weighted, _ in strengths]

        def one(item: tuple[SetPlan, Sequence[Accumulator]]) -> None:
            plan, (first, *more) = item
            own = zip(self.plan.requests(plan), plan.columns, strict=True)
            first.add_each(more, [stretch[c].for_request(request) for request, c in own], pairs)

        for name in ("sets", "alone"):
            every = zip(*(getattr(own, name) for own in (self, *others)), strict=True)
            items = [(same[0][0], [accumulator for _, accumulator in same]) for same in every]
            by_itself = [len(items) == 1 or (name == "sets" and _is_parallel(own)) for own, _ in items]
            each(one, [item for item, apart in zip(items, by_itself, strict=True) if not apart])
            for item in (item for item, apart in zip(items, by_itself, strict=True) if apart):
                one(item)

    def moments(self, offset: float) -> Moments:
        """What the rows sum to, their targets measured from ``offset``."""
        request, blocks = self.plan.request, {}
        grams, projects = ([np.empty(0)] * len(request.terms) for _ in range(2))
        for one, sums in (*self.alone, *self.sets):
            letters, singles = one.in_own_bases(sums.read())
            for ((s, t), term_pair), own in zip(one.term_pairs.items(), letters, strict=True):
                if s == t:
                    grams[s] = np.ascontiguousarray(own.transpose(one.order(term_pair.left)))
                else:
                    blocks[s, t] = term_pair.block(own)
            for (s, term), own in zip(one.terms.items(), singles, strict=True):
                projects[s] = np.ascontiguousarray(own.transpose(one.order(term))).reshape(-1)
        n, weight, target, squares = self.whole
        # a plan of terms apart has none between them
        own = tuple(grams), tuple(projects), {pair: blocks[pair] for pair in request.pairs if pair in blocks}
        return Moments(request, n, weight, offset, float(target), squares, *own)

    @property
    def choices(self) -> list[Choice]:
        """The engine of every column."""
        found = [sums.choice if isinstance(sums, _ByChunk) else one.choice for one, sums in self.alone]
        return [choice or Choice("dense", "dense: no rows") for choice in found]


class _ByChunk(Totals):
    """Of one column, by the engine that is best for every chunk."""

    choice: Choice | None = None
    """That of the first chunk."""

    def __init__(self, jobs: Sequence[Job]):
        super().__init__(jobs, self._best)

    def _best(
        self, columns: Sequence[ColumnRows], jobs: Sequence[Job], strengths: Sequence[Strengths]
    ) -> list[list[np.ndarray]]:
        choice = choose(Work(strengths[0][0].size, jobs, columns))
        self.choice = self.choice or choice
        return ENGINES[choice.name].sum_each(columns, jobs, strengths)


def _accumulator(plan: PassPlan, one: SetPlan) -> Accumulator:
    if one.choice is None:
        return _ByChunk(one.jobs)
    return ENGINES[one.choice.name].accumulator(one.jobs, plan.empty(one))


def _is_parallel(one: SetPlan) -> bool:
    return one.choice is not None and ENGINES[one.choice.name].parallel


def _chunks(n: int, size: int) -> Iterator[slice]:
    """Stretches of rows that are read at once."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _prepared(plan: PassPlan, source: RowBlock, rows: slice, each: Each) -> list[ColumnRows]:
    """The columns of a stretch of rows, their codes and places worked out side by side."""

    def one(s: int) -> ColumnRows:
        column = ColumnRows(plan.request.columns[s], source.column(s, rows), plan.distinct_values[s])
        _ = column.codes if column.distinct is not None else column.t
        return column

    return each(one, range(len(plan.distinct_values)))


def _prepare_sets(plan: PassPlan, columns: Sequence[ColumnRows], each: Each) -> None:
    """What several sets need of rows that lie inside, worked out once."""
    wanted = {(one.choice.name, c) for one in plan.sets if one.choice is not None for c in one.columns}
    each(lambda own: ENGINES[own[0]].prepare([columns[own[1]]]), sorted(wanted))


def _inside(
    plan: PassPlan, columns: list[ColumnRows], residual: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[ColumnRows]]:
    """The rows that lie inside, with y less the offset and the weights."""
    axes = plan.request.axes.items()
    every = [
        columns[c].for_request(own) for axis, whole in axes for c, own in zip(axis.columns, whole.parts, strict=True)
    ]
    outside = [mask for mask in (column.outside() for column in every) if mask is not None]
    if not outside:
        return residual, w, columns
    inside = ~np.logical_or.reduce(outside)
    return residual[inside], w[inside], [column.taken(inside) for column in columns]
