"""What an estimator says of its terms."""

from typing import NamedTuple

import numpy as np


class Effects(NamedTuple):
    """Per-term posterior at rows, as ``effects`` of an estimator gives it.

    Attributes
    ----------
    names : tuple of str
        Of the T terms.
    mean, std : array (N, T)
        Posterior mean and standard deviation of every term at every row.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> vff.GPRegressor(frequencies=5).fit(X, X[:, 0] - X[:, 1]).effects(X[:3]).names
    ('0', '1')
    """

    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray
