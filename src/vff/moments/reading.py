"""One pass over the rows: the sums that a plan asks for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from vff.moments.cores import cores, workers
from vff.moments.coupling import Coupling
from vff.moments.engines import ENGINES, TALLIES, Choice, SetTally, choose_engine
from vff.moments.engines.sets import groups
from vff.moments.lattice import Codebook, survey
from vff.moments.pairs import Pair
from vff.moments.planning import ReadingPlan, SetPlan, Source, books_for, couplings_of, own_request, plan_reading
from vff.moments.rows import ColumnRequest, ColumnRows, TermRequest
from vff.moments.statistics import MomentRequest, Moments, joint


def read_arrays(
    request: MomentRequest,
    columns: Sequence[np.ndarray],
    y: np.ndarray,
    w: np.ndarray,
    engine: str = "auto",
    offset: float = 0.0,
) -> Moments:
    """The moments of rows in memory, in the columns' own units."""
    source = Source(y.size, lambda s, rows: columns[s][rows], y, w)
    if y.size == 0:
        return Moments.zero(request, offset)
    surveys = [survey(y.size, lambda rows, x=x: x[rows]) for x in columns]
    plan = plan_reading(y.size, request, books_for(engine, request, surveys, source), engine)
    return read(plan, source, offset)[0]


def read(
    plan: ReadingPlan, source: Source, offset: float = 0.0, progress: Callable[[int], None] = lambda rows: None
) -> tuple[Moments, list[Choice]]:
    """The moments of the rows that lie inside all places, and the engine of every column, with the reason."""
    sums = Sums(plan)
    with workers(cores()) as pool:
        for rows in chunks_of(plan, source.n):
            stretch = prepare(plan, source, rows, pool)
            residual, w, stretch = _inside(stretch, source.y[rows] - offset, source.w[rows])
            sort_groups(plan, stretch, pool)
            sums.add(stretch, w, w * residual, float((w * residual) @ residual), pool)
            progress(rows.stop)
    return sums.moments(offset), sums.choices


def chunks_of(plan: ReadingPlan, n: int) -> Iterator[slice]:
    """Stretches of rows that are read at once."""
    return (slice(start, min(start + plan.chunk, n)) for start in range(0, n, plan.chunk))


