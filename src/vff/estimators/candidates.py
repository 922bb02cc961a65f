"""Pairs of terms whose product might join a fitted sum, and one look at the rows that ranks them (theory §25)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from vff.data import Chunk, DatabaseRows, PassState, Source
from vff.estimators.binding import Binding, BoundTerm
from vff.estimators.fitting import plan_of
from vff.estimators.grouped import residual_cells, sum_groups, summaries_of_groups
from vff.estimators.statistics import Statistics, Summed, summed
from vff.estimators.table_summary import NOWHERE
from vff.estimators.tasks import Reader, RowTask
from vff.factors import Leaf, Product, Term
from vff.inference import (
    Fit,
    Gain,
    MemoryRows,
    Observed,
    SiteSums,
    Sums,
    TargetScale,
    TermPlan,
    Units,
    WorkingSites,
    gain_of,
)
from vff.inference import Term as InnerTerm
from vff.moments import (
    ColumnRequest,
    MomentRequest,
    PassPlan,
    PreparedRows,
    RowBlock,
    TermRequest,
    Whole,
    distinct_values_for,
    moments_of_cells,
    plan_pass,
    summarise_columns,
)

_MANY_VALUES = 10**9  # of a column: how many it has is not kept, and harmonics beyond them do no harm


@dataclass(frozen=True)
class Candidate:
    """A product of two terms of a sum."""

    left: BoundTerm
    right: BoundTerm
    request: TermRequest
    """Coarse features of both."""

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Factors of the product: what is known of a column's own hyperparameters is known of it here."""
        both = zip((*self.left.term.factors, *self.right.term.factors), self.request.factors, strict=True)
        return tuple(leaf.bare(but_known=True).settled(own.domain) for leaf, own in both)

    @property
    def columns(self) -> tuple[Any, Any]:
        """What the pair goes by."""
        one, other = (leaf.column if len(leaf.columns) == 1 else leaf.name for leaf in self.leaves)
        return one, other

    @property
    def _bound(self) -> BoundTerm:
        """The product over its columns."""
        term = Term(self.leaves)
        gaps = tuple(any(own.gaps) for own in (self.left, self.right))
        return BoundTerm(term, term.name, (*self.left.columns, *self.right.columns), gaps if any(gaps) else ())

    @property
    def _free(self) -> InnerTerm:
        return InnerTerm((*self.left.inner.factors, *self.right.inner.factors))

    @property
    def inner(self) -> InnerTerm:
        """As learning sees it."""
        units = Units.of(TargetScale(0.0, 1.0), (self._free,), MomentRequest((self.request,)))
        (term,) = units.bounded((self._free,), (self._bound.limits,))  # the variance, in units of y, is not among them
        return term

    def plan(self, rows: Statistics) -> TermPlan:
        """What is asked of the product where it joins the terms of rows."""
        harmonics = tuple(own.basis.detail for own in self.request.factors)
        return replace(plan_of(self._bound, rows, harmonics), term=self._free)

    def kernel(self, variance: float | None = None, values: Sequence[float] = ()) -> Product:
        """The product, with hyperparameters in the user's units where these are given."""
        if variance is None:
            return Product(self.leaves)
        product = Term(self.leaves).with_values(variance, values)
        assert isinstance(product, Product)
        return product


def candidates_of(rows: Statistics) -> list[Candidate]:
    """Pairs of terms of one factor over different columns whose product is not among the terms."""
    terms, columns = rows.terms, rows.binding.columns
    taken = {frozenset(columns[c].index for c in term.numbers) for term in terms if len(term.columns) > 1}
    summed = {axis.columns: own for axis, own in rows.moments.request.axes.items()}
    own: dict[tuple[int, ...], BoundTerm] = {}
    for term in terms:
        if len(term.columns) == 1:
            own.setdefault(tuple(columns[c].index for c in term.numbers), term)
    found = []
    for (read, left), (also, right) in combinations(own.items(), 2):
        if not set(read) & set(also) and frozenset((*read, *also)) not in taken:
            factors = tuple(_coarse(term, summed[term.numbers]) for term in (left, right))
            found.append(Candidate(left, right, TermRequest((*left.columns, *right.columns), factors)))
    return found


def _coarse(term: BoundTerm, own: ColumnRequest) -> ColumnRequest:
    (factor,) = term.inner.factors
    return ColumnRequest(own.domain, factor.coarse(own.basis, _MANY_VALUES))


