"""From rows in memory to the points at which chains evaluate the function.

The cheapest of what the columns allow, term by term: a lattice, distinct points, or every row by itself. A model of one
continuous column whose rows say one of few things (counts, labels) needs no rows at all, however many there are; see
``compression``.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from vff.factors import WhiteFactor
from vff.inference.row_sites import Observed
from vff.inference.sampling.cells import NODES, Cells
from vff.inference.sampling.compression import compressed
from vff.inference.sampling.rows import Carried, RowData, TermPoints, TermShape
from vff.inference.terms import Term
from vff.moments import Choice, ColumnRequest, MomentRequest, RowBlock, TermRequest

_WORTH = 0.5  # distinct points per row, below which rows refer to points
_MANY = 2**20  # features of rows, from which cells are worth their while
_BLOCK = 128  # rows
_COUNTABLE = 62  # bits of the number of a combination


class Design(NamedTuple):
    """How the terms meet the rows."""

    shapes: tuple[TermShape, ...]
    rows: RowData
    choice: Choice
    """Which engine, and why."""


def design(
    terms: Sequence[Term],
    request: MomentRequest,
    source: RowBlock,
    observed: Observed,
    engine: str = "auto",
    *,
    affine: bool = False,
) -> Design:
    """Points for all terms; the rows all lie inside their domains. Every engine gives the same density."""
    axes = [axes_of(term, own) for term, own in zip(terms, request.terms, strict=True)]
    every = slice(0, source.n)
    columns = [np.asarray(source.column(c, every)) for c in range(len(request.columns))]
    alone = axes[0][0] if len(axes) == len(axes[0]) == 1 else None
    band = None if alone is None else alone.basis.single.band
    if alone is not None and band is not None and affine and engine in ("auto", "nufft"):
        short = compressed(band, request.columns[0].place.to_unit(columns[0]), observed)
        if short is not None:
            shape = TermShape((alone,), lattice=False, copies=2)
            points = TermPoints((alone.basis.evaluate(short.nodes),), None)
            text = f"nufft: {source.n:,} rows carried to {short.nodes.size:,} nodes of one column by local polynomials"
            return Design((shape,), RowData((points,), short.y, short.extra, short.w), Choice("nufft", text))
    parts = zip(axes, request.terms, strict=True)
    shapes, points = zip(*(_points(*both, columns, engine) for both in parts), strict=True)
    rows = RowData(points, observed.y, observed.extra, observed.w)
    return Design(shapes, rows, _choice(shapes, points, source.n))


def axes_of(term: Term, request: TermRequest) -> tuple[WhiteFactor, ...]:
    """The factors of a term, as chains see them."""
    return tuple(factor.white(basis) for factor, basis in zip(term.factors, request.bases, strict=True))


def _points(
    axes: tuple[WhiteFactor, ...], request: TermRequest, columns: Sequence[np.ndarray], engine: str
) -> tuple[TermShape, TermPoints]:
    """Of one term, by an engine; "auto" takes what is least work."""
    own = [columns[c] for c in request.columns]
    if engine != "dense":
        attempts = {"grid": _lattice, "nufft": _near, "table": _table}
        for kind in sorted(attempts, key=lambda kind: kind != engine):  # what was asked for comes first
            attempt = attempts[kind]
            found = attempt(axes, request, own, forced=engine == kind)
            if found is not None:
                return found
    return TermShape(axes, lattice=False), TermPoints(features_at(request.factors, own), None)


def _cells_of(own: Sequence[np.ndarray]) -> tuple[list[np.ndarray], tuple[int, ...], np.ndarray | None]:
    """Distinct values of every column, how many there are, and the combination of every row, where countable."""
    values, codes = zip(*(np.unique(x, return_inverse=True) for x in own), strict=True)
    shape = tuple(one.size for one in values)
    flat = tuple(code.reshape(-1) for code in codes)
    countable = sum(np.log2(shape)) < _COUNTABLE
    return list(values), shape, np.asarray(np.ravel_multi_index(flat, shape)) if countable else None


def _lattice(
    axes: tuple[WhiteFactor, ...], request: TermRequest, own: Sequence[np.ndarray], *, forced: bool
) -> tuple[TermShape, TermPoints] | None:
    """All combinations of the values of several columns."""
    values, shape, cells = _cells_of(own)
    if len(axes) == 1 or cells is None:
        return None
    sizes = [axis.size for axis in axes]
    if not forced and _lattice_work(shape, sizes) >= np.unique(cells).size * prod(sizes):
        return None
    reference = None if np.array_equal(cells, np.arange(prod(shape))) else cells
    return TermShape(axes, lattice=True), TermPoints(features_at(request.factors, values), reference)


def _lattice_work(shape: tuple[int, ...], sizes: Sequence[int]) -> int:
    """Products of numbers: the axes are evaluated one after another."""
    left, work = list(sizes), 0
    for d, n in enumerate(shape):
        work += n * prod(left)
        left[d] = n
    return work


def _table(
    axes: tuple[WhiteFactor, ...], request: TermRequest, own: Sequence[np.ndarray], *, forced: bool
) -> tuple[TermShape, TermPoints] | None:
    """Distinct points, where rows share them."""
    cells = _cells_of(own)[2]
    if cells is None:
        return None
    found, first, back = np.unique(cells, return_index=True, return_inverse=True)
    if not forced and found.size >= _WORTH * own[0].size:
        return None
    features = features_at(request.factors, [x[first] for x in own])
    return TermShape(axes, lattice=False), TermPoints(features, back.reshape(-1))


def _near(
    axes: tuple[WhiteFactor, ...], request: TermRequest, own: Sequence[np.ndarray], *, forced: bool
) -> tuple[TermShape, TermPoints] | None:
    """Rows of one column, carried from the nodes of cells, where that is less work than to write them out."""
    axis, place = axes[0], request.factors[0].place
    band = axis.basis.single.band
    if len(axes) > 1 or band is None:
        return None
    t = place.to_unit(own[0])
    cells = Cells.of(band, t)
    if cells is None or not (forced or _worth_cells(axis, cells, t)):
        return None
    return TermShape(axes, lattice=False), TermPoints((axis.basis.evaluate(cells.nodes),), _blocks(cells, t))


def _worth_cells(axis: WhiteFactor, cells: Cells, t: np.ndarray) -> bool:
    if t.size * axis.size < _MANY or axis.size <= 2 * NODES or cells.size > t.size:
        return False
    return np.unique(t).size >= _WORTH * t.size


def _blocks(cells: Cells, t: np.ndarray) -> Carried:
    """Rows sorted by cell, in blocks."""
    where = cells.place(t)
    order = np.argsort(where, kind="stable")
    counts = np.bincount(where, minlength=cells.count)
    blocks = -(-counts // _BLOCK)
    # the first place of every cell, and from there on its rows one after another
    first = _BLOCK * np.concatenate([[0], np.cumsum(blocks)[:-1]])
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.empty(t.size, int)
    place[order] = first[where[order]] + np.arange(t.size) - before[where[order]]
    total = int(blocks.sum())
    weights, row = np.zeros((total * _BLOCK, NODES)), np.full(total * _BLOCK, t.size)
    weights[place] = cells.weights(t, where).T
    row[place] = np.arange(t.size)
    return Carried(weights.reshape(total, _BLOCK, NODES), np.repeat(np.arange(cells.count), blocks), place, row)


def features_at(factors: Sequence[ColumnRequest], values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Functions of every column at its values."""
    return tuple(factor.basis.evaluate(factor.place.to_unit(x)) for factor, x in zip(factors, values, strict=True))


def _choice(shapes: Sequence[TermShape], points: Sequence[TermPoints], n: int) -> Choice:
    parts = []
    for shape, own in zip(shapes, points, strict=True):
        if shape.lattice:
            parts.append(("grid", "grid: a lattice of " + " x ".join(str(len(phi)) for phi in own.features)))
        elif isinstance(own.codes, Carried):
            parts.append(
                ("nufft", f"nufft: {n:,} rows carried from {len(own.features[0]):,} nodes by local polynomials")
            )
        elif own.codes is not None:
            parts.append(("table", f"table: {len(own.features[0]):,} distinct points"))
        else:
            parts.append(("dense", f"dense: {n:,} rows written out"))
    names = {name for name, _ in parts}
    return Choice(names.pop() if len(names) == 1 else "mixed", "; ".join(dict.fromkeys(text for _, text in parts)))
