"""From sums of products of letters, one per axis, to Gram matrices of features, and back (theory §2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.basis.protocol import Axis, Basis, Domain, Letters
from vff.linalg import (
    AbstractSymmetric,
    BlocksByLevel,
    Dense,
    Diagonal,
    LevelAxes,
    MatrixView,
    SparseBlock,
    along,
)
from vff.moments.rows import TermRequest, joint

_PAIRS_AT_ONCE = 2**24
SPARSE_FROM = 2**22  # entries between two columns of levels, from where on only those that rows have are kept


def are_levels(letters: Letters, domain: Domain) -> bool:
    """Whether every row of a column has one letter, which is one there."""
    return domain.discrete and letters.local == 1


@dataclass(frozen=True)
class TermPair:
    """The block of two terms."""

    left: TermRequest
    right: TermRequest

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What either term reads."""
        every = dict.fromkeys((*self.left.axes, *self.right.axes))
        return tuple(sorted(every, key=lambda axis: (axis.columns, axis.family, repr(axis.domain))))

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the rows behind the axes, one after another."""
        return tuple(c for axis in self.axes for c in axis.columns)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Of every axis."""
        return tuple(axis.domain for axis in self.axes)

    @cached_property
    def _bases(self) -> list[list[Basis]]:
        """Of the factors over every axis, one or two."""
        terms = self.left, self.right
        return [[own for term in terms if (own := term.basis_of(axis)) is not None] for axis in self.axes]

    @cached_property
    def axis_letters(self) -> tuple[Letters, ...]:
        """The letters to be summed along every axis."""
        return tuple(joint(*own).double if len(own) == 2 else own[0].single for own in self._bases)

    @cached_property
    def _order(self) -> list[int]:
        """Where the axes of (left factors, right factors) stand among those of all axes' features, expanded."""
        terms = self.left, self.right
        found = [(side, axis) for axis in self.axes for side, term in enumerate(terms) if axis in term.axes]
        return [found.index((side, axis)) for side, term in enumerate(terms) for axis in term.axes]

    @cached_property
    def sparse(self) -> bool:
        """Whether these are two columns of so many levels that most pairs of them have no rows."""
        terms = self.left, self.right
        alone = all(len(term.axes) == 1 for term in terms) and len(self.axes) == 2
        levels = alone and all(are_levels(term.bases[0].single, term.axes[0].domain) for term in terms)
        return levels and self.left.size * self.right.size >= SPARSE_FROM

    def block(self, letters: np.ndarray | SparseBlock) -> np.ndarray | SparseBlock:
        """sum w phi_s phi_t' (P_s, P_t) from the sums of products of letters."""
        if self.sparse:
            found = SparseBlock.of(letters)
            return found if self._order == [0, 1] else found.T
        letters = np.asarray(letters)
        tensor, axis = letters, 0
        for own in self._bases:
            tensor = _expanded(tensor, axis, *own) if len(own) == 2 else tensor
            axis += len(own)
        return np.ascontiguousarray(tensor.transpose(self._order)).reshape(self.left.size, self.right.size)

    def letters(self, S: np.ndarray) -> np.ndarray:
        """Coefficients of products of letters whose sum is phi_s' S phi_t; the transpose of ``block``."""
        tensor = S.reshape(*self.left.shape, *self.right.shape).transpose(np.argsort(self._order))
        axis = len(self._order)
        for own in reversed(self._bases):
            axis -= len(own)
            tensor = _contracted(tensor, axis, *own) if len(own) == 2 else tensor
        return tensor


def _expanded(tensor: np.ndarray, axis: int, one: Basis, other: Basis) -> np.ndarray:
    """An axis of double letters becomes two axes of features, in their own bases."""
    both = joint(one, other)
    moved = np.moveaxis(tensor, axis, 0)
    flat = np.ascontiguousarray(moved).reshape(moved.shape[0], -1)
    gram = np.empty((one.size, other.size, flat.shape[1]))
    for some in _stretches(flat.shape[1], both):
        whole = both.pairs(flat[:, some])
        for place, basis in enumerate((one, other)):
            whole = whole if basis == both else along(whole, place, both.to(basis).single)
        gram[:, :, some] = whole
    return np.moveaxis(gram.reshape(one.size, other.size, *moved.shape[1:]), (0, 1), (axis, axis + 1))


def _contracted(tensor: np.ndarray, axis: int, one: Basis, other: Basis) -> np.ndarray:
    """Two axes of coefficients of features become one of double letters."""
    both = joint(one, other)
    moved = np.moveaxis(tensor, (axis, axis + 1), (0, 1))
    flat = np.ascontiguousarray(moved).reshape(one.size, other.size, -1)
    letters = np.empty((both.double.size, flat.shape[2]))
    for some in _stretches(flat.shape[2], both):
        whole = flat[:, :, some]
        for place, basis in enumerate((one, other)):
            whole = along(whole, place, both.to(basis).single_transpose)
        letters[:, some] = both.contracted(np.ascontiguousarray(_cells(both, whole)))
    return np.moveaxis(letters.reshape(-1, *moved.shape[2:]), 0, axis)


