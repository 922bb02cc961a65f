"""From rows in memory to the points at which chains evaluate the function.

The cheapest of what the columns allow, term by term: a lattice, distinct points, or every row by itself. A model of one
continuous column whose rows say one of few things (counts, labels) needs no rows at all, however many there are; see
``interpolation``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from vff.inference.methods.chains.interpolation import NODES, Cells, compressed
from vff.inference.methods.chains.points import RowData, TermPoints, TermShape, shapes_of
from vff.inference.methods.natural.row_sites import Observed
from vff.inference.model.term import Term
from vff.moments import Choice, ColumnRequest, MomentRequest, RowBlock, TermRequest

_WORTH = 0.5  # distinct points per row, below which rows refer to points
_MANY = 2**20  # features of rows, from which cells are worth their while
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
    every, shapes = slice(0, source.n), shapes_of(terms, request)
    basis = shapes[0].axes[0].basis
    if len(shapes) == len(shapes[0].axes) == 1 and basis.single.band is not None and affine and observed.offset is None:
        t = request.columns[0].domain.to_unit(np.asarray(source.column(0, every)))
        short = compressed(basis.single.band, t, observed) if engine in ("auto", "nufft") else None
        if short is not None:
            nodes, sums = short
            points = _points_at(shapes[0], [nodes], None)
            text = f"nufft: {source.n:,} rows carried to {nodes.size:,} nodes of one column by local polynomials"
            shape = replace(shapes[0], copies=2)
            return Design((shape,), RowData((points,), sums.y, sums.extra, sums.w), Choice("nufft", text))
    own = [
        _TermRows(shape, term, [source.read(place, every) for place in term.columns])
        for shape, term in zip(shapes, request.terms, strict=True)
    ]
    found, points, choices = zip(*(rows.points(engine) for rows in own), strict=True)
    names, texts = {choice.name for choice in choices}, dict.fromkeys(choice.reason for choice in choices)
    choice = Choice(names.pop() if len(names) == 1 else "mixed", "; ".join(texts))
    offset = 0.0 if observed.offset is None else observed.offset
    return Design(found, RowData(points, observed.y, observed.extra, observed.w, offset), choice)


_Found = tuple[TermShape, TermPoints, Choice]


@dataclass(frozen=True)
class _TermRows:
    """The rows of one term, and the ways to meet them: each tells None where it is not worth it."""

    shape: TermShape
    request: TermRequest
    x: list[np.ndarray]

    def points(self, engine: str) -> _Found:
        """By an engine; "auto" takes what is least work."""
        attempts = {"grid": self._lattice, "nufft": self._near, "table": self._table}
        for kind in sorted(attempts, key=lambda kind: kind != engine):  # what was asked for comes first
            found = None if engine == "dense" else attempts[kind](forced=engine == kind)
            if found is not None:
                return found
        choice = Choice("dense", f"dense: {len(self.x[0]):,} rows written out")
        return self.shape, self._points(self.x, None), choice

    def _points(self, x: Sequence[np.ndarray], codes: np.ndarray | None) -> TermPoints:
        """Points at these values of every column."""
        units = [factor.domain.to_unit(own) for factor, own in zip(self.request.factors, x, strict=True)]
        return _points_at(self.shape, units, codes)

    @cached_property
    def _distinct(self) -> tuple[list[np.ndarray], tuple[int, ...], np.ndarray | None]:
        """Distinct values of every column, how many there are, and the combination of every row, where countable."""
        axes = [None if x.ndim == 1 else 0 for x in self.x]  # several columns that one factor reads have points
        found = (np.unique(x, return_inverse=True, axis=axis) for x, axis in zip(self.x, axes, strict=True))
        values, codes = zip(*found, strict=True)
        shape = tuple(len(one) for one in values)
        flat = tuple(code.reshape(-1) for code in codes)
        countable = sum(np.log2(shape)) < _COUNTABLE
        return list(values), shape, np.asarray(np.ravel_multi_index(flat, shape)) if countable else None

    def _lattice(self, *, forced: bool) -> _Found | None:
        """All combinations of the values of several columns."""
        if len(self.x) == 1:
            return None
        values, shape, cells = self._distinct
        sizes = list(self.shape.shape)
        if cells is None or not (forced or _lattice_work(shape, sizes) < np.unique(cells).size * prod(sizes)):
            return None
        reference = None if np.array_equal(cells, np.arange(prod(shape))) else cells
        choice = Choice("grid", "grid: a lattice of " + " x ".join(str(size) for size in shape))
        return replace(self.shape, lattice=True), self._points(values, reference), choice

    def _table(self, *, forced: bool) -> _Found | None:
        """Distinct points, where rows share them."""
        cells = self._distinct[2]
        if cells is None:
            return None
        found, first, back = np.unique(cells, return_index=True, return_inverse=True)
        if not forced and found.size >= _WORTH * cells.size:
            return None
        points = self._points([x[first] for x in self.x], back.reshape(-1))
        return self.shape, points, Choice("table", f"table: {found.size:,} distinct points")

    def _near(self, *, forced: bool) -> _Found | None:
        """Rows of one column, carried from the nodes of cells, where that is less work than to write them out."""
        axis, n = self.shape.axes[0], self.x[0].size
        if len(self.x) > 1 or axis.basis.single.band is None:
            return None
        t = self.request.factors[0].domain.to_unit(self.x[0])
        cells = Cells.of(axis.basis.single.band, t)
        if cells is None:
            return None
        many = n * axis.size >= _MANY and axis.size > 2 * NODES and cells.size <= n
        if not (forced or (many and self._distinct[0][0].size >= _WORTH * n)):
            return None
        text = f"nufft: {n:,} rows carried from {cells.size:,} nodes by local polynomials"
        return self.shape, _points_at(self.shape, [cells.nodes], cells.blocks(t)), Choice("nufft", text)


def _lattice_work(shape: tuple[int, ...], sizes: list[int]) -> int:
    """Products of numbers: the axes are evaluated one after another."""
    left, work = list(sizes), 0
    for d, n in enumerate(shape):
        work += n * prod(left)
        left[d] = n
    return work


def _points_at(shape: TermShape, units: Sequence[np.ndarray], codes: Any) -> TermPoints:
    """Points at these values of every column in units of its domain."""
    features, varying = [], []
    for axis, t in zip(shape.axes, units, strict=True):
        constant = axis.factor.constant_variance
        features.append(axis.basis.evaluate(t))
        varying.append(np.ones((len(t), 1)) if constant else axis.factor.on(axis.basis).variance_functions(t))
    return TermPoints(tuple(features), codes, () if shape.constant_variance else tuple(varying))


def features_at(factors: Sequence[ColumnRequest], values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Functions of every column at its values."""
    return tuple(factor.basis.evaluate(factor.domain.to_unit(x)) for factor, x in zip(factors, values, strict=True))
