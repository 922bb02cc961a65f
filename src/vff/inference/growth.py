"""How many harmonics: grow M on the nested statistics of one pass until the bound has no more to gain.

The bound misses the evidence by the KL divergence to the exact posterior. For targets drawn from the model its
expectation lies between T and 2T, where T = tr(K_ff - Q_ff) / (2 noise) (Burt, Rasmussen & van der Wilk, 2019). T costs
O(P^2) at any M and no factorisation, so the M that the current hyperparameters need is found without trying it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vff.inference.collapsed import ClosedForm
from vff.inference.column import ColumnModel
from vff.inference.optimise import Optimum, curvature_at, maximise
from vff.linalg import threads_for

_GROWTH = 1.25
_LEAP = 2.5
_STAGES = 10


@dataclass(frozen=True)
class Stage:
    """One M on the way."""

    M: int
    optimum: Optimum
    missed: float
    """T at this M and these hyperparameters, nats."""
    tolerance: float
    """What T may be."""

    @property
    def enough(self) -> bool:
        """Whether a larger M has too little to gain."""
        return self.missed <= self.tolerance


@dataclass(frozen=True)
class Growth:
    """The way M was found."""

    stages: tuple[Stage, ...]


def tolerance(weight: float, effective: float) -> float:
    """Nats that may be left over: half a nat, one millionth per row, or 0.02 per coefficient the data determine.

    The last is the one that counts for rich functions: the divergence between the approximate and the exact posterior,
    spread over the directions in which the data speak, then moves each by a fraction of its standard deviation.
    """
    return max(0.5, 1e-6 * weight, 0.02 * effective)


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
        closed = model.at(optimum.theta)
        enough = tolerance(model.weight, closed.cotangents.effective)
    stage = Stage(model.basis.M, optimum, missed_nats(closed), enough)
    progress(
        f"M = {stage.M}: bound {optimum.elbo:.3f} nats, {optimum.evaluations} evaluations, misses {stage.missed:.3g}"
    )
    return stage


def grow(model: ColumnModel, start: np.ndarray, M: int, *, optimise: bool, progress: Callable[[str], None]) -> Growth:
    """Learn at M, then at the M those hyperparameters need, until it is enough or the statistics end."""
    stages: list[Stage] = []
    curvature = None
    while True:
        small = model.restricted(M)
        stages.append(learn(small, start, optimise=optimise, progress=progress, curvature=curvature))
        if stages[-1].enough or model.basis.M <= M or len(stages) == _STAGES:
            return Growth(tuple(stages))
        start = stages[-1].optimum.theta
        if optimise:
            with threads_for(small.basis.size):
                curvature = curvature_at(small, start)
        # A stage costs M^3, so one on the way is cheap and leaves little to learn at the last and largest.
        M = min(_needed(model, start, M, 0.5 * stages[-1].tolerance), int(np.ceil(_LEAP * M)))


def missed_nats(closed: ClosedForm) -> float:
    """T, in nats."""
    return 0.5 * max(0.0, closed.residual) / closed.noise


def _needed(model: ColumnModel, theta: np.ndarray, M: int, enough: float) -> int:
    """The smallest M on a geometric ladder that misses little enough at these hyperparameters."""
    while model.basis.M > M:
        M = min(model.basis.M, int(np.ceil(_GROWTH * M)))
        if missed_nats(model.restricted(M).at(theta)) <= enough:
            break
    return M
