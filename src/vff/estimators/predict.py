"""The face every model of the house shows, whatever stands behind it: predictions from a posterior process."""

import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, cast

import numpy as np
from sklearn.base import BaseEstimator

from vff.data import Table, open_rows
from vff.data.checks import check_target
from vff.estimators.arguments import check_joint, flag, seeded, whole_number
from vff.estimators.evaluation import About, Block, Check, evaluate
from vff.estimators.named import beside
from vff.inference import Samples, TargetScale, chosen
from vff.likelihoods import AbstractLikelihood, Mixture, Predictive

_DRAWN = 2**22  # values of draws at rows that are held together
_SEED = 0  # of the part of f that features do not carry, in every draw: the same question has the same answer


class Posterior(Protocol):
    """What a fitted process can answer about rows x (N, C) of the modelled columns, in standardised targets."""

    def mean_at(self, x: np.ndarray) -> np.ndarray: ...
    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...
    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray: ...
    def outside(self, x: np.ndarray) -> np.ndarray: ...


class ProcessMixin(BaseEstimator):
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
    offset: Any = None
    """The column that is added to the function, where there is one."""
    _as_numbers: Check = staticmethod(check_target)
    """y of so many rows, checked, as the likelihood takes it."""

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Fit to a table X and a vector y.

        Parameters
        ----------
        X : array (N, D) or frame
        y : array (N,) or name of a column of X

        Returns
        -------
        the estimator itself, fitted

        Examples
        --------
        >>> vff.baselines.ExactGP().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).n_features_in_
        1
        """

    def predict_f(self, X: Any, full_covariance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function at every row.

        Parameters
        ----------
        X : what ``fit`` takes
        full_covariance : bool, of at most 20,000 rows

        Returns
        -------
        mean, variance : array (N,), on the scale of the link
            Not the standard deviation, and without noise; (N, N) with ``full_covariance``. More classes have a last
            axis. An offset is in the mean.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])).predict_f(X, full_covariance=True)[1].shape
        (50, 50)
        """
        model = self._answering(X, observed=False)
        if not flag("full_covariance", full_covariance):
            mean, variance = model._evaluate(X, model._latent, about="function")
            return mean, variance
        rows = model._joint_rows(X, "function")
        mean, covariance = model.posterior_.joint(rows.x)
        return rows.lifted(model._scaled(mean)), model.target_.scale**2 * covariance

    def _answering(self, X: Any, *, observed: bool = True) -> Self:
        """The model that answers about rows: about observations there, or about the function alone."""
        return self

    def sample_f(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of the latent function at the rows of X.

        Parameters
        ----------
        X : what ``fit`` takes, at most 20,000 rows
        n_samples : int
        random_state : int, RandomState, or None for that of the model

        Returns
        -------
        array (N, n_samples)

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])).sample_f(X, 5, random_state=0).shape
        (50, 5)
        """
        n_samples, rng = whole_number("n_samples", n_samples), self._generator(random_state)
        model = self._answering(X, observed=False)
        rows = model._joint_rows(X, "function")
        return rows.lifted(model._scaled(model.posterior_.sample(rows.x, n_samples, rng)))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of new observations at the rows of X.

        Parameters
        ----------
        X : what ``fit`` takes, at most 20,000 rows
        n_samples : int
        random_state : int, RandomState, or None for that of the model

        Returns
        -------
        array (N, n_samples); of two classes, labels

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])).sample_y(X, 5, random_state=0).shape
        (50, 5)
        """
        n_samples, rng, model = whole_number("n_samples", n_samples), self._generator(random_state), self._answering(X)
        rows = model._joint_rows(X)
        posterior: Any = model.posterior_  # of draws, where the model was sampled
        if model.samples_ is not None:
            some = chosen(len(model.samples_.kept), n_samples, rng)
            return model._mixture(posterior.sample_some(rows.x, some, rng), rows, some).sample(rng)
        function = rows.lifted(model._scaled(posterior.sample(rows.x, n_samples, rng)))
        return np.asarray(model.likelihood_.sample(function, rows.extra[:, None], rng), dtype=float)

    def _scaled(self, f: np.ndarray) -> np.ndarray:
        """The function in the user's units, from what learning sees; without its offset."""
        return self.target_.mean + self.target_.scale * f

    def _mixture(self, f: np.ndarray, rows: Block, some: np.ndarray) -> Mixture:
        """Some of the draws, with f at rows as learning sees it, (N, S)."""
        assert self.samples_ is not None
        likelihoods = [self.samples_.likelihoods[number] for number in some]
        return Mixture(likelihoods, rows.lifted(self._scaled(f)), rows.extra)

    def _predictives(self, rows: Block) -> Iterator[tuple[slice, Predictive]]:
        """A new y at the rows, a stretch of them at a time."""
        x, posterior = rows.x, cast(Any, self.posterior_)
        if self.samples_ is None:
            yield slice(0, len(x)), self.likelihood_.predictive(*self._latent(rows), rows.extra)
            return
        every = np.arange(len(self.samples_.kept))
        # the same for all rows, so that a row is predicted the same in any company
        noise = np.random.default_rng(_SEED).standard_normal(every.size)
        step = max(1, _DRAWN // every.size)
        for start in range(0, len(x), step):
            some = slice(start, min(start + step, len(x)))
            values, rest = posterior.values(x[some])
            yield some, self._mixture(values + np.sqrt(rest)[:, None] * noise, rows.at(some), every)

    def _new(self, rows: Block, compute: Callable[[Predictive, slice], Sequence[np.ndarray]]) -> list[np.ndarray]:
        """What a new y answers at some rows."""
        parts = [compute(predictive, some) for some, predictive in self._predictives(rows)]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _evaluate(
        self,
        X: Any,
        compute: Callable[[Block], Sequence[np.ndarray]],
        y: Any = None,
        sample_weight: Any = None,
        check: Check | None = None,
        about: About = "y",
    ) -> list[np.ndarray]:
        """What this model answers about all rows of X, chunk by chunk."""
        return evaluate((self,), X, lambda blocks: compute(blocks[0]), y, sample_weight, check, about)

    def _latent(self, rows: Block) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the function at some rows, its offset in it."""
        mean, variance = self.posterior_.marginals(rows.x)
        return rows.lifted(self._scaled(mean)), self.target_.scale**2 * variance

    def _beside(self, about: About = "y") -> tuple[Any, ...]:
        """The columns that are read and not modelled, where this is asked."""
        own = None if about == "terms" else self._offset
        return beside(self.likelihood_, own) if about == "y" else () if own is None else (own,)

    @property
    def _offset(self) -> Any:
        """The column of the offset: that of the fit, which a kernel in text may have named."""
        return getattr(self, "offset_", self.offset)

    def _block(self, table: Table, word: str | None = None) -> np.ndarray:
        """The modelled columns, (N, C), each column contiguous; ``word`` says what missing values are in this table."""
        levels = self.column_levels_ or (None,) * len(self.column_indices_)
        both = zip(self.column_indices_, levels, strict=True)
        return np.stack([table.numbers(c) if known is None else table.codes(c, known) for c, known in both]).T

    @property
    def _labels(self) -> tuple[Any, ...]:
        """Of the classes that it tells apart; none where y is a number."""
        return ()

    def _outside_text(self, number: int, label: str) -> str:
        """How a warning says that rows lie outside the numbered column's place."""
        return f"lie outside the domain of column {label}"

    def _joint_rows(self, X: Any, about: About = "y") -> Block:
        """All rows in one block, few enough for a joint law."""
        source, n, found = open_rows(X), 0, []
        check_joint(source.n_rows or 0)

        def compute(rows: Block) -> tuple[np.ndarray, ...]:
            nonlocal n
            n += len(rows)
            check_joint(n)
            found.append(rows)
            extra = rows.extra if about == "y" else np.zeros(len(rows))  # which nobody asks for
            offset = None if about == "terms" else rows.offset
            return rows.x, extra, *(() if offset is None else (offset,))

        x, extra, *offset = self._evaluate(source, compute, about=about)
        return found[0].joined(x, extra, offset[0] if offset else None)

    def _generator(self, random_state: Any) -> np.random.Generator:
        source = seeded(self.random_state if random_state is None else random_state)
        return np.random.default_rng(source.randint(2**31, size=4))

    def _progress(self) -> Callable[[str], None]:
        """A printer of progress lines; silent unless ``verbose``."""
        started = time.perf_counter()

        def line(message: str) -> None:
            if self.verbose:
                print(f"[vff {time.perf_counter() - started:7.2f} s] {message}", file=sys.stderr)

        return line
