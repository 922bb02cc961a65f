"""Which engine for these rows, by estimated seconds, with the reason in a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from vff.moments.engines.sets import Job, halves, highest, nodes_for, pivot, without
from vff.moments.lattice import Codebook, spacing
from vff.moments.rows import ColumnRows

# Seconds, measured on two cores; only their ratios matter.
_PER_LETTER = 12e-9  # dense: one cosine and one multiplication
_PER_FLOP = 4e-11
_PER_ROW_TABLE = 25e-9
_PER_ROW_NUFFT = 250e-9
_PER_ROW_GRID = 60e-9
_PER_ROW_AND_HARMONIC_GRID = 2e-9
_START_NUFFT = 1e-3
_PER_ROW_CELL, _PER_CELL = 5e-9, 4e-9
_PER_ROW_SPREAD, _PER_NODE = {2: 150e-9, 3: 2e-6}, 10e-9
_PER_ROW_SORTED, _START_GROUP, _PER_PRODUCT, _CHUNK = 30e-9, 3e-5, 2e-9, 2**18
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
    if rows.request.place.discrete:
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
        costs["grid"] = N * (_PER_ROW_GRID + _PER_ROW_AND_HARMONIC_GRID * (basis.double.band or 0))
        reasons["grid"] = f"{N} rows equally spaced"
    return _cheapest(costs, reasons)


def choose_set(
    N: int, jobs: Sequence[Job], books: Sequence[Codebook | None], most_cells: int = LARGEST_CONTINGENCY
) -> Choice:
    """Pick for the sums over several columns at once."""
    costs, reasons = {"dense": N * _per_row_written(jobs)}, {}
    shape = " x ".join(str(size) for size in max((job.shape for job in jobs), key=prod))
    reasons["dense"] = f"{shape} letters in {N} rows are little work"
    smooth = all(alphabet.band is not None for job in jobs for alphabet in job.alphabets)
    if smooth and len(books) in _PER_ROW_SPREAD:
        nodes = [nodes_for(highest(alphabets)) for alphabets in zip(*(job.alphabets for job in jobs), strict=True)]
        work = _START_NUFFT + prod(nodes) * _PER_NODE * max(1.0, N / _CHUNK) + _contraction(jobs, nodes)
        if prod(nodes) <= LARGEST_CONTINGENCY:
            costs["nufft"] = N * _PER_ROW_SPREAD[len(books)] + work
            reasons["nufft"] = f"{N} rows spread on {' x '.join(map(str, nodes))} nodes"
    values = [book.size for book in books if book is not None]
    levels = all(alphabet.local == 1 for job in jobs for alphabet in job.alphabets)
    if len(values) == len(books) and (levels or prod(values) <= most_cells):
        tables = 1 + any(job.targets for job in jobs)
        costs["table"] = N * _PER_ROW_CELL * tables + prod(values) * _PER_CELL + _contraction(jobs, values)
        reasons["table"] = f"a contingency table of {' x '.join(map(str, values))} cells"
    if values:
        costs["grouped"], reasons["grouped"] = _grouped(N, jobs, books)
    return _cheapest(costs, reasons)


def _per_row_written(jobs: Sequence[Job]) -> float:
    """Seconds per row to write letters out and multiply them."""
    letters = {(d, alphabet) for job in jobs for d, alphabet in enumerate(job.alphabets)}
    written = sum(alphabet.size for _, alphabet in letters) * _PER_LETTER
    if len(jobs[0].alphabets) == 1:
        return written + sum(job.shape[0] for job in jobs) * _PER_PRODUCT
    sides = [halves(job) for job in jobs]
    return written + sum(sum(side) * _PER_PRODUCT + prod(side) * _PER_FLOP for side in sides)


def _contraction(jobs: Sequence[Job], nodes: Sequence[int]) -> float:
    """Seconds to meet the letters at all nodes or values."""
    return sum(prod(nodes) * min(job.shape) * _PER_FLOP + sum(job.shape) * max(nodes) * _PER_LETTER for job in jobs)


def _grouped(N: int, jobs: Sequence[Job], books: Sequence[Codebook | None]) -> tuple[float, str]:
    d = pivot([None if book is None else book.size for book in books], jobs)
    book, rest = books[d], [without(job, d) for job in jobs]
    assert book is not None
    per_group = _START_GROUP if len(books) > 2 else 0.0
    at_values = sum(book.size * prod(job.shape) * _PER_FLOP for job in jobs)
    cost = N * (_per_row_written(rest) + _PER_ROW_SORTED) + max(1.0, N / _CHUNK) * book.size * per_group + at_values
    return cost, f"{N} rows in {book.size} groups of equal values"