def _cells(basis: Basis, pairs: np.ndarray) -> np.ndarray:
    """Entries (nnz, R) of (P, P, R) where products of features live."""
    if basis.everywhere:
        return pairs.reshape(basis.size**2, -1)
    found = basis.products()
    return pairs[found.rows, found.columns]


def _stretches(count: int, basis: Basis) -> Iterator[slice]:
    """Some of the other letters at a time, so that pairs of features of a large basis fit in memory."""
    step = max(1, _PAIRS_AT_ONCE // basis.size**2)
    return (slice(start, start + step) for start in range(0, count, step))


def term_gram(term: TermRequest, letters: np.ndarray) -> AbstractSymmetric:
    """sum w phi phi' of a term from sums of products of double letters, diagonal where different features have none."""
    if len(term.bases) == 1:
        return term.bases[0].gram(letters)
    if all(basis.orthogonal for basis in term.bases):  # products of two features are squares
        for d, basis in enumerate(term.bases):
            letters = along(letters, d, lambda sums, basis=basis: basis.products().map @ sums)
        return Diagonal(np.ascontiguousarray(letters).reshape(-1))
    if any(basis.orthogonal and basis.size > 1 for basis in term.bases):
        return _by_level(term, letters)
    pair = TermPair(term, term)
    return Dense(np.asarray(pair.block(letters.transpose([term.axes.index(axis) for axis in pair.axes]))))


def _by_level(term: TermRequest, letters: np.ndarray) -> BlocksByLevel:
    """The same where some factors are orthogonal: a block for every combination of their features."""
    axes, tensor = LevelAxes(term.shape, tuple(d for d, own in enumerate(term.bases) if own.orthogonal)), letters
    for d, basis in enumerate(term.bases):
        if basis.orthogonal:
            tensor = along(tensor, d, lambda sums, basis=basis: basis.products().map @ sums)
    tensor = tensor.transpose(*axes.levels, *axes.within).reshape(axes.count, *(letters.shape[d] for d in axes.within))
    for place, d in enumerate(axes.within):
        tensor = _expanded(tensor, 1 + 2 * place, term.bases[d], term.bases[d])
    D = len(axes.within)
    tensor = tensor.transpose(0, *range(1, 2 * D, 2), *range(2, 2 * D + 1, 2))
    return BlocksByLevel(axes, np.ascontiguousarray(tensor).reshape(axes.count, axes.each, axes.each))


def project_term(bases: Sequence[Basis], S: MatrixView) -> np.ndarray:
    """Coefficients of products of double letters, (Q1, Q2, ...), with sum phi'S phi: transpose of ``term_gram``.

    S is asked only where products of features live.
    """
    if len(bases) == 1:
        return bases[0].project(S)
    tensor = _at_products(bases, S)
    for d, basis in enumerate(bases):
        tensor = along(tensor, d, basis.contracted)
    return tensor


def _at_products(bases: Sequence[Basis], S: MatrixView) -> np.ndarray:
    """The entries of S where products of features live, an axis per factor."""
    D, sizes = len(bases), [basis.size for basis in bases]
    if all(basis.everywhere for basis in bases):
        paired = S.written().reshape(*sizes, *sizes).transpose([axis for d in range(D) for axis in (d, D + d)])
        return paired.reshape([size**2 for size in sizes])
    rows = columns = np.zeros([1] * D, int)
    for d, basis in enumerate(bases):
        found, shape = basis.products(), [1] * D
        shape[d] = found.rows.size
        rows = rows * basis.size + found.rows.reshape(shape)
        columns = columns * basis.size + found.columns.reshape(shape)
    return S.at(rows, columns)


def gram_columns_adjoint(basis: Basis, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Coefficients of (phi'u_r)(phi'v_r) in the double letters of one column, (Q, R), for columns of U and V (P, R)."""
    step = max(1, 2**22 // (basis.size**2 if basis.everywhere else basis.products().rows.size))
    parts = []
    for start in range(0, U.shape[1], step):
        left, right = U[:, start : start + step], V[:, start : start + step]
        if basis.everywhere:
            products = (left[:, None] * right[None]).reshape(basis.size**2, -1)
        else:
            found = basis.products()
            products = left[found.rows] * right[found.columns]
        parts.append(basis.contracted(products))
    return np.concatenate(parts, axis=1)


def features_sum(bases: Sequence[Basis], letters: np.ndarray) -> np.ndarray:
    """sum w phi (P,) of a term."""
    for d, basis in enumerate(bases):
        letters = along(letters, d, basis.features_sum)
    return letters.reshape(-1)
