"""Maximise a bound over log hyperparameters, from one start."""

from typing import TypeVar

import numpy as np

from vff.inference.learning.newton import climb
from vff.inference.learning.records import Form, Model, Optimum
from vff.inference.learning.rows import RowForm
from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.linalg import NotPositiveDefinite

_OF_ERROR = 0.1  # of that of the bound: a guess of its curvature misjudges what a step would gain

F = TypeVar("F", bound=Form)


def maximise(
    model: Model[F],
    start: np.ndarray,
    curvature: np.ndarray | None = None,
    free: np.ndarray | None = None,
    gain: float | None = None,
    first: F | None = None,
) -> tuple[Optimum, F]:
    """The optimum, and the model there.

    ``curvature`` is minus the Hessian at a nearby optimum, as a coarser model knows it, for a model that does not know
    its own. Only the parameters marked ``free`` move. A step that gains less than ``gain`` nats is the last; the
    default leaves nothing to gain. ``first`` is the model at the start, where it is known already.
    """
    layout = model.parameters
    free = ~layout.held if free is None else free
    if first is None:
        start, first = with_enough_noise(model, layout.clip(start), free)
    if not free.any():
        return Optimum(start, float(first.objective), 0, 1, True, "nothing to learn", curvature), first
    if first.error > 0.0:  # a bound that is only known to an error is not climbed beyond it
        gain = max(_OF_ERROR * first.error, gain or 0.0)
    return climb(model, start, first, free, gain, curvature)


def with_enough_noise(model: Model[F], start: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, F]:
    """The start, with as much more noise as it takes for rounding to leave a model there, where the noise may move."""
    (noise,) = np.flatnonzero([name == "noise" for name in model.parameters.names])
    while True:
        try:
            closed = model.at(start)
            if np.isfinite(closed.objective):
                return start, closed
            failure = NotPositiveDefinite("the bound is not finite where learning starts; give other hyperparameters")
        except NotPositiveDefinite as error:
            failure = error
        louder = start.copy()
        louder[noise] += np.log(10.0)
        louder = model.parameters.clip(louder)
        if not free[noise] or louder[noise] == start[noise]:
            raise failure
        start = louder


def rescale(closed: LinearGaussian | RowForm) -> tuple[float, float]:
    """The factor on all variances (prior and noise together) that maximises the bound, and the bound there.

    The bound depends on it only through -1/2 [n log s + quadratic / s]; hence s = quadratic / n. A constant whose prior
    says next to nothing takes one row.
    """
    form = closed.as_learnt
    n = form.count - form.of_intercept.edf
    if not n > 0.0:
        return 1.0, form.elbo
    s = max(form.quadratic / n, 1e-12)
    return s, form.elbo - 0.5 * (n * np.log(s) + form.quadratic * (1.0 / s - 1.0))
