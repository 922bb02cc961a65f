"""Beyond the edges: cov(u, f(x)) for x outside [a, b] (paper, Table 1, for every order).

The Matérn is Markov in its state, so f(b + r) is predicted from the state at b by the weights ``HalfInteger.tail``;
hence phi(b + r) = sum_j tail_j(r) phi^(j)(b). At the left edge time runs backwards and odd derivatives change sign.
Features of outside rows therefore lie in a space of dimension p + 1 per edge, and depend on the rate.
"""

import numpy as np

from vff.factors.interval.matern import HalfInteger
from vff.factors.interval.rkhs import ColumnPrior


def outward_state(prior: ColumnPrior, side: int) -> np.ndarray:
    """The state of every feature at the edge, as seen by someone walking outwards, (P, p + 1)."""
    signs = np.where(np.arange(prior.p + 1) % 2 == 1, float(side), 1.0)
    return prior.state(side) * signs


def tail_features(prior: ColumnPrior, t: np.ndarray, derivative: int = 0) -> np.ndarray:
    """The given derivative (in t) of the features T phi at |t| > 1, (N, P)."""
    kernel = HalfInteger(prior.p, prior.rate)
    features = np.empty((t.size, prior.basis.size))
    for side in (-1, 1):
        rows = side * t > 1.0
        weights = kernel.tail(np.abs(t[rows]) - 1.0, derivative) * float(side) ** derivative
        features[rows] = weights @ outward_state(prior, side).T
    return features
