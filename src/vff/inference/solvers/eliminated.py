"""The form that eliminates the coefficients of one term, of which no row has two, and factors what is left.

With kappa their prior precision, t = noise kappa, and n, h, a, y of every level (``level_sums``), theory (29.2):

    A = [[K + tau G, tau a'], [tau a, kappa + tau n]],    S = K + tau (G - sum a a' / (n + t)),
    log |A| = log |S| + sum log(tau (n + t)),             c_l = (y_l - a_l'c) / (n_l + t)

So what is left is a model of the other terms whose sums move with t. Learning asks for sums over levels alone;
coefficients of levels, and what is known of them, are worked out when somebody asks for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.factors import StackedTransform
from vff.inference.solvers.cotangents import Cotangents
from vff.inference.solvers.direct import DirectLinearGaussian, NormalEquations
from vff.inference.solvers.eliminated_expansion import EliminatedExpansion
from vff.inference.solvers.level_sums import Change, LevelSums
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.records import Intercept, InterceptPosterior, RowNoise
from vff.linalg import BlockDiagonal, BlockGram, Dense, ScaledIdentity, StructuredCotangent, factorise


@dataclass(frozen=True)
class Elimination:
    """Which term is eliminated, and what its levels sum to."""

    term: int
    levels: LevelSums
    transform: StackedTransform
    """Of the other terms, to the coordinates of their prior."""

    def total(self, t: float, power: int) -> np.ndarray:
        """E_p(t) in the coordinates of the prior, (R + 2, R + 2)."""
        found, R = self.levels.total(t, power), self.levels.a.shape[1]
        found[:R] = self.transform.forward(found[:R])
        found[:, :R] = self.transform.forward(np.ascontiguousarray(found[:, :R].T)).T
        return 0.5 * (found + found.T)

    def dot(self, c: np.ndarray) -> np.ndarray:
        """a'c of every level, for coefficients c (R,) or (R, S) of the prior's functions."""
        return self.levels.a @ self.transform.transpose(c)

    def onto(self, v: np.ndarray) -> np.ndarray:
        """sum v_l a_l in the coordinates of the prior, for v (L,) or (L, S)."""
        return self.transform.forward(self.levels.a.T @ v)


class Totals(NamedTuple):
    """E_p(t) by what it is made of."""

    aa: np.ndarray
    ah: np.ndarray
    ay: np.ndarray
    hh: float
    hy: float
    yy: float

    @classmethod
    def of(cls, E: np.ndarray) -> "Totals":
        """From the matrix over (a, h, y)."""
        numbers = float(E[-2, -2]), float(E[-2, -1]), float(E[-1, -1])
        return cls(np.ascontiguousarray(E[:-2, :-2]), E[:-2, -2].copy(), E[:-2, -1].copy(), *numbers)


@dataclass(frozen=True)
class RemainingLinearGaussian(DirectLinearGaussian):
    """The other terms, with the levels integrated out of their sums; what features miss is seen beside them."""

    seen: Dense
    """Phi' W Phi of the rows as they are, (R, R)."""
    of_levels: float
    """tr(K^-1 G) of the levels."""

    @property
    def explained(self) -> float:
        return self.prior.trace_solve(self.seen) + self.of_levels

    @property
    def seen_gram(self) -> np.ndarray:
        return self.seen.dense()

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        return self.prior.project_sandwich(self.seen)

    @property
    def explained_by_term(self) -> list[float]:
        return self.block_prior.trace_solve_by_block(self.seen)


@dataclass(frozen=True)
class EliminatedCotangents(Cotangents):
    """Derivatives of the bound: those of what is left, and those along t."""

    model: "EliminatedLinearGaussian"

    @cached_property
    def prior(self) -> StructuredCotangent:
        model = self.model
        # K is kappa I, so that the derivative in log kappa is all that is asked; t is proportional to kappa
        slope = model.expansion.along_ratio + 0.5 * model.tau * -model.remaining.of_levels
        return model.with_own(model.remaining.cotangents.prior, slope / model.precision)

    @cached_property
    def edf(self) -> float:
        model = self.model
        return model.b.size - model.prior.inner(model.projected_inverse) + model.of_intercept.edf

    @cached_property
    def log_noise(self) -> float:
        return self.model.remaining.cotangents.log_noise + self.model.expansion.along_ratio


