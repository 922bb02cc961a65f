"""What one pass over the rows will sum, and which engine sums it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations_with_replacement
from math import prod

import numpy as np

from vff.basis import Basis
from vff.moments.cores import cores
from vff.moments.coupling import Coupling
from vff.moments.engines import LARGEST_CONTINGENCY, Choice, Job, choose_engine, choose_set
from vff.moments.engines.sets import highest, nodes_for
from vff.moments.lattice import Codebook, Survey, survey
from vff.moments.pairs import Pair
from vff.moments.rows import ColumnRequest, ColumnRows, TermRequest
from vff.moments.statistics import MomentRequest, joint

_CHUNK = 2**22  # rows of one column at a time
_CHUNK_OF_FEW = 2**20
_CHUNK_OF_SEVERAL = 2**18  # fresh memory costs more than the counting that is done in it
_MOST_NODES = 2**27  # of one lattice, two gibibytes
_MOST_CELLS = 2**26  # of all contingency tables together, half a gibibyte


@dataclass(frozen=True)
class Source:
    """Rows to be read piece by piece, in the columns' own units."""

    n: int
    column: Callable[[int, slice], np.ndarray]
    """Number of the column and a stretch of rows -> its values there."""
    y: np.ndarray
    w: np.ndarray

    def taken(self, columns: int, pieces: Sequence[slice] | Sequence[np.ndarray]) -> "Source":
        """The rows of some pieces, which are stretches or masks of the whole, in memory; columns numbered below."""
        kept = [np.concatenate([self._piece(c, piece) for piece in pieces]) for c in range(columns)]
        y, w = (np.concatenate([values[piece] for piece in pieces]) for values in (self.y, self.w))
        return Source(y.size, lambda c, rows: kept[c][rows], y, w)

    def _piece(self, c: int, piece: slice | np.ndarray) -> np.ndarray:
        return self.column(c, piece) if isinstance(piece, slice) else self.column(c, slice(0, self.n))[piece]


