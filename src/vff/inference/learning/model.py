"""The closed-form model of a sum of terms: moments, rows beyond the edges, hyperparameters in, bound out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vff.factors import Prior, StackedTransform, TailRows
from vff.inference.learning.curvature import slopes_of
from vff.inference.learning.levels import NONE, Exchangeable
from vff.inference.learning.log_prior import LogPriors
from vff.inference.learning.records import Model
from vff.inference.learning.rows import LearningRows, RowModel
from vff.inference.learning.separated import (
    NOISE_BOUNDS,
    crossed,
    hand_on,
    limits_beside,
    prior_variance_sums,
    separated,
)
from vff.inference.learning.sizes import edf_by_term
from vff.inference.learning.solver import Solver, choose_solver
from vff.inference.learning.tails import slopes_of_tails
from vff.inference.model.hyperparameters import NOISE, Hyperparameters, Key
from vff.inference.model.term import Term, Values, exchangeable_factors
from vff.inference.posterior import Posterior
from vff.inference.solvers.cotangents import Cotangents
from vff.inference.solvers.direct import NormalEquations, moved_gram
from vff.inference.solvers.expansion import Slopes
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.low_rank import GramRoot
from vff.inference.solvers.records import Drift, Intercept, RowNoise
from vff.inference.solvers.whitening import LatticeGram
from vff.linalg import BlockDiagonal
from vff.moments import MOST_FEW, ColumnRequest, Harmonics, Moments, NoisySums
from vff.parameters import PositiveVector

_FEATURES_PER_ROW = 4  # times fewer rows than features, with which a root of their Gram matrix pays
_EXACT = 1e-9  # of the Gram matrix; sums that were carried to fewer harmonics are off by 1e-12


@dataclass(frozen=True)
class SumModel:
    """A sum of terms, those of the moments; hyperparameters in units of the domains, targets as they are there."""

    terms: tuple[Term, ...]
    moments: Moments
    tails: tuple[TailRows, ...] = ()
    """Rows beyond the domain, which only a model of one factor may have."""
    sites: bool = False
    """Whether the sums are those of sites that stand for another likelihood; the noise variance is one then."""
    averages: tuple[np.ndarray, ...] | None = None
    """Of sites: averages of the features over the rows, (P,) by term, where the weights of the sums are not theirs."""
    intercept: float | None = None
    """Prior variance of a constant beside the terms; None where there is none."""
    noise_limits: tuple[float, float] = NOISE_BOUNDS
    """Between which bounds the noise variance is learnt."""
    known: LogPriors | None = None
    """What is known of the hyperparameters beforehand; None where nothing is."""
    widest: float = np.inf
    """The largest prior variance that all terms together are let have."""
    row_noise: RowNoise | None = None
    """Of sums whose weights have the variances of their rows in them; the noise variance is one then."""
    noisy: NoisySums | None = None
    """Where rows have error bars and the noise beside them is learnt: sums of these terms by error, for all harmonics.

    ``moments`` are then without weights for how well a row is known.
    """
    few: LearningRows | None = None
    """The rows themselves, where they are few: then it is their evidence that learning climbs."""

    @property
    def columns(self) -> tuple[tuple[ColumnRequest, ...], ...]:
        """The functions of every factor of every term."""
        return tuple(term.factors for term in self.moments.request.terms)

    @property
    def harmonics(self) -> Harmonics:
        """M of every factor of every term; None for levels."""
        return self.moments.request.harmonics

    @property
    def size(self) -> int:
        """P, all features together."""
        return self.moments.request.size

    @property
    def parameters(self) -> PositiveVector:
        return self._layout

    @cached_property
    def _layout(self) -> PositiveVector:
        bounds = [bound for term in self.terms for bound in term.bounds] + [
            limits_beside(self.noisy, self.noise_limits)
        ]
        for place in self.variances:
            low, high = bounds[place]
            most = min(high, self.widest / len(self.terms))
            bounds[place] = min(low, most), most
        lower, upper = zip(*bounds, strict=True)
        return PositiveVector(tuple(map(str, self.keys)), lower, upper)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Whose every parameter is, in the order of theta."""
        found: list[Key] = []
        for s, term in enumerate(self.terms):
            found += [Key(s, None, "variance"), *(Key(s, d, own.name) for _, d, own in term.parameters)]
        return (*found, NOISE)

    @property
    def variances(self) -> np.ndarray:
        """Where the variance of every term stands among the parameters, (T,); its others follow it."""
        return np.cumsum([0, *(len(term.names) for term in self.terms[:-1])])

    @property
    def learnt(self) -> np.ndarray:
        """Which parameters are learnt, and not held; sites, and rows of known noise, have a noise variance of one."""
        known = self.sites or (self.row_noise is not None and self.noisy is None)
        return np.array([key != NOISE or not known for key in self.keys]) & ~self.parameters.held

    @property
    def noise_held(self) -> bool:
        """Whether the noise variance is known."""
        return bool(self.parameters.held[-1])

    def restricted(self, harmonics: Harmonics) -> "SumModel":
        """The same rows with fewer harmonics."""
        fewer = replace(self, moments=self.moments.restricted(harmonics))
        hand_on(self, fewer)
        return fewer

    @property
    def exchangeable(self) -> Exchangeable:
        """Terms that may be eliminated: their factors that are levels, where sums stay."""
        if self.tails or self.noisy is not None:
            return NONE
        return exchangeable_factors(self.terms)

    eliminated = cached_property(separated)
    """Which term is eliminated, and its sums apart from those of the others."""
    crossed = cached_property(crossed)
    """Sums of two columns of many levels apart from the others."""

    def alone(self, s: int) -> "SumModel":
        """One term by itself, with the same rows."""
        if len(self.terms) == 1:
            return self
        first = int(self.variances[s])
        own = [*range(first, first + len(self.terms[s].names)), len(self.keys) - 1]
        more: dict[str, Any] = {"known": None if self.known is None else self.known.taken(own)}
        more |= {"intercept": self.intercept, "widest": self.widest, "noise_limits": self.noise_limits}
        more |= {"few": self.few, "row_noise": self.row_noise}
        more["noisy"] = None if self.noisy is None else self.noisy.terms((s,))
        return SumModel((self.terms[s],), self.moments.term(s), self.tails, self.sites, **more)

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of all rows, inside and outside."""
        return self.moments.weight + sum(float(tail.w.sum()) for tail in self.tails)

    @property
    def rows(self) -> float:
        """How many rows there are, those of weight w counted w times; those of sites are counted as they are."""
        if self.row_noise is not None:
            return self.row_noise.rows
        return float(self.moments.n) if self.sites else self.weight

    @property
    def has_error_bars(self) -> bool:
        """Whether rows have variances of their own."""
        return self.row_noise is not None or self.noisy is not None

    @cached_property
    def climbed(self) -> Model[Any]:
        """What learning climbs: itself, or the process given its rows."""
        return self if self.few is None else RowModel(self, self.few)

    @cached_property
    def _weighed(self) -> "dict[float, tuple[SumModel, Moments]]":
        return {}

    def weighed(self, noise: float) -> "SumModel":
        """Rows with error bars beside a noise variance, as rows of their own weights beside one that is one."""
        return self._weighed_and_drift(noise)[0]

    def _weighed_and_drift(self, noise: float) -> "tuple[SumModel, Moments]":
        """The same, and the derivatives of its sums in log noise, for no fewer harmonics."""
        if noise not in self._weighed:
            assert self.noisy is not None
            row_noise = RowNoise(self.weight, self.noisy.log_noise(noise))
            sums, drift = self.noisy.near(self.harmonics).weighed_and_drift(noise)
            model = replace(self, moments=sums.restricted(self.harmonics), row_noise=row_noise, noisy=None, few=None)
            self._weighed.clear()  # what was asked for before is asked for no more
            self._weighed[noise] = model, drift
        return self._weighed[noise]

    def weighed_at(self, setting: Hyperparameters) -> "tuple[SumModel, Hyperparameters]":
        """The model whose sums are those at a setting, and the setting there; itself where rows have no error bars."""
        if self.noisy is None:
            return self, setting
        return self.weighed(setting.noise), setting._replace(noise=1.0)

    def _drift(self, setting: Hyperparameters) -> Drift:
        """Of what the rows sum to, in the logarithm of the noise beside error bars."""
        assert self.noisy is not None
        _, moments = self._weighed_and_drift(setting.noise)
        change = replace(self, moments=moments.restricted(self.harmonics), noisy=None)
        own = change.equations(setting)
        totals = change.weight, change.prior_trace(setting), change.intercept_at(setting)
        return Drift(own.G, own.b, own.yy, *totals, self.noisy.log_noise_drift(setting.noise))

    @property
    def target(self) -> float:  # sum w y
        return self.moments.target + sum(float(tail.w @ tail.y) for tail in self.tails)

    def unpack(self, theta: np.ndarray) -> Hyperparameters:
        *values, noise = np.exp(theta).tolist()
        left = iter(values)
        return Hyperparameters(tuple({name: next(left) for name in term.names} for term in self.terms), noise)

    def pack(self, setting: Hyperparameters) -> np.ndarray:
        """The logarithms of a setting."""
        terms = zip(self.terms, setting.terms, strict=True)
        return np.log([*(values[name] for term, values in terms for name in term.names), setting.noise])

    @property
    def solver(self) -> Solver:
        """What its equations are solved by."""
        found = choose_solver(self.moments.request, self.rank, self.exchangeable)
        if self.noisy is not None and not found.exact:
            raise ValueError(
                f"a noise variance that is learnt beside error bars needs a factor of all features, and there are "
                f"{self.size:,}, too many for one; use fewer frequencies, or noise_variance=0"
            )
        return found

    @property
    def factored(self) -> int:
        """How many features its solver works with at a time: all, or those beside levels."""
        return self.solver.factored(self.moments.request, self.exchangeable)

    @property
    def rank(self) -> int | None:
        """That of the Gram matrix, where rows are few and it has a root; sites may be negative, and have none."""
        weighed = self.noisy is not None or self.row_noise is not None
        if self.sites or self.tails or weighed or self.moments.n > MOST_FEW:
            return None
        if _FEATURES_PER_ROW * self.moments.n > self.size:
            return None
        return self.gram_root.L.shape[1] if self.gram_root.error < _EXACT else None

    @cached_property
    def gram_root(self) -> GramRoot:
        """Of the Gram matrix, as few columns as its rank."""
        return GramRoot.of(self.inside.G, self.moments.n)

    @cached_property
    def root_sides(self) -> np.ndarray:
        """The sums over rows of targets and of features, in the columns of the root, (R, 1 or 2)."""
        sides = [self.inside.b] if self.intercept is None else [self.inside.b, np.concatenate(self.features_sums)]
        return np.stack([self.gram_root.preimage(own) for own in sides], axis=1)

    @cached_property
    def features_sums(self) -> tuple[np.ndarray, ...]:
        """Of the weighted features over the rows inside, by term."""
        return self.moments.features_sums

    @property
    def iterative(self) -> bool:
        """Whether the model is solved without a factor of its P x P matrix."""
        return not self.solver.exact

    @cached_property
    def lattice(self) -> LatticeGram:
        """Weighted nodes that stand for the rows, for products with the Gram matrix."""
        return LatticeGram(self.moments)

    @cached_property
    def inside(self) -> NormalEquations:
        # rows outside carry their own targets; y'Wy is the only sum that does not depend on the rate
        yy = self.moments.target_squared + sum(tail.yy for tail in self.tails)
        return NormalEquations(self.weight, yy, self.moments.project, self.moments.gram())

    def transform(self, setting: Hyperparameters) -> StackedTransform:
        """Coordinates of the prior at this setting."""
        return StackedTransform(tuple(term.transform(basis, values) for term, basis, values in self._at(setting)))

    def equations(self, setting: Hyperparameters) -> NormalEquations:
        """What the rows say, in the coordinates of the prior at this setting."""
        inside, transform = self.inside, self.transform(setting)
        b, states = transform.forward(inside.b), []
        if self.tails:
            prior = self.only_prior(setting)
            for tail in self.tails:
                Z, own = prior.tail_states(tail.side), prior.tail_sums(tail)
                b = b + Z @ own.project
                states.append((Z, own.gram))
        return replace(inside, b=b, G=moved_gram(inside.G, transform, states))

    def only_prior(self, setting: Hyperparameters) -> Prior:
        """Of the only factor of the only term."""
        (term,), (values,) = self.terms, setting.terms
        return term.prior(0, self.columns[0], values)

    def centre(self, setting: Hyperparameters) -> np.ndarray:
        """Average of the features over all rows, in the coordinates of the prior, (P,)."""
        if self.averages is not None:
            return self.transform(setting).forward(np.concatenate(self.averages))
        return self._features_total(setting) / self.weight

    def intercept_at(self, setting: Hyperparameters) -> Intercept | None:
        """What the rows say of the constant."""
        if self.intercept is None:
            return None
        return Intercept(self._features_total(setting), self.target, self.intercept)

    def _features_total(self, setting: Hyperparameters) -> np.ndarray:
        """Sum of the weighted features over all rows, in the coordinates of the prior, (P,)."""
        total = self.transform(setting).forward(np.concatenate(self.features_sums))
        if self.tails:
            prior = self.only_prior(setting)
            for tail in self.tails:
                total = total + prior.tail_states(tail.side) @ prior.tail_sums(tail).total
        return total

    def prior(self, setting: Hyperparameters) -> BlockDiagonal:
        """K at this setting."""
        return BlockDiagonal(tuple(term.precision(basis, values) for term, basis, values in self._at(setting)))

    def _at(self, setting: Hyperparameters) -> Iterator[tuple[Term, tuple[ColumnRequest, ...], Values]]:
        return zip(self.terms, self.columns, setting.terms, strict=True)

    varying = cached_property(prior_variance_sums)
    """What sum w k(x, x) of every term is made of, ``Term.variance_sums``; None where k(x, x) is constant."""

    def prior_traces(self, setting: Hyperparameters) -> list[float]:
        """sum w k(x, x) over all rows, by term."""
        return [
            values["variance"] * self.weight if sums is None else term.variance_total(columns, sums, values)
            for term, columns, sums, values in zip(self.terms, self.columns, self.varying, setting.terms, strict=True)
        ]

    def prior_trace(self, setting: Hyperparameters) -> float:
        """sum w k(x, x) over all rows."""
        return sum(self.prior_traces(setting))

    def prior_trace_slopes(self, s: int, values: Values) -> dict[str, float]:
        """Derivatives of a term's part of it in the logarithms of its hyperparameters; those left out are zero."""
        sums = self.varying[s]
        if sums is None:
            return {"variance": values["variance"] * self.weight}
        return self.terms[s].variance_total_slopes(self.columns[s], sums, values)

    def at(self, theta: np.ndarray) -> LinearGaussian:
        model, setting = self.weighed_at(self.unpack(theta))
        form = self.solver.at(model, setting)
        return form if self.known is None else replace(form, log_prior=self.known.value(theta))

    def posterior(self, form: LinearGaussian, theta: np.ndarray) -> Posterior:
        """q(f) there, from the form that the model has."""
        return self.solver.posterior(form, self, self.unpack(theta))

    def pull_back(self, theta: np.ndarray, cotangents: Cotangents) -> np.ndarray:
        setting, prior = self.unpack(theta), cotangents.model.block_prior
        weighed, _ = self.weighed_at(setting)
        gradient: list[float] = []
        for s, (term, basis, values) in enumerate(self._at(setting)):
            part = term.pull_back(basis, values, prior.blocks[s], prior.part(cotangents.prior, s))
            for name, slope in weighed.prior_trace_slopes(s, values).items():
                part[name] += cotangents.prior_trace * slope
            gradient += [part[name] for name in term.names]
        if self.tails:
            gradient = [*(gradient + slopes_of_tails(self, setting, cotangents))]
        log_noise = cotangents.log_noise if self.noisy is None else cotangents.along(self._drift(setting))
        slopes = np.array([*gradient, log_noise])
        return slopes if self.known is None else slopes + cotangents.log_prior * self.known.slope(theta)

    def expands(self, closed: LinearGaussian) -> bool:
        """Whether second derivatives are known: sums that move with hyperparameters are not expanded."""
        return closed.expansion is not None and not self.tails

    def slopes(self, theta: np.ndarray, closed: LinearGaussian) -> Slopes:
        """First and second derivatives of what learning climbs."""
        return slopes_of(self, theta, closed)

    def bound_gap_by_term(self, closed: LinearGaussian, theta: np.ndarray) -> np.ndarray:
        """Each term's part of T = [sum w k(x, x) - tr(K^-1 G)] / (2 noise), nats: what its features miss."""
        model, setting = self.weighed_at(self.unpack(theta))
        whole = np.array(model.prior_traces(setting))
        return np.maximum(0.5 * closed.tau * (whole - np.array(closed.explained_by_term)), 0.0)

    def scales(self, closed: LinearGaussian) -> np.ndarray:
        """Rough curvature of the bound in every log parameter: rows for the noise, edf for a term."""
        edf = np.maximum(1.0, edf_by_term(closed))
        return np.concatenate([np.repeat(edf, [len(term.names) for term in self.terms]), [self.weight]])
