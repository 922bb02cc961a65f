"""Rows that are visited again and again, wherever they are: a query about q in, sums of the sites it wants out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from vff.basis.several import merged, parts_of
from vff.inference.methods.natural.row_sites import Observed, RowSites, first_sites, sites_of
from vff.inference.model.scale import TargetScale
from vff.inference.posterior import Posterior
from vff.likelihoods import AbstractLikelihood, parameter_derivatives
from vff.linalg import along
from vff.moments import (
    ENGINES,
    ColumnRows,
    Job,
    MomentRequest,
    Moments,
    PreparedRows,
    Tables,
    Work,
    WrittenStretch,
    choose,
)

FeatureSums = tuple[np.ndarray, ...]
"""sum w phi of every term, (P,) each."""


class ChunkSites(NamedTuple):
    """Of some rows."""

    sites: RowSites
    totals: np.ndarray
    """Sums over the rows, (K,)."""


class SiteSums(NamedTuple):
    """Of all rows."""

    moments: Moments
    """Sums of their sites."""
    totals: np.ndarray
    features: FeatureSums | None = None
    """Sums of the features over the rows, each with its weight, where these were asked for."""

    def merged(self, other: "SiteSums") -> "SiteSums":
        features = added(self.features, other.features)
        return SiteSums(self.moments + other.moments, self.totals + other.totals, features)


class SiteQuery(Protocol):
    """What is worked out of some rows; a record that can travel."""

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> ChunkSites: ...


@dataclass(frozen=True)
class InitialSites:
    """The sites of every row by itself; in total the squares of l - s constant, their power in any harmonic."""

    likelihood: AbstractLikelihood
    psi: np.ndarray
    intercept: float

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> ChunkSites:
        sites = first_sites(self.likelihood, self.psi, observed, self.intercept)
        return ChunkSites(sites, np.array([np.sum((sites.pull - sites.precision * self.intercept) ** 2)]))


@dataclass(frozen=True)
class ExpectedSites:
    """The sites that q wants; in total E[log p], and its gradient and Hessian in the likelihood's parameters."""

    likelihood: AbstractLikelihood
    psi: np.ndarray
    posterior: Posterior
    intercept_prior: float
    """What f is measured from."""
    tables: Tables = field(default_factory=dict, compare=False)
    """Worked out at the first stretch of rows, and of use at the next."""

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> ChunkSites:
        y, extra, w, R = observed.y, observed.extra, observed.w, self.likelihood.free.size
        mean, variance = self.posterior.inside(columns, self.tables)
        mean += self.intercept_prior
        f = observed.lifted(mean)
        answer = self.likelihood.expected(self.psi, y, extra, f, variance)
        totals = np.zeros(1 + R + R * R)
        totals[0] = float(w @ answer.value)
        if self.likelihood.free.any():
            _, first, second = parameter_derivatives(self.likelihood, self.psi, y, extra, w, f, variance)
            totals[1 : 1 + R], totals[1 + R :] = first, second.reshape(-1)
        return ChunkSites(sites_of(answer, w, mean), totals)


class RowOracle(ABC):
    """All rows of a fit."""

    remembered: dict[str, FeatureSums]
    """Sums that do not depend on q, nor on the units of y."""
    counted: bool = True
    """Whether these are all rows, and not some of them in turn."""

    @property
    def in_memory(self) -> "MemoryRows | None":
        """The rows themselves, where they are here."""
        return None

    @property
    @abstractmethod
    def n(self) -> int:
        """Different rows."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """sum w."""

    @property
    @abstractmethod
    def request(self) -> MomentRequest:
        """What is summed over them."""

    def visit(self, query: SiteQuery) -> SiteSums:
        """Over all rows. Their features are summed with the first query, since they are looked at anyway."""
        sums = self.sums(query, features=self.counted and "features" not in self.remembered)
        if sums.features is not None:
            self.remembered["features"] = sums.features
        return sums

    @abstractmethod
    def sums(self, query: SiteQuery, *, features: bool) -> SiteSums:
        """The same, with the sums of features over the rows where these are wanted."""

    @abstractmethod
    def in_units(self, target: TargetScale) -> Self:
        """The same rows with y as learning sees it."""

    @abstractmethod
    def narrowed(self, request: MomentRequest) -> Self:
        """The same rows, for fewer features of the same terms."""

    def averages(self, request: MomentRequest) -> FeatureSums:
        """Averages of every term's features over the rows that were asked, (P,) each, for features among theirs."""
        sums = restricted(self.request, self.remembered["features"], request)
        return tuple(total / self.weight for total in sums)


