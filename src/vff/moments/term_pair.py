"""Two terms and the axes they live on: from sums over products of letters to their block (theory §2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vff.basis.protocol import Axis, Basis, Domain, Letters
from vff.moments.axes import along
from vff.moments.rows import TermRequest
from vff.moments.statistics import joint

_PAIRS_AT_ONCE = 2**24


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
        """The column of the rows behind every axis."""
        return tuple(axis.columns[0] for axis in self.axes)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Of every axis."""
        return tuple(axis.domain for axis in self.axes)

    def _bases(self, axis: Axis) -> tuple[Basis | None, Basis | None]:
        one, other = self.left.factor_of(axis), self.right.factor_of(axis)
        return (
            None if one is None else self.left.bases[one],
            None if other is None else self.right.bases[other],
        )

    def _letters(self, axis: Axis) -> Letters:
        """The letters to be summed along one axis."""
        one, other = self._bases(axis)
        if one is not None and other is not None:
            return joint(one, other).double
        alone = one if one is not None else other
        assert alone is not None
        return alone.single

    @cached_property
    def axis_letters(self) -> tuple[Letters, ...]:
        """The letters to be summed along every axis."""
        return tuple(self._letters(axis) for axis in self.axes)

    @cached_property
    def _order(self) -> list[int]:
        """Where the axes of (left factors, right factors) stand among those of all axes' features, expanded."""
        labels = self._labels
        wanted = [("left", axis) for axis in self.left.axes]
        wanted += [("right", axis) for axis in self.right.axes]
        return [labels.index(label) for label in wanted]

    @cached_property
    def _labels(self) -> list[tuple[str, Axis]]:
        """Axes of features, one after another; a shared one has two."""
        sides = (("left", self.left), ("right", self.right))
        return [(side, axis) for axis in self.axes for side, term in sides if axis in term.axes]

    def block(self, letters: np.ndarray) -> np.ndarray:
        """sum w phi_s phi_t' (P_s, P_t) from the sums of products of letters."""
        tensor = letters
        axis = 0
        for own in self.axes:
            one, other = self._bases(own)
            if one is not None and other is not None:
                tensor = _expanded(tensor, axis, one, other)
                axis += 1
            axis += 1
        return np.ascontiguousarray(tensor.transpose(self._order)).reshape(self.left.size, self.right.size)

    def letters(self, S: np.ndarray) -> np.ndarray:
        """Coefficients of products of letters whose sum is phi_s' S phi_t; the transpose of ``block``."""
        tensor = S.reshape(*self.left.shape, *self.right.shape).transpose(np.argsort(self._order))
        axis = len(self._labels)
        for own in reversed(self.axes):
            one, other = self._bases(own)
            axis -= 1
            if one is not None and other is not None:
                axis -= 1
                tensor = _contracted(tensor, axis, one, other)
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
            whole = along(whole, place, both.to(basis).single)
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
        products = both.products()
        if both.everywhere:
            found = np.ascontiguousarray(whole).reshape(both.size**2, -1)
        else:
            found = whole[products.rows, products.columns]
        letters[:, some] = products.transposed @ found
    return np.moveaxis(letters.reshape(-1, *moved.shape[2:]), 0, axis)


def _stretches(count: int, basis: Basis) -> Iterator[slice]:
    """Some of the other letters at a time, so that pairs of features of a large basis fit in memory."""
    step = max(1, _PAIRS_AT_ONCE // basis.size**2)
    return (slice(start, start + step) for start in range(0, count, step))
