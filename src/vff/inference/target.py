"""The targets' mean and scale, so that learning sees numbers near one whatever the user's units."""

from dataclasses import dataclass, replace

import numpy as np

from vff.features import TailRows
from vff.moments import Moments

REACH = 10.0
"""Prior standard deviation of the constant around its first guess, in targets as learning sees them.

It says next to nothing, and keeps the constant from running off for ever where all labels are the same.
"""


@dataclass(frozen=True)
class TargetScale:
    """y = mean + scale * (what the model sees)."""

    mean: float
    scale: float

    @classmethod
    def of(cls, moments: Moments, tails: tuple[TailRows, ...], normalise: bool) -> "TargetScale":
        """Weighted mean and standard deviation of y over all rows; without a mean, zero and the root mean square.

        The scale is a matter of units and never of the model, so that learning always sees targets near one.
        """
        weight = moments.weight + sum(float(tail.w.sum()) for tail in tails)
        shift = (moments.target + sum(float(tail.w @ tail.y) for tail in tails)) / weight
        mean = moments.offset + shift
        spread = (moments.target_squared + sum(tail.yy for tail in tails)) / weight - shift**2
        square = spread if normalise else spread + mean**2
        # y was measured from its mean before it was squared, so a spread as small as this is rounding: a constant y
        scale = float(np.sqrt(square)) if square > 1e-28 * mean**2 else 1.0
        return cls(mean if normalise else 0.0, scale)


def standardised(
    moments: Moments, tails: tuple[TailRows, ...], target: TargetScale
) -> tuple[Moments, tuple[TailRows, ...]]:
    """The rows with y measured from the target's mean in units of its scale. Tails share the moments' offset."""
    shift = moments.offset - target.mean
    scaled = tuple(replace(tail, y=(tail.y + shift) / target.scale) for tail in tails)
    return moments.recentred(target.mean).in_units(target.scale), scaled
