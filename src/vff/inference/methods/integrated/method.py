"""Hyperparameters integrated, with Gaussian noise: from the sums over rows alone."""

from dataclasses import replace

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.solver import processes
from vff.inference.methods.averaged import EACH, averaged_posterior, hyperparameters_of, with_shares_of
from vff.inference.methods.chains.samples import Samples
from vff.inference.methods.collapsed import Collapsed, model_of, not_gaussian, training_rows, with_target
from vff.inference.methods.fit import Fit
from vff.inference.methods.hyper import Parameter
from vff.inference.methods.integrated.draws import ALONE, INSTEAD, KEPT, drawn, matters_of, on_doubt
from vff.inference.methods.many import refuse_many
from vff.inference.methods.task import FitTask, Method, Spec, refuse_scattered
from vff.inference.posterior.exact import ExactMixture, ExactPosterior
from vff.linalg import threads_for


class Integrated(Method):
    """Draws around the best hyperparameters, the function integrated out."""

    name = "integrated"
    needs = "sums"

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise, where that is asked for or left open."""
        if spec.hyperparameters == "maximise" or not spec.likelihood.conjugate:
            return ""
        return None if spec.covariance == "full" else not_gaussian(spec)

    def fit(self, task: FitTask) -> Fit:
        """From where learning ends; where that is left open, if not knowing the hyperparameters matters."""
        asked = task.hyperparameters == "integrate"
        why_not = _uncertain_inputs_or_no_noise(task)
        if asked and why_not is not None:
            raise ValueError(why_not)
        if asked:
            refuse_many(task.sums.moments.request, "hyperparameters='integrate'", INSTEAD, least=True)
        task = with_target(task)
        fit = Collapsed().fit(task)
        if not task.optimise or why_not is not None:
            return fit
        model = model_of(task).restricted(fit.history[-1].harmonics)
        parameters = hyperparameters_of(fit, model, task, walls=True)
        matters, doubt = matters_of(model, fit.history[-1].optimum.theta, parameters, asked=asked)
        fit = replace(fit, doubt=doubt, notes=(*fit.notes, *on_doubt(matters, doubt)))
        return self._averaged(task, fit, model, parameters) if matters else fit

    def _averaged(self, task: FitTask, fit: Fit, model: SumModel, parameters: list[Parameter]) -> Fit:
        task.progress("draws of the hyperparameters around their mode")
        with threads_for(model.factored):
            found = drawn(model, parameters)
            if found.alone:
                return replace(fit, notes=(*fit.notes, ALONE))
            which = found.resampled()
            t = found.theta[which]
            posterior, intercept = averaged_posterior(model, t[KEPT], np.random.default_rng(0), centred=True)
        posterior = replace(posterior, mixture=_mixture(task, model, t[KEPT], intercept))
        samples = Samples(
            tuple(parameters), t[None], {"lp": found.objective[None, which]}, np.repeat(KEPT, EACH),
            np.repeat(t[KEPT, -1:], EACH, axis=0), task.likelihood, task.target.scale, 0.0, 0,
            effective=found.effective,
        )  # fmt: skip
        return replace(
            fit,
            method=self.name,
            posterior=posterior,
            terms=with_shares_of(posterior, fit, model, task),
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
