"""Terms in coordinates in which their block of A = K + tau G is nearly the identity (theory §11).

G of a term is that of a lattice of nodes with weights (``moments.quadrature``), so G v is separable. With
U_d' K_d U_d = I and U_d' G_d U_d = diag(lambda_d), D = scale + tau weight lambda_1 x ... x lambda_D and W = D^-1/2 U',
log|A| - log|K| = log|A~| + sum log(D / scale). What that leaves out, columns that are not independent and terms that
overlap, is left to a corner of leading functions (``iterative``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
from scipy.linalg import eigh

from vff.inference.model.term import Term, Values
from vff.linalg import (
    AbstractInvertible,
    BlockDiagonal,
    Dense,
    DenseView,
    Kronecker,
    StructuredCotangent,
    apply_along,
    contracted,
)
from vff.moments import Moments, equivalent_weights

CORNER = 1600  # functions of a term that are taken together in the preconditioner


@dataclass(frozen=True)
class LatticeGram:
    """Phi'W Phi of every term, in the functions that are summed over rows, as that of a lattice."""

    moments: Moments

    @cached_property
    def features(self) -> list[list[np.ndarray]]:
        """Of every factor of every term at its nodes, (n_d, P_d)."""
        return [[basis.evaluate(basis.nodes()) for basis in term.bases] for term in self.moments.request.terms]

    @cached_property
    def weights(self) -> list[np.ndarray]:
        """Of the nodes of every term's lattice."""
        both = zip(self.moments.request.terms, self.moments.grams, strict=True)
        return [equivalent_weights(term, letters) for term, letters in both]

    @cached_property
    def by_column(self) -> list[list[np.ndarray]]:
        """Gram matrices of every factor by itself, relative to the weight of all rows, (P_d, P_d)."""
        return [
            [F.T @ (_marginal(weights, d)[:, None] * F) / self.moments.weight for d, F in enumerate(features)]
            for features, weights in zip(self.features, self.weights, strict=True)
        ]


def _grown(sizes: Sequence[int], d: int) -> int:
    """The size of a box that is one longer along one axis."""
    return prod(size + (e == d) for e, size in enumerate(sizes))


def _marginal(weights: np.ndarray, d: int) -> np.ndarray:
    """Weights of the nodes along one axis."""
    return weights.sum(axis=tuple(e for e in range(weights.ndim) if e != d))


def _weighted(weights: np.ndarray, vectors: Sequence[np.ndarray], d: int | None = None) -> np.ndarray:
    """Weights contracted with a vector along every axis but the d-th."""
    for e in reversed(range(weights.ndim)):
        if e != d:
            weights = np.tensordot(weights, vectors[e], axes=(e, 0))
    return weights


