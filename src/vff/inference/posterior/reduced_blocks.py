"""What an effect that is pure keeps of a matrix that has a block per level and nothing between levels.

The map of an effect (``pure``) takes averages over levels, which ties levels to one another; but of the matrix that it
makes of such a one, only what stands within levels is looked at. With h the shares of the levels, a factor of levels
makes of B, at level g,

    a_g B_g + sum_k b_k B_k,    kept as it is: a = 1,    less its average: a = 1 - 2 h, b = h^2,    its average: b = h^2

and mixtures of these for two parts of a map.
"""

from functools import partial

import numpy as np

from vff.inference.posterior.pure import Averages, Keep, Monomial, Part
from vff.linalg import BlockView, LevelAxes, along


def reduced_blocks(part: Part, axes: LevelAxes, blocks: np.ndarray) -> BlockView:
    """Of a matrix with blocks (L, m, m) by levels, within levels of what the part is a function of."""
    over = LevelAxes(
        tuple(axes.shape[d] for d in part.over),
        tuple(part.over.index(d) for d in axes.levels if d in part.over),
    )
    total = np.zeros((over.count, over.each, over.each))
    levels, within = [[axes.shape[d] for d in own] for own in (axes.levels, axes.within)]
    for one in part.monomials:
        for other in part.monomials:
            found = blocks.reshape(*levels, *within, *within)
            total += _mapped(part, axes, one, other, found).reshape(total.shape)
    return BlockView(over, total)


def _mapped(part: Part, axes: LevelAxes, one: Monomial, other: Monomial, B: np.ndarray) -> np.ndarray:
    """A map from the left and one from the right, of blocks with an axis per factor."""
    first, D = len(axes.levels), len(axes.within)
    for place, d in enumerate(axes.levels):
        B = along(B, place, partial(_over_levels, part, d, one[d], other[d]))
    for place, d in enumerate(axes.within, start=first):
        B = along(B, place, partial(part.factor_map, d, one[d]))
        B = along(B, place + D, partial(part.factor_map, d, other[d]))
    return B


def _over_levels(part: Part, d: int, one: Keep, other: Keep, B: np.ndarray) -> np.ndarray:
    """Blocks (L, ...) of one factor of levels to those of two parts of a map."""
    known = part.averages[d]
    if known is None or (one is Keep.ALL and other is Keep.ALL):
        return B
    if d not in part.over:
        return np.tensordot(known.h**2, B, axes=1)[None]
    own, common = _weights(known, {one, other})
    return (own * B.T).T + np.tensordot(common, B, axes=1)


def _weights(known: Averages, keeps: set[Keep]) -> tuple[np.ndarray, np.ndarray]:
    """a and b of what two parts keep."""
    h, none = known.h, np.zeros(known.h.size)
    if keeps == {Keep.PURE}:
        return 1.0 - 2.0 * h, h**2
    if keeps == {Keep.MEAN}:
        return none, h**2
    if keeps == {Keep.PURE, Keep.MEAN}:
        return h, -(h**2)
    return (1.0 - h if Keep.PURE in keeps else h), none
