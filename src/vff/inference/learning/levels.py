"""Which terms have levels that can be eliminated, and a product with levels at a setting."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from vff.factors import StackedTransform, TermTransform
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.solvers.block_eliminated import BlockEliminatedLinearGaussian, BlockElimination, SeparateBlocks
from vff.inference.solvers.direct import moved_gram
from vff.linalg import BlockDiagonal, Kronecker, LevelAxes, Repeated
from vff.moments import MomentRequest, TermRequest

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel

Exchangeable = Mapping[int, tuple[int, ...]]
"""Of terms with such factors: those whose coefficients are independent a priori, with one variance for all."""

NONE: Exchangeable = {}


def axes_of(term: TermRequest, exchangeable: tuple[int, ...]) -> LevelAxes | None:
    """The levels of a term, whose coefficients neither prior nor rows tie to one another; None where there are none."""
    levels = tuple(d for d, basis in enumerate(term.bases) if basis.orthogonal)
    axes = LevelAxes(term.shape, levels)
    if not levels or not set(levels) <= set(exchangeable):
        return None
    return axes if not axes.within or axes.count > 1 else None


def eliminable(request: MomentRequest, exchangeable: Exchangeable) -> int | None:
    """The largest of the terms with levels; None without one."""
    found = [s for s, factors in exchangeable.items() if axes_of(request.terms[s], factors) is not None]
    return max(found, key=lambda s: request.sizes[s]) if found else None


def eliminated_axes(request: MomentRequest, exchangeable: Exchangeable) -> LevelAxes | None:
    """The levels of that term."""
    e = eliminable(request, exchangeable)
    return None if e is None else axes_of(request.terms[e], exchangeable[e])


def crossing(request: MomentRequest, exchangeable: Exchangeable) -> tuple[int, int] | None:
    """The two largest terms of levels alone, where few pairs of these have rows; None without."""
    every = ((s, axes_of(request.terms[s], factors)) for s, factors in exchangeable.items())
    found = sorted((s for s, axes in every if axes is not None and not axes.within), key=lambda s: -request.sizes[s])
    one, two = found[:2] if len(found) > 1 else (0, 0)
    return (one, two) if one != two and request.pair((min(one, two), max(one, two))).sparse else None


def blocks_at(
    model: "SumModel", setting: Hyperparameters, e: int, sums: SeparateBlocks
) -> BlockEliminatedLinearGaussian:
    """The model with a product with levels eliminated."""
    axes, term, columns, values = sums.levels.axes, model.terms[e], model.columns[e], setting.terms[e]
    priors, transform = term.priors(columns, values), model.transform(setting)
    own = Repeated(axes, Kronecker(tuple(priors[d].K for d in axes.within), 1.0 / values["variance"]))
    others = StackedTransform((*transform.transforms[:e], *transform.transforms[e + 1 :]))
    within = TermTransform(tuple(priors[d].transform for d in axes.within))
    blocks = model.prior(setting).blocks
    equations = replace(sums.others, b=others.forward(sums.others.b), G=moved_gram(sums.others.G, others, ()))
    return BlockEliminatedLinearGaussian(
        BlockDiagonal((*blocks[:e], own, *blocks[e + 1 :])), transform.forward(model.moments.project),
        model.inside.yy, model.weight, model.prior_trace(setting), setting.noise, equations,
        BlockElimination(e, sums.levels, within, others),
        sites=model.sites, intercept=model.intercept_at(setting), row_noise=model.row_noise,
    )  # fmt: skip