@dataclass(frozen=True)
class FittedRows:
    """A fit, and the rows that it was fitted to, to be read again."""

    fit: Fit
    rows: Statistics
    source: Source
    reader: Reader
    engine: str

    def with_terms(self, more: Sequence[TermRequest]) -> MomentRequest:
        """The terms of the fit, at its harmonics, and more."""
        return MomentRequest((*self.fit.posterior.request.terms, *more))

    def gains(self, candidates: Sequence[Candidate]) -> list[Gain]:
        """What each would gain by itself, beside the terms of the fit as they are."""
        if not candidates:
            return []
        request, T = self.with_terms([own.request for own in candidates]), len(self.fit.posterior.request.terms)
        apart = tuple(range(T, T + len(candidates)))
        query = WorkingSites.of(self.fit, residual=True)
        found = self._asked(VisitPairs(*self._read(request), query, apart, self.rows.moments.offset))
        noise = float(found.totals[0]) / found.moments.weight if found.moments.weight > 0.0 else 1.0
        widest = self.fit.likelihood.widest
        each = zip(apart, candidates, strict=True)
        return [gain_of(own.inner, found.moments.term(s), noise, widest) for s, own in each]

    def summed(self, more: Sequence[TermRequest]) -> Sums:
        """The sums of the terms of the fit together with more: of rows with Gaussian noise, else of their sites."""
        request = self.with_terms(more)
        if not self.fit.from_sums:
            query = WorkingSites.of(self.fit, residual=False)
            found = self._asked(VisitPairs(*self._read(request), query, None, 0.0))
            return Sums(found.moments, sites_of=float(found.totals[0]))
        moments, before = self._asked(SumPairs(*self._read(request), self.rows.moments.offset)).moments, self.rows.n
        if moments.n != before:
            raise ValueError(
                f"the rows were expected to be the {before:,} that the sum was fitted to, found {moments.n:,}; give "
                "rows that do not change while they are read"
            )
        return Sums(moments)

    def _read(self, request: MomentRequest) -> tuple[Reader, Binding, MomentRequest, str]:
        return self.reader, self.rows.binding, request, self.engine

    def _asked(self, task: "PairTask") -> Any:
        state: PassState = self.source.reduce(task)
        if state.committed is None:
            raise ValueError("the source has no rows that can be used; give the rows of the fit")
        return state.committed


@dataclass(frozen=True)
class PairTask(RowTask):
    """A pass for the terms of a fit and products of them; how rows are summed is for every chunk to choose."""

    reader: Reader
    binding: Binding
    request: MomentRequest
    engine: str

    def plan(self, source: RowBlock, apart: Sequence[int] | None = None) -> PassPlan:
        """For the rows of a chunk."""
        every = range(len(self.binding.columns))
        summaries = summarise_columns(source, every) if source.n else [NOWHERE for _ in every]
        distinct_values = distinct_values_for(self.engine, self.request, summaries, source)
        return plan_pass(source.n, self.request, distinct_values, self.engine, apart)

    def plan_of_groups(self, rows: DatabaseRows, offset: float, apart: Sequence[int] | None = None) -> PassPlan:
        """For what a database counts."""
        summaries = summaries_of_groups(rows, self.binding, offset)
        distinct_values = distinct_values_for(self.engine, self.request, summaries, None)
        return plan_pass(rows.totals.n, self.request, distinct_values, self.engine, apart)


@dataclass(frozen=True)
class SumPairs(PairTask):
    """The sums of rows with Gaussian noise."""

    offset: float
    phase: ClassVar[str] = "summing pairs of columns"
    kind: ClassVar[Any] = Summed

    def __call__(self, chunk: Chunk) -> Summed:
        batch = self.reader.batch(chunk, self.binding)
        source, variances = batch.source, self.reader.variances(batch)
        return summed(source, self.binding, self.plan(source), self.offset, beyond=False, variances=variances)

    def from_groups(self, rows: DatabaseRows) -> Summed:
        """By combination of values."""
        return sum_groups(rows, self.binding, self.plan_of_groups(rows, self.offset), self.offset, beyond=False)


@dataclass(frozen=True)
class VisitPairs(PairTask):
    """The sums of sites; of terms that stand ``apart``, each by itself."""

    query: WorkingSites
    apart: tuple[int, ...] | None
    offset: float
    """That a database measures targets from."""
    phase: ClassVar[str] = "looking at pairs of columns"
    kind: ClassVar[Any] = SiteSums

    def __call__(self, chunk: Chunk) -> SiteSums:
        batch = self.reader.batch(chunk, self.binding)
        source, fresh = batch.source, replace(self.query, tables={})  # which belong to the values of these rows
        prepared = PreparedRows(self.plan(source, self.apart), source)
        rows = MemoryRows(prepared, Observed(source.y, batch.extra, source.w, batch.offset), counted=False)
        return rows.sums(fresh, features=False)

    def from_groups(self, rows: DatabaseRows) -> SiteSums:
        """By combination of values: with Gaussian noise, residuals are sums of what is known by value."""
        plan, totals = self.plan_of_groups(rows, self.offset, self.apart), rows.totals
        cells = residual_cells(rows, self.binding, self.query, self.offset)
        noise = self.query.noise
        moments, _ = moments_of_cells(plan, cells, Whole(totals.n, totals.weight / noise, 0.0, 0.0), 0.0)
        return SiteSums(moments, np.array([totals.weight]))
