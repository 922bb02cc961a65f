"""One pass over the rows: which engine sums what, and the sums."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from vff.basis import ColumnBasis, LevelBasis
from vff.moments.cores import cores
from vff.moments.engines import ENGINES, LARGEST_CONTINGENCY, PAIR_ENGINES, Choice, choose_engine, choose_pair
from vff.moments.engines.dense import sum_at
from vff.moments.engines.pairs import prepare_pairs, tally
from vff.moments.lattice import Codebook, Survey, survey
from vff.moments.rows import ColumnRequest, ColumnRows
from vff.moments.statistics import MomentRequest, Moments, Pair

_CHUNK = 2**22  # rows of one column at a time
_CHUNK_OF_SEVERAL = 2**18  # fresh memory costs more than the counting that is done in it
_DENSE_NUMBERS = 2**25  # features written out at a time
_MOST_CELLS = 2**26  # of all contingency tables together, half a gibibyte


@dataclass(frozen=True)
class Source:
    """Rows to be read piece by piece, in the columns' own units."""

    n: int
    column: Callable[[int, slice], np.ndarray]
    """Number of the column and a stretch of rows -> its values there."""
    y: np.ndarray
    w: np.ndarray


@dataclass(frozen=True)
class ReadingPlan:
    """Engines by column (None: chosen for every chunk) and by pair of columns, with reasons."""

    request: MomentRequest
    books: tuple[Codebook | None, ...]
    columns: tuple[Choice | None, ...]
    pairs: Mapping[Pair, Choice]

    @property
    def chunk(self) -> int:
        """Rows at a time, so that memory does not depend on how many there are."""
        dense = {s for pair, choice in self.pairs.items() if choice.name == "dense" for s in pair}
        written = sum(self.request.sizes[s] for s in dense)
        rows = _CHUNK if len(self.books) == 1 else _CHUNK_OF_SEVERAL
        return max(1024, min(rows, _DENSE_NUMBERS // max(1, written)))


def plan_reading(n: int, request: MomentRequest, books: Sequence[Codebook | None], engine: str = "auto") -> ReadingPlan:
    """Choose by cost, or as asked."""
    requests, T = request.columns, len(request.columns)
    columns = tuple(_column_choice(n, *column, engine) for column in zip(requests, books, strict=True))
    share, room, pairs = 1.0 / max(1, T - 1), _MOST_CELLS, {}
    # all tables live at once, so that they share what memory is for them, small ones first
    for s, t in sorted(request.pairs, key=lambda pair: _cells(books, pair)):
        most = min(room, LARGEST_CONTINGENCY)
        pairs[s, t] = _pair_choice(n, (requests[s], requests[t]), (books[s], books[t]), engine, share, most)
        if pairs[s, t].name == "table":
            room -= _cells(books, (s, t))
    return ReadingPlan(request, tuple(books), columns, {pair: pairs[pair] for pair in request.pairs})


def _cells(books: Sequence[Codebook | None], pair: Pair) -> int:
    """Cells of the contingency table of two columns; 0 when there is none."""
    left, right = (books[s] for s in pair)
    return left.size * right.size if left is not None and right is not None else 0


def _column_choice(n: int, request: ColumnRequest, book: Codebook | None, engine: str) -> Choice | None:
    if not isinstance(request.basis, ColumnBasis):
        return Choice("table", f"table: {request.basis.size} levels")
    if engine != "auto":
        return Choice(engine, f"{engine}: as asked")
    if book is None:
        return None
    # only the table engine's sums wait for all rows; the others are chosen chunk by chunk
    choice = choose_engine(ColumnRows(request, np.broadcast_to(book.values[:1], n), book))
    return choice if choice.name == "table" else None


def _pair_choice(
    n: int,
    requests: Sequence[ColumnRequest],
    books: Sequence[Codebook | None],
    engine: str,
    share: float,
    most_cells: int,
) -> Choice:
    if engine == "auto" or not all(isinstance(request.basis, ColumnBasis) for request in requests):
        return choose_pair(n, requests, books, share, most_cells)
    cells = np.prod([book.size for book in books if book is not None])
    if engine == "table" and cells > LARGEST_CONTINGENCY:
        raise ValueError(
            f"engine='table' counts rows per pair of values, and two of the columns have {cells:.3g} such pairs where "
            f"at most {LARGEST_CONTINGENCY} fit; use engine='auto', or round these columns"
        )
    if engine == "grid":
        raise ValueError("engine='grid' sums one column of equally spaced rows; for several columns use engine='auto'")
    return Choice(engine, f"{engine}: as asked")


def survey_columns(source: Source, columns: int) -> list[Survey]:
    """A look at every column, side by side."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda s: survey(source.n, lambda rows: source.column(s, rows)), range(columns)))


def books_for(engine: str, request: MomentRequest, surveys: Sequence[Survey], source: Source) -> list[Codebook | None]:
    """The distinct values to work with: those that were found, and with engine "table" those of every column."""
    books = [found.book for found in surveys]
    if engine == "table":
        whole = slice(0, source.n)
        books = [book or Codebook(np.unique(source.column(s, whole))) for s, book in enumerate(books)]
    levels = [isinstance(column.basis, LevelBasis) for column in request.columns]
    sizes = request.sizes
    return [_level_book(sizes[s]) if levels[s] else book for s, book in enumerate(books)]


def _level_book(size: int) -> Codebook:
    return Codebook(np.arange(float(size)), 0.0, 1.0)


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
    request = plan.request
    columns = [_ColumnTally(*parts) for parts in zip(request.columns, plan.books, plan.columns, strict=True)]
    pairs = {
        (s, t): _PairTally(choice, request.columns[s], request.columns[t], plan.books[s], plan.books[t])
        for (s, t), choice in plan.pairs.items()
    }
    n, weight, target, target_squared = 0, 0.0, 0.0, 0.0
    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, source.n, plan.chunk):
            rows = slice(start, min(start + plan.chunk, source.n))
            stretch, residual, w = _prepare(plan, source, rows, offset, pool)
            weighted = w * residual
            n, weight, target = n + w.size, weight + float(w.sum()), target + float(weighted.sum())
            target_squared += float(weighted @ residual)
            _add_pairs(pairs, stretch, w, pool)
            _add_columns(columns, stretch, w, weighted, pool)
            progress(rows.stop)
    sums = [total.read() for total in columns]
    grams, projects = tuple(gram for gram, _ in sums), tuple(project for _, project in sums)
    at_values = _features_at_values(plan)
    blocks = {(s, t): total.read(at_values.get(s), at_values.get(t)) for (s, t), total in pairs.items()}
    moments = Moments(request, n, weight, offset, target, target_squared, grams, projects, blocks)
    return moments, [total.choice or Choice("dense", "dense: no rows") for total in columns]


def _add_pairs(
    pairs: Mapping[Pair, "_PairTally"], stretch: Sequence[ColumnRows], w: np.ndarray, pool: ThreadPoolExecutor
) -> None:
    """Pairs side by side, one core each; only written features use all cores by themselves."""

    def one(item: tuple[Pair, _PairTally]) -> None:
        (s, t), total = item
        total.add(stretch[s], stretch[t], w)

    prepare_pairs(stretch, {pair: total.engine for pair, total in pairs.items()}, pool)
    list(pool.map(one, [item for item in pairs.items() if item[1].engine != "dense"]))
    for item in pairs.items():
        if item[1].engine == "dense":
            one(item)


def _add_columns(
    columns: Sequence["_ColumnTally"],
    stretch: Sequence[ColumnRows],
    w: np.ndarray,
    weighted: np.ndarray,
    pool: ThreadPoolExecutor,
) -> None:
    """Several columns side by side; one by itself may use all cores."""
    if len(columns) == 1:
        columns[0].add(stretch[0], w, weighted)
    else:
        list(pool.map(lambda total, rows: total.add(rows, w, weighted), columns, stretch))


def _features_at_values(plan: ReadingPlan) -> dict[int, np.ndarray]:
    """The features at the values of every book that a contingency table needs, (D, P)."""
    needed = {s for pair, choice in plan.pairs.items() if choice.name == "table" for s in pair}
    features = {}
    for s, (request, book) in enumerate(zip(plan.request.columns, plan.books, strict=True)):
        if s in needed and book is not None and not isinstance(request.basis, LevelBasis):
            features[s] = request.basis.evaluate(request.place.to_unit(book.values))
    return features


def _prepare(
    plan: ReadingPlan, source: Source, rows: slice, offset: float, pool: ThreadPoolExecutor
) -> tuple[list[ColumnRows], np.ndarray, np.ndarray]:
    """The rows of a chunk that lie inside, with y less the offset and the weights."""

    def one(s: int) -> ColumnRows:
        column = ColumnRows(plan.request.columns[s], source.column(s, rows), plan.books[s])
        _ = column.codes if column.book is not None else column.t
        return column

    columns = list(pool.map(one, range(len(plan.books))))
    residual, w = source.y[rows] - offset, source.w[rows]
    outside = [mask for mask in map(_outside, columns) if mask is not None]
    if outside:
        inside = ~np.logical_or.reduce(outside)
        columns = [ColumnRows(column.request, column.x[inside], column.book) for column in columns]
        residual, w = residual[inside], w[inside]
    return columns, residual, w


def _outside(column: ColumnRows) -> np.ndarray | None:
    """Which rows lie outside their place; None when all are inside, by far the usual case."""
    if column.book is None or isinstance(column.basis, LevelBasis):  # a level never seen is not in the book
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
        values, basis = self.request.place.to_unit(self.book.values), self.request.basis
        if isinstance(basis, LevelBasis):
            return self.gram, self.project
        gram, project = sum_at(values, [(basis.double, self.gram), (basis.single, self.project)])
        return gram, project


class _PairTally:
    """The block of two columns: a contingency table until it is read, or the block itself."""

    def __init__(
        self,
        choice: Choice,
        left: ColumnRequest,
        right: ColumnRequest,
        left_book: Codebook | None,
        right_book: Codebook | None,
    ):
        self.engine = choice.name
        if self.engine == "table":
            assert left_book is not None
            assert right_book is not None
            self.total = np.zeros((left_book.size, right_book.size))
        else:
            self.total = np.zeros((left.basis.size, right.basis.size))

    def add(self, left: ColumnRows, right: ColumnRows, w: np.ndarray) -> None:
        if w.size == 0:
            return
        if self.engine == "table":
            tally(self.total, left, right, w)
        else:
            self.total += PAIR_ENGINES[self.engine].sum_block(left, right, w)

    def read(self, left: np.ndarray | None, right: np.ndarray | None) -> np.ndarray:
        """The block; for a table, given the features at the values of both books, None for levels, which are these."""
        if self.engine != "table":
            return self.total
        if left is None:
            return self.total if right is None else self.total @ right
        if right is None:
            return left.T @ self.total
        # the cheaper of the two orders
        if (
            left.size * right.shape[0] + left.shape[1] * right.size
            < left.shape[0] * right.size + left.size * right.shape[1]
        ):
            return (left.T @ self.total) @ right
        return left.T @ (self.total @ right)
