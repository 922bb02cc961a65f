"""Whether more terms pay, tried on sums: in the model that a fit of all of them would build."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vff.inference.learning.interaction_gain import Gain, PartialSum
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


@dataclass(frozen=True)
class Joining:
    """Terms that join a sum one after another, in the model that was asked for and in one whose noise is learnt.

    Where noise is known and may not be what a sum misses, rough terms explain it, as many coefficients as there are
    rows; what is learnt from there stays there, and no residuals show a term that would do better.
    """

    asked: PartialSum
    loose: PartialSum
    """The same record where noise is learnt anyway."""

    @property
    def kept(self) -> tuple[int, ...]:
        """The terms that are in the sum."""
        return self.asked.kept

    @property
    def elbo(self) -> float:
        """Of the model that was asked for."""
        return self.asked.elbo

    def expected(self, s: int) -> Gain:
        """What one term more would gain of what these leave."""
        return self.loose.expected(s)

    def joined(self, s: int, values: Mapping[str, float]) -> "Joining":
        """With one term more, learnt from where the terms are in either model."""
        asked = self.asked.joined(s, values)
        if self.loose is self.asked:
            return Joining(asked, asked)
        loose = self.loose.joined(s, values)
        return Joining(max(asked, loose.within(self.asked), key=lambda own: own.elbo), loose)
