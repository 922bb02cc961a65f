"""Sufficient statistics: a commutative monoid with subtraction. What is summed, apart from how."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from vff.basis.protocol import Axis, Basis, Change
from vff.linalg import BlockGram, SparseBlock, along, slices_of
from vff.moments.gram import TermPair, features_sum, term_gram
from vff.moments.noise_nodes import crowded, shares_of
from vff.moments.rows import ColumnRequest, TermRequest, joint

Harmonics = tuple[tuple[int | None, ...], ...]
"""M of every factor of every term; None for levels, which have none."""


Pair = tuple[int, int]
"""Of terms."""
_LISTED = "listed by pairs"
_NUMBERS = ("weight", "target", "target_squared")


class KeyedByPairs:
    """A record whose dictionaries by pairs travel as lists: formats made of JSON have no pairs among their keys."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        listed = [name for name, value in state.items() if isinstance(value, Mapping) and _has_pairs(value)]
        return state | {name: list(state[name].items()) for name in listed} | {_LISTED: listed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        listed = state.get(_LISTED, ())
        vars(self).update({name: value for name, value in state.items() if name != _LISTED})
        vars(self).update({name: dict(state[name]) for name in listed})


def _has_pairs(found: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, tuple) for key in found)


@dataclass(frozen=True)
class MomentRequest:
    """What to sum, term by term. Two sets of moments may be combined when their requests are equal."""

    terms: tuple[TermRequest, ...]

    @classmethod
    def of_columns(cls, columns: Sequence[ColumnRequest]) -> "MomentRequest":
        """One term per column."""
        return cls(tuple(TermRequest((s,), (column,)) for s, column in enumerate(columns)))

    @property
    def n_columns(self) -> int:
        """Columns of the rows."""
        return 1 + max(column for term in self.terms for column in term.numbers)

    def __getstate__(self) -> dict[str, Any]:
        """What follows from the terms is not written: formats made of JSON have no axes among their keys."""
        return {"terms": self.terms}

    @cached_property
    def axes(self) -> dict[Axis, ColumnRequest]:
        """Everything that is read, column after column, with a basis that holds those of all its factors."""
        found: dict[Axis, ColumnRequest] = {}
        for term in self.terms:
            for axis, factor in zip(term.axes, term.factors, strict=True):
                seen = found.get(axis)
                found[axis] = factor if seen is None else replace(factor, basis=joint(seen.basis, factor.basis))
        return dict(sorted(found.items(), key=lambda own: own[0].columns))

    @cached_property
    def columns(self) -> tuple[ColumnRequest, ...]:
        """Every column of the rows, as the first of its axes reads it."""
        every = [(axis.columns, whole.parts) for axis, whole in reversed(self.axes.items())]
        first = {c: part for columns, parts in every for c, part in zip(columns, parts, strict=True)}
        return tuple(first[column] for column in range(self.n_columns))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """P of every term."""
        return tuple(term.size for term in self.terms)

    @property
    def size(self) -> int:
        """All features together."""
        return sum(self.sizes)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each term's features stand among all of them."""
        return slices_of(self.sizes)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs s < t of terms."""
        return tuple(combinations(range(len(self.terms)), 2))

    def pair(self, pair: Pair) -> TermPair:
        """Two of the terms."""
        return TermPair(*(self.terms[s] for s in pair))

    def no_sums_between(self, pair: Pair) -> np.ndarray | SparseBlock:
        """What no rows sum to."""
        shape = self.sizes[pair[0]], self.sizes[pair[1]]
        return SparseBlock.zeros(shape) if self.pair(pair).sparse else np.zeros(shape)

    def changes(self, smaller: "MomentRequest", without: int) -> list[tuple[slice, Callable[[np.ndarray], np.ndarray]]]:
        """What takes sums over features to those with fewer harmonics, and where these stand, of all terms but one."""
        kept = [s for s in range(len(self.terms)) if s != without]
        places = slices_of(self.sizes[s] for s in kept)
        return [(own, self.terms[s].change(smaller.terms[s])) for s, own in zip(kept, places, strict=True)]

    @property
    def harmonics(self) -> Harmonics:
        return tuple(tuple(basis.detail for basis in term.bases) for term in self.terms)


@dataclass(frozen=True)
class Moments(KeyedByPairs):
    """The sums of one pass, described in ``vff.moments``."""

    request: MomentRequest
    n: int
    weight: float
    offset: float
    target: float
    target_squared: float
    grams: tuple[np.ndarray, ...]
    projects: tuple[np.ndarray, ...]
    blocks: Mapping[Pair, np.ndarray | SparseBlock]
    nodes: Mapping[float, "Moments"] = field(default_factory=dict)
    """Where rows have variances of their own, the same sums by node of these (``error_bars``); they add up to these."""

    @classmethod
    def zero(cls, request: MomentRequest, offset: float = 0.0) -> "Moments":
        grams = tuple(np.zeros(term.double_shape) for term in request.terms)
        projects = tuple(np.zeros(size) for size in request.sizes)
        blocks = {pair: request.no_sums_between(pair) for pair in request.pairs}
        return cls(request, 0, 0.0, offset, 0.0, 0.0, grams, projects, blocks)

    def _combine(self, other: "Moments", sign: int) -> "Moments":
        if other.request != self.request:
            raise ValueError(
                "these moments sum different functions and cannot be combined; read both with the same domain, "
                "frequencies, edges and levels"
            )
        other = other.recentred(self.offset)
        both = self._mapped(lambda mine, theirs: mine + sign * theirs, other)
        nodes = dict(self.nodes)
        for variance, theirs in other.nodes.items():
            nodes[variance] = _onto(nodes.get(variance), theirs, float(sign))
        for alone, twelve in [*crowded(nodes)]:
            for variance, shares in zip(alone.tolist(), shares_of(alone).tolist(), strict=True):
                gone = nodes.pop(variance)
                for node, share in zip(twelve.tolist(), shares, strict=True):
                    nodes[node] = _onto(nodes.get(node), gone, share)
        return replace(both, n=self.n + sign * other.n, nodes=nodes)

    def _mapped(self, function: Callable[..., Any], *others: "Moments") -> "Moments":
        """A linear map of the weights of rows; their number stays."""
        every = (self, *others)
        numbers = {name: function(*(getattr(own, name) for own in every)) for name in _NUMBERS}
        arrays = {name: tuple(map(function, *(getattr(own, name) for own in every))) for name in ("grams", "projects")}
        blocks = {pair: function(*(own.blocks[pair] for own in every)) for pair in self.blocks}
        return replace(self, **numbers, **arrays, blocks=blocks)

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both sets of rows together."""
        return self._combine(other, 1)

    def __sub__(self, other: "Moments") -> "Moments":
        """The moments with the other's rows taken back out."""
        return self._combine(other, -1)

    def scaled(self, factor: float) -> "Moments":
        """Every row's weight multiplied by ``factor`` (decay, minibatches)."""
        return self._with_nodes(self._mapped(lambda mine: factor * mine), lambda node: node.scaled(factor))

    def _with_nodes(self, whole: "Moments", change: Callable[["Moments"], "Moments"]) -> "Moments":
        """What these sums became, with the same change of those at every node."""
        return replace(whole, nodes={variance: change(node) for variance, node in self.nodes.items()})

    def blended(self, other: "Moments", rate: float) -> "Moments":
        """The same rows with weights between these and the other's."""
        return replace(self.scaled(1.0 - rate) + other.scaled(rate), n=other.n)

    @property
    def features_sums(self) -> tuple[np.ndarray, ...]:
        """sum w phi(x) of every term, (P,) each."""
        return tuple(features_sum(term.bases, gram) for term, gram in zip(self.request.terms, self.grams, strict=True))

    @property
    def project(self) -> np.ndarray:
        """Phi' W (y - offset) of all features, (P,)."""
        return np.concatenate(self.projects)

    def gram(self) -> BlockGram:
        """Phi' W Phi of all features, (P, P), block by block."""
        both = zip(self.request.terms, self.grams, strict=True)
        return BlockGram(tuple(term_gram(term, letters) for term, letters in both), self.blocks)

    def recentred(self, offset: float) -> "Moments":
        """The same rows with y measured from another offset."""
        shift = self.offset - offset
        if shift == 0.0:
            return self
        moved = zip(self.projects, self.features_sums, strict=True)
        whole = replace(
            self,
            offset=offset,
            target=self.target + shift * self.weight,
            target_squared=self.target_squared + 2.0 * shift * self.target + shift**2 * self.weight,
            projects=tuple(project + shift * total for project, total in moved),
        )
        return self._with_nodes(whole, lambda node: node.recentred(offset))

    def in_units(self, scale: float) -> "Moments":
        """The same rows with y (less its offset, which becomes zero) divided by ``scale``."""
        return replace(
            self,
            offset=0.0,
            target=self.target / scale,
            target_squared=self.target_squared / scale**2,
            projects=tuple(project / scale for project in self.projects),
            nodes={variance / scale**2: node.in_units(scale) for variance, node in self.nodes.items()},
        )

    def term(self, s: int) -> "Moments":
        """The moments of one term alone."""
        return self.terms((s,))

    def terms(self, kept: Sequence[int]) -> "Moments":
        """The moments of some of the terms, in the order given."""
        blocks = {}
        for i, j in combinations(range(len(kept)), 2):
            s, t = kept[i], kept[j]
            blocks[i, j] = self.blocks[s, t] if s < t else self.blocks[t, s].T
        request = MomentRequest(tuple(self.request.terms[s] for s in kept))
        grams, projects = tuple(self.grams[s] for s in kept), tuple(self.projects[s] for s in kept)
        whole = replace(self, request=request, grams=grams, projects=projects, blocks=blocks)
        return self._with_nodes(whole, lambda node: node.terms(kept))

    def with_levels(self, s: int, d: int, levels: tuple[Hashable, ...]) -> "Moments":
        """The moments of a factor over more levels, of which the rows so far have none."""
        basis = self.request.terms[s].bases[d]
        extended, change = basis.extended(levels)
        return self if extended == basis else self._with_factor(s, d, extended, change)

    def _with_factor(self, s: int, d: int, basis: Basis, change: Change) -> "Moments":
        """Another basis for one factor; the change takes sums over its old letters to the new."""
        factor = self.request.terms[s].factors[d]
        return self.with_request(s, d, replace(factor, basis=basis), change)

    def with_request(self, s: int, d: int, column: ColumnRequest, change: Change) -> "Moments":
        """Other functions for one factor; the change takes sums over its old letters to the new."""
        term, terms = self.request.terms[s], list(self.request.terms)
        grams, projects, blocks = list(self.grams), list(self.projects), dict(self.blocks)
        terms[s], grams[s] = term.with_factor(d, column), along(grams[s], d, change.double)

        def rows(sums: np.ndarray) -> np.ndarray:
            """Over the features of the term, (P, Z) or (P,)."""
            changed = along(sums.reshape(*term.shape, *sums.shape[1:]), d, change.single)
            return changed.reshape(terms[s].size, *sums.shape[1:])

        projects[s] = rows(projects[s])
        request = MomentRequest(tuple(terms))
        for pair, block in self.blocks.items():
            if s in pair:
                moved = _moved(block if s == pair[0] else block.T, rows)
                moved = moved if s == pair[0] else moved.T
                blocks[pair] = SparseBlock.of(moved) if request.pair(pair).sparse else moved
        sums = {"grams": tuple(grams), "projects": tuple(projects), "blocks": blocks}
        whole = replace(self, request=request, **sums)
        return self._with_nodes(whole, lambda node: node.with_request(s, d, column, change))

    def restricted(self, harmonics: Sequence[Sequence[int | None]]) -> "Moments":
        """The moments for fewer harmonics per factor, read off these without another pass; None leaves a factor."""
        moments = self
        for s, term in enumerate(harmonics):
            for d, M in enumerate(term):
                if M is not None:
                    moments = moments._restricted_factor(s, d, M)
        return moments

    def _restricted_factor(self, s: int, d: int, M: int) -> "Moments":
        large = self.request.terms[s].bases[d]
        if large.detail is None or large.detail == M:
            return self
        if large.detail < M:
            raise ValueError(f"harmonics up to {M} were asked for; these sums stop at {large.detail}")
        small = large.resized(M)
        return self._with_factor(s, d, small, large.to(small))


def _moved(block: np.ndarray | SparseBlock, rows: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | SparseBlock:
    """A change of the features of its rows; of levels, every one stands somewhere else then."""
    if not isinstance(block, SparseBlock):
        return rows(block)
    places = rows(np.arange(1.0, block.shape[0] + 1.0))
    (new,) = np.nonzero(places)
    order = np.empty(block.shape[0], int)
    order[places[new].astype(int) - 1] = new
    return block.placed(order, (places.size, block.columns))


def _onto(mine: Moments | None, theirs: Moments, share: float) -> Moments:
    """The sums at a node with a share of others added, which may be less than nothing."""
    return theirs.scaled(share) if mine is None else mine + theirs.scaled(share)
