"""What a product term would bring: the gain in the bound of a model of residuals, from sums over two columns."""

from dataclasses import dataclass

import numpy as np

from vff.inference.learning.model import SumModel
from vff.inference.learning.optimise import maximise
from vff.inference.learning.start import together
from vff.inference.model.hyperparameters import Hyperparameters
from vff.inference.model.term import Term
from vff.linalg import threads_for
from vff.moments import Moments

_ENOUGH = 0.1  # nats that a step must gain: ranks need no more
_SHARES = (0.3, 0.03, 0.003)  # of the noise variance


@dataclass(frozen=True)
class Gain:
    """The best found for one product term."""

    nats: float
    """By which the bound rises when the term is added; negative when it does not."""
    values: dict[str, float]
    """Its hyperparameters, in units of the domains."""


def gain_of(term: Term, moments: Moments, noise: float) -> Gain:
    """Gain in the bound from modelling residuals by one more term.

    ``moments`` hold the residuals of a fit whose noise variance is ``noise``. The fit's own terms stay as they are, so
    this is a lower bound on what a joint fit would gain, up to what the fit itself is uncertain of.
    """
    model = SumModel((term,), moments)
    with threads_for(model.size):
        tried = [
            model.pack(Hyperparameters(({"variance": share * noise, **values},), noise))
            for share in _SHARES
            for values in together([(name, own.starts) for name, _, own in term.parameters])
        ]
        start = max(tried, key=lambda theta: model.at(theta).elbo)
        free = np.ones(start.size, bool)
        free[-1] = False  # the noise is the fit's
        optimum, _ = maximise(model, start, free=free, gain=_ENOUGH)
    without = -0.5 * (moments.weight * np.log(2.0 * np.pi * noise) + moments.target_squared / noise)
    setting: Hyperparameters = model.unpack(optimum.theta)
    return Gain(float(optimum.elbo - without), setting.terms[0])