@dataclass(frozen=True)
class SetPlan:
    """The sums over one set of columns: what for, and how."""

    columns: tuple[int, ...]
    choice: Choice
    couplings: Mapping[Pair, Coupling]
    """Pairs s <= t of terms that live on exactly these columns together."""
    projects: tuple[int, ...]
    """Terms of which these are the columns."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """What to sum, in the order of couplings and projects."""
        return jobs_of(self.couplings, self.projects)


def jobs_of(couplings: Mapping[Pair, Coupling], projects: Sequence[int]) -> tuple[Job, ...]:
    grams = tuple(Job(coupling.alphabets) for coupling in couplings.values())
    targets = tuple(
        Job(tuple(basis.single for basis in _sorted_bases(couplings[s, s].left)), targets=True) for s in projects
    )
    return (*grams, *targets)


def _sorted_bases(term: TermRequest) -> tuple[Basis, ...]:
    """The bases of a term in the order of the columns of the rows."""
    return tuple(basis for _, basis in sorted(zip(term.columns, term.bases, strict=True), key=lambda pair: pair[0]))


@dataclass(frozen=True)
class ReadingPlan:
    """Engines by column (None: chosen for every chunk) and by set of columns, with reasons."""

    request: MomentRequest
    books: tuple[Codebook | None, ...]
    columns: Mapping[int, Choice | None]
    """The columns that have terms of their own."""
    sets: tuple[SetPlan, ...]
    """Sets of two or more columns."""

    @property
    def chunk(self) -> int:
        """Rows at a time, so that memory does not depend on how many there are."""
        if len(self.books) == 1:
            return _CHUNK
        return _CHUNK_OF_FEW if len(self.books) <= 3 else _CHUNK_OF_SEVERAL


def couplings_of(request: MomentRequest) -> dict[tuple[int, ...], dict[Pair, Coupling]]:
    """Pairs s <= t of terms, by the set of columns they live on together."""
    sets: dict[tuple[int, ...], dict[Pair, Coupling]] = {}
    for s, t in combinations_with_replacement(range(len(request.terms)), 2):
        coupling = Coupling(request.terms[s], request.terms[t])
        sets.setdefault(coupling.columns, {})[s, t] = coupling
    return sets


def plan_reading(n: int, request: MomentRequest, books: Sequence[Codebook | None], engine: str = "auto") -> ReadingPlan:
    """Choose by cost, or as asked."""
    room, sets, found = _MOST_CELLS, [], couplings_of(request)
    own = {set_of[0] for set_of in found if len(set_of) == 1}
    grid = _grid_choice(n, books) if engine == "grid" and len(books) > 1 else None
    columns = {c: grid or _column_choice(n, own_request(found[c,]), books[c], engine) for c in sorted(own)}
    # all tables live at once, so that they share what memory is for them, small ones first
    for numbers in sorted((key for key in found if len(key) > 1), key=lambda key: _cells(books, key)):
        couplings, some = found[numbers], [books[c] for c in numbers]
        projects = tuple(s for s, t in couplings if s == t)
        most = min(room, LARGEST_CONTINGENCY)
        choice = grid or _set_choice(n, jobs_of(couplings, projects), some, engine, most)
        if choice.name == "table":
            room -= _cells(books, numbers)
        sets.append(SetPlan(numbers, choice, couplings, projects))
    return ReadingPlan(request, tuple(books), columns, tuple(sorted(sets, key=lambda one: one.columns)))


def own_request(couplings: Mapping[Pair, Coupling]) -> ColumnRequest:
    """What to sum of a column by itself: a basis that holds those of all terms on it alone."""
    factors = [coupling.left.factors[0] for (s, t), coupling in couplings.items() if s == t]
    return replace(factors[0], basis=reduce(joint, [factor.basis for factor in factors]))


def _cells(books: Sequence[Codebook | None], columns: Sequence[int]) -> int:
    """Cells of the contingency table of some columns; 0 when there is none."""
    some = [books[c] for c in columns]
    return prod(book.size for book in some if book is not None) if None not in some else 0


def _column_choice(n: int, request: ColumnRequest, book: Codebook | None, engine: str) -> Choice | None:
    if request.place.discrete:
        return Choice("table", f"table: {request.basis.size} levels")
    if engine != "auto":
        return Choice(engine, f"{engine}: as asked")
    if book is None:
        return None
    # only the table engine's sums wait for all rows; the others are chosen chunk by chunk
    choice = choose_engine(ColumnRows(request, np.broadcast_to(book.values[:1], n), book))
    return choice if choice.name == "table" else None


def _set_choice(n: int, jobs: Sequence[Job], books: Sequence[Codebook | None], engine: str, most_cells: int) -> Choice:
    if engine == "auto" or any(letters.band is None for letters in jobs[0].alphabets):
        return choose_set(n, jobs, books, most_cells)
    cells = prod(book.size for book in books if book is not None)
    if engine == "table" and cells > LARGEST_CONTINGENCY:
        raise ValueError(
            f"engine='table' counts rows per combination of values, and {len(books)} of the columns have {cells:.3g} "
            f"of them where at most {LARGEST_CONTINGENCY} fit; use engine='auto', or round these columns"
        )
    if engine == "nufft" and len(books) <= 3:
        nodes = [nodes_for(highest(alphabets)) for alphabets in zip(*(job.alphabets for job in jobs), strict=True)]
        if prod(nodes) > _MOST_NODES:
            raise ValueError(
                f"engine='nufft' would spread rows on {' x '.join(map(str, nodes))} nodes for {len(books)} columns at "
                f"once, where at most {_MOST_NODES} fit; use engine='auto', or fewer frequencies"
            )
    if engine == "nufft" and len(books) > 3:
        return replace(choose_set(n, jobs, [None] * len(books)), reason="dense: engine='nufft' ends at three columns")
    return Choice(engine, f"{engine}: as asked")


def _grid_choice(n: int, books: Sequence[Codebook | None]) -> Choice:
    """Rows on a lattice in several columns: every combination of values once, summed separably."""
    if None in books or prod(book.size for book in books if book is not None) != n:
        found = " x ".join("many" if book is None else str(book.size) for book in books)
        raise ValueError(
            f"engine='grid' in several columns needs every combination of their values exactly once, and {n} rows hold "
            f"{found} values; use engine='auto'"
        )
    return Choice(
        "table", f"grid: {n} rows are all combinations of {' x '.join(str(b.size) for b in books if b)} values"
    )


def survey_columns(source: Source, columns: Iterable[int]) -> list[Survey]:
    """A look at some columns, side by side."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda s: survey(source.n, lambda rows: source.column(s, rows)), columns))


def books_for(
    engine: str, request: MomentRequest, surveys: Sequence[Survey], source: Source | None
) -> list[Codebook | None]:
    """The distinct values to work with: those that were found, and with engine "table" those of every column.

    Without a source, whose rows are not in memory, these must have been found.
    """
    books = [found.book for found in surveys]
    if engine == "table":
        books = [book or Codebook(_every_value(s, surveys[s], source)) for s, book in enumerate(books)]
    levels = [column.place.discrete for column in request.columns]
    sizes = [column.basis.size for column in request.columns]
    return [_level_book(sizes[s]) if levels[s] else book for s, book in enumerate(books)]


def _every_value(s: int, found: Survey, source: Source | None) -> np.ndarray:
    if found.values is not None:
        return found.values
    if source is None:
        raise ValueError(
            f"engine='table' works on distinct values, and column {s} of the model has too many of them for rows that "
            "come in chunks; use engine='auto', or round the column"
        )
    return np.unique(source.column(s, slice(0, source.n)))


def _level_book(size: int) -> Codebook:
    return Codebook(np.arange(float(size)), 0.0, 1.0)
