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

_SHORTEST_LEAP, _LONGEST_LEAP = 1.25, 2.5
_STALLED = 0.75
_FORESIGHT = 1.0  # log units


@dataclass(frozen=True)
class Stage:
    """One M on the way."""

    model: ColumnModel
    optimum: Optimum
    closed: ClosedForm
    """The model at the optimum."""
    tolerance: float
    """What may be missed."""

    @property
    def M(self) -> int:
        return self.model.basis.M

    @property
    def missed(self) -> float:
        """T at this M and these hyperparameters, nats."""
        return self.closed.missed

    @property
    def enough(self) -> bool:
        """Whether a larger M has too little to gain."""
        return self.missed <= self.tolerance


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
    elbo: float | None = None,
) -> Stage:
    """Hyperparameters at a fixed M; ``curvature`` and ``elbo`` come from a smaller M, if there was one."""
    with threads_for(model.basis.size):
        if optimise:
            optimum, closed = maximise(model, start, curvature, elbo)
        else:
            closed = model.at(start)
            optimum = Optimum(start, closed.elbo, 0, 1, True, "hyperparameters kept as given")
        enough = tolerance(model.weight, closed.cotangents.effective)
    stage = Stage(model, optimum, closed, enough)
    progress(
        f"M = {stage.M}: bound {optimum.elbo:.3f} nats, {optimum.evaluations} evaluations, misses {stage.missed:.3g}"
    )
    return stage


def grow(
    model: ColumnModel, start: np.ndarray, M: int, *, optimise: bool, progress: Callable[[str], None]
) -> list[Stage]:
    """Learn at M, then at the M those hyperparameters need, until it is enough or the statistics end."""
    stages = [learn(model.restricted(M), start, optimise=optimise, progress=progress)]
    while not stages[-1].enough and stages[-1].M < model.basis.M and not _stalled(stages):
        last = stages[-1]
        large, theta, curvature = model.restricted(_next(last, model)), last.optimum.theta, None
        if optimise:
            with threads_for(last.model.basis.size):
                curvature = curvature_at(last.model, theta)
            theta = _foresee(last.model, large, theta, curvature)
        more = {"curvature": curvature, "elbo": last.optimum.elbo}
        stages.append(learn(large, theta, optimise=optimise, progress=progress, **more))
    return stages


def _stalled(stages: list[Stage]) -> bool:
    """Whether the last growth of M brought nothing: something else, the domain, is what limits the bound."""
    return len(stages) > 1 and stages[-1].missed > _STALLED * stages[-2].missed


def _next(stage: Stage, model: ColumnModel) -> int:
    """The M that should be enough: T falls like M^-(2p+1), the tail of the spectrum.

    A stage costs M^3, so one on the way is cheap and leaves little to learn at the last and largest: no leap is long.
    """
    factor = (stage.missed / (0.5 * stage.tolerance)) ** (1.0 / (2 * model.p + 1))
    return min(model.basis.M, int(np.ceil(stage.M * min(max(factor, _SHORTEST_LEAP), _LONGEST_LEAP))))


def _foresee(small: ColumnModel, large: ColumnModel, theta: np.ndarray, curvature: np.ndarray | None) -> np.ndarray:
    """Where the optimum moves when the model grows: one Newton step on what is known of the gain, T_small - T_large."""
    if curvature is None:
        return theta
    gain = small.pull_back(theta, small.at(theta).missed_cotangents)
    gain = gain - large.pull_back(theta, large.at(theta).missed_cotangents)
    return theta + np.clip(np.linalg.solve(curvature, gain), -_FORESIGHT, _FORESIGHT)
