"""``ExactGP``: Gaussian process regression without approximation, log p(y) = log N(y; 0, C) at O(N^3).

C = k(T, T) + constant + noise I. With alpha = C^-1 y (Rasmussen & Williams, eqs 2.30 and 5.9):

    log p(y)     = -1/2 [ y'alpha + log|C| + N log 2 pi ]
    d log p / d  =  1/2 [ alpha' dC alpha - tr(C^-1 dC) ] = 1/2 sum_ij W_ij dC_ij,    W = alpha alpha' - C^-1

C has few hyperparameters and N^2 entries, so no derivative of it is ever held: W and dC are multiplied block by block.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf  # pyright: ignore[reportAttributeAccessIssue]
from scipy.optimize import minimize

from vff.baselines.base import GaussianBaseline
from vff.baselines.covariances import AbstractCovariance, Values, look, staircase
from vff.baselines.design import SquaredExponential
from vff.baselines.posterior import AbstractPosterior
from vff.estimators.arguments import is_whole, seeded
from vff.inference import Optimum
from vff.kernels import Kernel
from vff.linalg import Factor, factorise
from vff.words import shown

_MOST_ROWS = 20_000
_LOOK_ROWS = 1000  # the starting ladder is judged on at most so many rows


@dataclass(frozen=True)
class Evidence:
    """The evidence at one setting of the hyperparameters; T (N, C) in half ranges of the data, y standardised."""

    covariance: AbstractCovariance
    values: Values
    T: np.ndarray
    y: np.ndarray
    intercept: float = 0.0
    """Prior variance of a constant beside the process."""

    @cached_property
    def factor(self) -> Factor:
        """Cholesky factor of C."""
        # One N x N matrix, factorised where it stands. Where rounding defeats that, it is built again for
        # ``factorise``, which keeps a copy while it looks for the least jitter that helps.
        lower, info = dpotrf(self._lower_half(), lower=1, overwrite_a=1, clean=1)
        return Factor(lower, 0.0) if info == 0 else factorise(self._lower_half())

    def _lower_half(self) -> np.ndarray:
        """The lower half of C in Fortran order, zeros above."""
        C = np.zeros((self.y.size, self.y.size))
        for rows, columns in staircase(self.y.size):
            C[rows, columns] = self.covariance.block(self.values, self.T[rows], self.T[columns]) + self.intercept
        C[np.diag_indices_from(C)] += self.values.noise
        return C.T

    @cached_property
    def alpha(self) -> np.ndarray:
        """C^-1 y, (N,)."""
        return self.factor.solve(self.y)

    @property
    def quadratic(self) -> float:
        """y' C^-1 y."""
        return float(self.y @ self.alpha)

    @cached_property
    def value(self) -> float:
        """log p(y), nats."""
        return -0.5 * (self.quadratic + self.factor.logdet() + self.y.size * float(np.log(2.0 * np.pi)))

    @property
    def of_intercept(self) -> float:
        """The part of the constant that the data determine: 1 - var(constant | y) / var(constant), from 0 to 1."""
        if not self.intercept:
            return 0.0
        return self.intercept * float(self.factor.solve(np.ones(self.y.size)).sum())

    def rescaled(self) -> tuple[float, float]:
        """The factor on the variances of process and noise together that maximises the evidence, and the evidence
        there. A constant, whose prior stays as it is and says next to nothing, takes one row.
        """
        n = self.y.size - self.of_intercept
        if not n > 0.0:
            return 1.0, self.value
        s = max(self.quadratic / n, 1e-12)
        return s, self.value - 0.5 * (n * float(np.log(s)) + self.quadratic * (1.0 / s - 1.0))

    def gradient(self) -> np.ndarray:
        """d log p / d theta, theta the logarithms of variances, lengthscales and noise."""
        inverse, gradient = self.factor.inverse(), np.zeros(self.values.theta.size)
        for rows, columns in staircase(self.y.size):
            W = np.multiply.outer(self.alpha[rows], self.alpha[columns])
            W -= inverse[rows, columns]
            W[:, rows.stop - rows.start :] *= 2.0  # what lies right of the diagonal block stands below it too
            gradient[:-1] += self.covariance.pull_back(self.values, self.T[rows], self.T[columns], W)
        gradient[-1] = self.values.noise * float(self.alpha @ self.alpha - np.trace(inverse))
        return 0.5 * gradient


def learn(
    covariance: AbstractCovariance,
    T: np.ndarray,
    y: np.ndarray,
    given: Values,
    *,
    intercept: float,
    optimise: bool,
    tolerance: float = 1e-11,
    progress: Callable[[str], None],
) -> Optimum:
    """Hyperparameters from the data, or as given; learning ends when a step gains less than this share of log p(y)."""
    start = _start(covariance, T, y, given, intercept).theta
    if not optimise:
        return Optimum(start, float("nan"), 0, 0, True, "kept as given")
    unit, layout = np.sqrt(0.5 * y.size), covariance.layout

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        evidence = Evidence(covariance, covariance.values(z / unit), T, y, intercept)
        return -evidence.value, -evidence.gradient() / unit

    how = {"bounds": np.array(layout.log_bounds) * unit, "options": {"maxiter": 200, "ftol": tolerance, "gtol": 1e-3}}
    result = minimize(objective, layout.clip(start) * unit, jac=True, method="L-BFGS-B", **how)
    progress(f"log evidence {-result.fun:.3f} nats of {y.size} rows after {result.nit} steps")
    end = result.x / unit, float(-result.fun), int(result.nit), int(result.nfev)
    return Optimum(*end, bool(result.success), str(result.message))


