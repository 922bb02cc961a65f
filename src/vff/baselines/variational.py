"""``VariationalGP`` and ``InducingPointVGP``: any likelihood, with a Gaussian q of all rows or of inducing points."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils.metaestimators import available_if

from vff.baselines.base import Baseline
from vff.baselines.design import Problem, SquaredExponential, check_numbers_only
from vff.baselines.inducing import in_column_units, locations
from vff.baselines.latent import ascend_profile
from vff.estimators.arguments import is_whole, seeded
from vff.estimators.named import extra_of
from vff.inference import TargetScale
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood, by_name
from vff.words import shown

_MOST_ROWS = 10_000


def _is_binary(estimator: "LikelihoodBaseline") -> bool:
    return by_name(estimator.likelihood).binary


class LikelihoodBaseline(Baseline):
    """Any likelihood. Leaves say where the inducing points are, and whether they move."""

    likelihood: str | AbstractLikelihood
    optimise_inducing: bool = False

    @abstractmethod
    def _points(self, problem: Problem) -> np.ndarray:
        """The first inducing points, in half ranges of the data."""

    def fit(self, X: Any, y: Any) -> Self:
        likelihood = by_name(self.likelihood)
        if likelihood.known_errors:
            raise ValueError("inducing points know no error bars; use vff.GPRegressor(noise_std=...)")
        table, y = self._checked(X, y)
        extra = extra_of(likelihood, table)
        likelihood.check(y, extra)
        column: Any = likelihood.column
        design, x = self._design(table, None if column is None else table.index(column))
        target = TargetScale(0.0, 1.0)
        if likelihood.standardised:  # y is in units of the search where f is in those of y
            how = {"centred": self.normalize_y, "robust": likelihood.outliers}
            target = TargetScale.of_targets(y, np.ones(y.size), **how)
        problem = Problem(design, x, target, y, None, self.normalize_y and not likelihood.locates)
        effort = {"optimise": self.optimizer is not None, "release": self.optimise_inducing}
        fit = ascend_profile(problem, self._points(problem), likelihood, extra, **effort, progress=self._progress())
        iterate, learnt = fit.step.iterate, fit.likelihood.in_units(target.scale)
        posterior = replace(iterate.posterior, domains=problem.domains)
        self._store(problem, fit.optimum, iterate.features.values, posterior, fit.step.elbo, learnt)
        self.target_ = target.shifted(fit.intercept_prior)
        self._store_points(problem, iterate.features.locations)
        return self

    def _store_points(self, problem: Problem, points: np.ndarray) -> None:
        """Where the inducing points ended."""

    @available_if(_is_binary)
    def predict_proba(self, X: Any) -> np.ndarray:
        """P(y = 0) and P(y = 1) at every row, of a Bernoulli likelihood.

        Parameters
        ----------
        X : table

        Returns
        -------
        array (N, 2)
            Rows sum to one.

        Examples
        --------
        >>> X, kernel = np.linspace(0, 6, 20)[:, None], vff.Matern32(0, variance=4.0, lengthscale=2.0)
        >>> model = vff.baselines.VariationalGP(kernel, optimizer=None).fit(X, 1.0 * (X[:, 0] > 3))
        >>> model.predict_proba([[1.0]]).sum(axis=1).round(6)
        array([1.])
        """
        one = self.predict(X)
        assert isinstance(one, np.ndarray)
        return np.stack([1.0 - one, one], axis=1)


@dataclass(eq=False, repr=False)
class VariationalGP(LikelihoodBaseline):
    """The exact variational Gaussian process: E_q[log p(y | f)] - KL[q || p] at its best over all Gaussian q(f).

    O(N^3) time a step and O(N^2) memory, by natural gradients. With Gaussian noise the bound is log p(y) and q the
    posterior. k(x, x) is factored at the distinct rows; where rounding defeats that, 1e-15 to 1e-9 of its diagonal is
    added, the least that helps, which acts as noise on the latent function: the bound stays one.

    Parameters
    ----------
    kernel : kernel expression, "rbf", SquaredExponential or None
        As for ``ExactGP``; the variances are of the latent function.
    likelihood : str or likelihood
        A name that ``vff.likelihoods.by_name`` knows, or an object of that room. Bernoulli takes y of 0 and 1.
        Parameters that the object does not hold are learnt, whatever ``optimizer`` is.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters of the kernel.
    normalize_y : bool
        The latent function has a constant with a weak prior (standard deviation 10, or ten of y where f is in its
        units, around the constant that fits best), which is integrated out; with False its prior mean is zero and there
        is none.
    random_state : int, RandomState or None
        For ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, likelihood_ : with what was learnt, in the user's units
    noise_variance_ : float
        Of a Gaussian likelihood; else NaN.
    elbo_ : float
        The bound on log p(y), nats, for y in the user's units.
    notes_ : tuple of str
        How learning ended, when there is something to say.

    Examples
    --------
    >>> X, kernel = np.linspace(0, 6, 20)[:, None], vff.Matern32(0, variance=4.0, lengthscale=2.0)
    >>> model = vff.baselines.VariationalGP(kernel, optimizer=None).fit(X, 1.0 * (X[:, 0] > 3))
    >>> model.predict([[1.0], [5.0]]).round()
    array([0., 1.])
    """

    kernel: Kernel | SquaredExponential | str | None = None
    _: KW_ONLY
    likelihood: str | AbstractLikelihood = "probit"
    optimizer: str | None = "lbfgs"
    normalize_y: bool = True
    random_state: Any = None
    verbose: int = 0

    def _points(self, problem: Problem) -> np.ndarray:
        N = problem.y.size
        if N > _MOST_ROWS:
            raise ValueError(
                f"an exact variational Gaussian process on {N} rows needs {8 * N**2 / 2**30:.0f} GiB for each of "
                f"several matrices and {N**3:.0e} operations a step; give it at most {_MOST_ROWS} rows, or use "
                "GPRegressor or GPClassifier"
            )
        return np.unique(problem.T, axis=0)


@dataclass(eq=False, repr=False)
class InducingPointVGP(LikelihoodBaseline):
    """Sparse variational Gaussian process with inducing points and a full covariance (Hensman et al., 2015).

    The bound of ``VariationalGP`` over those q(f) that inducing points carry, O(N P^2) a step on all rows together. As
    there, q follows natural gradients.

    Parameters
    ----------
    kernel : kernel expression of numbers, "rbf", SquaredExponential or None
        As for ``VariationalGP``, without levels.
    likelihood : str or likelihood
        As for ``VariationalGP``.
    n_inducing : int
        P; the points are k-means centres of the rows, the range of every column measured as one. With no more distinct
        rows than that, the rows themselves.
    inducing : array, int or None
        Locations instead, in the columns' units, (P, C), the columns in the order the kernel names them (a vector will
        do for one column); or so many values in every column, a regular grid over the range of the data.
    optimise_inducing : bool
        Learn the locations too, by gradient on the bound, after the hyperparameters and then along with them.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters of the kernel, and the locations.
    normalize_y : bool
        The latent function has a constant with a weak prior (standard deviation 10, or ten of y where f is in its
        units, around the constant that fits best), which is integrated out; with False its prior mean is zero and there
        is none.
    random_state : int, RandomState or None
        For the k-means centres, and for ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, likelihood_, noise_variance_, elbo_, notes_ : as for ``VariationalGP``
    inducing_ : array
        Locations in the columns' units, (P, C), or (P,) for one column.

    Examples
    --------
    >>> X, kernel = np.linspace(0, 6, 20)[:, None], vff.Matern32(0, variance=4.0, lengthscale=2.0)
    >>> model = vff.baselines.InducingPointVGP(kernel, n_inducing=5, optimizer=None, random_state=0)
    >>> model.fit(X, 1.0 * (X[:, 0] > 3)).inducing_.shape
    (5,)
    """

    kernel: Kernel | SquaredExponential | str | None = None
    _: KW_ONLY
    likelihood: str | AbstractLikelihood = "probit"
    n_inducing: int = 50
    inducing: Any = None
    optimise_inducing: bool = False
    optimizer: str | None = "lbfgs"
    normalize_y: bool = True
    random_state: Any = None
    verbose: int = 0

    def _check_kernel(self, n_columns: int) -> None:
        check_numbers_only(self.kernel)

    def _store_points(self, problem: Problem, points: np.ndarray) -> None:
        self.inducing_ = in_column_units(points, problem.intervals)

    def _points(self, problem: Problem) -> np.ndarray:
        if self.inducing is not None:
            return locations(self.inducing, problem.intervals)
        P = self.n_inducing
        if not is_whole(P, 1):
            raise ValueError(f"n_inducing must be a positive integer, got {shown(P)}; 50 to 500 is a common choice")
        distinct = np.unique(problem.T, axis=0)
        if len(distinct) <= P:
            return distinct
        seed = seeded(self.random_state)
        return KMeans(int(P), n_init="auto", random_state=seed).fit(problem.T).cluster_centers_