@dataclass(frozen=True)
class MemoryRows(RowOracle):
    """Rows in memory."""

    prepared: PreparedRows
    observed: Observed
    counted: bool = True
    remembered: dict[str, FeatureSums] = field(default_factory=dict, compare=False)

    @property
    def in_memory(self) -> "MemoryRows":
        return self

    @property
    def n(self) -> int:
        return self.prepared.n

    @property
    def weight(self) -> float:
        return float(self.observed.w.sum())

    @property
    def request(self) -> MomentRequest:
        return self.prepared.plan.request

    def sums(self, query: SiteQuery, *, features: bool) -> SiteSums:
        totals, sums = np.zeros(1), tuple(np.zeros(size) for size in self.request.sizes) if features else None

        def step(rows: slice, columns: Sequence[ColumnRows]) -> RowSites:
            nonlocal totals, sums
            observed = self.observed.at(rows)
            answer = query(observed, columns)
            totals = totals + answer.totals
            sums = None if sums is None else added(sums, feature_sums(self.request, columns, observed.w))
            return answer.sites

        moments = self.prepared.sum(step)
        return SiteSums(moments, totals, sums)

    def in_units(self, target: TargetScale) -> "MemoryRows":
        return replace(self, observed=self.observed.in_units(target))

    def narrowed(self, request: MomentRequest) -> "MemoryRows":
        return replace(self, prepared=self.prepared.narrowed(request), remembered={})


# --- sums of features over rows, which effects are centred on: those of sites have other weights than the rows ------


def feature_sums(request: MomentRequest, columns: Sequence[ColumnRows], w: np.ndarray) -> FeatureSums:
    """Over rows that are ready for the engines: single letters alone, and nothing between terms."""
    if isinstance(columns, WrittenStretch) and columns.layout.request == request:
        return columns.feature_sums(w)
    found = []
    for term in request.terms:
        parts, letters = [part for own in term.factors for part in own.parts], [basis.single for basis in term.bases]
        rows = [columns[c].for_request(part) for c, part in zip(term.numbers, parts, strict=True)]
        jobs = (Job(parts_of(letters)),)
        (sums,) = ENGINES[choose(Work(w.size, jobs, rows)).name].sum(rows, jobs, w, w)
        found.append(merged(letters, sums).reshape(-1))
    return tuple(found)


def feature_averages(prepared: PreparedRows, request: MomentRequest, w: np.ndarray) -> FeatureSums:
    """Averages over rows in memory, for any features of their columns: one pass."""
    total: FeatureSums | None = tuple(np.zeros(size) for size in request.sizes)
    for rows, columns in prepared.chunks():
        total = added(total, feature_sums(request, columns, w[rows]))
    assert total is not None
    return tuple(sums / float(w.sum()) for sums in total)


def added(one: FeatureSums | None, other: FeatureSums | None) -> FeatureSums | None:
    """Those of all rows, where both are known."""
    if one is None or other is None:
        return None
    return tuple(mine + theirs for mine, theirs in zip(one, other, strict=True))


def restricted(request: MomentRequest, sums: FeatureSums, smaller: MomentRequest) -> FeatureSums:
    """The sums for fewer features of the same terms, read off these."""
    found = []
    for term, own, total in zip(request.terms, smaller.terms, sums, strict=True):
        tensor = total.reshape(term.shape)
        for d, (large, small) in enumerate(zip(term.bases, own.bases, strict=True)):
            if large != small:
                tensor = along(tensor, d, large.to(small).single)
        found.append(np.ascontiguousarray(tensor).reshape(-1))
    return tuple(found)