def _start(covariance: AbstractCovariance, T: np.ndarray, y: np.ndarray, given: Values, intercept: float) -> Values:
    rows = np.lexsort(T.T[::-1])  # by the first column, ties by the next
    rows = rows[np.linspace(0, y.size - 1, min(y.size, _LOOK_ROWS)).astype(int)]

    def score(values: Values, rescaled: bool) -> tuple[float, float]:
        evidence = Evidence(covariance, values, T[rows], y[rows], intercept)
        return evidence.rescaled() if rescaled else (1.0, evidence.value)

    return look(score, given, covariance.first_lengthscale)


@dataclass(frozen=True)
class ExactPosterior(AbstractPosterior):
    """f(x) | y ~ GP( k(x, T) alpha, k(x, x') - k(x, T) C^-1 k(T, x') ) (Rasmussen & Williams, eqs 2.25-2.26).

    The constant is in k(x, x') here.
    """

    evidence: Evidence

    @property
    def width(self) -> int:
        return self.evidence.y.size

    @property
    def variance(self) -> float:
        return self.evidence.values.variance + self.evidence.intercept

    def _matrix(self, S: np.ndarray, T: np.ndarray) -> np.ndarray:
        return self.evidence.covariance.matrix(self.evidence.values, S, T) + self.evidence.intercept

    def _mean(self, T: np.ndarray) -> np.ndarray:
        return self._matrix(T, self.evidence.T) @ self.evidence.alpha

    def _moments(self, T: np.ndarray, *, joint: bool) -> tuple[np.ndarray, np.ndarray]:
        cross = self._matrix(self.evidence.T, T)
        mean = self.evidence.alpha @ cross
        root = solve_triangular(self.evidence.factor.lower, cross, lower=True, check_finite=False)
        if joint:
            return mean, self._matrix(T, T) - root.T @ root
        # The difference is a variance; only rounding can carry it below zero.
        prior = self.evidence.covariance.diagonal(self.evidence.values, T) + self.evidence.intercept
        return mean, np.maximum(prior - np.einsum("nr,nr->r", root, root), 0.0)


@dataclass(eq=False, repr=False)
class ExactGP(GaussianBaseline):
    """Exact Gaussian process regression, O(N^3) time and O(N^2) memory.

    The evidence at given hyperparameters needs one N x N matrix (0.8 GB for 10^4 rows), learning four of them.

    Parameters
    ----------
    kernel : kernel expression, "rbf", SquaredExponential or None
        Sums of products of one-column kernels, columns shared as you like: one variance for each product, one
        lengthscale for each Matérn factor. ``Categorical`` factors take their levels from X.
        None is a sum of ``Matern32`` over all columns; "rbf" is the squared exponential over all columns together, with
        a lengthscale for each.
    learn_rows : int or None
        Learn the hyperparameters on so many rows, drawn at random with ``random_state``; the evidence that is reported
        and the predictions use all rows with the values learnt. None learns on all rows. A step in eight columns
        takes about 50 seconds of processor time on 10^4 rows, and 0.8 on 2000.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters.
    normalize_y : bool
        The function has a constant with a weak prior (ten standard deviations of y around its mean), which is
        integrated out; with False its prior mean is zero and there is none.
    random_state : int, RandomState or None
        For ``learn_rows``, and for ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
    log_marginal_likelihood_, elbo_ : float
        log p(y) of all rows, nats, for y in the user's units; the two names hold the same number.
    notes_ : tuple of str
        How learning ended, when there is something to say.

    Examples
    --------
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(60)
    >>> exact, model = vff.baselines.ExactGP().fit(X, y), vff.GPRegressor().fit(X, y)
    >>> bool(model.elbo_ < exact.log_marginal_likelihood_)
    True
    """

    kernel: Kernel | SquaredExponential | str | None = None
    _: KW_ONLY
    learn_rows: int | None = None
    noise_variance: float | None = None
    optimizer: str | None = "lbfgs"
    normalize_y: bool = True
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any) -> Self:
        problem = self._problem(X, y)
        covariance, N = problem.covariance, problem.y.size
        if N > _MOST_ROWS:
            raise ValueError(
                f"an exact Gaussian process on {N} rows needs {8 * N**2 / 2**30:.0f} GiB for each of several matrices "
                f"and {N**3:.0e} operations a step; give it at most {_MOST_ROWS} rows, or use GPRegressor"
            )
        rows, optimise = self._rows_to_learn(N), self.optimizer is not None
        T, target = problem.T[rows], problem.y[rows]
        # What a sample of the rows says of the hyperparameters is off by about a nat each: 1e-6 of log p(y) is enough.
        effort = {"optimise": optimise, "tolerance": 1e-11 if target.size == N else 1e-6}
        intercept = problem.intercept or 0.0
        learnt = learn(covariance, T, target, problem.given, intercept=intercept, **effort, progress=self._progress())
        values = covariance.values(learnt.theta)
        evidence = Evidence(covariance, values, problem.T, problem.y, intercept)
        self._store(problem, learnt, values, ExactPosterior(problem.domains, evidence), evidence.value)
        self.log_marginal_likelihood_ = self.elbo_
        return self

    def _rows_to_learn(self, N: int) -> slice | np.ndarray:
        n = self.learn_rows
        if n is not None and not is_whole(n, 2):
            raise ValueError(
                f"learn_rows must be None or an integer of 2 or more, got {shown(n)}; 2000 is a common choice, None "
                "learns on all rows"
            )
        if n is None or n >= N:
            return slice(None)
        return np.sort(seeded(self.random_state).permutation(N)[: int(n)])
