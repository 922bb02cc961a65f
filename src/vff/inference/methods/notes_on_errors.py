"""What a fit has to say of error bars: whether the rows scatter as these and the noise beside them say."""

from typing import TYPE_CHECKING

import numpy as np

from vff.inference.learning.growth import Stage

if TYPE_CHECKING:
    from vff.inference.methods.task import FitTask

_NOTHING = 1e-3  # of the typical error bar, squared: noise that is no more than this is none
_FAR_LARGER = 9.0  # times the typical error bar, squared
_TOO_LARGE, _TOO_SMALL = 0.8, 1.25  # squares of residuals over what they should be
_SURE = 4.0  # standard errors


def on_error_bars(final: Stage, task: "FitTask") -> tuple[str, ...]:
    """Sentences for the user; none where rows have no error bars."""
    nodes = task.sums.moments.nodes
    if not nodes:
        return ()
    positive = {variance: node.weight for variance, node in nodes.items() if variance > 0.0}
    if not positive:
        return ("all error bars are zero, which says nothing: leave noise_std out",)
    rows = sum(positive.values())
    typical = float(np.exp(sum(weight * np.log(variance) for variance, weight in positive.items()) / rows))
    ratio, sure = _scatter(final)
    if task.without_noise:
        return _without_noise(ratio, sure)
    noise = final.model.unpack(final.optimum.theta).noise * task.target.scale**2
    if noise <= _NOTHING * typical:
        if sure and ratio < _TOO_LARGE:
            return (
                f"the squares of the residuals are {ratio:.2g} of what the error bars say, and no noise is left beside "
                "these: they look too large, and so are the intervals; see whether they are standard deviations",
            )
        return (
            "the noise beside the error bars came to nothing: these explain all the scatter; noise_variance=0 leaves "
            "it out",
        )
    if noise > _FAR_LARGER * typical:
        return (
            f"the noise beside the error bars has a standard deviation of {np.sqrt(noise):.3g}, where a typical error "
            f"bar is {np.sqrt(typical):.3g}: these look too small, or say little of how y scatters around the function",
        )
    return ()


def _without_noise(ratio: float, sure: bool) -> tuple[str, ...]:
    if not sure or _TOO_LARGE <= ratio <= _TOO_SMALL:
        return ()
    what = "large" if ratio < 1.0 else "small"
    advice = "" if ratio < 1.0 else "; leave noise_variance=None, to learn what is left beside them"
    return (
        f"the squares of the residuals are {ratio:.3g} times what the error bars say, which look too {what}{advice}",
    )


def _scatter(final: Stage) -> tuple[float, bool]:
    """Squares of residuals over what they should be, and whether that is no accident."""
    closed = final.closed
    left = max(closed.count - closed.cotangents.edf, 1.0)
    ratio = closed.tau * max(0.0, closed.yy - 2.0 * closed.pulled + closed.energy) / left
    return ratio, bool(abs(ratio - 1.0) * np.sqrt(0.5 * left) > _SURE)
