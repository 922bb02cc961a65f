"""The model of sums in which it is tried whether more terms pay: as a fit of all of them would build it."""

from dataclasses import replace

from vff.inference.learning.model import SumModel
from vff.inference.methods.collapsed import model_of
from vff.inference.methods.fit import Fit
from vff.inference.methods.known import log_priors_of, with_held
from vff.inference.methods.task import FitTask
from vff.inference.model.scale import REACH


def model_beside(task: FitTask, fit: Fit) -> SumModel:
    """The terms of a fit and others beside them, targets as the fit saw them, with all that was known beforehand.

    The sums of the task are those of rows, or of their sites where the fit has another likelihood.
    """
    moments, task = task.sums.moments, replace(task, target=fit.target)
    if task.sums.sites_of is None:
        task = with_held(task, moments.request)
        model = model_of(task)
        return model.weighed(0.0) if task.without_noise else model
    task = with_held(replace(task, likelihood=fit.likelihood), moments.request)
    constant = REACH**2 if task.has_intercept else None
    known, widest = log_priors_of(task, moments.request), fit.likelihood.widest
    return SumModel(task.terms, moments, sites=True, intercept=constant, known=known, widest=widest)
