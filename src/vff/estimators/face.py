"""The face every regressor of the house shows, whatever stands behind it: predictions from a posterior process."""

import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vff.estimators.tables import ExtrapolationWarning, Table, check_target
from vff.inference import TargetScale

_JOINT_ROWS = 20_000  # a covariance matrix of this size takes 3.2 GB


class Posterior(Protocol):
    """What a fitted process can answer, in standardised targets."""

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray: ...
    def outside(self, x: np.ndarray) -> np.ndarray: ...


class RegressionFace(RegressorMixin, BaseEstimator):
    """predict, predict_f, log_predictive_density, sample_f, sample_y: written once. Leaves write ``fit``.

    A leaf sets ``posterior_`` (a ``Posterior``), ``target_`` (a ``TargetScale``), ``noise_variance_`` and
    ``column_index_``, the place of the modelled column in X.
    """

    posterior_: Posterior
    target_: TargetScale
    noise_variance_: float
    column_index_: int
    random_state: Any
    verbose: int

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows."""

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Mean of a new observation at every row of X, and its standard deviation when asked for."""
        mean, variance = self._latent(X)
        return (mean, np.sqrt(variance + self.noise_variance_)) if return_std else mean

    def predict_f(self, X: Any, full_covariance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function at every row; with ``full_covariance`` the (N, N) matrix."""
        if not full_covariance:
            return self._latent(X)
        x = self._joint_rows(X)
        mean, covariance = self.posterior_.joint(x)
        scale = self.target_.scale
        return self.target_.mean + scale * mean, scale**2 * covariance

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | data) of every row, nats, for y in its own units."""
        mean, std = self.predict(X, return_std=True)
        residual = (check_target(y, mean.size) - mean) / std
        return -0.5 * (np.log(2.0 * np.pi) + residual**2) - np.log(std)

    def sample_f(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of the latent function at the rows of X, (N, n_samples)."""
        x, rng = self._joint_rows(X), self._generator(random_state)
        return self.target_.mean + self.target_.scale * self.posterior_.sample(x, n_samples, rng)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of new observations at the rows of X, (N, n_samples)."""
        x, rng = self._joint_rows(X), self._generator(random_state)
        function = self.target_.mean + self.target_.scale * self.posterior_.sample(x, n_samples, rng)
        return function + np.sqrt(self.noise_variance_) * rng.standard_normal(function.shape)

    def _latent(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        x = self._rows(X)
        mean, variance = self.posterior_.marginals(x)
        return self.target_.mean + self.target_.scale * mean, self.target_.scale**2 * variance

    def _rows(self, X: Any) -> np.ndarray:
        """The modelled column of X, checked against the fit."""
        check_is_fitted(self, "posterior_")
        table = Table.of(X)
        validate_data(self, table.data, reset=False, skip_check_array=True)
        if table.n_rows == 0:
            raise ValueError("X has 0 sample(s), while a minimum of 1 is required: give it a row to predict at")
        x = table.column(self.column_index_)
        outside = self.posterior_.outside(x)
        if outside.any():
            warnings.warn(
                f"{np.count_nonzero(outside)} of {x.size} rows lie outside the domain {self._domain_text()} of column "
                f"{table.label(self.column_index_)} by more than a tenth of a lengthscale; the prediction "
                "returns to the prior there",
                ExtrapolationWarning,
                stacklevel=4,
            )
        return x

    def _domain_text(self) -> str:
        return ""

    def _joint_rows(self, X: Any) -> np.ndarray:
        x = self._rows(X)
        if x.size > _JOINT_ROWS:
            raise ValueError(
                f"a joint distribution over {x.size} rows needs {8 * x.size**2 / 2**30:.0f} GiB; ask for at most "
                f"{_JOINT_ROWS} rows at a time, or use predict_f(X) for every row by itself"
            )
        return x

    def _generator(self, random_state: Any) -> np.random.Generator:
        source = check_random_state(self.random_state if random_state is None else random_state)
        return np.random.default_rng(source.randint(2**31, size=4))

    def _progress(self) -> Callable[[str], None]:
        """A printer of progress lines; silent unless ``verbose``."""
        started = time.perf_counter()

        def say(message: str) -> None:
            if self.verbose:
                print(f"[vff {time.perf_counter() - started:7.2f} s] {message}", file=sys.stderr)

        return say
