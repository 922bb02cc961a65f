"""How many harmonics: grow M on the nested statistics of one pass until the bound has no more to gain.

The bound misses the evidence by the KL divergence to the exact posterior. For targets drawn from the model its
expectation lies between T and 2T, where T = tr(K_ff - Q_ff) / (2 noise) (Burt, Rasmussen & van der Wilk, 2019). T costs
O(P^2) at any M and no factorisation, so the M that the current hyperparameters need is found without trying it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vff.inference.column import ColumnModel
from vff.inference.optimise import Optimum, curvature_at, maximise
from vff.linalg import threads_for

_GROWTH = 1.25
_STAGES = 6


@dataclass(frozen=True)
class Stage:
    """One M on the way."""

    M: int
    optimum: Optimum
    missed: float
    """T at this M and these hyperparameters, nats."""


@dataclass(frozen=True)
class Growth:
    """The way M was found."""

    stages: tuple[Stage, ...]
    tolerance: float

    @property
    def settled(self) -> bool:
        """True when the bound has less than the tolerance to gain from a larger M."""
        return self.stages[-1].missed <= self.tolerance


def tolerance(weight: float) -> float:
    """Nats that may be left on the table: half a nat, or one millionth per row if that is more."""
    return max(0.5, 1e-6 * weight)


def learn(
    model: ColumnModel,
    start: np.ndarray,
    *,
    optimise: bool,
    progress: Callable[[str], None],
    curvature: np.ndarray | None = None,
) -> Stage:
    """Hyperparameters at a fixed M."""
    with threads_for(model.basis.size):
        if optimise:
            optimum = maximise(model, start, curvature)
        else:
            optimum = Optimum(start, model.at(start).elbo, 0, 1, True, "hyperparameters kept as given")
    stage = Stage(model.basis.M, optimum, missed_nats(model, optimum.theta))
    progress(
        f"M = {stage.M}: bound {optimum.elbo:.3f} nats after {optimum.steps} steps, at most {stage.missed:.3g} missed"
    )
    return stage


def grow(model: ColumnModel, start: np.ndarray, M: int, *, optimise: bool, progress: Callable[[str], None]) -> Growth:
    """Learn at M, then at the M those hyperparameters need, until it is enough or the statistics end."""
    enough = tolerance(model.weight)
    stages: list[Stage] = []
    curvature = None
    while True:
        small = model.restricted(M)
        stages.append(learn(small, start, optimise=optimise, progress=progress, curvature=curvature))
        if stages[-1].missed <= enough or model.basis.M <= M or len(stages) == _STAGES:
            return Growth(tuple(stages), enough)
        start = stages[-1].optimum.theta
        if optimise and curvature is None:
            with threads_for(small.basis.size):
                curvature = curvature_at(small, start)
        M = _needed(model, start, M, 0.5 * enough)


def missed_nats(model: ColumnModel, theta: np.ndarray) -> float:
    """T, in nats."""
    closed = model.at(theta)
    return 0.5 * max(0.0, closed.residual) / closed.noise


def _needed(model: ColumnModel, theta: np.ndarray, M: int, enough: float) -> int:
    """The smallest M on a geometric ladder that misses little enough at these hyperparameters."""
    while model.basis.M > M:
        M = min(model.basis.M, int(np.ceil(_GROWTH * M)))
        if missed_nats(model.restricted(M), theta) <= enough:
            break
    return M
