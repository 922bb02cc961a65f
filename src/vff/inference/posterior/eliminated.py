"""S where one term was eliminated: its block is diagonal and a product of few columns, and is never written out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.inference.posterior.covariance import Arrays, Features, WrittenCovariance
from vff.inference.posterior.direct import covariance_root
from vff.inference.posterior.pure import Part
from vff.inference.posterior.reduced_blocks import reduced_blocks
from vff.linalg import LevelAxes, MatrixView
from vff.moments import LetterFunction, MomentRequest, Pair


@dataclass(frozen=True)
class _LevelBlock(MatrixView):
    """diag(d) - X V X'."""

    d: np.ndarray
    X: np.ndarray
    V: np.ndarray

    def written(self) -> np.ndarray:
        return np.diag(self.d) - self.X @ self.V @ self.X.T

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        shared = np.einsum("...r,...r->...", self.X[rows] @ self.V, self.X[columns])
        return np.where(rows == columns, self.d[rows], 0.0) - shared

    def diagonal(self) -> np.ndarray:
        return self.d - np.einsum("lr,lr->l", self.X @ self.V, self.X)


@dataclass(frozen=True)
class Eliminated(WrittenCovariance):
    """S = [[V, -V X'], [-X V, D + X V X']], V that of the coefficients of the other terms."""

    term: int
    """Which was eliminated."""
    others: np.ndarray
    """V, (R, R)."""
    own: np.ndarray
    """D, (L,)."""
    reach: np.ndarray
    """X, (L, R): how far a level follows the others."""

    @cached_property
    def _kept(self) -> tuple[int, ...]:
        return tuple(s for s in range(len(self.terms)) if s != self.term)

    @cached_property
    def _places(self) -> dict[int, slice]:
        """Where each of the other terms stands among these."""
        slices = MomentRequest(tuple(self.request.terms[s] for s in self._kept)).slices
        return dict(zip(self._kept, slices, strict=True))

    @cached_property
    def between(self) -> dict[Pair, np.ndarray]:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        places, e, found = self._places, self.term, {}
        for s, t in self.request.pairs:
            if e not in (s, t):
                found[s, t] = self.others[places[s], places[t]]
            elif s == e:
                found[s, t] = self._across[:, places[t]]
            else:
                found[s, t] = self._across[:, places[s]].T
        return found

    @cached_property
    def _across(self) -> np.ndarray:
        """-X V, (L, R)."""
        return -self.reach @ self.others

    def _taken(self, s: int) -> np.ndarray:
        """K^-1 - S of one of the other terms."""
        place = self._places[s]
        return self.terms[s].prior_covariance() - self.others[place, place]

    @cached_property
    def _block(self) -> _LevelBlock:
        """The same of the levels."""
        return _LevelBlock(self.terms[self.term].variance - self.own, self.reach, self.others)

    def explained_function(self, s: int) -> LetterFunction:
        return self.terms[s].square_of(self._block) if s == self.term else self.terms[s].square(self._taken(s))

    def pure_function(self, part: Part) -> LetterFunction:
        if part.term != self.term:
            return part.process.square(part.reduced(part.reduced(self._taken(part.term)).T))
        if part.untouched:
            return part.process.square_of(self._block)
        shape = self.request.terms[self.term].shape
        own = reduced_blocks(part, LevelAxes(shape, tuple(range(len(shape)))), self._block.d[:, None, None])
        return part.process.square_of(_LevelBlock(own.blocks[:, 0, 0], part.reduced(self.reach), self.others))

    @property
    def functions(self) -> tuple[list[LetterFunction], list[LetterFunction]]:
        return self._own_functions, self.pair_functions

    def coefficient_variances(self, s: int) -> np.ndarray:
        if s == self.term:
            return self.terms[s].variance - self._block.diagonal()
        return np.diagonal(self.others)[self._places[s]].copy()

    def own_quad(self, s: int, weights: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        if s != self.term:
            taken = self._taken(s) if Z is None else Z.T @ self._taken(s) @ Z
            return np.einsum("np,np->n", weights @ taken, weights)
        features = weights if Z is None else weights @ Z.T
        moved = features @ self.reach
        return features**2 @ self._block.d - np.einsum("nr,nr->n", moved @ self.others, moved)

    def arrays(self) -> Arrays:
        R, L = self.request.size - self.terms[self.term].size, self.terms[self.term].size
        yield self.others, (R, R), "a covariance"
        yield self.own, (L,), "variances of levels"
        yield self.reach, (L, R), "how far levels follow the other terms"

    def check(self) -> None:
        if not 0 <= self.term < len(self.terms):
            raise ValueError(f"one of {len(self.terms)} terms was expected to be eliminated, found number {self.term}")

    def outer(self, features: Features) -> np.ndarray:
        """phi'(K^-1 - S)phi: with w = phi_r - X'phi_l, phi_r'K^-1 phi_r + phi_l'(v - D)phi_l - w'V w."""
        N = next(len(phi.product) for phi in features if phi is not None)
        total, seen = np.zeros((N, N)), np.zeros((N, len(self.others)))
        for s, place in self._places.items():
            if (phi := features[s]) is not None:
                seen[:, place] = phi.product
                total += phi.product @ self.terms[s].prior_covariance() @ phi.product.T
        if (phi := features[self.term]) is not None:
            seen -= phi.product @ self.reach
            total += self._own_outer(phi.product)
        return total - seen @ self.others @ seen.T

    def _own_outer(self, features: np.ndarray) -> np.ndarray:
        """phi'(K^-1 - D)phi of levels between all rows."""
        return (features * self._block.d) @ features.T

    def _own_times(self, v: np.ndarray) -> np.ndarray:
        """D v."""
        return self.own * v

    def _own_draws(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Of levels given the other terms, (L, n_samples)."""
        return np.sqrt(self.own)[:, None] * rng.standard_normal((self.own.size, n_samples))

    def spread(self, v: np.ndarray, own: np.ndarray) -> float:
        return float(v @ self.product(v))

    def apply(self, v: np.ndarray) -> np.ndarray:
        return self.product(v)

    def product(self, v: np.ndarray) -> np.ndarray:
        slices = self.request.slices
        levels = v[slices[self.term]]
        others = np.concatenate([v[slices[s]] for s in self._kept]) if self._kept else np.zeros(0)
        moved = self.others @ (others - self.reach.T @ levels)
        return self._joined(moved, self._own_times(levels) - self.reach @ moved)

    def _joined(self, others: np.ndarray, levels: np.ndarray) -> np.ndarray:
        parts = [others[self._places[s]] if s != self.term else levels for s in range(len(self.terms))]
        return np.concatenate(parts)

    def own_times(self, v: np.ndarray) -> np.ndarray:
        """S_ss v_s of every term s, (P,)."""
        slices, found = self.request.slices, []
        for s, place in enumerate(slices):
            if s == self.term:
                found.append(self._own_times(v[place]) + self.reach @ (self.others @ (self.reach.T @ v[place])))
            else:
                own = self._places[s]
                found.append(self.others[own, own] @ v[place])
        return np.concatenate(found)

    def draws(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        others = covariance_root(self.others) @ rng.standard_normal((len(self.others), n_samples))
        return self._joined(others, self._own_draws(n_samples, rng) - self.reach @ others)
