"""Hyperparameters integrated, with Gaussian noise: from the sums over rows alone."""

from dataclasses import replace

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.solver import LARGEST_DIRECT, processes
from vff.inference.methods.averaged import EACH, averaged_posterior, hyperparameters_of
from vff.inference.methods.chains.samples import Samples
from vff.inference.methods.collapsed import Collapsed, model_of, not_gaussian, training_rows, with_target
from vff.inference.methods.fit import Fit
from vff.inference.methods.hyper import Parameter
from vff.inference.methods.integrated.draws import DRAWS, MATTERS, RESAMPLED, SETTINGS, doubt_of, drawn
from vff.inference.methods.task import FitTask, Method, Spec, refuse_scattered
from vff.inference.posterior.exact import ExactMixture, ExactPosterior
from vff.linalg import threads_for


class Integrated(Method):
    """Draws around the best hyperparameters, the function integrated out."""

    name = "integrated"
    needs = "sums"

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise, where that is asked for or left open."""
        if spec.hyperparameters == "auto" and spec.likelihood.conjugate and spec.covariance == "full":
            return None
        if spec.hyperparameters != "integrate":
            return ""
        if not spec.likelihood.conjugate:
            return (
                "hyperparameters='integrate' is for Gaussian noise; with other likelihoods inference='mcmc' averages "
                "over hyperparameters: use that, or hyperparameters='maximise'"
            )
        return None if spec.covariance == "full" else not_gaussian(spec)

    def fit(self, task: FitTask) -> Fit:
        """From where learning ends; where that is left open, if not knowing the hyperparameters matters."""
        asked = task.hyperparameters == "integrate"
        why_not = _uncertain_inputs_or_no_noise(task)
        if asked and why_not is not None:
            raise ValueError(why_not)
        task = with_target(task)
        fit = Collapsed().fit(task)
        if not task.optimise or why_not is not None:
            return fit
        model = model_of(task).restricted(fit.history[-1].harmonics)
        if model.size > LARGEST_DIRECT:
            if not asked:
                return fit
            raise ValueError(
                f"hyperparameters='integrate' factors a matrix of all {model.size} features for every draw, and takes "
                f"at most {LARGEST_DIRECT}; use fewer frequencies or levels, or hyperparameters='maximise'"
            )
        parameters = hyperparameters_of(fit, model, task, walls=True)
        if all(own.prior is None for own in parameters):
            return fit  # nothing that is not known
        if not asked:
            found = doubt_of(model, fit.history[-1].optimum.theta, parameters)
            if found is None or found <= MATTERS:
                return replace(fit, doubt=found)
            fit = replace(fit, doubt=found)
        return self._averaged(task, fit, model, parameters)

    def _averaged(self, task: FitTask, fit: Fit, model: SumModel, parameters: list[Parameter]) -> Fit:
        task.progress(f"{DRAWS} draws of the hyperparameters around their mode")
        with threads_for(model.factored):
            found = drawn(model, parameters)
            which = found.resampled(RESAMPLED)
            t = found.theta[which]
            kept = np.arange(0, RESAMPLED, RESAMPLED // SETTINGS)
            posterior, intercept = averaged_posterior(model, t[kept], np.random.default_rng(0))
        posterior = replace(posterior, mixture=_mixture(task, model, t[kept], intercept))
        samples = Samples(
            tuple(parameters), t[None], {"lp": found.objective[None, which]}, np.repeat(kept, EACH),
            np.repeat(t[kept, -1:], EACH, axis=0), task.likelihood, task.target.scale, 0.0, 0,
            effective=found.effective,
        )  # fmt: skip
        return replace(
            fit,
            method=self.name,
            posterior=posterior,
            target=task.target.shifted(intercept),
            samples=samples,
            notes=(*fit.notes, *samples.notes()),
        )


def _mixture(task: FitTask, model: SumModel, t: np.ndarray, offset: float) -> ExactMixture | None:
    """Of the process given the rows at these settings, where rows are few."""
    settings, parts = [model.unpack(theta) for theta in t], []
    for setting in settings:
        rows = training_rows(task, setting.noise)
        if rows is None:
            return None
        parts.append(ExactPosterior(processes(model, setting), rows))
    return ExactMixture(tuple(parts), EACH, offset)


def _uncertain_inputs_or_no_noise(task: FitTask) -> str | None:
    """Why there is nothing to draw."""
    try:
        refuse_scattered(task, "hyperparameters='integrate'")
    except ValueError as error:
        return str(error)
    if task.without_noise:
        return (
            "hyperparameters='integrate' draws the noise variance beside error bars, and noise_variance=0 holds "
            "none; leave noise_variance=None, or use hyperparameters='maximise'"
        )
    return None
