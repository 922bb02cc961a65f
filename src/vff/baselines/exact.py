"""``ExactGP``: Gaussian process regression without approximation."""

from typing import Any, Self

from vff.baselines.evidence import Evidence, learn
from vff.baselines.face import BaselineFace
from vff.baselines.posterior import ExactPosterior
from vff.baselines.start import LAYOUT
from vff.kernels import Kernel

_MOST_ROWS = 20_000


class ExactGP(BaselineFace):
    """Exact Gaussian process regression on one column, O(N^3) time and O(N^2) memory.

    Parameters
    ----------
    kernel : kernel of one column or None
        None is a ``Matern32`` over the only column.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters.
    normalize_y : bool
        Give the model the mean of y. With False the prior mean is zero.
    random_state : int, RandomState or None
        For ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
    log_marginal_likelihood_, elbo_ : float
        log p(y), nats, for y in the user's units; the two names hold the same number.
    notes_ : tuple of str
        How learning ended, when there is something to say.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise_variance: float | None = None,
        optimizer: str | None = "lbfgs",
        normalize_y: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.optimizer = optimizer
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a table X and a vector y."""
        problem = self._problem(X, y)
        p, t, target, N = problem.p, problem.t, problem.y, problem.y.size
        if N > _MOST_ROWS:
            raise ValueError(
                f"an exact Gaussian process on {N} rows needs {8 * N**2 / 2**30:.0f} GiB for each of several matrices "
                f"and {N**3:.0e} operations a step; give it at most {_MOST_ROWS} rows, or use GPRegressor"
            )
        progress = self._progress()
        optimum = learn(p, t, target, problem.given, optimise=self.optimizer is not None, progress=progress)
        evidence = Evidence.at(LAYOUT.unpack(optimum.theta), p, t, target)
        self._store(problem, optimum, ExactPosterior.from_evidence(evidence, problem.interval))
        self.log_marginal_likelihood_ = self.elbo_
        return self