@dataclass(frozen=True)
class WhitenedTerm:
    """One term in the coordinates in which its block of A is nearly the identity."""

    prior: AbstractInvertible
    factors: tuple[AbstractInvertible, ...]
    """K_d, unit variance."""
    scale: float
    """1 / variance."""
    features: tuple[np.ndarray, ...]
    """The prior's functions at the nodes, (n_d, P_d)."""
    by_column: tuple[np.ndarray, ...]
    """Gram matrices of the factors by themselves, in the coordinates of the prior."""
    weights: np.ndarray
    weight: float
    tau: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(F.shape[1] for F in self.features)

    @cached_property
    def _eigen(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """lambda_d, largest first, and U_d."""
        pairs = [eigh(G, K.to_dense()) for G, K in zip(self.by_column, self.factors, strict=True)]
        return [(np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])) for values, vectors in pairs]

    @cached_property
    def U(self) -> list[np.ndarray]:
        return [vectors for _, vectors in self._eigen]

    @cached_property
    def D(self) -> np.ndarray:
        """The preconditioner's diagonal, an axis per factor."""
        return self.scale + self.tau * self.weight * reduce(np.multiply.outer, [values for values, _ in self._eigen])

    @cached_property
    def corner(self) -> tuple[int, ...]:
        """How many of the leading functions of every factor are in the corner that is factored."""
        sizes = [1] * len(self.factors)
        spectra = [values / max(values[0], 1e-300) for values, _ in self._eigen]
        while True:
            open_ended = [d for d, size in enumerate(sizes) if size < self.shape[d] and _grown(sizes, d) <= CORNER]
            if not open_ended:
                return tuple(sizes)
            sizes[max(open_ended, key=lambda d: spectra[d][sizes[d]])] += 1

    @cached_property
    def corner_places(self) -> np.ndarray:
        """Where the corner's functions stand among all of them."""
        grid = np.arange(self.D.size).reshape(self.shape)
        return grid[tuple(slice(0, size) for size in self.corner)].reshape(-1)

    def corner_matrix(self) -> np.ndarray:
        """The term's corner of A~."""
        nodes, D = self._nodes, len(self.factors)
        tensor = self.weights
        for d in range(D):  # axis by axis, nodes become pairs of functions
            F = nodes[d][:, : self.corner[d]]
            pairs = (F[:, :, None] * F[:, None, :]).reshape(F.shape[0], -1)
            tensor = np.moveaxis(np.tensordot(pairs, tensor, axes=(0, d)), 0, d)
        size = self.corner_places.size
        order = [2 * d for d in range(D)] + [2 * d + 1 for d in range(D)]
        gram = tensor.reshape([one for own in self.corner for one in (own, own)]).transpose(order).reshape(size, size)
        root = self._root[self.corner_places]
        corner = self.tau * gram * root * root.T
        corner[np.diag_indices(size)] += self.scale * root[:, 0] ** 2
        return corner

    @cached_property
    def _nodes(self) -> list[np.ndarray]:
        """F U, (n_d, P_d)."""
        return [F @ U for F, U in zip(self.features, self.U, strict=True)]

    @cached_property
    def _root(self) -> np.ndarray:
        return 1.0 / np.sqrt(self.D).reshape(-1, 1)

    def gram(self, v: np.ndarray) -> np.ndarray:
        """U'G U v, (P, S)."""
        values = apply_along(v, self.shape, [lambda u, F=F: F @ u for F in self._nodes])
        values *= self.weights.reshape(-1, 1)
        nodes = [F.shape[0] for F in self._nodes]
        return apply_along(values, nodes, [lambda u, F=F: F.T @ u for F in self._nodes])

    def mv(self, v: np.ndarray) -> np.ndarray:
        """The term's block of A~ times v, (P, S)."""
        u = self._root * v
        return self._root * (self.scale * u + self.tau * self.gram(u))

    def rotated(self, v: np.ndarray) -> np.ndarray:
        """U'v for v in the coordinates of the prior, (P, S)."""
        return apply_along(v, self.shape, [lambda u, U=U: U.T @ u for U in self.U])

    def turned_back(self, v: np.ndarray) -> np.ndarray:
        """U v: to the coordinates of the prior, (P, S)."""
        return apply_along(v, self.shape, [lambda u, U=U: U @ u for U in self.U])

    def to_prior(self, v: np.ndarray) -> np.ndarray:
        """W'v: whitened to the coordinates of the prior."""
        return self.turned_back(self._root * v)

    def to_white(self, v: np.ndarray) -> np.ndarray:
        """W v."""
        return self._root * self.rotated(v)

    @cached_property
    def trace(self) -> float:
        """tr A~ of the block, outside the corner."""
        diagonal = self.weights
        for d, F in enumerate(self._nodes):
            diagonal = np.moveaxis(np.tensordot(F**2, diagonal, axes=(0, d)), 0, d)
        diagonal = ((self.scale + self.tau * diagonal) / self.D).reshape(-1)
        diagonal[self.corner_places] = 0.0
        return float(diagonal.sum())

    @property
    def log_volume(self) -> float:
        """log |A| - log |K| - log |A~| of the block."""
        return float(np.log(self.D / self.scale).sum())

    @cached_property
    def leverages(self) -> list[np.ndarray]:
        """phi'K_d^-1 phi at the nodes of every factor, (n_d,)."""
        both = zip(self.features, self.factors, strict=True)
        return [np.einsum("np,np->n", F, K.solve(F.T).T) for F, K in both]

    @property
    def explained(self) -> float:
        """tr(K^-1 G)."""
        return float(_weighted(self.weights, self.leverages)) / self.scale

    def sandwich(self) -> StructuredCotangent:
        """What the prior keeps of K^-1 G K^-1."""
        if not isinstance(self.prior, Kronecker):
            F = self.features[0]
            return self.prior.project_sandwich(Dense(F.T @ (self.weights[:, None] * F)))
        parts = [F.T @ (_weighted(self.weights, self.leverages, d)[:, None] * F) for d, F in enumerate(self.features)]
        return self.prior.sandwiched(parts)

    @property
    def corner_root(self) -> np.ndarray:
        """D^-1/2 in the corner, (J, 1)."""
        return self._root[self.corner_places]

    def preconditioner(self, excess: np.ndarray) -> StructuredCotangent:
        """What the prior keeps of the preconditioner's inverse, U (D^-1 + excess) U', the excess in the corner."""
        inverse = 1.0 / self.D
        sums = [np.diag(_marginal(inverse, d)) for d in range(inverse.ndim)]
        parts = zip(sums, contracted(excess, [np.eye(size) for size in self.corner]), self.corner, strict=True)
        for part, more, size in parts:
            part[:size, :size] += more
        turned = tuple(U @ part @ U.T for U, part in zip(self.U, sums, strict=True))
        alone = not isinstance(self.prior, Kronecker)
        return self.prior.project(DenseView(turned[0])) if alone else StructuredCotangent(turned)

    def energy(self, m: np.ndarray) -> float:
        """m'G m for m in the coordinates of the prior."""
        values = apply_along(m, self.shape, [lambda u, F=F: F @ u for F in self.features])
        return float(self.weights.reshape(-1) @ values.reshape(-1) ** 2)


def whitened_terms(
    gram: LatticeGram, terms: Sequence[Term], values: Sequence[Values], prior: BlockDiagonal, tau: float
) -> tuple[WhitenedTerm, ...]:
    """Every term at one setting."""
    whitened = []
    for s, (term, own) in enumerate(zip(terms, values, strict=True)):
        columns = gram.moments.request.terms[s].factors
        transforms = term.transform(columns, own).factors
        features = tuple(T.forward(F.T).T for T, F in zip(transforms, gram.features[s], strict=True))
        by_column = tuple(T.forward(T.forward(G).T) for T, G in zip(transforms, gram.by_column[s], strict=True))
        factors = term.blocks(columns, own)
        symmetric = tuple(0.5 * (G + G.T) for G in by_column)
        weights, weight = gram.weights[s], gram.moments.weight
        whitened.append(
            WhitenedTerm(prior.blocks[s], factors, 1.0 / own["variance"], features, symmetric, weights, weight, tau)
        )
    return tuple(whitened)
