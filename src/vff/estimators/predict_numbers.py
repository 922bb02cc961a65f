"""What a fitted model says of a new number at every row."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from vff.data.checks import check_target, check_weights
from vff.estimators.arguments import flag, quantile_levels
from vff.estimators.evaluation import About, Block
from vff.estimators.predict import ProcessMixin
from vff.estimators.table_summary import weights_of


class RegressionMixin(RegressorMixin, ProcessMixin):
    """Predictions of a new number at every row."""

    noise_variance_: float
    """Of Gaussian noise; NaN with another likelihood."""

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Mean of a new observation at every row of X, and its standard deviation when asked for.

        Parameters
        ----------
        X : what ``fit`` takes, a table or what ``vff.scan`` opens
        return_std : bool

        Returns
        -------
        mean, std : array (N,), in the units of y
            ``std``, with ``return_std`` alone, has the noise in it. (``predict_f`` gives the variance of the function.)

        Examples
        --------
        >>> X, noise = np.linspace(0, 6, 50)[:, None], 0.1 * np.random.default_rng(0).standard_normal(50)
        >>> vff.GPRegressor().fit(X, np.sin(X[:, 0]) + noise).predict([[1.5]], return_std=True)[1].round(1)
        array([0.1])
        """
        model = self._answering(X)
        if not flag("return_std", return_std):
            return model._evaluate(X, lambda rows: (model._mean(rows),), about=model._for_mean)[0]
        mean, variance = model._evaluate(X, model._moments)
        return mean, np.sqrt(variance)

    def _answering(self, X: Any, *, observed: bool = True) -> Self:
        check_is_fitted(self, "posterior_")
        return self

    @property
    def _for_mean(self) -> About:
        """What the mean of a new observation asks of rows: where noise is normal, not how much of it they have."""
        return "function" if self.likelihood_.normal else "y"

    def _mean(self, rows: Block) -> np.ndarray:
        """Of a new observation at some rows."""
        if self.likelihood_.normal:  # the variance does not matter then
            return rows.lifted(self._scaled(self.posterior_.mean_at(rows.x)))
        return self._new(rows, lambda one, _: (one.mean(),))[0]

    def _moments(self, rows: Block) -> Sequence[np.ndarray]:
        """Mean and variance of a new observation at some rows."""
        if self.likelihood_.normal:  # the moments of f are all that is needed, also of sampled ones
            likelihood = self.likelihood_ if self.samples_ is None else self.samples_.averaged
            return likelihood.predictive(*self._latent(rows), rows.extra).moments()
        return self._new(rows, lambda one, _: one.moments())

    def predict_quantiles(self, X: Any, levels: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of a new observation at every row of X, with the uncertainty of the function in them.

        Parameters
        ----------
        X : what ``fit`` takes
        levels : sequence of L floats between zero and one

        Returns
        -------
        array (N, L), in the units of y

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])).predict_quantiles([[1.5]], [0.5]).round(1)
        array([[1.]])
        """
        requested, model = quantile_levels(levels), self._answering(X)
        return model._evaluate(X, lambda rows: model._new(rows, lambda one, _: (one.quantiles(requested),)))[0]

    _described_names = ("mean", "sd", "lower", "upper")

    def _described(self, X: Any, level: float) -> tuple[np.ndarray, ...]:
        """Mean, standard deviation and the ends of the central interval of a new observation, (N,) each."""

        def compute(rows: Block) -> Sequence[np.ndarray]:
            if self.samples_ is None:
                return self._new(rows, lambda one, _: (*one.moments(), *one.interval(level)))
            # moments are those of all draws, the interval is that of some of them
            return (*self._moments(rows), *self._new(rows, lambda one, _: one.interval(level)))

        mean, variance, *ends = self._evaluate(X, compute)
        return mean, np.sqrt(variance), *ends

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share R² of the variance of y that the mean explains, at most one.

        Parameters
        ----------
        X : what ``fit`` takes
        y, sample_weight : array (N,) or name of a column of X

        Returns
        -------
        float

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> round(vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
        1.0
        """
        model = self._answering(X)

        def compute(rows: Block) -> tuple[np.ndarray, ...]:
            return model._mean(rows), rows.y, weights_of(rows.w, len(rows))

        mean, target, weights = model._evaluate(X, compute, y, sample_weight, check_target, model._for_mean)
        return float(r2_score(target, mean, sample_weight=check_weights(weights, mean.size)))

    def log_predictive_density(self, X: Any, y: Any = None) -> np.ndarray:
        """Log density log p(y | data) of every row by itself (a log probability where y is discrete).

        Parameters
        ----------
        X : what ``fit`` takes
        y : array (N,) or name of a column of X

        Returns
        -------
        array (N,), nats, for y in its own units

        Examples
        --------
        >>> vff.baselines.ExactGP().fit([[0], [1], [2]], [0, 1, 0]).log_predictive_density([[1.0]], [1.0]).shape
        (1,)
        """
        model = self._answering(X)

        def compute(rows: Block) -> Sequence[np.ndarray]:
            model.likelihood_.check(rows.y, rows.extra)
            return model._new(rows, lambda one, some: (one.log_density(rows.y[some]),))

        return model._evaluate(X, compute, y, None, self._as_numbers)[0]
