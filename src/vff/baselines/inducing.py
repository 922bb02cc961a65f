"""``InducingPointGP``: the collapsed bound of Titsias (2009)."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from vff.baselines.base import GaussianBaseline
from vff.baselines.design import SquaredExponential, check_default, check_numbers_only, to_unit
from vff.baselines.features import InducingPoints
from vff.basis import Domain
from vff.data.checks import as_finite
from vff.estimators.arguments import whole_number
from vff.kernels import Kernel
from vff.words import shown

_MOST_POINTS = 20_000


@dataclass(eq=False, repr=False)
class InducingPointGP(GaussianBaseline):
    """Sparse Gaussian process regression with inducing points, O(N P^2) a step.

    Dense algebra throughout: a regular grid makes k(z, z) of a product a Kronecker product, and this is not used.

    Parameters
    ----------
    kernel : kernel expression of numbers, "rbf", SquaredExponential or None
        Sums of products of one-column Matérns. None is a ``Matern32`` over the only column.
    inducing : int or array
        How many values in every column: a regular grid over the range of the data, of n^C points for C columns. Or the
        locations in the columns' units, (P, C), the columns in the order the kernel names them (a vector will do for
        one column); ``regular_grid`` makes them over other ranges.
    optimise_inducing : bool
        Learn the locations too, after the hyperparameters and then along with them.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters and locations.
    normalize_y : bool
        The function has a constant with a weak prior (ten standard deviations of y around its mean), which is
        integrated out; with False its prior mean is zero and there is none.
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
        Locations in the columns' units, (P, C), or (P,) for one column.
    notes_ : tuple of str
        How learning ended, when there is something to say.

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> vff.baselines.InducingPointGP(inducing=10).fit(X, y).predict([[1.5]]).round(1)
    array([0.9])
    """

    kernel: Kernel | SquaredExponential | str | None = None
    _: KW_ONLY
    inducing: Any = 50
    optimise_inducing: bool = False
    noise_variance: float | None = None
    optimizer: str | None = "lbfgs"
    normalize_y: bool = True
    random_state: Any = None
    verbose: int = 0

    def _check_kernel(self, n_columns: int) -> None:
        check_default(self.kernel, n_columns)
        check_numbers_only(self.kernel)

    def fit(self, X: Any, y: Any) -> Self:
        problem = self._problem(X, y)
        start = locations(self.inducing, problem.intervals)
        features = self._fit_features(problem, InducingPoints, start, release=self.optimise_inducing)
        self.inducing_ = in_column_units(features.locations, problem.intervals)
        return self


def regular_grid(n: int, ranges: Sequence[tuple[float, float]]) -> np.ndarray:
    """All combinations of n equally spaced values in each range, ends included; one value is the middle.

    Parameters
    ----------
    n : int
        Values in each range.
    ranges : sequence of C pairs (low, high)

    Returns
    -------
    array (n^C, C)

    Examples
    --------
    >>> vff.baselines.regular_grid(2, [(0.0, 1.0), (5.0, 7.0)]).tolist()
    [[0.0, 5.0], [0.0, 7.0], [1.0, 5.0], [1.0, 7.0]]
    """
    n = whole_number("n", n)
    axes = [np.linspace(low, high, n) if n > 1 else np.array([0.5 * (low + high)]) for low, high in ranges]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def locations(inducing: Any, intervals: Sequence[Domain]) -> np.ndarray:
    """Distinct locations in half ranges of the data, (P, C)."""
    C = len(intervals)
    if isinstance(inducing, int | np.integer) and not isinstance(inducing, bool) and inducing >= 1:
        _check_count(int(inducing) ** C, f"{inducing} values in each of {C} column(s)")
        return regular_grid(int(inducing), [(-1.0, 1.0)] * C)
    shape = np.shape(inducing)
    if isinstance(inducing, str) or 0 in shape or not (shape[1:] == (C,) or (len(shape) == 1 and C == 1)):
        raise ValueError(
            f"inducing must be a positive integer or locations in the units of the {C} modelled column(s), (P, {C}); "
            f"got {shown(inducing)} of shape {shape}; 50 is a common choice for one column, 15 for each of two"
        )
    points = np.unique(as_finite(inducing, "inducing").reshape(-1, C), axis=0)
    _check_count(len(points), f"{len(points)} locations")
    return to_unit(intervals, points)


def in_column_units(points: np.ndarray, intervals: Sequence[Domain]) -> np.ndarray:
    """Locations from half ranges back to the columns' units, (P, C), or (P,) for one column."""
    centres = np.array([0.5 * sum(interval.ends or (0.0, 0.0)) for interval in intervals])
    points = centres + np.array([interval.unit() for interval in intervals]) * points
    return points[:, 0] if points.shape[1] == 1 else points


def _check_count(P: int, what: str) -> None:
    if P > _MOST_POINTS:
        raise ValueError(
            f"{what} make {P} inducing points, whose covariance needs {8 * P**2 / 2**30:.0f} GiB; at most "
            f"{_MOST_POINTS} were expected: give fewer, or use GPRegressor"
        )
