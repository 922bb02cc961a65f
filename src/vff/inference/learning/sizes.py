"""How much a model determines, and how much of it there is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vff.inference.learning.harmonics import fewer
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.moments import Harmonics

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel

SMALL = 1500  # features, of which a factor is computed in a moment


def edf_by_term(closed: LinearGaussian) -> np.ndarray:
    """P_s - tr((A^-1)_ss K_s) of every term: how many of its coefficients the data determine."""
    prior, inverse = closed.block_prior, closed.projected_inverse
    sizes = [block.shape[0] for block in prior.blocks]
    left = [block.inner(prior.part(inverse, s)) for s, block in enumerate(prior.blocks)]
    return np.array(sizes) - np.array(left)


def edf_of_detail(closed: LinearGaussian, harmonics: Harmonics) -> float:
    """How many coefficients the data determine of the terms that may miss detail; levels, however many, miss none."""
    fixed = [all(M is None for M in own) for own in harmonics]
    if all(fixed) or not any(fixed):
        return closed.cotangents.edf
    return closed.cotangents.edf - float(edf_by_term(closed) @ np.array(fixed))


def shrunk(model: "SumModel") -> "SumModel":
    """The model with fewer harmonics everywhere, few enough for a factor to be computed in a moment."""
    share = 1.0
    while model.size > SMALL:
        share *= 0.8
        smaller = model.restricted(fewer(model.moments.request, share, 2).harmonics)
        if smaller.size <= SMALL or smaller.size == model.size:
            return smaller
    return model


def capped(harmonics: Sequence[Sequence[int | None]], caps: Harmonics) -> Harmonics:
    """The smaller of two for every factor."""
    return tuple(
        tuple(None if M is None or cap is None else min(M, cap) for M, cap in zip(*both, strict=True))
        for both in zip(harmonics, caps, strict=True)
    )
