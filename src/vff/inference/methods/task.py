"""What is asked of a method of inference: terms, a likelihood, and rows as sums or to be visited."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vff.factors import TailRows
from vff.inference.learning.harmonics import product_budget
from vff.inference.learning.start import Given
from vff.inference.methods.natural.oracle import MemoryRows, RowOracle
from vff.inference.methods.natural.row_sites import Observed
from vff.inference.model.scale import TargetScale, Units
from vff.inference.model.term import Term
from vff.likelihoods import AbstractLikelihood
from vff.moments import ColumnSummary, FewRows, MomentRequest, Moments, PreparedRows

if TYPE_CHECKING:
    from vff.inference.methods.chains.run import Plan
    from vff.inference.methods.fit import Fit, TermFit

Progress = Callable[[str], None]


@dataclass(frozen=True)
class TermPlan:
    """What is asked of one term."""

    name: str
    labels: tuple[str, ...]
    """What its columns are called in messages, factor by factor."""
    term: Term
    given: Given
    """The user's hyperparameters in the user's units, None where free."""
    M: tuple[int | None, ...]
    """Harmonics by factor, or None to find them (or for levels, which have none)."""
    ranges: tuple[ColumnSummary, ...]
    """Where the data of its columns lie, factor by factor; of several columns, the widest."""
    highest_frequency: int = 0
    """That matters, when the term is one of several."""
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Between which bounds the user lets hyperparameters be, in the user's units; a held one has two that are equal."""

    @property
    def spread(self) -> bool:
        """Whether two factors share one column, and growth has more of either to choose from than both may have."""
        return len(set(self.labels)) < len(self.labels) and all(M is None for M in self.M)

    def named(self, learnt: "TermFit") -> dict[str, float]:
        """Hyperparameters that a fit has learnt, by name."""
        return dict(zip(self.term.names, (learnt.variance, *learnt.lengthscales), strict=True))


@dataclass(frozen=True)
class Spec:
    """What a user asks of inference, as far as it decides which method there is for it."""

    likelihood: AbstractLikelihood
    inference: str = "variational"
    covariance: str = "full"
    priors: Mapping[str, Any] | None = None
    growing: bool = False
    """Whether more rows may come."""
    hyperparameters: str = "maximise"
    """Or "integrate"; "auto" is either, by what that matters."""


@dataclass(frozen=True)
class Sums:
    """Rows as sums, which say all under Gaussian noise."""

    moments: Moments
    tails: tuple[TailRows, ...] = ()
    few: FewRows | None = None
    """The rows themselves, where they are few."""
    sites_of: float | None = None
    """Weight of all rows, where the sums are those of sites that stand for them under another likelihood."""

    @property
    def weight(self) -> float:
        """Of all rows, those beyond the domain included."""
        if self.sites_of is not None:
            return self.sites_of
        return self.moments.weight + sum(float(tail.w.sum()) for tail in self.tails)


@dataclass(frozen=True)
class Visited:
    """Rows that can be asked again and again."""

    prepared: PreparedRows
    observed: Observed
    everywhere: RowOracle | None = None
    """All rows, where these are not in memory: then ``prepared`` and ``observed`` are a sample of them."""
    targets: np.ndarray | None = None
    """The different values of y, where the sample may not have all of them."""

    @property
    def request(self) -> MomentRequest:
        return self.prepared.plan.request

    @property
    def all(self) -> RowOracle:
        """All rows."""
        return MemoryRows(self.prepared, self.observed) if self.everywhere is None else self.everywhere

    def in_units(self, target: TargetScale) -> "Visited":
        """With y as learning sees it."""
        everywhere = None if self.everywhere is None else self.everywhere.in_units(target)
        return replace(self, observed=self.observed.in_units(target), everywhere=everywhere)


