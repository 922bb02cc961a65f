"""How many harmonics: grow M on the nested statistics of one pass until the bound stops gaining."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vff.inference.column import ColumnModel
from vff.inference.optimise import Optimum, maximise

_GROWTH = 1.6


@dataclass(frozen=True)
class Stage:
    """One M on the way."""

    M: int
    optimum: Optimum


@dataclass(frozen=True)
class Growth:
    """The way M was found."""

    stages: tuple[Stage, ...]
    tolerance: float
    settled: bool
    """True when the last enlargement gained less than the tolerance."""


def tolerance(weight: float) -> float:
    """Nats below which a larger M is not worth having: 0.1, or one millionth per row if that is more."""
    return max(0.1, 1e-6 * weight)


def learn(model: ColumnModel, start: np.ndarray, *, optimise: bool, progress: Callable[[str], None]) -> Optimum:
    """Hyperparameters at a fixed M."""
    if optimise:
        return maximise(model, start, progress)
    return Optimum(start, model.at(start).elbo, 0, 1, True, "hyperparameters kept as given")


def grow(
    model: ColumnModel, start: np.ndarray, M: int, *, optimise: bool, progress: Callable[[str], None]
) -> Growth:
    """Learn at M, at 1.6 M, ... up to the M of the statistics; stop at the first gain below tolerance."""
    M_max, enough = model.basis.M, tolerance(model.weight)
    stages: list[Stage] = []
    while True:
        optimum = learn(model.restricted(M), start, optimise=optimise, progress=progress)
        stages.append(Stage(M, optimum))
        progress(f"M = {M}: bound {optimum.elbo:.3f} nats")
        if len(stages) > 1 and optimum.elbo - stages[-2].optimum.elbo < enough:
            return Growth(tuple(stages), enough, settled=True)
        if M_max <= M:
            return Growth(tuple(stages), enough, settled=False)
        M, start = min(M_max, int(np.ceil(_GROWTH * M))), optimum.theta
