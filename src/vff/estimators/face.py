"""The face every model of the house shows, whatever stands behind it: predictions from a posterior process."""

import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from vff.estimators.arguments import flag, quantile_levels, seeded, whole_number
from vff.estimators.named import beside, recognised
from vff.estimators.observed import extra_of, refuse_negative
from vff.estimators.tables import ExtrapolationWarning, Table, check_target, check_weights
from vff.inference import Samples, TargetScale, chosen
from vff.likelihoods import AbstractLikelihood, Mixture, Predictive

_JOINT_ROWS = 20_000  # a covariance matrix of this size takes 3.2 GB
_CHUNK = 2**20
_DRAWN = 2**22  # values of draws at rows that are held together
_SEED = 0  # of the part of f that features do not carry, in every draw: the same question has the same answer


class Posterior(Protocol):
    """What a fitted process can answer about rows x (N, C) of the modelled columns, in standardised targets."""

    def mean_at(self, x: np.ndarray) -> np.ndarray: ...
    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray: ...
    def outside(self, x: np.ndarray) -> np.ndarray: ...


@runtime_checkable
class DrawingPosterior(Protocol):
    """A posterior that draws the part of the function that its features carry, and knows the variance of the rest."""

    def draws(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]: ...


class PosteriorFace(BaseEstimator):
    """What every fitted process answers about its latent function: written once. Leaves write ``fit``.

    A leaf sets ``posterior_`` (a ``Posterior``), ``target_`` (a ``TargetScale``), ``likelihood_`` (with its parameters
    set) and ``column_indices_``, the places of the modelled columns in X.
    """

    posterior_: Posterior
    target_: TargetScale
    likelihood_: AbstractLikelihood
    samples_: "Samples | None" = None
    """Draws of the hyperparameters, where the model was sampled."""
    column_indices_: tuple[int, ...]
    column_levels_: tuple[tuple[Any, ...] | None, ...] = ()
    """The levels of the categorical ones among them; empty when there are none."""
    random_state: Any
    verbose: int

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows."""

    def predict_f(self, X: Any, full_covariance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function at every row; with ``full_covariance`` the (N, N) matrix."""
        if not flag("full_covariance", full_covariance):
            return self._latent(self._table(X))
        mean, covariance = self.posterior_.joint(self._joint_rows(self._table(X)))
        scale = self.target_.scale
        return self.target_.mean + scale * mean, scale**2 * covariance

    def sample_f(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of the latent function at the rows of X, (N, n_samples)."""
        n_samples, rng = whole_number("n_samples", n_samples), self._generator(random_state)
        x = self._joint_rows(self._table(X))
        return self.target_.mean + self.target_.scale * self.posterior_.sample(x, n_samples, rng)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of new observations at the rows of X, (N, n_samples)."""
        n_samples, rng, table = whole_number("n_samples", n_samples), self._generator(random_state), self._table(X)
        x, extra = self._joint_rows(table), self._extra(table)
        if self.samples_ is not None:
            some = chosen(len(self.samples_.kept), n_samples, rng)
            return self._mixture(self.posterior_.sample_some(x, some, rng), extra, some).sample(rng)
        function = self.target_.mean + self.target_.scale * self.posterior_.sample(x, n_samples, rng)
        return np.asarray(self.likelihood_.sample(function, extra[:, None], rng), dtype=float)

    def _mixture(self, f: np.ndarray, extra: np.ndarray, some: np.ndarray) -> Mixture:
        """Some of the draws, with f at rows as learning sees it, (N, S)."""
        assert self.samples_ is not None
        likelihoods = [self.samples_.likelihoods[number] for number in some]
        return Mixture(likelihoods, self.target_.mean + self.target_.scale * f, extra)

    def _predictives(self, table: Table) -> Iterator[tuple[slice, Predictive]]:
        """A new y at the rows, a stretch of them at a time."""
        extra = self._extra(table)
        if self.samples_ is None:
            yield slice(0, table.n_rows), self.likelihood_.predictive(*self._latent(table), extra)
            return
        every = np.arange(len(self.samples_.kept))
        # the same for all rows, so that a row is predicted the same in any company
        noise = np.random.default_rng(_SEED).standard_normal(every.size)
        start, step = 0, max(1, _DRAWN // every.size)
        for piece in self._pieces(table):
            for at in range(0, len(piece), step):
                x = piece[at : at + step]
                rows = slice(start, start + len(x))
                values, rest = self.posterior_.values(x)
                yield rows, self._mixture(values + np.sqrt(rest)[:, None] * noise, extra[rows], every)
                start = rows.stop

    def _asked(self, table: Table, ask: Callable[[Predictive, slice], Sequence[np.ndarray]]) -> list[np.ndarray]:
        """What a new y answers at all rows."""
        parts = [ask(predictive, rows) for rows, predictive in self._predictives(table)]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _function_draws(self, X: Any, n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the latent function, joint over the rows of X, (N, n_samples), and the variance of the rest, (N,).

        The rest is what the features do not carry, taken as independent by row: E[exp f | draw] = exp(draw + rest / 2).
        A posterior that does not tell the two apart draws all of the function.
        """
        if isinstance(self.posterior_, DrawingPosterior):
            x = np.concatenate(list(self._pieces(self._table(X))))
            values, rest = self.posterior_.draws(x, n_samples, self._generator(random_state))
        else:
            x = self._joint_rows(self._table(X))
            values, rest = self.posterior_.sample(x, n_samples, self._generator(random_state)), np.zeros(len(x))
        return self.target_.mean + self.target_.scale * values, self.target_.scale**2 * rest

    def _extra(self, table: Table) -> np.ndarray:
        """What the likelihood takes from every row beside y: exposure or trials; ones when nothing."""
        return refuse_negative(extra_of(self.likelihood_, table), self.likelihood_)

    def _latent(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        parts = [self.posterior_.marginals(x) for x in self._pieces(table)]
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return self.target_.mean + self.target_.scale * mean, self.target_.scale**2 * variance

    def _table(self, X: Any) -> Table:
        """X with its columns where the fit had them, those that the model needs at least."""
        check_is_fitted(self, "posterior_")
        table = recognised(self, Table.of(X), self.column_indices_, self.likelihood_.column)
        if table.n_rows == 0:
            raise ValueError("X has 0 sample(s), while a minimum of 1 is required: give it a row to predict at")
        return table

    def _block(self, table: Table, rows: slice) -> np.ndarray:
        """The modelled columns of some rows, (N, C), each column contiguous."""
        levels = self.column_levels_ or (None,) * len(self.column_indices_)
        columns = [
            table.numbers(index, rows) if known is None else table.codes(index, known, rows)
            for index, known in zip(self.column_indices_, levels, strict=True)
        ]
        return np.stack(columns).T

    def _pieces(self, table: Table) -> Iterator[np.ndarray]:
        """The modelled columns a stretch of rows at a time; at the end, a warning if some lay outside."""
        beyond = np.zeros(len(self.column_indices_), int)
        for start in range(0, table.n_rows, _CHUNK):
            x = self._block(table, slice(start, min(start + _CHUNK, table.n_rows)))
            beyond += self.posterior_.outside(x).reshape(len(x), -1).sum(axis=0)
            yield x
        for number in np.flatnonzero(beyond):
            where = self._place_text(int(number), table.label(self.column_indices_[number]))
            warnings.warn(
                f"{beyond[number]} of {table.n_rows} rows {where}; predictions go back to the prior there",
                ExtrapolationWarning,
                stacklevel=4,
            )

    def _place_text(self, number: int, label: str) -> str:
        """How a warning says that rows lie outside the numbered column's place."""
        return f"lie outside the domain of column {label}"

    def _joint_rows(self, table: Table) -> np.ndarray:
        if table.n_rows > _JOINT_ROWS:
            raise ValueError(
                f"a joint distribution over {table.n_rows} rows needs {8 * table.n_rows**2 / 2**30:.0f} GiB; ask for "
                f"at most {_JOINT_ROWS} rows at a time, or use predict_f(X) for every row by itself"
            )
        return np.concatenate(list(self._pieces(table)))

    def _generator(self, random_state: Any) -> np.random.Generator:
        source = seeded(self.random_state if random_state is None else random_state)
        return np.random.default_rng(source.randint(2**31, size=4))

    def _progress(self) -> Callable[[str], None]:
        """A printer of progress lines; silent unless ``verbose``."""
        started = time.perf_counter()

        def say(message: str) -> None:
            if self.verbose:
                print(f"[vff {time.perf_counter() - started:7.2f} s] {message}", file=sys.stderr)

        return say


class RegressionFace(RegressorMixin, PosteriorFace):
    """Predictions of a new number at every row."""

    noise_variance_: float
    """Of Gaussian noise; NaN with another likelihood."""

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Mean of a new observation at every row of X, and its standard deviation when asked for."""
        table, return_std = self._table(X), flag("return_std", return_std)
        if self.likelihood_.normal and not return_std:  # the variance does not matter then
            means = [self.posterior_.mean_at(x) for x in self._pieces(table)]
            return self.target_.mean + self.target_.scale * np.concatenate(means)
        if self.likelihood_.normal:  # the moments of f are all that is needed, also of sampled ones
            mean, variance = self.likelihood_.predictive(*self._latent(table), self._extra(table)).moments()
            return mean, np.sqrt(variance)
        if not return_std:
            return self._asked(table, lambda one, _: (one.mean(),))[0]
        mean, variance = self._asked(table, lambda one, _: one.moments())
        return mean, np.sqrt(variance)

    def predict_quantiles(self, X: Any, levels: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of a new observation at every row of X, (N, L), with the uncertainty of the function in them."""
        asked = quantile_levels(levels)
        return self._asked(self._table(X), lambda one, _: (one.quantiles(asked),))[0]

    def _described(self, X: Any, level: float) -> tuple[np.ndarray, ...]:
        """Mean, standard deviation and the ends of the central interval of a new observation, (N,) each."""
        if self.samples_ is not None:  # moments are those of all draws, the interval is that of some of them
            ends = self._asked(self._table(X), lambda one, _: one.interval(level))
            return (*self.predict(X, return_std=True), *ends)
        mean, variance, *ends = self._asked(self._table(X), lambda one, _: (*one.moments(), *one.interval(level)))
        return mean, np.sqrt(variance), *ends

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share R² of the variance of y that the mean explains; y and the weights may be columns of X, by name."""
        table = Table.of(X)
        weights = beside(table, sample_weight, "sample_weight")
        if isinstance(y, str):
            y = check_target(beside(table, y, "y"), table.n_rows)
        return super().score(table, y, None if weights is None else check_weights(weights, table.n_rows))

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | data) of every row, nats, for y in its own units (a probability where y is discrete)."""
        table = self._table(X)
        target = check_target(beside(Table.of(X), y, "y"), table.n_rows)
        self.likelihood_.check(target, self._extra(table))
        return self._asked(table, lambda one, rows: (one.log_density(target[rows]),))[0]
