"""One pass over the rows: the sums that a plan asks for."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from vff.moments.distinct import summarise_column
from vff.moments.engines import ENGINES, Accumulator, Choice, Job, Totals, Work, choose
from vff.moments.pairs import Pair
from vff.moments.plan import PassPlan, RowBlock, SetPlan, distinct_values_for, plan_pass
from vff.moments.rows import ColumnRows, TermRequest, joint
from vff.moments.statistics import MomentRequest, Moments
from vff.moments.threads import cores, workers


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
    with workers(cores()) as pool:
        for rows in chunks_of(plan, source.n):
            stretch = prepare(plan, source, rows, pool)
            residual, w, stretch = _inside(plan, stretch, source.y[rows] - offset, source.w[rows])
            prepare_sets(plan, stretch, pool)
            sums.add(stretch, w, w * residual, float((w * residual) @ residual), pool)
            progress(rows.stop)
    return sums.moments(offset), sums.choices


def chunks_of(plan: PassPlan, n: int) -> Iterator[slice]:
    """Stretches of rows that are read at once."""
    return (slice(start, min(start + plan.chunk, n)) for start in range(0, n, plan.chunk))


class Sums:
    """All sums of a plan, taken chunk by chunk."""

    def __init__(self, plan: PassPlan):
        self.plan = plan
        self.alone = [(one, _accumulator(one, plan.empty(one))) for one in plan.alone]
        self.sets = [(one, _accumulator(one, plan.empty(one))) for one in plan.sets]
        self.n, self.weight, self.target, self.target_squared = 0, 0.0, 0.0, 0.0

    def add(
        self,
        stretch: Sequence[ColumnRows],
        w: np.ndarray,
        weighted: np.ndarray,
        squares: float,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Take in rows that lie inside, with their weights, weighted targets and w (y - offset)^2 summed.

        Sets and columns side by side, one core each, but for engines that use all cores by themselves, and for a set
        or a column alone.
        """
        self.n, self.weight, self.target = self.n + w.size, self.weight + float(w.sum()), self.target + weighted.sum()
        self.target_squared += squares
        if not w.size:
            return

        def one(item: tuple[SetPlan, Accumulator]) -> None:
            item[1].add(on_axes(self.plan, item[0], stretch), w, weighted)

        for items in (self.sets, self.alone):
            by_itself = [len(items) == 1 or (items is self.sets and _is_parallel(own)) for own, _ in items]
            list(pool.map(one, [item for item, apart in zip(items, by_itself, strict=True) if not apart]))
            for item in (item for item, apart in zip(items, by_itself, strict=True) if apart):
                one(item)

    def moments(self, offset: float) -> Moments:
        """What the rows sum to, their targets measured from ``offset``."""
        request, found = self.plan.request, _Found({}, {}, {})
        for one, sums in self.alone:
            found.take_column(one, sums.read())
        for one, sums in self.sets:
            found.take_set(one, sums.read())
        terms = range(len(request.terms))
        return Moments(
            request,
            self.n,
            self.weight,
            offset,
            float(self.target),
            self.target_squared,
            tuple(found.grams[s] for s in terms),
            tuple(found.projects[s] for s in terms),
            {pair: found.blocks[pair] for pair in request.pairs},
        )

    @property
    def choices(self) -> list[Choice]:
        """The engine of every column."""
        found = [sums.choice if isinstance(sums, _ByChunk) else one.choice for one, sums in self.alone]
        return [choice or Choice("dense", "dense: no rows") for choice in found]


def _is_parallel(one: SetPlan) -> bool:
    return one.choice is not None and ENGINES[one.choice.name].parallel


def _accumulator(one: SetPlan, columns: Sequence[ColumnRows]) -> Accumulator:
    return _ByChunk(one.jobs) if one.choice is None else ENGINES[one.choice.name].accumulator(one.jobs, columns)


