"""``SquaredExponential``: a kernel over all columns that only the exact process can use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vff.words import shown


@dataclass(frozen=True)
class SquaredExponential:
    """variance exp(-1/2 sum_c (x_c - x'_c)^2 / lengthscale_c^2) over all columns of X; ``"rbf"`` for short.

    Parameters
    ----------
    variance : float or None
        Where learning starts, or the value used when nothing is learnt; None starts from the data.
    lengthscales : float, sequence of floats or None
        The same, one for all columns or one each, in their units.

    Examples
    --------
    >>> vff.baselines.SquaredExponential(1.0, 2.0)([[0.0]], [[2.0]]).round(3)
    array([[0.607]])
    """

    variance: float | None = None
    lengthscales: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        given = [self.variance, *np.ravel(np.asarray(self.lengthscales, dtype=object)).tolist()]
        for value in given:
            if value is not None and not (np.isreal(value) and 0.0 < float(value) < np.inf):
                raise ValueError(
                    f"SquaredExponential: variance and lengthscales must be positive numbers, got {shown(value)}; "
                    "leave "
                    "them out to start from the data"
                )

    def for_columns(self, C: int) -> np.ndarray:
        """A lengthscale per column, (C,), NaN where it starts from the data."""
        if self.lengthscales is None:
            return np.full(C, np.nan)
        lengthscales = np.asarray(self.lengthscales, float)
        if lengthscales.ndim > 0 and lengthscales.shape != (C,):
            raise ValueError(
                f"SquaredExponential has {lengthscales.size} lengthscales and X has {C} columns; give one for every "
                "column, or one for all"
            )
        return np.broadcast_to(lengthscales, C).copy()

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """k(X, Z) for two tables of rows, (N, N')."""
        if self.variance is None or self.lengthscales is None:
            raise ValueError(
                f"{shown(self)} has no values yet: give variance and lengthscales, or use the kernel_ of a fit"
            )
        X, Z = np.asarray(X, float), np.asarray(Z, float)
        lag = (X[:, None, :] - Z[None, :, :]) / self.for_columns(X.shape[1])
        return self.variance * np.exp(-0.5 * np.sum(lag**2, axis=-1))

    def __repr__(self) -> str:
        variance = [] if self.variance is None else [f"variance={self.variance:.6g}"]
        numbers = [] if self.lengthscales is None else np.ravel(self.lengthscales).tolist()
        listed = f"lengthscales=({', '.join(f'{value:.6g}' for value in numbers)})"
        return f"SquaredExponential({', '.join([*variance, *([listed] if numbers else [])])})"
