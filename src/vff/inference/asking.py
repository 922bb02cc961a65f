"""Rows that answer questions about q, wherever they are.

Natural gradients ask all rows the same question again and again: what sites do you want, and what do you say about the
likelihood's parameters? A question is a record that can travel; rows answer it stretch by stretch, and answers add up.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from vff.inference.averages import FeatureSums, added, feature_sums, restricted
from vff.inference.posterior import Posterior
from vff.inference.row_sites import Observed, RowSites, first_sites, sites_of
from vff.inference.target import TargetScale
from vff.likelihoods import AbstractLikelihood, parameter_derivatives
from vff.moments import ColumnRows, MomentRequest, Moments, PreparedRows, Tables


class Answer(NamedTuple):
    """Of a stretch of rows."""

    sites: RowSites
    totals: np.ndarray
    """Sums over the rows, (K,)."""


class Answers(NamedTuple):
    """Of all rows."""

    moments: Moments
    """Sums of their sites."""
    totals: np.ndarray
    features: FeatureSums | None = None
    """Sums of the features over the rows, each with its weight, where these were asked for."""

    def merged(self, other: "Answers") -> "Answers":
        features = added(self.features, other.features)
        return Answers(self.moments + other.moments, self.totals + other.totals, features)


class Question(Protocol):
    """What is asked of a stretch of rows."""

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> Answer: ...


@dataclass(frozen=True)
class FirstGuess:
    """The sites of every row by itself; in total the squares of l - s constant, their power in any harmonic."""

    likelihood: AbstractLikelihood
    psi: np.ndarray
    constant: float

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> Answer:
        sites = first_sites(self.likelihood, self.psi, observed, self.constant)
        return Answer(sites, np.array([np.sum((sites.pull - sites.precision * self.constant) ** 2)]))


@dataclass(frozen=True)
class Opinion:
    """The sites that q wants; in total E[log p], and its gradient and Hessian in the likelihood's parameters."""

    likelihood: AbstractLikelihood
    psi: np.ndarray
    posterior: Posterior
    anchor: float
    """What f is measured from."""
    tables: Tables = field(default_factory=dict, compare=False)
    """Worked out at the first stretch of rows, and of use at the next."""

    def __call__(self, observed: Observed, columns: Sequence[ColumnRows]) -> Answer:
        y, extra, w, R = observed.y, observed.extra, observed.w, self.likelihood.free.size
        mean, variance = self.posterior.inside(columns, self.tables)
        mean += self.anchor
        answer = self.likelihood.expected(self.psi, y, extra, mean, variance)
        totals = np.zeros(1 + R + R * R)
        totals[0] = float(w @ answer.value)
        if self.likelihood.free.any():
            _, first, second = parameter_derivatives(self.likelihood, self.psi, y, extra, w, mean, variance)
            totals[1 : 1 + R], totals[1 + R :] = first, second.reshape(-1)
        return Answer(sites_of(answer, w, mean), totals)


class AbstractCrowd(ABC):
    """All rows of a fit."""

    remembered: dict[str, FeatureSums]
    """What the rows were asked before, whatever the units of y."""
    counted: bool = True
    """Whether these are all rows, and not some of them in turn."""

    @property
    def in_memory(self) -> "Walked | None":
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

    def ask(self, question: Question) -> Answers:
        """What all rows answer. They are counted with the first question, since they are looked at anyway."""
        answers = self.answers(question, features=self.counted and "features" not in self.remembered)
        if answers.features is not None:
            self.remembered["features"] = answers.features
        return answers

    @abstractmethod
    def answers(self, question: Question, *, features: bool) -> Answers:
        """The same, with the sums of features over the rows where these are wanted."""

    @abstractmethod
    def in_units(self, target: TargetScale) -> Self:
        """The same rows with y as learning sees it."""

    def averages(self, request: MomentRequest) -> FeatureSums:
        """Averages of every term's features over the rows that were asked, (P,) each, for features among theirs."""
        sums = restricted(self.request, self.remembered["features"], request)
        return tuple(total / self.weight for total in sums)


@dataclass(frozen=True)
class Walked(AbstractCrowd):
    """Rows in memory."""

    walk: PreparedRows
    observed: Observed
    counted: bool = True
    remembered: dict[str, FeatureSums] = field(default_factory=dict, compare=False)

    @property
    def in_memory(self) -> "Walked":
        return self

    @property
    def n(self) -> int:
        return self.walk.n

    @property
    def weight(self) -> float:
        return float(self.observed.w.sum())

    @property
    def request(self) -> MomentRequest:
        return self.walk.plan.request

    def answers(self, question: Question, *, features: bool) -> Answers:
        totals, sums = np.zeros(1), tuple(np.zeros(size) for size in self.request.sizes) if features else None

        def step(rows: slice, columns: Sequence[ColumnRows]) -> RowSites:
            nonlocal totals, sums
            observed = self.observed.at(rows)
            answer = question(observed, columns)
            totals = totals + answer.totals
            sums = None if sums is None else added(sums, feature_sums(self.request, columns, observed.w))
            return answer.sites

        moments = self.walk.sum(step)
        return Answers(moments, totals, sums)

    def in_units(self, target: TargetScale) -> "Walked":
        return replace(self, observed=self.observed.in_units(target))
