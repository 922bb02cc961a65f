"""Which engine for these rows, by estimated seconds, with the reason in a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from vff.basis import ColumnBasis, LevelBasis
from vff.moments.lattice import Codebook, spacing
from vff.moments.rows import ColumnRequest, ColumnRows

# Seconds, measured on two cores; only their ratios matter.
_PER_LETTER = 12e-9  # dense: one cosine and one multiplication
_PER_FLOP = 4e-11
_PER_ROW_TABLE = 25e-9
_PER_ROW_NUFFT = 250e-9
_PER_ROW_GRID = 60e-9
_PER_ROW_AND_HARMONIC_GRID = 2e-9
_START_NUFFT = 1e-3
_PER_ROW_PAIR_TABLE, _PER_CELL = 5e-9, 4e-9
_PER_ROW_PAIR_NUFFT, _PER_ROW_PAIR_EDGE, _PER_MODE = 100e-9, 17e-9, 40e-9
_PER_ROW_GROUPED, _PER_ROW_GROUPED_EDGE, _START_GROUP, _CHUNK = 50e-9, 5e-9, 1e-4, 2**18
LARGEST_CONTINGENCY = 2**24  # cells, 128 MiB


@dataclass(frozen=True)
class Choice:
    """An engine's name and why it was taken."""

    name: str
    reason: str


def _cheapest(costs: dict[str, float], reasons: dict[str, str]) -> Choice:
    name = min(costs, key=costs.__getitem__)
    return Choice(name, f"{name}: {reasons[name]} (estimated {costs[name]:.2g} s)")


def choose_engine(rows: ColumnRows) -> Choice:
    """Pick for the rows of one column."""
    N, basis, book = rows.x.size, rows.basis, rows.book
    if isinstance(basis, LevelBasis):
        return Choice("table", f"table: {basis.size} levels in {N} rows")
    letters = basis.double.size
    if N == 0:
        return Choice("dense", "dense: no rows")
    costs = {"dense": N * letters * _PER_LETTER, "nufft": _START_NUFFT + N * _PER_ROW_NUFFT}
    reasons = {"dense": f"{N} rows x {letters} letters is little work", "nufft": f"{N} rows of a continuous column"}
    if book is not None:
        reasons["nufft"] = f"{N} rows, quicker than {letters} letters at each of {book.size} distinct values"
        costs["table"] = N * _PER_ROW_TABLE + book.size * letters * _PER_LETTER
        reasons["table"] = f"{book.size} distinct values in {N} rows"
    elif min(costs.values()) > _START_NUFFT and spacing(rows.t) is not None:
        costs["grid"] = N * (_PER_ROW_GRID + _PER_ROW_AND_HARMONIC_GRID * basis.double.highest)
        reasons["grid"] = f"{N} rows equally spaced"
    return _cheapest(costs, reasons)


def choose_pair(
    N: int,
    requests: Sequence[ColumnRequest],
    books: Sequence[Codebook | None],
    share: float,
    most_cells: int = LARGEST_CONTINGENCY,
) -> Choice:
    """Pick for the block of two columns over N rows; ``share`` of the cost of writing features out falls on it."""
    left, right = (request.basis for request in requests)
    costs = {"dense": N * (left.size * right.size * _PER_FLOP + share * (left.size + right.size) * _PER_LETTER)}
    reasons = {"dense": f"{left.size} x {right.size} features in {N} rows are little work"}
    if isinstance(left, ColumnBasis) and isinstance(right, ColumnBasis):
        modes = left.harmonics * right.harmonics
        per_row = _PER_ROW_PAIR_NUFFT + _PER_ROW_PAIR_EDGE * (left.q + right.q)
        costs["nufft"] = 2.0 * _START_NUFFT + N * per_row + modes * _PER_MODE
        reasons["nufft"] = f"{N} rows of continuous columns"
    s, t = books
    levels = isinstance(left, LevelBasis) and isinstance(right, LevelBasis)  # their block is the table itself
    if s is not None and t is not None and (levels or s.size * t.size <= most_cells):
        work = s.size * (t.size + left.size) * right.size * _PER_FLOP
        costs["table"] = N * _PER_ROW_PAIR_TABLE + s.size * t.size * _PER_CELL + work
        reasons["table"] = f"a contingency table of {s.size} x {t.size} cells"
    one, other = (s, right) if s is not None else (t, left)
    if one is not None and isinstance(other, ColumnBasis):
        chunks = max(1.0, N / _CHUNK)
        costs["grouped"] = N * (_PER_ROW_GROUPED + _PER_ROW_GROUPED_EDGE * other.q) + chunks * one.size * _START_GROUP
        reasons["grouped"] = f"transforms of {N} rows in {one.size} groups of equal values"
    return _cheapest(costs, reasons)
