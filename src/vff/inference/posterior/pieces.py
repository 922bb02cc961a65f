"""S that has a structure (theory §10): terms are independent, S_s a sum of Kronecker products over its factors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from vff.inference.model.products import evaluated
from vff.inference.posterior.covariance import AbstractCovariance, Answers, Arrays, Features
from vff.inference.posterior.pure import PureEffect
from vff.inference.posterior.term import Rows, Vectors, Written, stretches
from vff.linalg import apply_along, product_rows

Roots = tuple[tuple[tuple[np.ndarray, ...], ...], ...]
"""By term, piece and group."""
Reduction = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Pieces(AbstractCovariance):
    """S = sum over pieces of kron_g L_g L_g' for every term."""

    roots: Roots
    """L by term, piece and group; a group is a factor of the term, or the whole term."""
    whiteners: tuple[tuple[np.ndarray, ...], ...]
    """G_d for every factor of every term, K_d^-1 = G_d G_d' for unit variance."""

    def arrays(self) -> Arrays:
        for shape, pieces, whiteners in zip(
            (term.shape for term in self.request.terms), self.roots, self.whiteners, strict=True
        ):
            for root, size in zip(whiteners, shape, strict=True):
                yield root, (size, root.shape[-1]), "a root of the prior"
            for piece in pieces:
                groups = shape if len(piece) == len(shape) else (prod(shape),)
                for root, size in zip(piece, groups, strict=True):
                    yield root, (size, root.shape[-1]), "a root of the covariance"

    def check(self) -> None:
        if not all(self.roots):
            raise ValueError("a covariance for every term was expected, found none")

    def _products(self, s: int, phi: Sequence[np.ndarray], reduction: Reduction) -> np.ndarray:
        """phi'K^-1 phi - phi'S phi, with what ``reduction`` makes of the rows of phi L for every factor L."""
        pieces, whiteners = self.roots[s], self.whiteners[s]
        prior = _product([reduction(own @ G) for own, G in zip(phi, whiteners, strict=True)])
        whole = len(pieces[0]) < len(phi)
        groups = [product_rows(list(phi))] if whole else list(phi)
        parts = [_product([reduction(own @ L) for own, L in zip(groups, piece, strict=True)]) for piece in pieces]
        return self.terms[s].variance * prior - np.sum(parts, axis=0)

    def _written_size(self, s: int) -> int:
        """Numbers per row that are kept at a time."""
        sizes = [len(G) for G in self.whiteners[s]]
        whole = len(self.roots[s][0]) < len(sizes)
        return 2 * sum(sizes) + (2 if whole else 1) * prod(sizes if whole else sizes[1:])

    def answers(self, s: int, x: np.ndarray, rows: Rows, vectors: Vectors) -> tuple[list[np.ndarray], np.ndarray]:
        found, explained = [np.empty(len(x)) for _ in vectors], np.zeros(len(x))
        for some in stretches(len(x), self._written_size(s)):
            phi = self.terms[s].written(x[some]).factors
            for value, c in zip(found, vectors, strict=True):
                value[some] = evaluated(phi, c)
            explained[some] = self._products(s, phi, _squares)
        return found, explained

    def pure(self, effect: PureEffect, x: np.ndarray, rows: Rows, vectors: Vectors) -> Answers:
        found, explained, places = [np.zeros(len(x)) for _ in vectors], np.zeros(len(x)), self.request.slices
        for part in effect.parts:
            s, place = part.term, places[part.term]
            for some in stretches(len(x), len(part.monomials) * self._written_size(s)):
                phi = part.factors_at(x[some])
                kept = [_filled(part.kept(phi, monomial), len(x[some])) for monomial in part.monomials]
                for value, v in zip(found, vectors, strict=True):
                    value[some] += np.sum([evaluated(own, v[place]) for own in kept], axis=0)
                pairs = ((one, other) for one in kept for other in kept)
                explained[some] += np.sum([self._between(s, *pair) for pair in pairs], axis=0)
        return found, explained

    def _between(self, s: int, one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> np.ndarray:
        """w'(K^-1 - S_ss)v at every row, for features w and v of one term, factor by factor."""
        pieces, whiteners = self.roots[s], self.whiteners[s]
        prior = _product([_dots(w @ G, v @ G) for w, v, G in zip(one, other, whiteners, strict=True)])
        if len(pieces[0]) < len(one):
            one, other = [product_rows(list(one))], [product_rows(list(other))]
        parts = [_product([_dots(w @ L, v @ L) for w, v, L in zip(one, other, piece, strict=True)]) for piece in pieces]
        return self.terms[s].variance * prior - np.sum(parts, axis=0)

    def product(self, v: np.ndarray) -> np.ndarray:
        return self.times(v)

    def quad(self, features: Features) -> np.ndarray:
        return self._sum(features, _squares)

    def outer(self, features: Features) -> np.ndarray:
        return self._sum(features, _outer)

    def _sum(self, features: Sequence[Written | None], reduction: Reduction) -> np.ndarray:
        parts = [self._products(s, phi.factors, reduction) for s, phi in enumerate(features) if phi is not None]
        return np.sum(parts, axis=0)

    def times(self, v: np.ndarray) -> np.ndarray:
        """S_ss v_s of every term s, (P,)."""
        found = []
        for s, place in enumerate(self.request.slices):
            shape = self.request.terms[s].shape if len(self.roots[s][0]) == len(self.whiteners[s]) else (v[place].size,)
            total = np.zeros(v[place].size)
            for piece in self.roots[s]:
                total += apply_along(v[place], shape, [lambda u, L=L: L @ (L.T @ u) for L in piece])
            found.append(total)
        return np.concatenate(found)


def _product(parts: Sequence[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total


def _filled(factors: Sequence[np.ndarray], N: int) -> list[np.ndarray]:
    """Factors (N, P_d) or (1, P_d) at all rows."""
    return [np.broadcast_to(own, (N, own.shape[1])) for own in factors]


def _dots(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.einsum("np,np->n", one, other)


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.einsum("np,np->n", rows, rows)


def _outer(rows: np.ndarray) -> np.ndarray:
    return rows @ rows.T
