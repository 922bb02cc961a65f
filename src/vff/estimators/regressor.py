"""``GPRegressor``: Gaussian process regression by one pass over the data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import validate_data

from vff.basis import ColumnBasis
from vff.estimators.face import RegressionFace
from vff.estimators.options import (
    ENGINE_NAMES,
    check_choice,
    check_domain,
    check_edges,
    check_frequencies,
    check_noise,
    check_resolution,
    check_size,
    for_column,
)
from vff.estimators.tables import Table, check_target, check_weights
from vff.features import TailRows
from vff.inference import Fit, choose_domain, fit_column, largest_harmonic, read
from vff.kernels import Kernel, Matern32, Term, normal_form
from vff.moments import Choice, MomentRequest, Moments


class Effects(NamedTuple):
    """Per-term posterior at rows: names of the T terms, mean and standard deviation, (N, T) each."""

    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray


class Batch(NamedTuple):
    """Checked rows: the modelled column, the target, the weights, (N,) each."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray


@dataclass(frozen=True)
class Rows:
    """All that is kept of the rows of a fit."""

    M: int | None
    """Harmonics as asked for; None when they are to be found."""
    hugging: bool
    """Whether the domain was taken from the first rows."""
    moments: Moments
    tails: tuple[TailRows, ...]
    """Rows beyond the domain, which must be kept as they are."""
    extent: tuple[float, float]
    """Where the data lie."""
    choice: Choice
    """The engine of the last pass, and why."""


