"""What every baseline shares before and after learning: the scale of the targets, and notes for the user."""

import numpy as np

from vff.inference import Optimum, TargetScale
from vff.parameters import PositiveVector

_CONSTANT = 1e-13  # a spread of y below this share of its mean is rounding


def target_scale(y: np.ndarray, *, centre: bool) -> TargetScale:
    """Mean of y (or zero) and root mean square about it.

    Without a mean the scale only sets the units of the search: a zero-mean model of y and one of y / scale are the same
    model. With one it is also the unit in which the prior of the constant is wide.
    """
    mean = float(y.mean()) if centre else 0.0
    scale = float(np.sqrt(np.mean((y - mean) ** 2)))
    return TargetScale(mean, scale if scale > _CONSTANT * abs(mean) else 1.0)


def notes(optimum: Optimum, layout: PositiveVector) -> tuple[str, ...]:
    """Sentences for the user about how learning ended."""
    said = [] if optimum.converged else [f"learning stopped before it converged: {optimum.message}"]
    if optimum.steps:
        for name, end in layout.at_bounds(optimum.theta[: len(layout.names)]).items():
            said.append(f"{name} ended at its {end} bound; the data do not determine it")
    return tuple(said)
