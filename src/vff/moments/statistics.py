"""Sufficient statistics: a commutative monoid with subtraction. What is summed, apart from how."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from vff.basis import ColumnBasis, LevelBasis
from vff.moments.gram import features_sum, gram_matrix
from vff.moments.nesting import restrict_gram, restrict_rows
from vff.moments.rows import Basis, ColumnRequest

Pair = tuple[int, int]


@dataclass(frozen=True)
class MomentRequest:
    """What to sum, column by column. Two sets of moments may be combined when their requests are equal."""

    columns: tuple[ColumnRequest, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """P of every column."""
        return tuple(column.basis.size for column in self.columns)

    @property
    def size(self) -> int:
        """All features together."""
        return sum(self.sizes)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each column's features stand among all of them."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs s < t of columns."""
        return tuple(combinations(range(len(self.columns)), 2))


@dataclass(frozen=True)
class Moments:
    """The sums of one pass, described in ``vff.moments``."""

    request: MomentRequest
    n: int
    weight: float
    offset: float
    target: float
    target_squared: float
    grams: tuple[np.ndarray, ...]
    projects: tuple[np.ndarray, ...]
    blocks: Mapping[Pair, np.ndarray]

    @classmethod
    def zero(cls, request: MomentRequest, offset: float = 0.0) -> "Moments":
        grams = tuple(np.zeros(column.basis.double.size) for column in request.columns)
        projects = tuple(np.zeros(size) for size in request.sizes)
        blocks = {(s, t): np.zeros((request.sizes[s], request.sizes[t])) for s, t in request.pairs}
        return cls(request, 0, 0.0, offset, 0.0, 0.0, grams, projects, blocks)

    def _combine(self, other: "Moments", sign: int) -> "Moments":
        if other.request != self.request:
            raise ValueError(
                "these moments sum different functions and cannot be combined; read both with the same domain, "
                "frequencies, edges and levels"
            )
        other = other.recentred(self.offset)
        return Moments(
            self.request,
            self.n + sign * other.n,
            self.weight + sign * other.weight,
            self.offset,
            self.target + sign * other.target,
            self.target_squared + sign * other.target_squared,
            tuple(mine + sign * theirs for mine, theirs in zip(self.grams, other.grams, strict=True)),
            tuple(mine + sign * theirs for mine, theirs in zip(self.projects, other.projects, strict=True)),
            {pair: block + sign * other.blocks[pair] for pair, block in self.blocks.items()},
        )

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both sets of rows together."""
        return self._combine(other, 1)

    def __sub__(self, other: "Moments") -> "Moments":
        """The moments with the other's rows taken back out."""
        return self._combine(other, -1)

    def scaled(self, factor: float) -> "Moments":
        """Every row's weight multiplied by ``factor`` (decay, minibatches)."""
        return replace(
            self,
            weight=factor * self.weight,
            target=factor * self.target,
            target_squared=factor * self.target_squared,
            grams=tuple(factor * gram for gram in self.grams),
            projects=tuple(factor * project for project in self.projects),
            blocks={pair: factor * block for pair, block in self.blocks.items()},
        )

    @property
    def features_sums(self) -> tuple[np.ndarray, ...]:
        """sum w phi(x) of every column, (P,) each."""
        columns = zip(self.request.columns, self.grams, strict=True)
        return tuple(features_sum(column.basis, gram) for column, gram in columns)

    @property
    def project(self) -> np.ndarray:
        """Phi' W (y - offset) of all features, (P,)."""
        return np.concatenate(self.projects)

    def gram_matrix(self) -> np.ndarray:
        """Phi' W Phi of all features, (P, P)."""
        request, places = self.request, self.request.slices
        gram = np.empty((request.size, request.size))
        for column, letters, place in zip(request.columns, self.grams, places, strict=True):
            gram[place, place] = gram_matrix(column.basis, letters)
        for (s, t), block in self.blocks.items():
            gram[places[s], places[t]] = block
            gram[places[t], places[s]] = block.T
        return gram

    def recentred(self, offset: float) -> "Moments":
        """The same rows with y measured from another offset."""
        shift = self.offset - offset
        if shift == 0.0:
            return self
        moved = zip(self.projects, self.features_sums, strict=True)
        return replace(
            self,
            offset=offset,
            target=self.target + shift * self.weight,
            target_squared=self.target_squared + 2.0 * shift * self.target + shift**2 * self.weight,
            projects=tuple(project + shift * total for project, total in moved),
        )

    def in_units(self, scale: float) -> "Moments":
        """The same rows with y (less its offset, which becomes zero) divided by ``scale``."""
        return replace(
            self,
            offset=0.0,
            target=self.target / scale,
            target_squared=self.target_squared / scale**2,
            projects=tuple(project / scale for project in self.projects),
        )

    def column(self, s: int) -> "Moments":
        """The moments of one column alone."""
        request = MomentRequest((self.request.columns[s],))
        return replace(self, request=request, grams=(self.grams[s],), projects=(self.projects[s],), blocks={})

    def with_levels(self, s: int, levels: tuple[Hashable, ...]) -> "Moments":
        """The moments of a column of levels over more levels, of which the rows so far have none."""
        basis = self.request.columns[s].basis
        assert isinstance(basis, LevelBasis)
        if basis.levels == levels:
            return self
        place, size = [levels.index(level) for level in basis.levels], len(levels)

        def spread(old: np.ndarray) -> np.ndarray:
            new = np.zeros((size, *old.shape[1:]))
            new[place] = old
            return new

        return self._with_column(s, LevelBasis(levels), spread(self.grams[s]), spread)

    def _with_column(
        self, s: int, basis: Basis, gram: np.ndarray, rows: Callable[[np.ndarray], np.ndarray]
    ) -> "Moments":
        """Another basis for one column; ``rows`` maps sums over its old features, (P, ...), to those over the new."""
        columns, grams, projects = list(self.request.columns), list(self.grams), list(self.projects)
        columns[s], grams[s], projects[s] = replace(columns[s], basis=basis), gram, rows(projects[s])
        blocks = dict(self.blocks)
        for pair, block in self.blocks.items():
            if s == pair[0]:
                blocks[pair] = rows(block)
            elif s == pair[1]:
                blocks[pair] = rows(block.T).T
        request = MomentRequest(tuple(columns))
        return replace(self, request=request, grams=tuple(grams), projects=tuple(projects), blocks=blocks)

    def restricted(self, harmonics: Sequence[int | None]) -> "Moments":
        """The moments for fewer harmonics per column, read off these without another pass; None leaves a column."""
        moments = self
        for s, M in enumerate(harmonics):
            if M is not None:
                moments = moments._restricted_column(s, M)
        return moments

    def _restricted_column(self, s: int, M: int) -> "Moments":
        large = self.request.columns[s].basis
        assert isinstance(large, ColumnBasis)
        if large.M < M:
            raise ValueError(f"harmonics up to {M} were asked for; these sums stop at {large.M}")
        if large.M == M:
            return self
        small = ColumnBasis(M, large.q)
        gram = restrict_gram(small, large, self.grams[s])
        return self._with_column(s, small, gram, lambda block: restrict_rows(small, large, block))
