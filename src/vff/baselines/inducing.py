"""``InducingPointGP``: the collapsed bound of Titsias (2009)."""

from typing import Any, Self

import numpy as np

from vff.baselines.face import BaselineFace
from vff.baselines.features import InducingPoints
from vff.basis import Interval
from vff.estimators.tables import as_finite
from vff.kernels import Kernel


class InducingPointGP(BaselineFace):
    """Sparse Gaussian process regression on one column with inducing points, O(N P^2) a step.

    Parameters
    ----------
    kernel : kernel of one column or None
        None is a ``Matern32`` over the only column.
    inducing : int or array
        How many points, on a regular grid over the range of the data, or their locations in the column's units.
    optimise_inducing : bool
        Learn the locations too, after the hyperparameters and then along with them.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters and locations.
    normalize_y : bool
        Give the model the mean of y. With False the prior mean is zero.
    random_state : int, RandomState or None
        For ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
    elbo_ : float
        Lower bound on log p(y), nats, for y in the user's units.
    inducing_ : array
        Locations in the column's units.
    notes_ : tuple of str
        How learning ended, when there is something to say.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        inducing: Any = 50,
        optimise_inducing: bool = False,
        noise_variance: float | None = None,
        optimizer: str | None = "lbfgs",
        normalize_y: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.inducing = inducing
        self.optimise_inducing = optimise_inducing
        self.noise_variance = noise_variance
        self.optimizer = optimizer
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table X and a vector y."""
        problem = self._problem(X, y)
        start = _locations(self.inducing, problem.interval)
        features = self._fit_features(problem, InducingPoints, start, release=self.optimise_inducing)
        a, b = problem.interval.a, problem.interval.b
        self.inducing_ = 0.5 * (a + b) + problem.interval.half_length * features.places
        return self


def _locations(inducing: Any, interval: Interval) -> np.ndarray:
    """Distinct locations in half ranges of the data."""
    if isinstance(inducing, int | np.integer) and not isinstance(inducing, bool) and inducing >= 1:
        return np.linspace(-1.0, 1.0, int(inducing)) if inducing > 1 else np.zeros(1)
    if np.ndim(inducing) != 1 or np.size(inducing) == 0:
        raise ValueError(
            f"inducing must be a positive integer or a vector of locations in the column's units, got {inducing!r}; "
            "50 is a common choice"
        )
    return interval.to_unit(np.unique(as_finite(inducing, "inducing")))
