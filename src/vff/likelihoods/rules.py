"""Quadrature for f ~ N(mean, sd²): nodes z and weights with E g(f) ≈ Σ weight g(mean + sd z)."""

from functools import cache

import numpy as np

# (largest sd / width of the likelihood, number of nodes)
LADDER = ((0.1, 8), (0.5, 20), (2.0, 48), (np.inf, 128))
GAUSS_HERMITE_UP_TO = 20
REACH = 7.0


@cache
def rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite for few nodes; for many the trapezoidal rule on ±7, whose nodes lie where the mass is."""
    if count <= GAUSS_HERMITE_UP_TO:
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    else:
        nodes = np.linspace(-REACH, REACH, count)
        weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def rule_for(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """The rule for standard deviations up to ``ratio`` times the width of the likelihood."""
    return rule(next(count for most, count in LADDER if ratio <= most))
