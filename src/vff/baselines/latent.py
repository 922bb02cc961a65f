"""Any likelihood on dense features, theory §9 with the rows kept: A = I + Phi'SPhi, A m = Phi'(l - c0 s).

Phi depends on the hyperparameters, so the sites themselves are kept and not their sums. With z at all distinct rows q
is the best of all Gaussians. Sites may be negative as long as A is positive definite. Everything but q is learnt on
the profile of the bound, its maximum over q: L-BFGS outside, natural gradients inside, from the last sites.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from vff.baselines.design import Problem
from vff.baselines.features import AbstractFeatures, FeatureModel, InducingPoints, start_of
from vff.baselines.posterior import FeaturePosterior
from vff.inference import DirectLinearGaussian, Observed, Optimum
from vff.inference.methods.natural.ascent import Step, Visit, arrive, ascend
from vff.inference.methods.natural.row_sites import RowSites, first_sites, is_positive, sites_of
from vff.likelihoods import AbstractLikelihood, best_constant, parameter_derivatives
from vff.linalg import threads_for

_ENOUGH = 1e-8  # nats: a yardstick ascends to the top
_FLAT = 1e-2  # slope of the profile in units in which it is about round: nothing is left to gain
_NOWHERE = 1e6  # nats, by which what is no model is worse than one


@dataclass(frozen=True)
class LatentIterate:
    """q at some sites."""

    closed: DirectLinearGaussian
    """The Gaussian model of the sites."""
    features: AbstractFeatures
    theta: np.ndarray
    """The hyperparameters, and the coordinates where they are free."""

    @cached_property
    def posterior(self) -> FeaturePosterior:
        """Of f less its prior mean, at rows in half ranges."""
        return FeaturePosterior.from_form((), self.features, self.closed)


LatentStep = Step[RowSites, LatentIterate]


@dataclass(frozen=True)
class LatentProblem:
    """Rows with a likelihood, under dense features; the hyperparameters and psi are held while q ascends."""

    model: FeatureModel
    """The features; its rows are replaced by sites."""
    observed: Observed
    likelihood: AbstractLikelihood
    intercept_prior: float = 0.0
    """Prior mean of f; that of its constant, where it has one."""

    def first_sites(self, psi: np.ndarray) -> RowSites:
        """Of every row by itself, under a broad prior around the prior mean; all are positive."""
        return first_sites(self.likelihood, psi, self.observed, self.intercept_prior)

    def at_sites(self, sites: RowSites) -> FeatureModel:
        """The Gaussian model of some sites, measured from the prior mean."""
        return replace(self.model, y=sites.pull - self.intercept_prior * sites.precision, precision=sites.precision)

    def update(self, sites: RowSites, here: LatentIterate, learn: float) -> LatentIterate | None:
        """See ``ascent.Problem``."""
        return self.iterate(sites, here.theta)

    def iterate(self, sites: RowSites, theta: np.ndarray) -> LatentIterate | None:
        """q at these hyperparameters; None when the sites make none."""
        model = self.at_sites(sites)
        features = model.features(theta)
        closed = model.closed(model.equations(features), features.values)
        return LatentIterate(closed, features, theta) if is_positive(closed) else None

    def visit(self, iterate: LatentIterate, psi: np.ndarray) -> Visit[RowSites]:
        """See ``ascent.Problem``."""
        own = self.observed
        mean, variance = self._marginals(iterate)
        answer = self.likelihood.expected(psi, own.y, own.extra, mean, variance)
        held = np.zeros(psi.size), -np.eye(psi.size)  # no slope, and a step of none
        elbo = float(own.w @ answer.value) - iterate.closed.divergence
        return Visit(elbo, iterate.closed.error, sites_of(answer, own.w, mean), *held)

    def _marginals(self, iterate: LatentIterate) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = iterate.posterior.inside(self.model.T)
        return self.intercept_prior + mean, variance

    def best_step(self, theta: np.ndarray, psi: np.ndarray, sites: RowSites) -> LatentStep:
        """Where q ascends to, from some sites; from a first guess at them where these make no q."""
        iterate = self.iterate(sites, theta)
        if iterate is None:
            sites = self.first_sites(psi)
            iterate = self.iterate(sites, theta)
        assert iterate is not None  # the first sites are positive
        return ascend(self, arrive(self, iterate, psi, sites), tolerance=_ENOUGH).last

    def slopes(self, step: LatentStep) -> np.ndarray:
        """Of the profile in theta and psi."""
        iterate, own, of_psi = step.iterate, self.observed, np.zeros(step.psi.size)
        if self.likelihood.free.any():
            rows = own.y, own.extra, own.w, *self._marginals(iterate)
            of_psi = parameter_derivatives(self.likelihood, step.psi, *rows)[1]
        return np.concatenate([self.at_sites(step.sums).pull_back(iterate.theta, iterate.closed.cotangents), of_psi])


class LatentFit(NamedTuple):
    """Where learning ended, in the units of the search."""

    step: LatentStep
    optimum: Optimum
    likelihood: AbstractLikelihood
    """With its parameters learnt."""
    intercept_prior: float
    """What f is measured from."""


def ascend_profile(
    problem: Problem,
    coordinates: np.ndarray,
    likelihood: AbstractLikelihood,
    extra: np.ndarray,
    *,
    optimise: bool,
    release: bool,
    progress: Callable[[str], None],
) -> LatentFit:
    """Learn from the rows of a problem; with ``release`` the coordinates too, after the hyperparameters."""
    observed, target = Observed(problem.y, extra, np.ones(problem.y.size)), problem.target
    likelihood = likelihood.sized(observed.y)
    own = problem.covariance, problem.T, problem.y, coordinates
    model = FeatureModel(InducingPoints, *own, intercept=problem.intercept)
    with threads_for(len(coordinates)):
        # what the user holds of the likelihood is in the user's units
        start = likelihood.start(target.mean + target.scale * observed.y, extra, observed.w)
        psi, intercept_prior = likelihood.with_values(start).in_units(1.0 / target.scale).psi, 0.0
        if problem.intercept is not None and not likelihood.standardised:
            intercept_prior = best_constant(likelihood, psi, observed.y, extra, observed.w)
        latent = LatentProblem(model, observed, likelihood, intercept_prior)
        # a first q from a guess at every row by itself, at hyperparameters that suit it
        sites = latent.first_sites(psi)
        theta = start_of(latent.at_sites(sites), replace(problem.given, noise=1.0)).theta
        step, optimum = _learn(latent, latent.best_step(theta, psi, sites), optimise)
        progress(f"bound {step.elbo:.4f} nats after {optimum.steps} steps")
        if release and optimise:
            latent = replace(latent, model=replace(model, free=True))
            theta = np.concatenate([step.iterate.theta, coordinates.ravel()])
            step, optimum = _learn(latent, replace(step, iterate=replace(step.iterate, theta=theta)), optimise)
            progress(f"locations released: bound {step.elbo:.4f} nats after {optimum.steps} steps")
    return LatentFit(step, optimum, likelihood.with_values(step.psi), intercept_prior)


def _learn(latent: LatentProblem, start: LatentStep, optimise: bool) -> tuple[LatentStep, Optimum]:
    """L-BFGS on the profile of the bound, over what is free of (theta, psi); the noise variance of sites is one."""
    layout, best = latent.model.parameters, start
    held = np.array([name == "noise" or not optimise for name in layout.names])
    free = np.concatenate([~held, latent.likelihood.free])
    P, whole = held.size, np.concatenate([start.iterate.theta, start.psi])
    if not free.any():
        return best, Optimum(start.iterate.theta, start.elbo, 0, 1, True, "hyperparameters kept as given")
    # the curvature is about half the coefficients that the data determine, and half the rows in psi
    steep = [latent.model.scales(start.iterate.closed), np.full(start.psi.size, float(latent.observed.y.size))]
    unit = np.sqrt(0.5 * np.concatenate(steep))[free]

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        trial = whole.copy()
        trial[free] = z / unit
        try:
            step = latent.best_step(trial[:P], trial[P:], best.sums)
            slopes = latent.slopes(step)[free] / unit
        except FloatingPointError:
            step, slopes = None, np.zeros(z.size)
        if step is None or not np.isfinite(step.elbo):
            return _NOWHERE - best.elbo, np.zeros(z.size)  # no model: a search that came here turns back
        best = step if step.elbo > best.elbo else best
        return -step.elbo, -slopes

    bounds = np.array([*layout.log_bounds, *((-np.inf, np.inf) for _ in start.psi)])[free]
    first = np.concatenate([layout.clip(start.iterate.theta), start.psi])[free]
    how = {"bounds": bounds * unit[:, None], "options": {"maxiter": 200, "maxcor": 20, "ftol": 1e-11, "gtol": 1e-4}}
    result = minimize(objective, first * unit, jac=True, method="L-BFGS-B", **how)
    # a search that ends in rounding has arrived when nothing is left to gain
    converged = bool(result.success) or float(np.abs(result.jac).max()) < _FLAT
    counts = int(result.nit), int(result.nfev)
    return best, Optimum(best.iterate.theta, best.elbo, *counts, converged, str(result.message))
