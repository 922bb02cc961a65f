"""The form that eliminates a product with levels: a factor for every level, and one of all other terms (theory §29).

What is left of the model is that of ``eliminated``, with E of ``level_blocks`` in place of sums over single levels. The
prior of the term moves with its lengthscales, so derivatives are those of the whole of K and not of one ratio: the
structure of K, a ``Repeated`` over levels, keeps of the covariance the sum of its blocks.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.factors import StackedTransform, TermTransform
from vff.inference.solvers.block_expansion import BlockExpansion
from vff.inference.solvers.cotangents import Cotangents
from vff.inference.solvers.direct import NormalEquations
from vff.inference.solvers.eliminated import EliminatedLinearGaussian, RemainingLinearGaussian, SeparateSums, Totals
from vff.inference.solvers.level_blocks import FactoredLevels, LevelBlocks
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.records import InterceptPosterior, RowNoise
from vff.linalg import (
    BlockGram,
    BlocksByLevel,
    Dense,
    LevelAxes,
    OuterView,
    Repeated,
    StructuredCotangent,
    SummedView,
)


@dataclass(frozen=True)
class BlockElimination:
    """Which term is eliminated, and what its levels sum to."""

    term: int
    levels: LevelBlocks
    within: TermTransform
    """Of the features of one level, to the coordinates of their prior."""
    transform: StackedTransform
    """Of the other terms, to those of theirs."""

    @cached_property
    def inverse(self) -> StackedTransform:
        """From those coordinates back."""
        return self.transform.inverse

    def moved(self, E: np.ndarray) -> np.ndarray:
        """A matrix over (C, h, y), C in the coordinates of the prior."""
        found, R = E.copy(), self.levels.others
        found[:R] = self.transform.forward(found[:R])
        found[:, :R] = self.transform.forward(np.ascontiguousarray(found[:, :R].T)).T
        return 0.5 * (found + found.T)


@dataclass(frozen=True)
class BlockEliminatedLinearGaussian(EliminatedLinearGaussian):
    """A linear-Gaussian model at one setting, with a factor of every level and one of the other terms."""

    elimination: BlockElimination  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def own(self) -> Repeated:
        """K of the term that is eliminated."""
        block = self.prior.blocks[self.elimination.term]
        assert isinstance(block, Repeated)
        return block

    @cached_property
    def factored(self) -> FactoredLevels:
        """The levels at this setting."""
        return FactoredLevels(self.elimination.levels, self.elimination.within, self.own.one, self.noise)

    @cached_property
    def totals(self) -> Totals:
        """E."""
        return Totals.of(self.elimination.moved(self.factored.E))

    @cached_property
    def remaining(self) -> RemainingLinearGaussian:
        of_rows = 0.0 if self.row_noise is None else self.row_noise.log_noise
        noise = RowNoise(self.count, of_rows + self.factored.log_gain)
        return self.without_levels(self.totals, noise, self.own.one.trace_solve(Dense(self.factored.total)))

    def _solved(self, v: np.ndarray) -> np.ndarray:
        """B^-1 v over all levels, (P,) or (P, S)."""
        axes = self.own.axes
        tensor = axes.apart(v).reshape(axes.count, axes.each, -1)
        return axes.together(self.factored.solve(tensor)).reshape(v.shape)

    def _across(self, c: np.ndarray) -> np.ndarray:
        """C c over all levels, (P,) or (P, S), for coefficients of the other terms."""
        raw = self.elimination.transform.transpose(c if c.ndim == 2 else c[:, None])
        found = self.own.axes.together(self.factored.across(raw))
        return found.reshape(len(found), *c.shape[1:])

    def _onto(self, v: np.ndarray) -> np.ndarray:
        """C'v of all levels, (R,) or (R, S)."""
        axes = self.own.axes
        tensor = axes.apart(v).reshape(axes.count, axes.each, -1)
        found = self.elimination.transform.forward(self.factored.onto(tensor))
        return found.reshape(len(found), *v.shape[1:])

    def _back(self, v: np.ndarray, others: np.ndarray) -> np.ndarray:
        return self._solved(v - self._across(others))

    def solve(self, v: np.ndarray) -> np.ndarray:
        kept, own = self._places
        others = self.remaining.solve(v[kept] - self._onto(self._solved(v[own])))
        return self.together(others, self._back(self.noise * v[own], others))

    def _side(self, column: int) -> np.ndarray:
        """h or y of the levels, (P,)."""
        axes, Z = self.own.axes, self.elimination.levels.Z
        term = self.elimination.within
        moved = term.forward(np.ascontiguousarray(Z[:, :, column].T)).T
        return axes.together(np.ascontiguousarray(moved))

    @cached_property
    def intercept_posterior(self) -> InterceptPosterior | None:
        known = self.remaining.intercept_posterior
        if known is None:
            return None
        answer = self.together(known.answer, self._back(self._side(-2), known.answer))
        return InterceptPosterior(known.mean, known.variance, answer)

    @cached_property
    def mean(self) -> np.ndarray:
        others, known = self.remaining.mean, self.remaining.intercept_posterior
        left = self._side(-1) if known is None else self._side(-1) - known.mean * self._side(-2)
        return self.together(others, self._back(left, others))

    def _gram_times(self, levels: np.ndarray) -> np.ndarray:
        """G v of the levels, (P,) or (P, S)."""
        return BlocksByLevel(self.own.axes, self.factored.gram()) @ levels

    def gram_times(self, v: np.ndarray) -> np.ndarray:
        kept, own = self._places
        others, levels = v[kept], v[own]
        mine = self._across(others) + self._gram_times(levels)
        return self.together(self.others.G @ others + self._onto(levels), mine)

    def energy_of(self, c: np.ndarray) -> float:
        kept, own = self._places
        others, levels = c[kept], c[own]
        across = float(levels @ self._across(others))
        mine = float(levels @ self._gram_times(levels))
        return float(others @ (self.others.G @ others)) + 2.0 * across + mine

    @property
    def log_gain(self) -> float:
        return self.remaining.log_gain + self.factored.log_gain

    @property
    def jitter(self) -> float:
        return max(self.remaining.jitter, self.factored.jitter)

    @cached_property
    def _raw_covariance(self) -> np.ndarray:
        """That of the other terms, in the functions that are summed over rows, the constant held."""
        transform = self.elimination.transform
        return transform.transpose(transform.transpose(self.remaining.covariance()).T)

    def spread_over(self, other: LinearGaussian) -> float:
        if not isinstance(other, BlockEliminatedLinearGaussian):
            return super().spread_over(other)
        V, theirs = self.remaining.covariance(), other.factored
        found, raw = float(np.sum(V * other.others.G.dense())), self._raw_covariance
        for mine, rows in zip(self.factored.stretches(), theirs.stretches(), strict=True):
            X = mine.reached[:, :, : len(raw)]
            moved = X @ raw
            found -= 2.0 * float(np.sum(moved * rows.Z[:, :, : len(raw)]))
            own = self.noise * mine.inverse + moved @ X.transpose(0, 2, 1)
            found += float(np.sum(own * theirs.gram(rows.levels)))
        return found

    @cached_property
    def cotangents(self) -> Cotangents:
        return Cotangents(self)

    @cached_property
    def expansion(self) -> BlockExpansion:  # pyright: ignore[reportIncompatibleVariableOverride]
        return BlockExpansion(self)

    def joined(self, others: StructuredCotangent, own: StructuredCotangent) -> StructuredCotangent:
        """What the prior keeps, from what that of the others does, and that of levels."""
        parts = list(others.parts)
        parts.insert(self.elimination.term, own)
        return StructuredCotangent(tuple(parts))

    @cached_property
    def own_covariance(self) -> np.ndarray:
        """(A^-1)_ll summed over levels, (m, m); the constant held."""
        found, raw = np.zeros((self.own.axes.each,) * 2), self._raw_covariance
        for some in self.factored.stretches():
            X = some.reached[:, :, : len(raw)]
            found += np.sum(self.noise * some.inverse + (X @ raw) @ X.transpose(0, 2, 1), axis=0)
        return 0.5 * (found + found.T)

    @cached_property
    def projected_alone(self) -> StructuredCotangent:
        return self.joined(self.remaining.projected_alone, self.own.project(SummedView(self.own_covariance)))

    @cached_property
    def projected_inverse(self) -> StructuredCotangent:
        known = self.intercept_posterior
        if known is None:
            return self.projected_alone
        u = known.answer[:, None]
        return self.projected_alone + known.variance * self.prior.project(OuterView(u, u))

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        own = self.own.one.project_sandwich(Dense(self.factored.total))
        return self.joined(self.remaining.projected_sandwich, own)

    def energies(self) -> list[float]:
        kept, own = self._places
        G, m, levels = self.others.G.dense(), self.mean[kept], self.mean[own]
        found = [float(m[place] @ G[place, place] @ m[place]) for place in self.remaining.block_prior.slices]
        found.insert(self.elimination.term, float(levels @ self._gram_times(levels)))
        return found


class SeparateBlocks(NamedTuple):
    """What rows sum to, the levels of one product with levels apart from the other terms."""

    levels: LevelBlocks
    others: NormalEquations

    @classmethod
    def of(cls, whole: NormalEquations, h: np.ndarray, term: int, axes: LevelAxes) -> "SeparateBlocks":
        """From the equations of all terms, and the sums of the features of this one."""
        G, b = whole.G, whole.b
        assert isinstance(G, BlockGram)
        others, between = SeparateSums.beside(whole, term)
        Z, first = np.empty((axes.count, axes.each, b.size - axes.size + 2)), 0
        for block in between:
            Z[:, :, first : first + block.shape[1]] = axes.apart(block)
            first += block.shape[1]
        Z[:, :, -2], Z[:, :, -1] = axes.apart(h), axes.apart(b[G.slices[term]])
        return cls(LevelBlocks(axes, G.blocks[term].by_level(axes), Z), others)
