"""``ExactGP``: Gaussian process regression without approximation."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from vff.baselines.evidence import Evidence, learn
from vff.baselines.face import GaussianFace
from vff.baselines.posterior import ExactPosterior
from vff.baselines.squared_exponential import SquaredExponential
from vff.estimators.arguments import is_whole, seeded
from vff.kernels import Kernel
from vff.words import shown

_MOST_ROWS = 20_000


@dataclass(eq=False, repr=False)
class ExactGP(GaussianFace):
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
        """Fit to a table X and a vector y."""
        problem = self._problem(X, y)
        covariance, N = problem.design.covariance, problem.y.size
        if N > _MOST_ROWS:
            raise ValueError(
                f"an exact Gaussian process on {N} rows needs {8 * N**2 / 2**30:.0f} GiB for each of several matrices "
                f"and {N**3:.0e} operations a step; give it at most {_MOST_ROWS} rows, or use GPRegressor"
            )
        rows, optimise = self._rows_to_learn(N), self.optimizer is not None
        T, target = problem.T[rows], problem.y[rows]
        # What a sample of the rows says of the hyperparameters is off by about a nat each: 1e-6 of log p(y) is enough.
        effort = {"optimise": optimise, "tolerance": 1e-11 if target.size == N else 1e-6}
        constant = problem.constant or 0.0
        learnt = learn(covariance, T, target, problem.given, constant=constant, **effort, progress=self._progress())
        values = covariance.values(learnt.theta)
        evidence = Evidence(covariance, values, problem.T, problem.y, constant)
        posterior = ExactPosterior.from_evidence(evidence, problem.domains)
        self._store(problem, learnt, values, posterior, evidence.value)
        self.log_marginal_likelihood_ = self.elbo_
        return self

    def _check_kernel(self, n_columns: int) -> None:
        """All kernels will do."""

    def _rows_to_learn(self, N: int) -> slice | np.ndarray:
        n = self.learn_rows
        if n is not None and not is_whole(n, 2):
            raise ValueError(
                f"learn_rows must be None or an integer of 2 or more, got {shown(n)}; 2000 is a common choice, None "
                "learns "
                "on all rows"
            )
        if n is None or n >= N:
            return slice(None)
        return np.sort(seeded(self.random_state).permutation(N)[: int(n)])