def on_axes(plan: PassPlan, one: SetPlan, stretch: Sequence[ColumnRows]) -> list[ColumnRows]:
    """The rows of a set of axes, out of those of all columns."""
    requests = [one.alone] if one.alone is not None else [plan.request.axes[axis] for axis in one.axes]
    return [stretch[c].for_request(own) for own, c in zip(requests, one.columns, strict=True)]


class _Found(NamedTuple):
    """Sums where they belong, each in its own basis."""

    grams: dict[int, np.ndarray]
    projects: dict[int, np.ndarray]
    blocks: dict[Pair, np.ndarray]

    def take_column(self, one: SetPlan, sums: Sequence[np.ndarray]) -> None:
        """Of one column by itself."""
        assert one.alone is not None
        gram, project = sums
        for (s, t), term_pair in one.term_pairs.items():
            change = one.alone.basis.to(joint(term_pair.left.bases[0], term_pair.right.bases[0]))
            letters = change.double(gram)
            if s == t:
                self.grams[s], self.projects[s] = letters, change.single(project)
            else:
                self.blocks[s, t] = term_pair.block(letters)

    def take_set(self, one: SetPlan, sums: Sequence[np.ndarray]) -> None:
        """Of one set; axes are those of the columns in order."""
        for ((s, t), term_pair), letters in zip(one.term_pairs.items(), sums, strict=False):
            if s == t:
                self.grams[s] = np.ascontiguousarray(letters.transpose(_order(term_pair.left, one)))
            else:
                self.blocks[s, t] = term_pair.block(letters)
        for s, own in zip(one.projects, sums[len(one.term_pairs) :], strict=True):
            self.projects[s] = np.ascontiguousarray(own.transpose(_order(one.term_pairs[s, s].left, one))).reshape(-1)


def _order(term: TermRequest, one: SetPlan) -> list[int]:
    """Where the term's axes stand among those of its set."""
    return [one.axes.index(axis) for axis in term.axes]


def prepare(plan: PassPlan, source: RowBlock, rows: slice, pool: ThreadPoolExecutor) -> list[ColumnRows]:
    """The columns of a stretch of rows, their codes and places worked out side by side."""

    def one(s: int) -> ColumnRows:
        column = ColumnRows(plan.request.columns[s], source.column(s, rows), plan.distinct_values[s])
        _ = column.codes if column.distinct is not None else column.t
        return column

    return list(pool.map(one, range(len(plan.distinct_values))))


def prepare_sets(plan: PassPlan, columns: Sequence[ColumnRows], pool: ThreadPoolExecutor) -> None:
    """What several sets need of rows that lie inside, worked out once."""
    wanted = {(one.choice.name, c) for one in plan.sets if one.choice is not None for c in one.columns}
    list(pool.map(lambda own: ENGINES[own[0]].prepare([columns[own[1]]]), sorted(wanted)))


def _inside(
    plan: PassPlan, columns: list[ColumnRows], residual: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[ColumnRows]]:
    """The rows that lie inside, with y less the offset and the weights."""
    every = [columns[axis.columns[0]].for_request(own) for axis, own in plan.request.axes.items()]
    outside = [mask for mask in (column.outside() for column in every) if mask is not None]
    if not outside:
        return residual, w, columns
    inside = ~np.logical_or.reduce(outside)
    columns = [ColumnRows(column.request, column.x[inside], column.distinct) for column in columns]
    return residual[inside], w[inside], columns


class _ByChunk(Totals):
    """Of one column, by the engine that is best for every chunk."""

    choice: Choice | None = None
    """That of the first chunk."""

    def __init__(self, jobs: Sequence[Job]):
        super().__init__(jobs, self._best)

    def _best(
        self, columns: Sequence[ColumnRows], jobs: Sequence[Job], w: np.ndarray, weighted: np.ndarray
    ) -> list[np.ndarray]:
        choice = choose(Work(w.size, jobs, columns))
        self.choice = self.choice or choice
        return ENGINES[choice.name].sum(columns, jobs, w, weighted)
