"""Solvers: how a linear-Gaussian model is solved at a setting, and what is known of its coefficients afterwards."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vff.factors import StackedTransform
from vff.inference.learning.levels import NONE, Exchangeable, blocks_at, crossing, eliminable, eliminated_axes
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.posterior import Crossed, Direct, Eliminated, EliminatedBlocks, Posterior, Probed, TermProcess
from vff.inference.solvers.block_eliminated import BlockEliminatedLinearGaussian, SeparateBlocks
from vff.inference.solvers.crossed import CrossedLinearGaussian
from vff.inference.solvers.direct import DirectLinearGaussian, moved_gram
from vff.inference.solvers.eliminated import EliminatedLinearGaussian, Elimination
from vff.inference.solvers.iterative import IterativeLinearGaussian
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.low_rank import LowRankLinearGaussian
from vff.inference.solvers.whitening import whitened_terms
from vff.linalg import BlockDiagonal, ScaledIdentity
from vff.moments import MomentRequest
from vff.registry import Registry

if TYPE_CHECKING:
    from vff.inference.learning.model import SumModel

LARGEST_DIRECT = 4500  # features; beyond, iterations are faster than a Cholesky factor
_LOW_RANK = 16.0  # operations of the form for few rows beside one of a Cholesky factor: it pays from a quarter on
_BLOCKS = 2.0  # operations for every pair of features that a level has or meets, beside those of a Cholesky factor
_ELIMINATION = 300.0**3  # operations that sums over levels cost beside the factor: not worth it for a handful
_CROSSING = 400.0**3  # operations that iterations over pairs of levels cost beside the factor
MOST_CROSSED = 12_000  # levels of the second column, whose covariance is written out once, at the end
_GOOD_VARIANCE = 2.5e-3  # relative standard error
_MOST_PROBES, _MOST_WHEN_LARGE, _LARGE = 192, 96, 20_000  # probes for it, and features


class Solver(ABC):
    """A way to solve with A = K + tau G."""

    name: ClassVar[str]
    exact: ClassVar[bool]
    """Whether bound and variances are known without a standard error."""

    @abstractmethod
    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> float | None:
        """Of one setting, in operations that compare; None where it has nothing to offer.

        ``rank`` is that of G, where rows are few and G has a root of so many columns; ``exchangeable`` are
        factors of terms whose coefficients are independent a priori, with one variance for all.
        """

    def factored(self, request: MomentRequest, exchangeable: Exchangeable = NONE) -> int:
        """How many features are left in the largest matrix that is worked with."""
        return request.size

    @abstractmethod
    def at(self, model: "SumModel", setting: Hyperparameters) -> LinearGaussian:
        """The model at a setting."""

    @abstractmethod
    def posterior(self, form: Any, model: "SumModel", setting: Hyperparameters) -> Posterior:
        """The posterior at a setting, from the form that it had there."""


class DirectSolver(Solver):
    """One Cholesky factor."""

    name, exact = "direct", True

    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> float:
        return float(request.size) ** 3

    def at(self, model: "SumModel", setting: Hyperparameters) -> DirectLinearGaussian:
        prior, trace = model.prior(setting), model.prior_trace(setting)
        how = {"sites": model.sites, "intercept": model.intercept_at(setting), "row_noise": model.row_noise}
        return DirectLinearGaussian.of(prior, model.equations(setting), trace, setting.noise, **how)

    def posterior(self, form: DirectLinearGaussian, model: "SumModel", setting: Hyperparameters) -> Posterior:
        request, inverse = model.moments.request, form.covariance()
        terms, centre, places = processes(model, setting), model.centre(setting), request.slices
        taken = []
        for block, place in form.block_prior.each():
            explained = block.solve(np.eye(block.shape[0])) - inverse[place, place]
            taken.append(0.5 * (explained + explained.T))
        shared = {(s, t): inverse[places[s], places[t]].copy() for s, t in request.pairs}
        own = np.concatenate([inverse[place, place] @ centre[place] for place in places])
        covariance = Direct(terms, tuple(taken), shared)
        return Posterior(form.mean, covariance, centre, own, intercept=form.intercept_posterior)


class IterativeSolver(Solver):
    """Conjugate gradients, with a preconditioner and probes."""

    name, exact = "iterative", False

    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> float | None:
        if all(len(term.factors) == 1 for term in request.terms):
            return None  # terms of one column alone have nothing to gain
        if any(basis.scattered for term in request.terms for basis in term.bases):
            return None  # probes square averages, and here squares are averaged
        return LARGEST_DIRECT * float(request.size) ** 2

    def at(self, model: "SumModel", setting: Hyperparameters) -> IterativeLinearGaussian:
        prior, transform, moments = model.prior(setting), model.transform(setting), model.moments
        terms = whitened_terms(model.lattice, model.terms, setting.terms, prior, 1.0 / setting.noise)
        blocks = {
            (s, t): transform.transforms[t].forward(transform.transforms[s].forward(np.asarray(block)).T).T
            for (s, t), block in moments.blocks.items()
        }
        own = transform.forward(moments.project), moments.target_squared, model.weight, model.prior_trace(setting)
        how = {"sites": model.sites, "intercept": model.intercept_at(setting), "row_noise": model.row_noise}
        return IterativeLinearGaussian(prior, *own, setting.noise, terms, blocks, **how)

    def posterior(self, form: IterativeLinearGaussian, model: "SumModel", setting: Hyperparameters) -> Posterior:
        """With as many probes as its variances need."""
        terms = processes(model, setting)
        covariance, most = Probed.of(form, terms), most_probes(model.moments.request.size)
        while covariance.relative_error > _GOOD_VARIANCE and form.probes < most and form.probed.converged:
            form = replace(form, probes=2 * form.probes)
            covariance = Probed.of(form, terms)
        centre = model.centre(setting)
        return Posterior(form.mean, covariance, centre, covariance.times(centre), intercept=form.intercept_posterior)


class LowRankSolver(Solver):
    """A factor of as many dimensions as there are rows, where these are few."""

    name, exact = "low-rank", True

    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> float | None:
        return None if rank is None else _LOW_RANK * float(request.size) * rank**2

    def at(self, model: "SumModel", setting: Hyperparameters) -> LowRankLinearGaussian:
        inside, transform, intercept = model.inside, model.transform(setting), model.intercept_at(setting)
        L, sides = transform.forward(model.gram_root.L), model.root_sides
        own = transform.forward(inside.b), inside.yy, inside.weight, model.prior_trace(setting), setting.noise
        unlike = L.shape[1] == model.moments.n == model.weight
        return LowRankLinearGaussian(model.prior(setting), *own, L, sides, intercept=intercept, unlike=unlike)

    def posterior(self, form: LowRankLinearGaussian, model: "SumModel", setting: Hyperparameters) -> Posterior:
        request, U = model.moments.request, form.taken
        terms, centre, places = processes(model, setting), model.centre(setting), request.slices
        taken = tuple(U[place] @ U[place].T for place in places)
        shared = {(s, t): -U[places[s]] @ U[places[t]].T for s, t in request.pairs}
        alone = [
            block.solve(centre[place]) - U[place] @ (U[place].T @ centre[place])
            for block, place in form.block_prior.each()
        ]
        known = form.intercept_posterior
        return Posterior(form.mean, Direct(terms, taken, shared), centre, np.concatenate(alone), intercept=known)


class EliminatingSolver(Solver):
    """A factor of all terms but the one with the most coefficients of which no row has two: levels."""

    name, exact = "eliminating", True

    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> float | None:
        left, axes = self.factored(request, exchangeable), eliminated_axes(request, exchangeable)
        if axes is None or left > LARGEST_DIRECT:
            return None
        # levels that are single numbers are summed once; the blocks of others meet the rest at every setting
        each = 0.0 if axes.each == 1 else _BLOCKS * float(axes.size) * (axes.each + left) ** 2
        return float(left) ** 3 + each + _ELIMINATION

    def factored(self, request: MomentRequest, exchangeable: Exchangeable = NONE) -> int:
        e = eliminable(request, exchangeable)
        return request.size if e is None else request.size - request.sizes[e]

    def at(self, model: "SumModel", setting: Hyperparameters) -> EliminatedLinearGaussian:
        e, sums = model.eliminated
        if isinstance(sums, SeparateBlocks):
            return blocks_at(model, setting, e, sums)
        prior, transform = model.prior(setting), model.transform(setting)
        own = ScaledIdentity(model.moments.request.sizes[e], 1.0 / setting.terms[e]["variance"])
        prior = BlockDiagonal((*prior.blocks[:e], own, *prior.blocks[e + 1 :]))
        others = StackedTransform((*transform.transforms[:e], *transform.transforms[e + 1 :]))
        inside = sums.others
        equations = replace(inside, b=others.forward(inside.b), G=moved_gram(inside.G, others, ()))
        how = {"sites": model.sites, "intercept": model.intercept_at(setting), "row_noise": model.row_noise}
        return EliminatedLinearGaussian(
            prior, transform.forward(model.moments.project), model.inside.yy, model.weight, model.prior_trace(setting),
            setting.noise, equations, Elimination(e, sums.levels, others), **how,
        )  # fmt: skip

    def posterior(self, form: EliminatedLinearGaussian, model: "SumModel", setting: Hyperparameters) -> Posterior:
        terms, centre = processes(model, setting), model.centre(setting)
        if isinstance(form, BlockEliminatedLinearGaussian):
            covariance = EliminatedBlocks.of(form, terms)
            own = covariance.own_times(centre)
            return Posterior(form.mean, covariance, centre, own, intercept=form.intercept_posterior)
        levels = form.levels
        shift = levels.n + form.ratio
        reach = form.elimination.transform.forward(levels.a.T).T / shift[:, None]
        covariance = Eliminated(terms, form.elimination.term, form.remaining.covariance(), form.noise / shift, reach)
        own = covariance.own_times(centre)
        return Posterior(form.mean, covariance, centre, own, intercept=form.intercept_posterior)


class CrossedSolver(Solver):
    """A factor of all terms but two columns of many levels, of which few pairs have rows."""

    name, exact = "crossed", True

    def cost(self, request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> float | None:
        pair = crossing(request, exchangeable)
        if pair is None or request.sizes[pair[1]] > MOST_CROSSED:
            return None
        left = self.factored(request, exchangeable)
        return float(left) ** 3 + _CROSSING if left <= LARGEST_DIRECT else None

    def factored(self, request: MomentRequest, exchangeable: Exchangeable = NONE) -> int:
        pair = crossing(request, exchangeable)
        return request.size - sum(request.sizes[e] for e in pair or ())

    def at(self, model: "SumModel", setting: Hyperparameters) -> CrossedLinearGaussian:
        sums, prior, transform = model.crossed, model.prior(setting), model.transform(setting)
        sizes = model.moments.request.sizes
        blocks = list(prior.blocks)
        for e in sums.terms:
            blocks[e] = ScaledIdentity(sizes[e], 1.0 / setting.terms[e]["variance"])
        others = StackedTransform(tuple(own for s, own in enumerate(transform.transforms) if s not in sums.terms))
        inside = sums.others
        equations = replace(inside, b=others.forward(inside.b), G=moved_gram(inside.G, others, ()))
        how = {"sites": model.sites, "intercept": model.intercept_at(setting), "row_noise": model.row_noise}
        return CrossedLinearGaussian(
            BlockDiagonal(tuple(blocks)), transform.forward(model.moments.project), model.inside.yy, model.weight,
            model.prior_trace(setting), setting.noise, equations, sums, others, **how,
        )  # fmt: skip

    def posterior(self, form: CrossedLinearGaussian, model: "SumModel", setting: Hyperparameters) -> Posterior:
        terms, centre = processes(model, setting), model.centre(setting)
        covariance = Crossed.of(form, terms)
        own = covariance.own_times(centre)
        return Posterior(form.mean, covariance, centre, own, intercept=form.intercept_posterior)


SOLVERS: Registry[Solver] = Registry(
    "a solver", DirectSolver(), IterativeSolver(), LowRankSolver(), EliminatingSolver(), CrossedSolver()
)


def choose_solver(request: MomentRequest, rank: int | None = None, exchangeable: Exchangeable = NONE) -> Solver:
    """The cheapest."""
    costs = [(cost, solver) for solver in SOLVERS if (cost := solver.cost(request, rank, exchangeable)) is not None]
    return min(costs, key=lambda own: own[0])[1]


def most_probes(P: int) -> int:
    """Probes that variances may take in a model of P features."""
    return _MOST_PROBES if P <= _LARGE else _MOST_WHEN_LARGE


def processes(model: "SumModel", setting: Hyperparameters) -> tuple[TermProcess, ...]:
    """The terms of a model at a setting."""
    return tuple(
        TermProcess(values["variance"], own.columns, term.priors(own.factors, values))
        for term, own, values in zip(model.terms, model.moments.request.terms, setting.terms, strict=True)
    )
