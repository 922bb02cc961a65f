"""``GPRegressor``: Gaussian process regression by one pass over the data."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import validate_data

from vff.basis import Interval
from vff.estimators.face import RegressionFace
from vff.estimators.options import (
    ENGINE_NAMES,
    check_choice,
    check_domain,
    check_edges,
    check_frequencies,
    check_noise,
    for_column,
)
from vff.estimators.tables import Table, check_target, check_weights
from vff.features import TailRows
from vff.inference import Fit, Plan, choose_domain, fit_column, largest_harmonic, make_plan, read
from vff.kernels import Kernel, Matern32, Term, normal_form
from vff.moments import Moments


class Effects(NamedTuple):
    """Per-term posterior at rows: names of the T terms, mean and standard deviation, (N, T) each."""

    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray


class GPRegressor(RegressionFace):
    """Gaussian process regression with variational Fourier features.

    Parameters
    ----------
    kernel : kernel expression or None
        ``Matern32("x")`` and the like. None is a ``Matern32`` over the only column.
    likelihood : "gaussian"
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data.
    frequencies : int, "auto" or dict by column
        Harmonics per column. "auto" grows them until the bound has less than half a nat (or 1e-6 nats
        per row) to gain.
    domain : (a, b), "auto" or dict by column
        Interval of the features in the column's units. "auto" hugs the data (or pads them, with ``edges=0``).
    edges : int or "auto"
        Edge polynomials. "auto" is p + 2 for a Matérn-(p+1/2); 0 is the paper.
    engine : "auto", "dense", "nufft", "table" or "grid"
        How the rows are summed. All agree.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters.
    normalize_y : bool
        Give the model the mean and scale of y. With False the prior mean is zero.
    random_state : int, RandomState or None
        For ``sample_y`` when it is called without one.
    verbose : int
        1 prints progress and the fit's notes to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
    elbo_ : float
        Lower bound on log p(y), nats, for y in the user's units.
    evidence_upper_bound_ : float
        Upper bound on log p(y) at the same hyperparameters; the distance to ``elbo_`` bounds what M costs.
    domain_, frequencies_, edges_, engine_ : what was chosen, by column
    notes_ : tuple of str
        What limits the bound, if anything, and how learning ended.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: str = "gaussian",
        noise_variance: float | None = None,
        frequencies: int | str | dict = "auto",
        domain: tuple[float, float] | str | dict = "auto",
        edges: int | str = "auto",
        engine: str = "auto",
        optimizer: str | None = "lbfgs",
        normalize_y: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.noise_variance = noise_variance
        self.frequencies = frequencies
        self.domain = domain
        self.edges = edges
        self.engine = engine
        self.optimizer = optimizer
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table X and a vector y. A row of weight w counts as w equal rows."""
        self._forget()
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those already seen and learn again, at a cost that does not depend on the rows seen before."""
        term, x, target, weights = self._check(X, y, sample_weight)
        say = self._progress()
        if not hasattr(self, "moments_"):
            self._plan(term, x, target, weights)
            say(f"engine {self.plan_.reason}")
        self._read(x, target, weights)
        say(f"{self.moments_.n} rows summed for M up to {self.plan_.request.basis.M}")
        self._learn(term)
        return self

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Term, np.ndarray, np.ndarray, np.ndarray]:
        """Everything the user gave, checked; rows of weight zero are left out, as if they were not there."""
        check_choice("likelihood", self.likelihood, ("gaussian",))
        check_choice("engine", self.engine, ENGINE_NAMES)
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        first = not hasattr(self, "moments_")
        table = Table.of(X)
        validate_data(self, table.data, reset=first, skip_check_array=True)
        term = self._term(table)
        index = table.index(term.columns[0])
        weights = check_weights(sample_weight, table.n_rows)
        target = check_target(y, table.n_rows)
        if table.n_rows < 2 and first:
            raise ValueError(f"X has {table.n_rows} sample(s) and a minimum of 2 is required: one row shows no trend")
        x = table.column(index)
        self.column_index_, self._label = index, table.label(index)
        if weights.min(initial=1.0) == 0.0:
            rows = weights > 0.0
            x, target, weights = x[rows], target[rows], weights[rows]
        return term, x, target, weights

    def _term(self, table: Table) -> Term:
        """The one term of the kernel."""
        if self.kernel is None and table.n_columns > 1:
            raise ValueError(
                f"X has {table.n_columns} columns and kernel=None means a sum over all of them, which this version "
                "does not fit yet; name one column, as in kernel=Matern32('x'), or pass that column alone"
            )
        terms = normal_form(Matern32(0) if self.kernel is None else self.kernel)
        if len(terms) > 1 or len(terms[0].factors) > 1:
            raise ValueError(
                f"kernel has {len(terms)} term(s) over the columns {[term.columns for term in terms]}; this version "
                "fits one column, as in kernel=Matern32('x')"
            )
        return terms[0]

    def _plan(self, term: Term, x: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Settle domain, edges, harmonics and engine for the first rows."""
        factor, label = term.factors[0], self._label
        low, high = float(x.min()), float(x.max())
        if low == high:
            raise ValueError(
                f"column {label} of X is constant ({low:g} in all {x.size} rows); a column that varies was expected: "
                "leave it out of the kernel"
            )
        M = check_frequencies(for_column(self.frequencies, "frequencies", factor.column, self.column_index_), label)
        q = check_edges(for_column(self.edges, "edges", factor.column, self.column_index_), factor.order, M)
        interval = check_domain(for_column(self.domain, "domain", factor.column, self.column_index_), label)
        interval = interval or choose_domain(low, high, q)
        _check_resolution(interval, label)
        self._M = M
        self.plan_: Plan = make_plan(x, interval, M or largest_harmonic(x, q), q, self.engine)
        self.extent_ = (low, high)
        self.moments_ = Moments.zero(self.plan_.request, float(np.average(target, weights=weights)))
        self.tails_: tuple[TailRows, ...] = ()

    def _read(self, x: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        low, high = min(self.extent_[0], float(x.min())), max(self.extent_[1], float(x.max()))
        interval = self.plan_.request.interval
        if isinstance(self.domain, str) and not (interval.a <= low and high <= interval.b):
            raise ValueError(
                f"column {self._label} now reaches [{low:g}, {high:g}], beyond the domain [{interval.a:g}, "
                f"{interval.b:g}] that the first rows set; give domain=(a, b) wide enough for all rows to come"
            )
        moments, tails = read(self.plan_, x, target, weights, self.moments_.offset)
        self.moments_, self.tails_ = self.moments_ + moments, (*self.tails_, *tails)
        self.extent_ = (low, high)

    def _learn(self, term: Term) -> None:
        """Hyperparameters and posterior from the statistics alone."""
        factor = term.factors[0]
        given = {
            "variance": term.variance,
            "lengthscale": factor.lengthscale,
            "noise": check_noise(self.noise_variance),
        }
        fit = fit_column(
            self.moments_,
            self.tails_,
            factor.order,
            given,
            M=self._M,
            optimise=self.optimizer is not None,
            normalise=self.normalize_y,
            extent=self.extent_,
            progress=self._progress(),
        )
        self._store(fit, term)

    def _store(self, fit: Fit, term: Term) -> None:
        column, interval = term.columns[0], self.plan_.request.interval
        self.fit_ = fit
        self.posterior_, self.target_ = fit.posterior, fit.target
        self.kernel_ = term.with_values(fit.variance, (fit.lengthscale,))
        self.noise_variance_ = fit.noise_variance
        self.elbo_, self.evidence_upper_bound_ = fit.elbo, fit.upper_bound
        self.domain_ = {column: (interval.a, interval.b)}
        self.frequencies_ = {column: fit.M}
        self.edges_ = {column: self.plan_.request.basis.q}
        self.engine_ = self.plan_.engine
        self.notes_ = fit.notes
        for note in fit.notes:
            self._progress()(f"note: {note}")

    def _domain_text(self) -> str:
        interval = self.plan_.request.interval
        return f"[{interval.a:g}, {interval.b:g}]"

    def predict_derivative(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the slope df/dx at every row, in units of y per unit of the column."""
        mean, variance = self.posterior_.derivative(self._rows(X))
        return self.target_.scale * mean, self.target_.scale**2 * variance

    def effects(self, X: Any) -> Effects:
        """Each term's posterior mean and standard deviation at the rows of X, centred on the rows of the fit."""
        mean, variance = self.posterior_.centred(self._rows(X))
        scale = self.target_.scale
        name = str(normal_form(self.kernel_)[0].columns[0])
        return Effects((name,), scale * mean[:, None], scale * np.sqrt(variance)[:, None])


def _check_resolution(interval: Interval, label: str) -> None:
    size = max(abs(interval.a), abs(interval.b))
    if interval.b - interval.a < 1e-9 * size:
        raise ValueError(
            f"column {label} of X varies by {interval.b - interval.a:g} around {size:g}, which float64 barely resolves; "
            "subtract a constant from it first"
        )
