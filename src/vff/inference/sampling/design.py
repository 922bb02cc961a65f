"""From rows in memory to the points at which chains evaluate the function.

The cheapest of what the columns allow, term by term: a lattice, distinct points, or every row by itself. A model of one
continuous column whose rows say one of few things (counts, labels) needs no rows at all, however many there are; see
``compression``.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from vff.basis import ColumnBasis, Interval
from vff.inference.row_sites import Observed
from vff.inference.sampling.compression import compressed
from vff.inference.sampling.rows import RowData, TermPoints, TermShape
from vff.inference.sampling.whitening import Axis, Column, Levels
from vff.inference.terms import MaternFactor, Term
from vff.moments import Choice, ColumnRequest, MomentRequest, Source, TermRequest

_WORTH = 0.5  # distinct points per row, below which rows refer to points


class Design(NamedTuple):
    """How the terms meet the rows."""

    shapes: tuple[TermShape, ...]
    rows: RowData
    choice: Choice
    """Which engine, and why."""

    @property
    def numbers(self) -> int:
        """Of the features written out."""
        return sum(phi.size for term in self.rows.terms for phi in term.features)


def design(terms: Sequence[Term], request: MomentRequest, source: Source, observed: Observed) -> Design:
    """Points for all terms; the rows all lie inside their domains."""
    axes = [_axes(term, own) for term, own in zip(terms, request.terms, strict=True)]
    every = slice(0, source.n)
    columns = [np.asarray(source.column(c, every)) for c in range(len(request.columns))]
    alone = _one_column(axes)
    if alone is not None:
        place = request.columns[0].place
        assert isinstance(place, Interval)
        short = compressed(alone.basis.M, place.to_unit(columns[0]), observed)
        if short is not None:
            shape = TermShape((alone,), lattice=False, copies=short.copies)
            points = TermPoints((alone.basis.evaluate(short.nodes),), None)
            text = f"nufft: {source.n:,} rows carried to {short.nodes.size:,} nodes of one column by local polynomials"
            return Design((shape,), RowData((points,), short.y, short.extra, short.w), Choice("nufft", text))
    shapes, points = zip(*(_points(*both, columns) for both in zip(axes, request.terms, strict=True)), strict=True)
    rows = RowData(points, observed.y, observed.extra, observed.w)
    return Design(shapes, rows, _choice(shapes, points, source.n))


def _axes(term: Term, request: TermRequest) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    for factor, basis in zip(term.factors, request.bases, strict=True):
        if isinstance(factor, MaternFactor):
            assert isinstance(basis, ColumnBasis)
            axes.append(Column(basis, factor.p))
        else:
            axes.append(Levels(basis.size))
    return tuple(axes)


def _one_column(axes: Sequence[tuple[Axis, ...]]) -> Column | None:
    if len(axes) == 1 and len(axes[0]) == 1 and isinstance(axes[0][0], Column):
        return axes[0][0]
    return None


def _points(
    axes: tuple[Axis, ...], request: TermRequest, columns: Sequence[np.ndarray]
) -> tuple[TermShape, TermPoints]:
    """Of one term: its distinct points, on a lattice where that is less work."""
    own = [columns[c] for c in request.columns]
    values, codes = zip(*(np.unique(x, return_inverse=True) for x in own), strict=True)
    shape = tuple(one.size for one in values)
    flat = tuple(code.reshape(-1) for code in codes)
    cells = np.asarray(np.ravel_multi_index(flat, shape)) if _countable(shape) else None
    n, sizes = own[0].size, [axis.size for axis in axes]
    if len(axes) > 1 and cells is not None:
        distinct = np.unique(cells).size
        if _lattice_work(shape, sizes) < distinct * prod(sizes):
            features = _features(request.factors, values)
            return TermShape(axes, lattice=True), TermPoints(features, _reference(cells, prod(shape)))
    if cells is not None:
        found, first, back = np.unique(cells, return_index=True, return_inverse=True)
        if found.size < _WORTH * n:
            features = _features(request.factors, [x[first] for x in own])
            return TermShape(axes, lattice=False), TermPoints(features, back.reshape(-1))
    return TermShape(axes, lattice=False), TermPoints(_features(request.factors, own), None)


def _countable(shape: tuple[int, ...]) -> bool:
    return sum(np.log2(shape)) < 62.0


def _lattice_work(shape: tuple[int, ...], sizes: Sequence[int]) -> int:
    """Products of numbers: the axes are evaluated one after another."""
    left, work = list(sizes), 0
    for d, n in enumerate(shape):
        work += n * prod(left)
        left[d] = n
    return work


def _reference(cells: np.ndarray, size: int) -> np.ndarray | None:
    """None where rows are points in order."""
    return None if cells.size == size and np.array_equal(cells, np.arange(size)) else cells


def _features(factors: Sequence[ColumnRequest], values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Functions of every column at its values."""
    written = []
    for factor, x in zip(factors, values, strict=True):
        t = factor.place.to_unit(x) if isinstance(factor.place, Interval) else x
        written.append(factor.basis.evaluate(t))
    return tuple(written)


def _choice(shapes: Sequence[TermShape], points: Sequence[TermPoints], n: int) -> Choice:
    parts = []
    for shape, own in zip(shapes, points, strict=True):
        if shape.lattice:
            parts.append(("grid", "grid: a lattice of " + " x ".join(str(len(phi)) for phi in own.features)))
        elif own.codes is not None:
            parts.append(("table", f"table: {len(own.features[0]):,} distinct points"))
        else:
            parts.append(("dense", f"dense: {n:,} rows written out"))
    names = {name for name, _ in parts}
    return Choice(names.pop() if len(names) == 1 else "mixed", "; ".join(dict.fromkeys(text for _, text in parts)))
