"""What a model says before it has seen any row: predictions and draws from the prior, when its numbers are given."""

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from vff.data import Table, open_rows
from vff.estimators.arguments import whole_number
from vff.estimators.binding import Binding, resolve_columns
from vff.estimators.formulas import for_rows
from vff.estimators.named import introduce
from vff.estimators.options import FitSpec
from vff.estimators.predict import ProcessMixin
from vff.factors import Leaf
from vff.factors.missing.basis import are_missing
from vff.inference import TargetScale
from vff.inference.posterior.direct import square_root
from vff.kernels import Kernel, normal_form
from vff.likelihoods import AbstractLikelihood, Gaussian
from vff.moments import Place
from vff.parameters import start_of
from vff.words import shown

_TOGETHER = 256  # rows whose variances are read off one covariance matrix


@dataclass(frozen=True)
class PriorProcess:
    """A Gaussian process with mean zero: answers about rows x (N, C) of bound columns, levels as codes."""

    binding: Binding

    def _values(self, place: Place, x: np.ndarray) -> np.ndarray:
        """What a leaf is called with: numbers, or levels themselves."""
        column = self.binding.columns[place] if isinstance(place, int) else None
        if column is None or column.levels is None:
            return x[:, place]
        levels = np.empty(len(column.levels), dtype=object)
        levels[:] = column.levels
        return levels[x[:, place].astype(int)]

    def _factor(self, place: Place, leaf: Leaf, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """What a leaf says of two sets of rows: missing values are alike, and have nothing in common with numbers."""
        here, there = ~are_missing(x[:, place]), ~are_missing(z[:, place])
        found = leaf.variance * np.multiply.outer(~here, ~there)
        found[np.ix_(here, there)] = leaf(self._values(place, x[here]), self._values(place, z[there]))
        return found

    def covariance(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """k(x, z), (N, N')."""
        total = np.zeros((len(x), len(z)))
        for term in self.binding.terms:
            product = np.ones_like(total)
            for place, leaf in zip(term.columns, term.term.factors, strict=True):
                product *= self._factor(place, leaf, x, z)
            total += product
        return total

    def mean_at(self, x: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros(len(x))

    def marginals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance at every row."""
        parts = [x[start : start + _TOGETHER] for start in range(0, len(x), _TOGETHER)]
        return self.mean_at(x), np.concatenate([np.diagonal(self.covariance(part, part)) for part in parts])

    def joint(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of all rows."""
        return self.mean_at(x), self.covariance(x, x)

    def sample(self, x: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws, (N, n_samples)."""
        return square_root(self.covariance(x, x)) @ rng.standard_normal((len(x), n_samples))

    def outside(self, x: np.ndarray) -> np.ndarray:
        """No row is: there is no domain yet."""
        return np.zeros(x.shape, bool)


class PriorMixin(ProcessMixin):
    """A model that answers from its prior before it is fitted."""

    kernel: Any
    missing: str
    kernel_: Kernel
    offset_: Any

    if TYPE_CHECKING:

        def _spec(self, growing: bool = False, *, errors: bool = False) -> FitSpec: ...

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of the function from its prior, whatever the rows say, at the rows of X.

        Before ``fit`` at the hyperparameters that the kernel was given, all of which must be there, around zero; after
        it at those that were learnt, around the mean of y (with another likelihood, of the function).

        Parameters
        ----------
        X : array or frame, at most 20,000 rows
        n_samples : int
        random_state : int, RandomState, or None for that of the model

        Returns
        -------
        array (N, n_samples)

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> vff.GPRegressor(vff.Matern32(0, variance=1.0, lengthscale=2.0)).sample_prior(X, 5, random_state=0).shape
        (50, 5)
        """
        n_samples, rng = whole_number("n_samples", n_samples), self._generator(random_state)
        fitted = hasattr(self, "posterior_")
        prior = self._prior(X, self.kernel_ if fitted else self.kernel)
        draws = prior.posterior_.sample(prior._joint_rows(X, "terms").x, n_samples, rng)
        return self.target_.mean + draws if fitted else draws

    def _answering(self, X: Any, *, observed: bool = True) -> Self:
        """The model that answers about rows: itself, or what it is before it has seen any."""
        if hasattr(self, "posterior_"):
            return self
        prior = self._prior(X, self.kernel)
        if observed:
            prior.likelihood_ = self._given_likelihood()
        return prior

    def _given_likelihood(self) -> AbstractLikelihood:
        """The likelihood, all of whose numbers are given; NotFittedError where they are not."""
        raise NotImplementedError

    def _prior(self, X: Any, kernel: Any) -> Self:
        """This model with its prior in the place of a posterior, over the columns and levels of a table."""
        source = open_rows(X)
        offset = self._offset
        if isinstance(kernel, str):
            spec = for_rows(self._spec(), source, None, None)
            kernel, offset = spec.kernel, spec.offset
        if kernel is None or kernel is not getattr(self, "kernel_", None):  # what was learnt has all its numbers
            self._check_numbers(kernel)
        if source.whole is None:
            raise ValueError(
                f"before it is fitted, a model answers about tables in memory, got {shown(X)}; fit it first, or read "
                "some rows into a frame"
            )
        table = Table.of(source.whole)
        binding, twin = resolve_columns(kernel, table, admits=self.missing == "effect"), copy(self)
        introduce(twin, table)
        vars(twin).pop("statistics_", None)
        twin.posterior_, twin.target_, twin.offset_ = PriorProcess(binding), TargetScale(0.0, 1.0), offset
        twin.likelihood_ = Gaussian(1.0)  # functions are drawn without one
        twin.column_indices_ = tuple(column.index for column in binding.columns)
        twin.column_levels_ = tuple(column.levels for column in binding.columns)
        return twin

    def _block(self, table: Table, word: str | None = None) -> np.ndarray:
        if not isinstance(self.posterior_, PriorProcess):
            return super()._block(table, word)
        return np.stack([column.read(table, word=word) for column in self.posterior_.binding.columns]).T

    def _check_numbers(self, kernel: Any) -> None:
        """NotFittedError unless the kernel says all there is to know of the prior."""
        terms = () if kernel is None else normal_form(kernel)
        leaves = [(leaf, len(term.factors) > 1) for term in terms for leaf in term.factors]
        absent = [
            leaf
            for leaf, product in leaves
            if leaf.unsettled(product) or None in map(start_of, (leaf.variance, *leaf.given.values()))
        ]
        if not leaves or absent:
            what = "a kernel with all its numbers" if not leaves else f"all numbers of {shown(absent[0])}"
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit first, or, to ask the prior, give "
                f"{what}"
            )