@dataclass(frozen=True)
class FitTask:
    """Rows, a likelihood, terms, and what is to be learnt."""

    plans: tuple[TermPlan, ...]
    likelihood: AbstractLikelihood
    rows: Sums | Visited
    optimise: bool
    centred: bool
    """Whether the function has a constant mean that the data determine; without, its prior mean is zero."""
    progress: Progress
    noise: float | None = None
    """Where the variance of Gaussian noise starts; None: from the data."""
    batch: int | None = None
    """Rows per step; None: all of them."""
    covariance: str = "full"
    engine: str = "auto"
    chains: "Plan | None" = None
    """How to run Markov chains, if any."""
    priors: Mapping[str, Any] | None = None
    growing: bool = False
    """Whether more rows may come."""
    before: "Fit | None" = None
    """An earlier fit that this one goes on from; its memory is over the levels that are known now."""
    target: TargetScale = TargetScale(0.0, 1.0)  # noqa: RUF009  a frozen record
    """The way back to the user's y, where the rows have it as learning sees it."""
    noise_limits: tuple[float, float] | None = None
    """Between which bounds the user lets the variance of Gaussian noise be; None where nothing was said."""
    hyperparameters: str = "maximise"
    """As in ``Spec``."""
    psi: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The likelihood's first parameters, as learning sees them."""

    @property
    def sums(self) -> Sums:
        """The rows of a method that needs sums."""
        assert isinstance(self.rows, Sums)
        return self.rows

    @property
    def visited(self) -> Visited:
        """The rows of a method that asks them."""
        assert isinstance(self.rows, Visited)
        return self.rows

    @property
    def weight(self) -> float:
        """Of all rows, those beyond the domain included: a row of weight two counts as two."""
        return self.rows.weight if isinstance(self.rows, Sums) else self.rows.all.weight

    @property
    def terms(self) -> tuple[Term, ...]:
        """With what is known of their hyperparameters, as learning sees them."""
        bare = tuple(plan.term for plan in self.plans)
        if not any(plan.limits for plan in self.plans):
            return bare
        request = self.rows.moments.request if isinstance(self.rows, Sums) else self.rows.request
        return Units.of(self.target, bare, request).bounded(bare, (plan.limits for plan in self.plans))

    @property
    def sources(self) -> tuple[tuple[str, ...], ...]:
        """The column of the table behind every factor of every term."""
        return tuple(plan.labels for plan in self.plans)

    @property
    def budgets(self) -> tuple[float, ...]:
        """Features that a term may grow to."""
        budget = product_budget(max(1, sum(len(plan.labels) > 1 for plan in self.plans)))
        return tuple(budget if plan.spread else np.inf for plan in self.plans)

    @property
    def wanted(self) -> tuple[tuple[int | None, ...], ...]:
        """Harmonics as asked for, by factor."""
        return tuple(plan.M for plan in self.plans)

    @property
    def free_harmonics(self) -> bool:
        """Whether some harmonics are to be found."""
        sized = zip(self.plans, self.visited.request.harmonics, strict=True)
        return any(M is None and most is not None for plan, own in sized for M, most in zip(plan.M, own, strict=True))

    @property
    def without_noise(self) -> bool:
        """Whether error bars are all the noise there is."""
        return self.likelihood.known_errors and self.noise == 0.0

    @property
    def has_intercept(self) -> bool:
        """Whether the function has a constant beside its terms."""
        return self.centred and not self.likelihood.locates

    def units(self, request: MomentRequest) -> Units:
        """Of hyperparameters."""
        return Units.of(self.target, tuple(plan.term for plan in self.plans), request)


def refuse_scattered(task: FitTask, what: str) -> None:
    """ValueError where inputs are uncertain: a row is no one function of the coefficients then."""
    for plan, term in zip(task.plans, task.terms, strict=True):
        if any(factor.scattered for factor in term.factors):
            raise ValueError(
                f"{what} takes rows with known inputs, and term {plan.name} has uncertain ones, by its std; use "
                "inference='variational' with covariance='full', or leave the std out"
            )


class Method(ABC):
    """A way from rows to a posterior."""

    name: str
    """As a fit reports it."""
    inference: str = "variational"
    """The word by which users ask for it."""
    needs: Literal["sums", "visits", "rows"]
    """Of the rows: their sums, all of them asked again and again wherever they are, or in memory."""
    samples: bool = False
    """Whether it leaves draws, and has the options of Markov chains."""

    @abstractmethod
    def accepts(self, spec: Spec) -> str | None:
        """None, or in one sentence why not; an empty one where another method is meant."""

    @abstractmethod
    def fit(self, task: FitTask) -> "Fit":
        """The posterior, and what was learnt on the way."""
