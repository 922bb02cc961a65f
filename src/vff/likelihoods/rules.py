"""Quadrature for f ~ N(mean, sd²): nodes z and weights with E g(f) ≈ Σ weight g(mean + sd z).

The error depends on sd / width, where π · width is the distance of the nearest singularity of log p from the real line.
Gauss-Hermite converges fastest while this is below one; beyond, its nodes spread too far and the trapezoidal rule,
whose nodes lie where the mass is, takes over. Largest errors measured over means within ±6, relative, at the largest
ratio of each rule (logit and probit, plain and squashed, NegativeBinomial, Ordinal, StudentT; of Beta up to a hundred
times that):

    sd / width       0   0.05    0.25    0.6    1.0    2.0    5.0    8.0     12
    nodes            1      4       8     20     32     64    128    128    128
    value            0  9e-15   2e-13  1e-14  1e-12  1e-13  3e-13  7e-10  3e-07
    slope            0  2e-13   3e-12  3e-13  2e-11  1e-13  4e-12  2e-07  2e-04
    curvature        0  2e-12   3e-11  4e-12  3e-10  2e-12  2e-09  2e-06  5e-04

Beyond five the last rule stays; the curvature of the squashed probit is then lost first (4e-4 at eight).
"""

from functools import cache

import numpy as np

# (largest sd / width of the likelihood, number of nodes)
LADDER = ((0.0, 1), (0.05, 4), (0.25, 8), (0.6, 20), (1.0, 32), (2.0, 64), (np.inf, 128))
GAUSS_HERMITE_UP_TO = 32
REACH = 8.0


@cache
def rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights, which sum to one."""
    if count <= GAUSS_HERMITE_UP_TO:
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    else:
        nodes = np.linspace(-REACH, REACH, count)
        weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


@cache
def padded(count: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Nodes and weights at the length of the longest rule, and how many count: one shape, hence one compilation."""
    spare = (0, LADDER[-1][1] - count)
    nodes, weights = rule(count)
    return np.pad(nodes, spare), np.pad(weights, spare), count


def counts_for(ratios: np.ndarray) -> np.ndarray:
    """How many nodes standard deviations of ``ratios`` times the width of the likelihood need."""
    most, counts = zip(*LADDER, strict=True)
    return np.array(counts)[np.searchsorted(most, ratios)]
