"""Hyperparameters integrated under any other likelihood: on the sums of the sites that stand for rows at the mode.

The evidence of these sums has the value and the slope of the bound at the mode, theory (28.3). The likelihood's own
parameters are drawn beside them, from the Gaussian that the curvature of the bound makes.
"""

from dataclasses import replace

import numpy as np
from scipy.stats import norm, qmc

from vff.inference.methods.averaged import EACH, averaged_posterior, with_shares_of
from vff.inference.methods.chains.samples import Samples
from vff.inference.methods.fit import Fit
from vff.inference.methods.hyper import Parameter, likelihood_parameters, term_parameters, with_priors
from vff.inference.methods.integrated.draws import (
    ALONE,
    INSTEAD,
    KEPT,
    RESAMPLED,
    drawn,
    known_of,
    matters_of,
    on_doubt,
)
from vff.inference.methods.many import refuse_many
from vff.inference.methods.natural.ascent import arrive, ascend
from vff.inference.methods.natural.method import Ascended, ascended
from vff.inference.methods.natural.row_sites import is_positive
from vff.inference.methods.task import FitTask, Method, Spec
from vff.linalg import threads_for
from vff.words import shown

_FLATTEST = 0.1  # nats per squared unit of a likelihood's parameter


class IntegratedSites(Method):
    """Draws around the best hyperparameters, with the sites of the rows held."""

    name = "integrated sites"
    needs = "visits"

    def accepts(self, spec: Spec) -> str | None:
        """Any likelihood but Gaussian noise, where that is asked for or left open."""
        if spec.likelihood.conjugate or spec.hyperparameters == "maximise":
            return ""
        if spec.covariance == "full":
            return None
        if spec.hyperparameters == "auto":
            return ""
        return (
            f"hyperparameters='integrate' averages full covariances; got covariance={shown(spec.covariance)}: leave it "
            "at 'full', or use hyperparameters='maximise'"
        )

    def fit(self, task: FitTask) -> Fit:
        """From where learning ends; where that is left open, if not knowing the hyperparameters matters."""
        if task.hyperparameters == "integrate":
            refuse_many(task.visited.request, "hyperparameters='integrate'", INSTEAD, least=True)
        top = ascended(task)
        last = top.ascent.last
        if not task.optimise or not is_positive(last.iterate.closed):
            return top.fit
        parameters, asked = _of_terms(top), task.hyperparameters == "integrate"
        matters, doubt = matters_of(top.model, last.iterate.optimum.theta, parameters, asked=asked)
        fit = replace(top.fit, doubt=doubt, notes=(*top.fit.notes, *on_doubt(matters, doubt)))
        if not matters:
            return fit
        task.progress("draws of the hyperparameters around their mode")
        settled = _settled(top, parameters)
        if settled is not top:
            fit = replace(fit, visits=fit.visits + settled.ascent.visits)
        return _averaged(settled, fit, parameters, _of_likelihood(settled))


def _settled(top: Ascended, parameters: list[Parameter]) -> Ascended:
    """The sites at the mode of bound and priors, around which draws are: those of the best bound may be far from it."""
    problem, last = replace(top.problem, known=known_of(parameters), grows=False), top.ascent.last
    iterate = problem.settled(last.sums, last.iterate)
    if iterate is None:
        return top
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = arrive(problem, replace(iterate, free=top.model.learnt), last.psi, last.sums)
        return replace(top, problem=problem, ascent=ascend(problem, first, tolerance=problem.tolerance))


def _of_terms(top: Ascended) -> list[Parameter]:
    """Those of the terms, and the noise variance of sites, which is one."""
    learnt = [(own.variance, *own.lengthscales) for own in top.fit.terms]
    terms = term_parameters(top.task, learnt, top.task.units(top.model.moments.request), walls=True)
    return [*with_priors(terms, top.task.priors), Parameter("noise_variance", None, None, 1.0)]


def _of_likelihood(top: Ascended) -> list[Parameter]:
    found = likelihood_parameters(top.task.likelihood, top.ascent.last.psi, top.task.target)
    return with_priors(found, top.task.priors)


def _averaged(top: Ascended, fit: Fit, parameters: list[Parameter], others: list[Parameter]) -> Fit:
    task, last = top.task, top.ascent.last
    with threads_for(top.model.factored):
        found = drawn(top.model, parameters)
        if found.alone:
            return replace(fit, notes=(*fit.notes, ALONE))
        which = found.resampled()
        t = found.theta[which]
        posterior, intercept = averaged_posterior(top.model, t[KEPT], np.random.default_rng(0), centred=True)
    psi = _psi_draws(last.psi, last.curvature, np.array([own.prior is not None for own in others], dtype=bool))
    samples = Samples(
        (*parameters[:-1], *others), np.concatenate([t[:, :-1], psi], axis=1)[None],
        {"lp": found.objective[None, which]}, np.repeat(KEPT, EACH), np.repeat(psi[KEPT], EACH, axis=0),
        task.likelihood, task.target.scale, 0.0, 0, effective=found.effective,
    )  # fmt: skip
    return replace(
        fit,
        method=IntegratedSites.name,
        posterior=posterior,
        terms=with_shares_of(posterior, fit, top.model, task),
        target=task.target.shifted(top.problem.intercept_prior + intercept),
        samples=samples,
        notes=(*fit.notes, *samples.notes()),
    )


def _psi_draws(psi: np.ndarray, curvature: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Draws of the likelihood's parameters, more even than chance, (RESAMPLED, R)."""
    found, own = np.tile(psi, (RESAMPLED, 1)), np.flatnonzero(free)
    if own.size:
        values, vectors = np.linalg.eigh(curvature[np.ix_(own, own)])
        uniform = qmc.Sobol(own.size, rng=1).random(2 ** int(np.ceil(np.log2(RESAMPLED))))[:RESAMPLED]
        white = norm.ppf(np.clip(uniform, 1e-9, 1.0 - 1e-9)) / np.sqrt(np.maximum(values, _FLATTEST))
        found[:, own] += white @ vectors.T
    return found
