"""What is summed over rows that are averages: letters of x times polynomials in how wide a row is."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vff.basis import Letters
from vff.factors.blurred import averages
from vff.factors.blurred.nodes import NodeLetters, nodes
from vff.factors.blurred.scatter import mixing, polynomial_letters
from vff.factors.interval.basis import ColumnBasis
from vff.factors.interval.letters import EdgeLetters


@dataclass(frozen=True)
class Blurring:
    """What the letters of one basis are made of."""

    kind: str
    M: int
    q: int
    reach: float
    """Of the widest row, in half domains."""

    @property
    def plain(self) -> ColumnBasis:
        """The features at points."""
        return ColumnBasis(self.M, self.q)

    @property
    def across(self) -> NodeLetters:
        """Functions of how wide a row is."""
        return NodeLetters(averages.node_count(self.kind, self.M, self.reach), self.reach)

    @property
    def dampings(self) -> tuple[averages.Damping, ...]:
        """D at every node."""
        return _dampings(self)


@lru_cache(maxsize=32)
def _dampings(own: Blurring) -> tuple[averages.Damping, ...]:
    at = nodes(own.across.count, own.reach)
    return tuple(averages.damping(own.kind, own.plain, float(h)) for h in at)


@dataclass(frozen=True)
class AveragedFeatures(Letters):
    """The features, averaged: sum over nodes of D phi(x) L(h)."""

    own: Blurring

    @property
    def size(self) -> int:
        return self.own.plain.size

    @property
    def parts(self) -> tuple[EdgeLetters, NodeLetters]:
        return self.own.plain.single, self.own.across

    def merged(self, sums: np.ndarray) -> np.ndarray:
        by_node = sums.reshape(self.size, -1, *sums.shape[1:])
        return np.sum([D.forward(by_node[:, v]) for v, D in enumerate(self.own.dampings)], axis=0)

    def split(self, coefficients: np.ndarray) -> np.ndarray:
        found = np.stack([D.transpose(coefficients) for D in self.own.dampings], axis=1)
        return found.reshape(-1, *coefficients.shape[1:])

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        return averages.features(self.own.kind, self.own.plain, t[:, 0], t[:, 1])


@dataclass(frozen=True)
class WidthLetters(Letters):
    """Products of two averages are sums of double letters of x, each times a function of h of its own.

    So both are kept apart: the letters are all products of their parts.
    """

    own: Blurring

    @property
    def size(self) -> int:
        return self.own.plain.double.size * self.own.across.size

    @property
    def parts(self) -> tuple[EdgeLetters, NodeLetters]:
        return self.own.plain.double, self.own.across

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        left, right = (part.evaluate(t[:, d]) for d, part in enumerate(self.parts))
        return (left[:, :, None] * right[:, None]).reshape(len(t), self.size)


@dataclass(frozen=True)
class ScatteredLetters(Letters):
    """Averages of the double letters of x, which are so many, whatever the standard deviations are."""

    own: Blurring

    @property
    def size(self) -> int:
        return self.own.plain.double.size

    @property
    def parts(self) -> tuple[EdgeLetters, NodeLetters]:
        return self.own.plain.double, self.own.across

    def merged(self, sums: np.ndarray) -> np.ndarray:
        M, q = self.own.M, self.own.q
        there, back = polynomial_letters(M, q)
        polynomial = np.tensordot(there, sums.reshape(self.size, -1, *sums.shape[1:]), axes=1)
        mixed = _mixed(self.own) @ polynomial.reshape(sums.shape[0], -1)
        return (back @ mixed).reshape(self.size, *sums.shape[1:])

    def split(self, coefficients: np.ndarray) -> np.ndarray:
        there, back = polynomial_letters(self.own.M, self.own.q)
        mixed = _mixed(self.own).T @ (back.T @ coefficients.reshape(self.size, -1))
        found = np.tensordot(there.T, mixed.reshape(self.size, self.own.across.size, -1), axes=1)
        return found.reshape(-1, *coefficients.shape[1:])

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        M, q = self.own.M, self.own.q
        there, back = polynomial_letters(M, q)
        plain = self.own.plain.double.evaluate(t[:, 0]) @ there.T
        found = mixing(M, q, t[:, 1])
        mixed = np.zeros(plain.shape)
        np.add.at(mixed.T, found.rows, found.values * plain.T[found.columns])
        return mixed @ back.T


@lru_cache(maxsize=16)
def _mixed(own: Blurring):  # a sparse matrix
    at = nodes(own.across.count, own.reach)
    return mixing(own.M, own.q, at).matrix(own.plain.double.size)
