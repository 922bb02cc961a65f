"""Any likelihood on dense features: the climb of ``vff.inference.natural`` with the rows kept.

f(x) = constant + phi(x)'c + remainder with c ~ N(0, I) and phi(x) = L^-1 k(z, x), L L' = k(z, z). A site of precision s
and pull l at every row gives

    q(c) = N(m, A^-1),    A = I + Phi'SPhi,    A m = Phi'(l - constant s)

Phi depends on the hyperparameters, so the sites themselves are kept and not their sums. The rest is as with Fourier
features: hyperparameters are learnt on the collapsed bound of held sites, and the true bound accepts a step or not.
With z at all distinct rows the features span the process at the rows, Phi Phi' = k(x, x), and q is the best of all
Gaussians. Sites may be negative as long as A is positive definite.

Two rows at one x with sites (s, l) = (1, 1) each, variance one: phi = 1, A = 1 + 2, m = 2/3, and f has variance 1/3.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.baselines.design import Problem
from vff.baselines.evidence import Given
from vff.baselines.features import InducingPoints
from vff.baselines.model import FeatureModel, start_of
from vff.baselines.posterior import FeaturePosterior
from vff.inference import ClosedForm, Observed, Optimum, maximise
from vff.inference.natural import Ascent, Step, Visit, arrive, ascend
from vff.inference.sites import _FLATTEST, _SPREAD, _holds
from vff.likelihoods import AbstractLikelihood, best_constant, expected, parameter_derivatives, row_modes
from vff.linalg import threads_for

_KNOWN = 1e-10  # of the precision of all sites: a constant that they determine less is left where it is
_ENOUGH, _ROUGHLY = 1e-8, 0.1  # nats: a yardstick climbs to the top


class RowSites(NamedTuple):
    """A Gaussian factor exp(l f - s f^2 / 2) for every row."""

    precision: np.ndarray
    """s, (N,)."""
    pull: np.ndarray
    """l, (N,)."""

    def blended(self, other: "RowSites", rate: float) -> "RowSites":
        """(1 - rate) these + rate others."""
        return RowSites(*((1.0 - rate) * own + rate * new for own, new in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Standing:
    """q at some sites."""

    closed: ClosedForm
    """The Gaussian model of the sites."""
    features: InducingPoints
    optimum: Optimum
    """The hyperparameters, and how they were found."""
    constant: float
    """Prior mean of f."""

    @property
    def divergence(self) -> float:
        return self.closed.divergence

    @property
    def error(self) -> float:
        return self.closed.error

    @cached_property
    def posterior(self) -> FeaturePosterior:
        """Of f less its constant, at rows in half ranges."""
        return FeaturePosterior((), self.features, self.closed.mean, self.closed.factor.lower)


@dataclass(frozen=True)
class LatentProblem:
    """Rows with a likelihood, under dense features."""

    model: FeatureModel
    """The features; its rows are replaced by sites."""
    observed: Observed
    likelihood: AbstractLikelihood
    optimise: bool
    """Whether hyperparameters are learnt, and the coordinates where the model sets them free."""
    centred: bool
    """Whether the constant is learnt."""

    def first_sites(self, psi: np.ndarray, constant: float) -> RowSites:
        """Of every row by itself, under a broad prior around the constant; all are positive."""
        y, extra, w = self._rows
        f, slope, curvature = row_modes(self.likelihood, psi, y, extra, constant, _SPREAD)
        precision = w * np.maximum(-curvature, _FLATTEST * max(float(np.abs(curvature).mean()), 1e-300))
        return RowSites(precision, w * slope + precision * f)

    @property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.observed.y, self.observed.extra, self.observed.w

    def at_sites(self, sites: RowSites, constant: float) -> FeatureModel:
        """The Gaussian model of some sites, measured from the constant."""
        return replace(self.model, y=sites.pull - constant * sites.precision, precision=sites.precision)

    def stand(self, sites: RowSites, here: Standing, learn: float) -> Standing | None:
        """See ``natural.Problem``."""
        optimum = here.optimum
        if learn and self.optimise:
            try:
                wished = _learn(self.at_sites(sites, here.constant), optimum)
            except FloatingPointError:  # no q where the search starts
                return None
            optimum = replace(wished, theta=optimum.theta + learn * (wished.theta - optimum.theta))
        return self.settled(sites, optimum, here.constant)

    def settled(self, sites: RowSites, optimum: Optimum, constant: float) -> Standing | None:
        """q at the hyperparameters of an optimum, with the best constant; None when the sites make none."""
        model = self.at_sites(sites, constant)
        features = model.features(optimum.theta)
        assert isinstance(features, InducingPoints)
        closed = model.closed(model.equations(features), features.values)
        if not _holds(closed):
            return None
        if self.centred:
            h = model.project(features, sites.precision)
            shift = _best_shift(closed, h, float(model.y.sum()))
            closed, constant = replace(closed, b=closed.b - shift * h), constant + shift
        return Standing(closed, features, replace(optimum, elbo=closed.elbo), constant)

    def visit(self, standing: Standing, psi: np.ndarray) -> Visit[RowSites]:
        """See ``natural.Problem``."""
        (y, extra, w), free = self._rows, self.likelihood.free
        mean, variance = standing.posterior.inside(self.model.T)
        mean += standing.constant
        value, slope, curvature = expected(self.likelihood, psi, y, extra, mean, variance)
        precision = -w * curvature
        # a parameter that is held has no slope, and a unit curvature keeps Newton's step defined
        gradient, hessian = np.zeros(free.size), -np.eye(free.size)
        if free.any():
            _, first, second = parameter_derivatives(self.likelihood, psi, y, extra, w, mean, variance)
            gradient[free], hessian[np.ix_(free, free)] = first[free], second[np.ix_(free, free)]
        return Visit(float(w @ value), RowSites(precision, w * slope + precision * mean), gradient, hessian)


def _learn(model: FeatureModel, start: Optimum) -> Optimum:
    """Where the sites want the hyperparameters; the noise variance stays one."""
    free = np.array([name != "noise" for name in model.parameters.names])
    optimum, _ = maximise(model, start.theta, start.curvature, start.elbo, free)
    return optimum.after(start)


def _best_shift(closed: ClosedForm, h: np.ndarray, pull: float) -> float:
    """What generalised least squares adds to the constant: [sum l - h'm] / [sum s - h'A^-1 h], h = Phi'S 1."""
    information = closed.weight - float(h @ closed.solve(h))
    if not information > _KNOWN * abs(closed.weight):
        return 0.0
    return (pull - float(h @ closed.mean)) / information