class GPRegressor(RegressionFace):
    """Gaussian process regression with variational Fourier features.

    Parameters
    ----------
    kernel : kernel expression or None
        ``Matern32("x")`` and the like. None is a ``Matern32`` over the only column.
    likelihood : "gaussian"
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data. Given starts, here
        and in the kernel, compete with those from the data and are left when they are far worse.
    frequencies : int, "auto" or dict by column
        Harmonics per column. "auto" grows them until the bound has next to nothing to gain: half a nat, or
        1e-6 nats per row, or 0.02 nats per coefficient that the data determine, whichever is most.
    domain : (a, b), "auto" or dict by column
        Interval of the features in the column's units. "auto" hugs the data (or pads them, with ``edges=0``).
    edges : int or "auto"
        Edge functions, which add the polynomials up to that degree to the span. "auto" is p + 2 for a
        Matérn-(p+1/2); 0 is the paper.
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
    elbo_gap_ : (float, float)
        How far below log p(y) the bound is expected to lie at these hyperparameters, nats, if the model is right.
    evidence_upper_bound_ : float
        Upper bound on log p(y) at the same hyperparameters, right or not; cautious, and loose when rows are many.
    domain_, frequencies_, edges_ : what was chosen, by column
    engine_, engine_reason_ : how the rows were summed, and why
    rows_ : the sums over the rows, to which ``partial_fit`` adds
    fit_ : the record of the fit, with every M on the way
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
        return self._absorb(X, y, sample_weight, None, growing=False)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those already seen and learn again, at a cost that does not depend on the rows seen before."""
        return self._absorb(X, y, sample_weight, getattr(self, "rows_", None), growing=True)

    def _absorb(self, X: Any, y: Any, sample_weight: Any, seen: Rows | None, *, growing: bool) -> Self:
        """Read rows on top of those seen; nothing of the estimator changes until all of it has worked."""
        say = self._progress()
        check_choice("likelihood", self.likelihood, ("gaussian",))
        check_choice("engine", self.engine, ENGINE_NAMES)
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        table = Table.of(X)
        if seen is not None:
            validate_data(self, table.data, reset=False, skip_check_array=True)
        term = self._term(table)
        index = table.index(term.columns[0])
        batch = _batch(table, index, y, sample_weight, first=seen is None)
        if seen is None:
            seen = self._begin(term, table, index, batch, growing=growing)
        rows = self._read(seen, batch, table.label(index))
        say(f"{rows.moments.n} rows summed for M up to {rows.moments.request.basis.M}; engine {rows.choice.reason}")
        fit = self._learn(term, rows, say)
        validate_data(self, table.data, reset=True, skip_check_array=True)
        self.rows_, self.column_index_ = rows, index
        self._store(fit, term, rows, say)
        return self

    def _term(self, table: Table) -> Term:
        """The one term of the kernel."""
        if self.kernel is None and table.n_columns > 1:
            raise ValueError(
                f"X has {table.n_columns} columns and kernel=None means a sum over all of them, which this version "
                "does not fit yet; name one column, as in kernel=Matern32('x'), or pass that column alone"
            )
        terms = normal_form(Matern32(table.names[0] if table.names else 0) if self.kernel is None else self.kernel)
        term, *others = terms
        if others or len(term.factors) > 1:
            raise ValueError(
                f"kernel has {len(terms)} term(s) over the columns {[term.columns for term in terms]}; this version "
                "fits one column, as in kernel=Matern32('x')"
            )
        return term

    def _begin(self, term: Term, table: Table, index: int, batch: Batch, *, growing: bool) -> Rows:
        """Settle domain, edges and harmonics on the first rows."""
        factor, label = term.factors[0], table.label(index)
        low, high = float(batch.x.min()), float(batch.x.max())
        names = {factor.column, index, *([table.names[index]] if table.names else [])}
        M = check_frequencies(for_column(self.frequencies, "frequencies", names), label)
        q = check_edges(for_column(self.edges, "edges", names), factor.order, M)
        given = check_domain(for_column(self.domain, "domain", names), label)
        if given is None and low == high:
            raise ValueError(
                f"column {label} of X is constant ({low:g} in all {batch.x.size} rows); a column that varies was "
                "expected: leave it out of the kernel"
            )
        interval = given or choose_domain(low, high, q, growing=growing)
        check_resolution(interval, label)
        basis = ColumnBasis(M or largest_harmonic(batch.x, q, growing=growing), q)
        check_size(basis.size, label)
        moments = Moments.zero(MomentRequest(interval, basis), float(np.average(batch.y, weights=batch.w)))
        return Rows(M, given is None, moments, (), (low, high), Choice("", ""))

    def _read(self, seen: Rows, batch: Batch, label: str) -> Rows:
        low, high = min(seen.extent[0], float(batch.x.min())), max(seen.extent[1], float(batch.x.max()))
        interval = seen.moments.request.interval
        if seen.hugging and not (interval.a <= low and high <= interval.b):
            raise ValueError(
                f"column {label} now reaches [{low:g}, {high:g}], beyond the domain [{interval.a:g}, {interval.b:g}] "
                "taken from the rows seen so far; give domain=(a, b) wide enough for all rows to come"
            )
        new = read(seen.moments.request, self.engine, batch.x, batch.y, batch.w, seen.moments.offset)
        together = {"moments": seen.moments + new.moments, "tails": (*seen.tails, *new.tails)}
        return replace(seen, **together, extent=(low, high), choice=new.choice)

    def _learn(self, term: Term, rows: Rows, say: Callable[[str], None]) -> Fit:
        """Hyperparameters and posterior from the statistics alone."""
        factor = term.factors[0]
        given = {
            "variance": term.variance,
            "lengthscale": factor.lengthscale,
            "noise": check_noise(self.noise_variance),
        }
        return fit_column(
            rows.moments,
            rows.tails,
            factor.order,
            given,
            M=rows.M,
            optimise=self.optimizer is not None,
            normalise=self.normalize_y,
            extent=rows.extent,
            progress=say,
        )

    def _store(self, fit: Fit, term: Term, rows: Rows, say: Callable[[str], None]) -> None:
        column, request = term.columns[0], rows.moments.request
        self.fit_, self.posterior_, self.target_ = fit, fit.posterior, fit.target
        self.kernel_ = term.with_values(fit.variance, (fit.lengthscale,))
        self.noise_variance_ = fit.noise_variance
        self.elbo_, self.evidence_upper_bound_ = fit.elbo, fit.upper_bound
        missed = fit.history[-1].missed
        self.elbo_gap_ = (missed, 2.0 * missed)
        self.domain_ = {column: (request.interval.a, request.interval.b)}
        self.frequencies_, self.edges_ = {column: fit.M}, {column: request.basis.q}
        self.engine_, self.engine_reason_ = rows.choice.name, rows.choice.reason
        self.notes_ = fit.notes
        for note in fit.notes:
            say(f"note: {note}")

    def _domain_text(self) -> str:
        interval = self.rows_.moments.request.interval
        return f"[{interval.a:g}, {interval.b:g}]"

    def predict_derivative(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the slope df/dx at every row, in units of y per unit of the column."""
        x = self._rows(X)
        mean, variance = self.fit_.posterior.derivative(x)
        return self.target_.scale * mean, self.target_.scale**2 * variance

    def effects(self, X: Any) -> Effects:
        """Each term's posterior mean and standard deviation at the rows of X, centred on the rows of the fit."""
        x = self._rows(X)
        mean, variance = self.fit_.posterior.centred(x)
        scale = self.target_.scale
        name = str(normal_form(self.kernel_)[0].columns[0])
        return Effects((name,), scale * mean[:, None], scale * np.sqrt(variance)[:, None])


def _batch(table: Table, index: int, y: Any, sample_weight: Any, *, first: bool) -> Batch:
    """The rows the user gave, checked; those of weight zero are left out, as if they were not there."""
    w, target = check_weights(sample_weight, table.n_rows), check_target(y, table.n_rows)
    if table.n_rows < (2 if first else 1):
        raise ValueError(f"X has {table.n_rows} sample(s) and a minimum of 2 is required: one row shows no trend")
    x = table.column(index)
    if w.min() == 0.0:
        kept = w > 0.0
        x, target, w = x[kept], target[kept], w[kept]
    return Batch(x, target, w)