@dataclass(frozen=True)
class EliminatedLinearGaussian(LinearGaussian):
    """A linear-Gaussian model at one setting, with a factor of all terms but one."""

    prior: BlockDiagonal
    others: NormalEquations
    """Of the other terms, in the coordinates of their prior."""
    elimination: Elimination

    def with_noise(self, noise: float) -> "EliminatedLinearGaussian":
        return replace(self, noise=noise)

    @property
    def levels(self) -> LevelSums:
        """Of the term that is eliminated."""
        return self.elimination.levels

    @property
    def precision(self) -> float:
        """kappa."""
        own = self.prior.blocks[self.elimination.term]
        assert isinstance(own, ScaledIdentity)
        return own.scale

    @property
    def ratio(self) -> float:
        """t."""
        return self.noise * self.precision

    @cached_property
    def totals(self) -> Totals:
        """E_1(t)."""
        return Totals.of(self.elimination.total(self.ratio, 1))

    @cached_property
    def squared_totals(self) -> Totals:
        """E_2(t)."""
        return Totals.of(self.elimination.total(self.ratio, 2))

    @cached_property
    def remaining(self) -> RemainingLinearGaussian:
        """What is left of the model: the other terms, at this setting."""
        of_rows = 0.0 if self.row_noise is None else self.row_noise.log_noise
        noise = RowNoise(self.count, of_rows + self.levels.log_gain(self.ratio))
        return self.without_levels(self.totals, noise, float(self.levels.n.sum()) / self.precision)

    def without_levels(self, E: Totals, noise: RowNoise, of_levels: float) -> RemainingLinearGaussian:
        """The other terms, what they see of levels taken from their sums; ``of_levels`` is tr(K^-1 G) of these."""
        own, e = self.intercept, self.elimination.term
        prior = BlockDiagonal(tuple(block for s, block in enumerate(self.prior.blocks) if s != e))
        constant = None
        if own is not None:
            constant = Intercept(own.features[self._kept] - E.ah, own.target - E.hy, own.variance)
        seen = Dense(self.others.G.dense())
        return RemainingLinearGaussian(
            prior, self.others.b - E.ay, self.yy - E.yy, self.weight - E.hh, self.prior_trace, self.noise,
            Dense(seen.matrix - E.aa), seen, of_levels,
            sites=self.sites, intercept=constant, log_prior=self.log_prior, row_noise=noise,
        )  # fmt: skip

    @cached_property
    def _places(self) -> tuple[np.ndarray, slice]:
        """Where the others stand among all coefficients, and where the levels do."""
        own = self.prior.slices[self.elimination.term]
        return np.delete(np.arange(self.b.size), own), own

    @property
    def _kept(self) -> np.ndarray:
        return self._places[0]

    def together(self, others: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Coefficients of all terms in their order, from (R, ...) and (L, ...)."""
        kept, own = self._places
        whole = np.empty((self.b.size, *others.shape[1:]))
        whole[kept], whole[own] = others, levels
        return whole

    def with_own(self, others: StructuredCotangent, trace: float) -> StructuredCotangent:
        """What the prior keeps, from what that of the others does, and the trace of the block of levels."""
        parts, e = list(others.parts), self.elimination.term
        parts.insert(e, StructuredCotangent((np.array([trace]),)))
        return StructuredCotangent(tuple(parts))

    def _back(self, v: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(v - a'c) / (n + t): the coefficients of levels that belong to others c; v and c (., S) or (.,)."""
        left = v - self.elimination.dot(others)
        return (left.T / (self.levels.n + self.ratio)).T

    def solve(self, v: np.ndarray) -> np.ndarray:
        kept, own = self._places
        levels = (v[own].T / (self.levels.n + self.ratio)).T
        others = self.remaining.solve(v[kept] - self.elimination.onto(levels))
        return self.together(others, self._back(self.noise * v[own], others))

    @cached_property
    def intercept_posterior(self) -> InterceptPosterior | None:
        known = self.remaining.intercept_posterior
        if known is None:
            return None
        answer = self.together(known.answer, self._back(self.levels.h, known.answer))
        return InterceptPosterior(known.mean, known.variance, answer)

    @cached_property
    def mean(self) -> np.ndarray:
        others, known = self.remaining.mean, self.remaining.intercept_posterior
        left = self.levels.y if known is None else self.levels.y - known.mean * self.levels.h
        return self.together(others, self._back(left, others))

    @property
    def explained(self) -> float:
        return self.remaining.explained

    def energy_of(self, c: np.ndarray) -> float:
        kept, own = self._places
        others, levels = c[kept], c[own]
        across = float(levels @ self.elimination.dot(others))
        return float(others @ (self.others.G @ others)) + 2.0 * across + float(self.levels.n @ levels**2)

    @property
    def rounding(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.remaining.rounding + float(np.finfo(np.float64).eps) * self.tau * abs(self.yy)

    @property
    def log_gain(self) -> float:
        return self.remaining.log_gain + self.levels.log_gain(self.ratio)

    @property
    def log_volume(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.remaining.log_volume

    @property
    def quadratic(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.remaining.quadratic

    def gram_times(self, v: np.ndarray) -> np.ndarray:
        """G v, for v (P,) or (P, S)."""
        kept, own = self._places
        others, levels = v[kept], v[own]
        mine = self.elimination.dot(others) + (self.levels.n * levels.T).T
        return self.together(self.others.G @ others + self.elimination.onto(levels), mine)

    def solve_without(self, s: int, v: np.ndarray) -> np.ndarray:
        """What (K + tau G)^-1 of all terms but one makes of v (P, S), and zero for this one; the constant held."""
        own, e = self.prior.slices[s], self.elimination.term
        v = v.copy()
        v[own] = 0.0
        if s == e:
            kept = self._kept
            A = self.remaining.prior.lower_plus(self.tau * self.others.G.dense())
            v[kept] = factorise(A).solve(v[kept])
            return v
        found, back = self.solve(v), np.zeros_like(v)  # of the others o, (A_oo)^-1 = S_oo - S_os S_ss^-1 S_so
        place = self.remaining.block_prior.slices[s - (s > e)]
        back[own] = factorise(self.remaining.covariance()[place, place]).solve(found[own])
        found -= self.solve(back)
        found[own] = 0.0
        return found

    def spread_over(self, other: LinearGaussian) -> float:
        if not isinstance(other, EliminatedLinearGaussian):
            return super().spread_over(other)
        V, shift = self.remaining.covariance(), self.levels.n + self.ratio
        mine = self.elimination.transform.forward(self.levels.a.T).T / shift[:, None]  # x of every level
        theirs = other.elimination.transform.forward(other.levels.a.T).T
        reached = mine @ V
        own = self.noise / shift + np.einsum("lr,lr->l", reached, mine)
        across = float(np.sum(reached * theirs))
        return float(np.sum(V * other.others.G.dense())) - 2.0 * across + float(other.levels.n @ own)

    @property
    def error(self) -> float:
        return 0.0

    @property
    def jitter(self) -> float:
        return self.remaining.jitter

    @cached_property
    def cotangents(self) -> Cotangents:
        return EliminatedCotangents(self)

    @cached_property
    def expansion(self) -> EliminatedExpansion:  # pyright: ignore[reportIncompatibleMethodOverride]
        return EliminatedExpansion(self)

    @cached_property
    def _own_trace(self) -> float:
        """tr (A^-1)_ll of all levels; the constant held."""
        shift = self.levels.seen(self.ratio, 1)  # sum 1 / (n + t) = (L - sum n / (n + t)) / t
        alone = self.noise * (self.levels.size - shift) / self.ratio
        return alone + float(np.sum(self.remaining.covariance() * self.squared_totals.aa))

    @cached_property
    def projected_alone(self) -> StructuredCotangent:
        return self.with_own(self.remaining.projected_alone, self._own_trace)

    @cached_property
    def projected_inverse(self) -> StructuredCotangent:
        known, E = self.remaining.intercept_posterior, self.squared_totals
        if known is None:
            return self.projected_alone
        u = known.answer  # of levels it is (h - a'u) / (n + t)
        squares = E.hh - 2.0 * float(u @ E.ah) + float(u @ E.aa @ u)
        return self.with_own(self.remaining.projected_inverse, self._own_trace + known.variance * squares)

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        return self.with_own(self.remaining.projected_sandwich, self.remaining.of_levels / self.precision)

    @property
    def explained_by_term(self) -> list[float]:
        found = self.remaining.explained_by_term
        found.insert(self.elimination.term, self.remaining.of_levels)
        return found

    def energies(self) -> list[float]:
        kept, own = self._places
        G, m = self.others.G.dense(), self.mean[kept]
        places = self.remaining.block_prior.slices
        found = [float(m[place] @ G[place, place] @ m[place]) for place in places]
        found.insert(self.elimination.term, float(self.levels.n @ self.mean[own] ** 2))
        return found


class SeparateSums(NamedTuple):
    """What rows sum to, the levels of one term apart from the other terms."""

    levels: LevelSums
    others: NormalEquations

    @classmethod
    def of(cls, whole: NormalEquations, h: np.ndarray, term: int, *, interpolated: bool) -> "SeparateSums":
        """From the equations of all terms, and the sums of the features of this one."""
        G, b = whole.G, whole.b
        assert isinstance(G, BlockGram)
        others, across = cls.beside(whole, term)
        a = np.concatenate([np.zeros((G.blocks[term].shape[0], 0)), *across], axis=1)
        return cls(LevelSums(G.blocks[term].diagonal(), h, b[G.slices[term]], a, interpolated), others)

    @staticmethod
    def beside(whole: NormalEquations, term: int) -> tuple[NormalEquations, list[np.ndarray]]:
        """The equations of all terms but one, and the sums of its products with each of these."""
        G, b = whole.G, whole.b
        assert isinstance(G, BlockGram)
        others = [s for s in range(len(G.blocks)) if s != term]
        across = [np.asarray(G.between[term, t] if term < t else G.between[t, term].T) for t in others]
        places = {s: i for i, s in enumerate(others)}
        between = {(places[s], places[t]): own for (s, t), own in G.between.items() if term not in (s, t)}
        rest = BlockGram(tuple(G.blocks[s] for s in others), between)
        return replace(whole, b=np.delete(b, G.slices[term]), G=rest), across

    def changed(self, whole: NormalEquations, term: int, changes: Sequence[tuple[slice, Change]]) -> "SeparateSums":
        """Those of the same rows with fewer harmonics; sums at nodes are maps of those that are there."""
        fewer = SeparateSums.of(whole, self.levels.h, term, interpolated=self.levels.interpolated)
        return fewer._replace(levels=fewer.levels.with_nodes_of(self.levels, changes))