class LatentFit(NamedTuple):
    """Where the climb ended, in the units of the search."""

    ascent: Ascent[RowSites, Standing]
    likelihood: AbstractLikelihood
    """With its parameters learnt."""
    model: FeatureModel


def climb(
    problem: Problem,
    coordinates: np.ndarray,
    likelihood: AbstractLikelihood,
    extra: np.ndarray,
    *,
    centred: bool,
    optimise: bool,
    release: bool,
    progress: Callable[[str], None],
) -> LatentFit:
    """Learn from the rows of a problem; with ``release`` the coordinates too, after the hyperparameters."""
    observed = Observed(problem.y, extra, np.ones(problem.y.size))
    likelihood = likelihood.sized(observed.y)
    model = FeatureModel(InducingPoints, problem.design.covariance, problem.T, problem.y, coordinates)
    latent = LatentProblem(model, observed, likelihood, optimise, centred and not likelihood.locates)
    with threads_for(len(coordinates)):
        step = _first(latent, replace(problem.given, noise=1.0), _first_psi(problem, likelihood, observed))
        if optimise:  # the sites settle first: a first guess at them may call for no function at all
            step = ascend(replace(latent, optimise=False), step, tolerance=_ROUGHLY).last
        ascent = ascend(latent, step, tolerance=_ENOUGH, progress=progress)
        if release and optimise:
            latent = replace(latent, model=replace(model, free=True))
            ascent = ascend(latent, _released(ascent.last), tolerance=_ENOUGH, progress=progress)
    return LatentFit(ascent, likelihood.with_values(ascent.last.psi), latent.model)


def _first_psi(problem: Problem, likelihood: AbstractLikelihood, observed: Observed) -> np.ndarray:
    """The likelihood's parameters; those that the user holds are in the user's units, and are converted."""
    target = problem.target
    start = likelihood.start(target.mean + target.scale * observed.y, observed.extra, observed.w)
    return likelihood.with_values(start).in_units(1.0 / target.scale).psi


def _first(latent: LatentProblem, given: Given, psi: np.ndarray) -> Step[RowSites, Standing]:
    """A first q from a guess at every row by itself."""
    observed, constant = latent.observed, 0.0
    if latent.centred:
        constant = best_constant(latent.likelihood, psi, observed.y, observed.extra, observed.w)
    sites = latent.first_sites(psi, constant)
    model = latent.at_sites(sites, constant)
    theta = start_of(model, given).theta
    theta = model.parameters.clip(theta) if latent.optimise else theta
    standing = latent.settled(sites, Optimum(theta, np.nan, 0, 1, True, "kept as given"), constant)
    assert standing is not None  # the first sites are positive
    return arrive(latent, standing, psi, sites)


def _released(last: Step[RowSites, Standing]) -> Step[RowSites, Standing]:
    """The same q, with the coordinates among what is learnt."""
    optimum = last.standing.optimum
    theta = np.concatenate([optimum.theta, last.standing.features.coordinates.ravel()])
    standing = replace(last.standing, optimum=replace(optimum, theta=theta, curvature=None))
    return replace(last, standing=standing)
