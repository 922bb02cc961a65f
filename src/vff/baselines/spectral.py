"""``RandomFourierGP`` and ``SparseSpectrumGP``: a finite sum of cosines and sines instead of the process."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from vff.baselines.base import GaussianBaseline
from vff.baselines.design import check_default, check_one_column
from vff.baselines.features import Frequencies
from vff.estimators.arguments import is_whole, seeded
from vff.kernels import Kernel, Matern32, normal_form
from vff.words import shown


@dataclass(eq=False, repr=False)
class RandomFourierGP(GaussianBaseline):
    """Gaussian process regression on one column with random Fourier features (Rahimi & Recht, 2007).

    k(r) is replaced by variance times the average of cos(w r) over ``n_frequencies`` frequencies w drawn from the
    kernel's spectral density. They are drawn once for lengthscale one, so the evidence is smooth in the
    hyperparameters. O(N F^2) a step.

    Parameters
    ----------
    kernel : kernel of one column or None
        None is a ``Matern32`` over the only column.
    n_frequencies : int
        F; each frequency has a cosine and a sine.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters.
    normalize_y : bool
        The function has a constant with a weak prior (ten standard deviations of y around its mean), which is
        integrated out; with False its prior mean is zero and there is none.
    random_state : int, RandomState or None
        For the frequencies, and for ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
    elbo_ : float
        log p(y) under this finite model (no bound on that of the kernel), nats, for y in the user's units.
    frequencies_ : array
        Angular frequencies, radians per unit of the column.
    notes_ : tuple of str
        How learning ended, when there is something to say.

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> vff.baselines.RandomFourierGP(n_frequencies=20, random_state=0).fit(X, y).frequencies_.shape
    (20,)
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    n_frequencies: int = 500
    noise_variance: float | None = None
    optimizer: str | None = "lbfgs"
    normalize_y: bool = True
    random_state: Any = None
    verbose: int = 0

    _learns_frequencies = False

    def _check_kernel(self, n_columns: int) -> None:
        check_default(self.kernel, n_columns)
        check_one_column(self.kernel)

    def fit(self, X: Any, y: Any) -> Self:
        problem, F = self._problem(X, y), self.n_frequencies
        if not is_whole(F, 1):
            raise ValueError(f"n_frequencies must be a positive integer, got {shown(F)}; 50 to 500 is a common choice")
        (term,) = normal_form(self.kernel or Matern32(0))
        (factor,) = term.factors
        coordinates = factor.factor.frequencies(int(F), seeded(self.random_state))
        if coordinates is None:
            raise ValueError(
                f"{factor.factor.title} has no spectral density to draw from; use a Matérn, or GPRegressor"
            )
        features = self._fit_features(problem, Frequencies, coordinates, release=self._learns_frequencies)
        self.frequencies_ = features.locations / problem.intervals[0].unit()
        return self


@dataclass(eq=False, repr=False)
class SparseSpectrumGP(RandomFourierGP):
    """Sparse spectrum Gaussian process regression on one column (Lázaro-Gredilla et al., 2010).

    The model of ``RandomFourierGP`` with the frequencies themselves learnt: after the hyperparameters, and then along
    with them. As in that paper the lengthscale stays a parameter; it scales all frequencies together, so
    once they are learnt they are described by ``frequencies_``, and no longer by the lengthscale of ``kernel_``.

    Parameters
    ----------
    kernel : kernel of one column or None
        None is a ``Matern32`` over the only column. The first frequencies are drawn from its spectral density.
    n_frequencies : int
        F; each frequency has a cosine and a sine.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters and the frequencies as drawn.
    normalize_y : bool
        The function has a constant with a weak prior (ten standard deviations of y around its mean), which is
        integrated out; with False its prior mean is zero and there is none.
    random_state : int, RandomState or None
        For the first frequencies, and for ``sample_f`` and ``sample_y`` when they are called without one.
    verbose : int
        1 prints progress to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
    elbo_ : float
        log p(y) under this finite model (no bound on that of the kernel), nats, for y in the user's units.
    frequencies_ : array
        Angular frequencies, radians per unit of the column.
    notes_ : tuple of str
        How learning ended, when there is something to say.

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> vff.baselines.SparseSpectrumGP(n_frequencies=5, random_state=0).fit(X, y).frequencies_.shape
    (5,)
    """

    _: KW_ONLY
    n_frequencies: int = 50

    _learns_frequencies = True
