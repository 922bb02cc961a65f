"""S where a product with levels was eliminated: a block for every level, and a product of few columns."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vff.factors import TermTransform
from vff.inference.posterior.covariance import Arrays
from vff.inference.posterior.eliminated import Eliminated
from vff.inference.posterior.pure import Part
from vff.inference.posterior.reduced_blocks import reduced_blocks
from vff.inference.posterior.term import TermProcess
from vff.linalg import BlocksByLevel, BlockView, Kronecker, LevelAxes
from vff.moments import LetterFunction

if TYPE_CHECKING:
    from vff.inference.solvers.block_eliminated import BlockEliminatedLinearGaussian


@dataclass(frozen=True)
class EliminatedBlocks(Eliminated):
    """S = [[V, -V X'], [-X V, D + X V X']], V that of the other terms, and D, ``own``, (L, m, m)."""

    levels: tuple[int, ...]
    """Which factors of the term that was eliminated are levels."""

    @classmethod
    def of(cls, form: "BlockEliminatedLinearGaussian", terms: tuple[TermProcess, ...]) -> "EliminatedBlocks":
        """At a setting, from the form there."""
        factored, axes, V = form.factored, form.own.axes, form.remaining.covariance()
        own, reach = np.empty_like(factored.roots), np.empty((axes.count, axes.each, len(V)))
        for some in factored.stretches():
            own[some.levels] = form.noise * some.inverse
            reach[some.levels] = some.reached[:, :, : len(V)]
        flat = form.elimination.transform.forward(reach.reshape(axes.size, len(V)).T).T.reshape(reach.shape)
        return cls(terms, form.elimination.term, V, own, axes.together(flat), axes.levels)

    @cached_property
    def axes(self) -> LevelAxes:
        """Of the term that was eliminated."""
        return LevelAxes(self.request.terms[self.term].shape, self.levels)

    @cached_property
    def _within(self) -> TermTransform:
        """Of the features of one level, to the coordinates of their prior."""
        factors = self.terms[self.term].transform.factors
        return TermTransform(tuple(factors[d] for d in self.axes.within))

    @cached_property
    def _given(self) -> np.ndarray:
        """K^-1 - D of every level, (L, m, m)."""
        term = self.terms[self.term]
        prior = Kronecker(tuple(term.factors[d].K for d in self.axes.within), 1.0 / term.variance)
        return prior.solve(np.eye(self.axes.each)) - self.own

    def _shared(self, reach: np.ndarray) -> np.ndarray:
        """X V X' within levels, (L, m, m), for X (L, m, R)."""
        L, m, R = reach.shape
        moved = (reach.reshape(L * m, R) @ self.others).reshape(reach.shape)
        return moved @ reach.transpose(0, 2, 1)

    def _raw(self, blocks: np.ndarray, transform: TermTransform) -> np.ndarray:
        """Of the functions that are summed over rows: T'B T of every level."""
        for _ in range(2):
            flat = transform.transpose(blocks.transpose(1, 0, 2).reshape(blocks.shape[1], -1))
            blocks = flat.reshape(blocks.shape[1], len(blocks), -1).transpose(1, 2, 0)
        return np.ascontiguousarray(blocks)

    def explained_function(self, s: int) -> LetterFunction:
        if s != self.term:
            return super().explained_function(s)
        blocks = self._given - self._shared(self.axes.apart(self.reach))
        return self.terms[s].square_of(BlockView(self.axes, self._raw(blocks, self._within)))

    def pure_function(self, part: Part) -> LetterFunction:
        if part.term != self.term:
            return super().pure_function(part)
        own = reduced_blocks(part, self.axes, self._given)
        reach = own.axes.apart(part.reduced(self.reach))
        factors = part.process.transform.factors
        within = TermTransform(tuple(factors[d] for d in own.axes.within))
        blocks = self._raw(own.blocks - self._shared(reach), within)
        return part.process.square_of(BlockView(own.axes, blocks))

    def coefficient_variances(self, s: int) -> np.ndarray:
        if s != self.term:
            return super().coefficient_variances(s)
        shared = np.einsum("pr,pr->p", self.reach @ self.others, self.reach)
        return BlocksByLevel(self.axes, self.own).diagonal() + shared

    def own_quad(self, s: int, weights: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        if s != self.term:
            return super().own_quad(s, weights, Z)
        features = weights if Z is None else weights @ Z.T
        moved = features @ self.reach
        own = np.einsum("pn,np->n", self._given_times(features.T), features)
        return own - np.einsum("nr,nr->n", moved @ self.others, moved)

    def _given_times(self, v: np.ndarray) -> np.ndarray:
        """(K^-1 - D) v, (P, S)."""
        return BlocksByLevel(self.axes, self._given).mv(v)

    def _own_times(self, v: np.ndarray) -> np.ndarray:
        return BlocksByLevel(self.axes, self.own).mv(v)

    def _own_outer(self, features: np.ndarray) -> np.ndarray:
        return features @ self._given_times(features.T)

    def arrays(self) -> Arrays:
        R, m = self.request.size - self.terms[self.term].size, self.axes.each
        yield self.others, (R, R), "a covariance"
        yield self.own, (self.axes.count, m, m), "covariances of levels"
        yield self.reach, (self.axes.size, R), "how far levels follow the other terms"

    def check(self) -> None:
        super().check()
        shape = self.request.terms[self.term].shape
        if not self.levels or not set(self.levels) < set(range(len(shape))):
            raise ValueError(f"some of {len(shape)} factors were expected to be levels, found {self.levels!r:.60}")

    def _own_draws(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        values, vectors = np.linalg.eigh(self.own)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        white = rng.standard_normal((self.axes.count, self.axes.each, n_samples))
        return self.axes.together(root @ white)
