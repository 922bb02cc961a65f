"""What a model keeps apart: levels that are eliminated, prior variances that vary, and noise beside error bars."""

from typing import TYPE_CHECKING

import numpy as np

from vff.inference.learning.levels import axes_of, crossing, eliminable
from vff.inference.solvers.block_eliminated import SeparateBlocks
from vff.inference.solvers.crossed import CrossedSums
from vff.inference.solvers.eliminated import SeparateSums
from vff.inference.solvers.links import Links
from vff.moments import NoisySums

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel

NOISE_BOUNDS = (1e-8, 1e4)  # relative to the variance of the targets, which are standardised before they get here
LEAST_NOISE = 1e-12  # below which sums in float64 do not tell noise from none
_NEXT_TO_NOTHING = 1e-6  # of the least error bar, squared


def limits_beside(noisy: NoisySums | None, limits: tuple[float, float]) -> tuple[float, float]:
    """Of the noise: beside error bars it may be so small that it adds nothing to the least of them."""
    if noisy is None or limits != NOISE_BOUNDS:
        return limits
    least = np.min(noisy.variances, where=noisy.variances > 0.0, initial=np.inf)
    return min(NOISE_BOUNDS[0], _NEXT_TO_NOTHING * float(least)), NOISE_BOUNDS[1]


Separate = SeparateSums | SeparateBlocks


def separated(model: "SumModel") -> tuple[int, Separate]:
    """Which term is eliminated, and its sums apart from those of the others."""
    e = eliminable(model.moments.request, model.exchangeable)
    assert e is not None
    axes = axes_of(model.moments.request.terms[e], model.exchangeable[e])
    assert axes is not None
    if axes.within:
        return e, SeparateBlocks.of(model.inside, model.features_sums[e], e, axes)
    return e, SeparateSums.of(model.inside, model.features_sums[e], e, interpolated=not model.sites)


def crossed(model: "SumModel", links: Links | None = None) -> CrossedSums:
    """The sums of two terms of levels apart from those of the others."""
    pair = crossing(model.moments.request, model.exchangeable)
    assert pair is not None
    h = model.features_sums
    return CrossedSums.of(model.inside, (h[pair[0]], h[pair[1]]), pair, links)


def hand_on(model: "SumModel", fewer: "SumModel") -> None:
    """Tell a model with fewer harmonics what is known of its levels: sums at nodes are maps of those that are there."""
    if "eliminated" in vars(model) and fewer.solver is model.solver:
        e, sums = model.eliminated
        if isinstance(sums, SeparateSums):
            changes = model.moments.request.changes(fewer.moments.request, without=e)
            vars(fewer)["eliminated"] = e, sums.changed(fewer.inside, e, changes)
    if "crossed" in vars(model) and fewer.solver is model.solver:
        vars(fewer)["crossed"] = crossed(fewer, model.crossed.links)


def prior_variance_sums(model: "SumModel") -> tuple[np.ndarray | None, ...]:
    """What sum w k(x, x) of every term is made of, ``Term.variance_sums``; None where k(x, x) is constant."""
    found: list[np.ndarray | None] = []
    for term, columns, letters in zip(model.terms, model.columns, model.moments.grams, strict=True):
        sums = None if term.constant_variance else term.variance_sums(columns, letters)
        if sums is not None and model.tails:  # then there is one factor
            functions = term.factors[0].on(columns[0].basis).variance_functions
            sums = sums + sum(tail.w @ functions(tail.side * (1.0 + tail.r)) for tail in model.tails)
        found.append(sums)
    return tuple(found)
