"""S where two columns of levels were eliminated: one of them is a diagonal and a sparse product, never written out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from vff.inference.posterior.covariance import Arrays, Features, WrittenCovariance
from vff.inference.posterior.direct import covariance_root
from vff.inference.posterior.pure import Part
from vff.inference.posterior.term import Rows, TermProcess
from vff.inference.solvers.links import FactoredLinks
from vff.linalg import MatrixView, SparseBlock, entries_of
from vff.moments import LetterFunction, MomentRequest, Pair, codes_of_levels

if TYPE_CHECKING:
    from vff.inference.solvers.crossed import CrossedLinearGaussian

_AT_ONCE = 2**23  # numbers that are gathered at a time


@dataclass(frozen=True)
class _OfLevels(MatrixView):
    """A matrix over levels, of which only the diagonal is known: no row has two of them."""

    d: np.ndarray

    def written(self) -> np.ndarray:
        raise TypeError("a matrix over many levels is never written out")

    def diagonal(self) -> np.ndarray:
        return self.d


@dataclass(frozen=True)
class Crossed(WrittenCovariance):
    """S = [[V, -V X'], [-X V, D + X V X']], V that of all terms but the first column of levels, D and X of that.

    X = D [a, C] / noise is dense in the smooth terms, and sparse in the levels of the second column.
    """

    first: int
    """The term of the first column."""
    second: int
    others: np.ndarray
    """V, (P - L, P - L)."""
    own: np.ndarray
    """D, (L,)."""
    reach: np.ndarray
    """X of the terms but the second column, (L, R)."""
    links: SparseBlock
    """X of the second column, (L, L_2)."""

    @classmethod
    def of(cls, form: "CrossedLinearGaussian", terms: tuple[TermProcess, ...]) -> "Crossed":
        """What the data leave open; the covariance of the second column is factored for it."""
        system, (one, two), V = form.solved.at, form.sums.terms, form.remaining.covariance()
        d, W = system.d, form.reach[1]
        if not isinstance(system, FactoredLinks):
            system = FactoredLinks(system.links, system.t)
        kept = [s for s in range(len(terms)) if s != one]
        slices = MomentRequest(tuple(terms[s].request for s in kept)).slices
        place = slices[kept.index(two)]
        rest = np.delete(np.arange(slices[-1].stop), np.r_[place])
        whole = np.empty((slices[-1].stop, slices[-1].stop))
        moved = W @ V
        whole[place, place] = form.noise * system.inverse
        whole[place, place] += moved @ W.T
        whole[place, rest], whole[rest, place] = -moved, -moved.T
        whole[np.ix_(rest, rest)] = V
        a = np.ascontiguousarray(form.sums.Z[0][:, :-2].T)
        reach = np.ascontiguousarray(form.transform.forward(a).T) * d[:, None]
        links = SparseBlock.of(system.links.C.matrix * d[:, None])
        return cls(terms, one, two, whole, form.noise * d, reach, links)

    @cached_property
    def _kept(self) -> tuple[int, ...]:
        return tuple(s for s in range(len(self.terms)) if s != self.first)

    @cached_property
    def _places(self) -> dict[int, slice]:
        """Where each of the other terms stands among these."""
        slices = MomentRequest(tuple(self.request.terms[s] for s in self._kept)).slices
        return dict(zip(self._kept, slices, strict=True))

    @cached_property
    def _rest(self) -> np.ndarray:
        """Where the columns of the dense reach stand among the others."""
        return np.delete(np.arange(len(self.others)), np.r_[self._places[self.second]])

    def _follow(self, v: np.ndarray) -> np.ndarray:
        """X v, (L, ...)."""
        return self.reach @ v[self._rest] + self.links @ v[self._places[self.second]]

    def _onto(self, v: np.ndarray) -> np.ndarray:
        """X'v, (P - L, ...)."""
        found = np.empty((len(self.others), *v.shape[1:]))
        found[self._rest] = self.reach.T @ v
        found[self._places[self.second]] = self.links.matrix.T @ v
        return found

    @cached_property
    def _diagonal(self) -> np.ndarray:
        """diag(X V X'), (L,)."""
        place, V = self._places[self.second], self.others
        across = V[place, self._rest]
        found = np.einsum(
            "lr,lr->l", self.reach @ V[np.ix_(self._rest, self._rest)] + 2.0 * (self.links @ across), self.reach
        )
        corner, starts = V[place, place], self.links.starts
        counts = np.diff(starts)
        for some in _alike(counts):
            each = starts[some, None] + np.arange(int(counts[some[0]]))
            k, x = self.links.places[each], self.links.entries[each]
            found[some] += np.einsum("lj,ljk,lk->l", x, corner[k[:, :, None], k[:, None, :]], x, optimize=True)
        return found

    @cached_property
    def between(self) -> dict[Pair, np.ndarray]:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        """But for that of the two columns, which is asked for by pairs of levels (``_of_pairs``)."""
        places, e, found = self._places, self.first, {}
        for s, t in self.request.pairs:
            if {s, t} == {e, self.second}:
                continue
            if e not in (s, t):
                found[s, t] = self.others[places[s], places[t]]
            else:
                block = -self._follow(self.others[:, places[t if s == e else s]])
                found[s, t] = block if s == e else block.T
        return found

    def _of_pairs(self, levels: np.ndarray, others: np.ndarray) -> np.ndarray:
        """-(X V) of pairs of levels of both columns, (N,)."""
        place = self._places[self.second]
        corner, across = self.others[place, place], self.others[self._rest, place]
        found, counts = np.empty(levels.size), np.diff(self.links.starts)
        step = max(1, _AT_ONCE // max(1, int(counts.max(initial=1)), len(self._rest)))
        for start in range(0, levels.size, step):
            one, two = levels[start : start + step], others[start : start + step]
            some = sparse.csr_array(self.links.matrix[one])
            row = np.repeat(np.arange(one.size), np.diff(some.indptr))
            values = some.data * corner[some.indices, two[row]]
            total = np.bincount(row, values, one.size)
            found[start : start + step] = total + np.einsum("nr,rn->n", self.reach[one], across[:, two])
        return -found

    def _codes(self, s: int, x: np.ndarray) -> np.ndarray:
        """Which level of a term every row has; -1 for none."""
        (column,) = self.terms[s].numbers
        return codes_of_levels(x[:, column], self.terms[s].size)

    def pairs(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        total = super().pairs(x, rows) if self.between else np.zeros(len(x))
        one, two = self._codes(self.first, x), self._codes(self.second, x)
        seen = (one >= 0) & (two >= 0)
        total[seen] += self._of_pairs(one[seen], two[seen])
        return total

    def explained(self, mean: np.ndarray, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        values, total = super(WrittenCovariance, self).explained(mean, x, rows)
        return values, total - 2.0 * self.pairs(x, rows)

    def _taken(self, s: int) -> np.ndarray:
        """K^-1 - S of one of the terms; of the first column only where products of it are as large."""
        if s == self.first:
            moved = self._follow(np.ascontiguousarray(self._follow(self.others).T))
            return np.diag(self.terms[s].variance - self.own) - moved
        place = self._places[s]
        return self.terms[s].prior_covariance() - self.others[place, place]

    def explained_function(self, s: int) -> LetterFunction:
        if s in (self.first, self.second):  # of levels, only the diagonal is asked for
            return self.terms[s].square_of(_OfLevels(self._explained_variances(s)))
        return self.terms[s].square(self._taken(s))

    def _explained_variances(self, s: int) -> np.ndarray:
        return self.terms[s].variance - self.coefficient_variances(s)

    def pure_function(self, part: Part) -> LetterFunction:
        if part.term in (self.first, self.second) and part.untouched:
            return part.process.square_of(_OfLevels(self._explained_variances(part.term)))
        taken = self._taken(part.term)
        return part.process.square(part.reduced(part.reduced(taken).T))

    def coefficient_variances(self, s: int) -> np.ndarray:
        if s == self.first:
            return self.own + self._diagonal
        return np.diagonal(self.others)[self._places[s]].copy()

    def _big(self, features: Features) -> tuple[np.ndarray, np.ndarray | None, list[int]]:
        """Features of the other terms less what the first column takes of them, (N, P - L), and those of that."""
        N = next(len(phi.product) for phi in features if phi is not None)
        seen, used = np.zeros((N, len(self.others))), []
        for s, place in self._places.items():
            if (phi := features[s]) is not None:
                seen[:, place] = phi.product
                used.append(s)
        if (phi := features[self.first]) is None:
            return seen, None, used
        return seen - self._onto(phi.product.T).T, phi.product, used

    def quad(self, features: Features) -> np.ndarray:
        seen, own, used = self._big(features)
        total = -np.einsum("nr,nr->n", seen @ self.others, seen)
        for s in used:
            phi = features[s]
            assert phi is not None
            total += np.einsum("np,np->n", self._prior_times(s, phi.product), phi.product)
        return total if own is None else total + own**2 @ (self.terms[self.first].variance - self.own)

    def outer(self, features: Features) -> np.ndarray:
        """phi'(K^-1 - S)phi: with w = phi_r - X'phi_l, phi_r'K^-1 phi_r + phi_l'(v - D)phi_l - w'V w."""
        seen, own, used = self._big(features)
        total = -seen @ self.others @ seen.T
        for s in used:
            phi = features[s]
            assert phi is not None
            total += self._prior_times(s, phi.product) @ phi.product.T
        return total if own is None else total + (own * (self.terms[self.first].variance - self.own)) @ own.T

    def _prior_times(self, s: int, phi: np.ndarray) -> np.ndarray:
        """phi K^-1 of one of the other terms."""
        return self.terms[s].variance * phi if s == self.second else phi @ self.terms[s].prior_covariance()

    def own_quad(self, s: int, weights: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        features = weights if Z is None else weights @ Z.T
        if s == self.first:
            moved = self._onto(features.T).T
            taken = features**2 @ (self.terms[s].variance - self.own)
            return taken - np.einsum("nr,nr->n", moved @ self.others, moved)
        place = self._places[s]
        prior = np.einsum("np,np->n", self._prior_times(s, features), features)
        return prior - np.einsum("np,np->n", features @ self.others[place, place], features)

    def arrays(self) -> Arrays:
        L, two = self.terms[self.first].size, self.terms[self.second].size
        B = self.request.size - L
        yield self.others, (B, B), "a covariance"
        yield self.own, (L,), "variances of levels"
        yield self.reach, (L, B - two), "how far levels follow the other terms"
        yield self.links.entries, (self.links.entries.size,), "how far levels follow those of another column"

    def check(self) -> None:
        pair, T = (self.first, self.second), len(self.terms)
        if not (0 <= min(pair) < max(pair) < T):
            raise ValueError(f"two of {T} terms were expected to be eliminated, found numbers {pair}")
        entries_of(self.links, (self.terms[self.first].size, self.terms[self.second].size))

    def spread(self, v: np.ndarray, own: np.ndarray) -> float:
        return float(v @ self.product(v))

    def apply(self, v: np.ndarray) -> np.ndarray:
        return self.product(v)

    def product(self, v: np.ndarray) -> np.ndarray:
        slices = self.request.slices
        levels, others = v[slices[self.first]], np.concatenate([v[slices[s]] for s in self._kept])
        moved = self.others @ (others - self._onto(levels))
        return self._joined(moved, self.own * levels - self._follow(moved))

    def _joined(self, others: np.ndarray, levels: np.ndarray) -> np.ndarray:
        parts = [others[self._places[s]] if s != self.first else levels for s in range(len(self.terms))]
        return np.concatenate(parts)

    def own_times(self, v: np.ndarray) -> np.ndarray:
        """S_ss v_s of every term s, (P,)."""
        slices, found = self.request.slices, []
        for s, place in enumerate(slices):
            if s == self.first:
                found.append(self.own * v[place] + self._follow(self.others @ self._onto(v[place])))
            else:
                own = self._places[s]
                found.append(self.others[own, own] @ v[place])
        return np.concatenate(found)

    def draws(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        others = covariance_root(self.others) @ rng.standard_normal((len(self.others), n_samples))
        levels = np.sqrt(self.own)[:, None] * rng.standard_normal((self.own.size, n_samples)) - self._follow(others)
        return self._joined(others, levels)


def _alike(counts: np.ndarray) -> Iterator[np.ndarray]:
    """Rows with as many entries as one another, so many at a time that squares of these can be gathered."""
    order = np.argsort(counts, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
        step = max(1, _AT_ONCE // max(1, int(counts[same[0]]) ** 2)) if same.size else 1
        for start in range(0, same.size, step):
            yield same[start : start + step]