class Sums:
    """All sums of a plan, taken chunk by chunk."""

    def __init__(self, plan: ReadingPlan):
        self.plan = plan
        empty = [
            ColumnRows(column, np.empty(0), book) for column, book in zip(plan.request.columns, plan.books, strict=True)
        ]
        self.own = {
            c: _ColumnTally(own_request(found), plan.books[c], plan.columns[c]) for c, found in _own(plan).items()
        }
        self.sets = [(one, TALLIES[one.choice.name](one.jobs, [empty[c] for c in one.columns])) for one in plan.sets]
        self.n, self.weight, self.target, self.target_squared = 0, 0.0, 0.0, 0.0

    def add(
        self,
        stretch: Sequence[ColumnRows],
        w: np.ndarray,
        weighted: np.ndarray,
        target_squared: float,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Take in rows that lie inside, with their weights and weighted targets."""
        self.n, self.weight, self.target = self.n + w.size, self.weight + float(w.sum()), self.target + weighted.sum()
        self.target_squared += target_squared
        if w.size:
            _add_sets(self.sets, stretch, w, weighted, pool)
            _add_columns(self.own, stretch, w, weighted, pool)

    def moments(self, offset: float) -> Moments:
        """What the rows sum to, their targets measured from ``offset``."""
        request = self.plan.request
        grams, projects, blocks = _own_sums(self.plan, self.own)
        for one, tally in self.sets:
            _read_set(one, tally.read(), grams, projects, blocks)
        terms = range(len(request.terms))
        return Moments(
            request,
            self.n,
            self.weight,
            offset,
            float(self.target),
            self.target_squared,
            tuple(grams[s] for s in terms),
            tuple(projects[s] for s in terms),
            {pair: blocks[pair] for pair in request.pairs},
        )

    @property
    def choices(self) -> list[Choice]:
        """The engine of every column."""
        return [tally.choice or Choice("dense", "dense: no rows") for tally in self.own.values()]


def _own(plan: ReadingPlan) -> dict[int, dict[Pair, Coupling]]:
    """Terms on one column alone, and pairs of such terms, by column."""
    found = couplings_of(plan.request)
    return {c: found[c,] for c in plan.columns}


def _own_sums(
    plan: ReadingPlan, tallies: Mapping[int, "_ColumnTally"]
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray], dict[Pair, np.ndarray]]:
    """Grams, projects and blocks of the terms on one column alone, each in its own basis."""
    grams: dict[int, np.ndarray] = {}
    projects: dict[int, np.ndarray] = {}
    blocks: dict[Pair, np.ndarray] = {}
    for c, couplings in _own(plan).items():
        gram, project = tallies[c].read()
        whole = tallies[c].request.basis
        for (s, t), coupling in couplings.items():
            both = joint(coupling.left.bases[0], coupling.right.bases[0])
            change = whole.to(both)
            letters = change.double(gram)
            if s == t:
                grams[s], projects[s] = letters, change.single(project)
            else:
                blocks[s, t] = coupling.block(letters)
    return grams, projects, blocks


def _read_set(
    one: SetPlan,
    sums: Sequence[np.ndarray],
    grams: dict[int, np.ndarray],
    projects: dict[int, np.ndarray],
    blocks: dict[Pair, np.ndarray],
) -> None:
    """Put the sums of one set where they belong; axes are those of the columns in order."""
    for ((s, t), coupling), letters in zip(one.couplings.items(), sums, strict=False):
        if s == t:
            grams[s] = np.ascontiguousarray(letters.transpose(_places(coupling.left)))
        else:
            blocks[s, t] = coupling.block(letters)
    for s, sums_of in zip(one.projects, sums[len(one.couplings) :], strict=True):
        projects[s] = np.ascontiguousarray(sums_of.transpose(_places(one.couplings[s, s].left))).reshape(-1)


def _places(term: TermRequest) -> list[int]:
    """Where the term's columns stand among the same columns in order."""
    order = sorted(term.columns)
    return [order.index(column) for column in term.columns]


def _add_sets(
    tallies: Sequence[tuple[SetPlan, SetTally]],
    stretch: Sequence[ColumnRows],
    w: np.ndarray,
    weighted: np.ndarray,
    pool: ThreadPoolExecutor,
) -> None:
    """Sets side by side, one core each; written letters use all cores by themselves, and so does a set alone."""

    def one(item: tuple[SetPlan, SetTally]) -> None:
        item[1].add([stretch[c] for c in item[0].columns], w, weighted)

    def alone(item: tuple[SetPlan, SetTally]) -> bool:
        return len(tallies) == 1 or item[0].choice.name == "dense"

    list(pool.map(one, [item for item in tallies if not alone(item)]))
    for item in filter(alone, tallies):
        one(item)


def _add_columns(
    columns: Mapping[int, "_ColumnTally"],
    stretch: Sequence[ColumnRows],
    w: np.ndarray,
    weighted: np.ndarray,
    pool: ThreadPoolExecutor,
) -> None:
    """Several columns side by side; one by itself may use all cores."""

    def one(c: int) -> None:
        columns[c].add(stretch[c].asked(columns[c].request), w, weighted)

    if len(columns) == 1:
        one(next(iter(columns)))
    else:
        list(pool.map(one, columns))


def prepare(plan: ReadingPlan, source: Source, rows: slice, pool: ThreadPoolExecutor) -> list[ColumnRows]:
    """The columns of a stretch of rows, their codes and places worked out side by side."""

    def one(s: int) -> ColumnRows:
        column = ColumnRows(plan.request.columns[s], source.column(s, rows), plan.books[s])
        _ = column.codes if column.book is not None else column.t
        return column

    return list(pool.map(one, range(len(plan.books))))


def sort_groups(plan: ReadingPlan, columns: Sequence[ColumnRows], pool: ThreadPoolExecutor) -> None:
    """Rows that lie inside, in the order of their values, for the engines that take equal values together."""
    grouped = {c for one in plan.sets if one.choice.name == "grouped" for c in one.columns}
    list(pool.map(groups, [columns[c] for c in sorted(grouped) if columns[c].book is not None]))


def _inside(
    columns: list[ColumnRows], residual: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[ColumnRows]]:
    """The rows that lie inside, with y less the offset and the weights."""
    outside = [mask for mask in map(_outside, columns) if mask is not None]
    if not outside:
        return residual, w, columns
    inside = ~np.logical_or.reduce(outside)
    columns = [ColumnRows(column.request, column.x[inside], column.book) for column in columns]
    return residual[inside], w[inside], columns


def _outside(column: ColumnRows) -> np.ndarray | None:
    """Which rows lie outside their place; None when all are inside, by far the usual case."""
    if column.book is None or column.request.place.discrete:  # a level never seen is not in the book
        outside = ~column.request.place.contains(column.t)
        return outside if outside.any() else None
    values = ~column.request.place.contains(column.values)
    return values[column.codes] if values.any() else None


class _ColumnTally:
    """The sums of one column: per value of its book when it has an engine "table", else per letter."""

    def __init__(self, request: ColumnRequest, book: Codebook | None, choice: Choice | None):
        self.request, self.book, self.fixed, self.choice = request, book, choice, choice
        self.by_value = choice is not None and choice.name == "table" and book is not None
        sizes = (book.size,) * 2 if self.by_value and book else (request.basis.double.size, request.basis.size)
        self.gram, self.project = np.zeros(sizes[0]), np.zeros(sizes[1])

    def add(self, rows: ColumnRows, w: np.ndarray, weighted: np.ndarray) -> None:
        if self.by_value:
            D = self.gram.size
            same = w.strides == (0,) and w.size
            self.gram += w[0] * np.bincount(rows.codes, minlength=D) if same else np.bincount(rows.codes, w, D)
            self.project += np.bincount(rows.codes, weighted, D)
        elif w.size:
            choice = self.fixed or choose_engine(rows)
            self.choice = self.choice or choice
            jobs = [(self.request.basis.double, w), (self.request.basis.single, weighted)]
            gram, project = ENGINES[choice.name].sum_letters(rows, jobs)
            self.gram += gram
            self.project += project

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.by_value:
            return self.gram, self.project
        assert self.book is not None
        values, basis = ColumnRows(self.request, np.empty(0), self.book), self.request.basis
        if self.request.place.discrete:  # letters at the values are the values
            return self.gram, self.project
        return self.gram @ values.letters(basis.double), self.project @ values.letters(basis.single)
