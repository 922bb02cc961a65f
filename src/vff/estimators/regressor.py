"""``GPRegressor``: Gaussian process regression by one pass over the data."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from vff.basis import ColumnBasis, Interval
from vff.estimators.binding import bind, joined
from vff.estimators.face import RegressionFace
from vff.estimators.options import ENGINE_NAMES, check_choice, check_noise
from vff.estimators.rows import Rows, add, begin, check_unchanged, take_batch
from vff.estimators.settling import Options
from vff.estimators.tables import Table
from vff.inference import Fit, TermPlan, fit_sum
from vff.kernels import Kernel, Sum


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
        ``Matern32("x") + Categorical("y")`` and the like. None is a ``Matern32`` per column of numbers and, in a frame,
        a ``Categorical`` per column of text.
    likelihood : "gaussian"
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data. Given starts, here
        and in the kernel, compete with those from the data and are left when they are far worse.
    frequencies : int, "auto" or dict by column or product
        Harmonics per column. In a dictionary, "a" is the term of column a, and "a * b" the product, with one number for
        both or one each; a column without a term of its own speaks for its products. "auto" grows them until the bound
        has next to nothing to gain: half a nat, or 1e-6 nats per row, or 0.02 nats per coefficient that the data
        determine, whichever is most.
    domain : (a, b), "auto" or dict by column
        Interval of the features in the column's units. "auto" hugs the data (or pads them, with ``edges=0``).
    edges : int, "auto" or dict by column or product
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
    elbo_error_ : float
        How far ``elbo_`` itself may be off, nats (three standard errors); 0 unless ``solver_`` is "iterative".
    solver_ : "direct" or "iterative"
        Whether a P x P matrix was factored, or products with it were enough.
    evidence_upper_bound_ : float
        Upper bound on log p(y) at the same hyperparameters, right or not; cautious, and loose when rows are many.
    domain_, frequencies_, edges_ : what was chosen, by column
    engine_, engine_reason_ : how the rows were summed, and why
    timing_ : seconds of the last fit by phase: "survey", "pass", "learn"
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
        edges: int | str | dict = "auto",
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

    def merge(self, other: "GPRegressor") -> Self:
        """Add the rows that another fitted model has seen to this one's, and learn again.

        Both must have the same kernel, ``domain`` and ``edges``; the result is that of all rows together.
        """
        check_is_fitted(self, "rows_")
        check_is_fitted(other, "rows_")
        say, clock = self._progress(), _Clock()
        rows = self.rows_.merged(other.rows_)
        with clock("learn"):
            fit = self._learn(rows, say)
        self.timing_ = clock.seconds
        self._store(fit, rows, say)
        return self

    def _absorb(self, X: Any, y: Any, sample_weight: Any, seen: Rows | None, *, growing: bool) -> Self:
        """Read rows on top of those seen; nothing of the estimator changes until all of it has worked."""
        say, clock = self._progress(), _Clock()
        check_choice("likelihood", self.likelihood, ("gaussian",))
        check_choice("engine", self.engine, ENGINE_NAMES)
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        table = Table.of(X)
        if seen is not None:
            validate_data(self, table.data, reset=False, skip_check_array=True)
        options = Options(self.frequencies, self.domain, self.edges)
        with clock("survey"):
            binding = bind(self.kernel, table, first=seen is None)
            if seen is not None:
                check_unchanged(seen.options, options)
                binding = joined(seen.binding, binding)
            batch = take_batch(table, binding, y, sample_weight, first=seen is None)
            seen = seen or begin(batch, options, growing=growing)
        with clock("pass"):
            rows = add(seen, batch, self.engine, say)
        say(f"{rows.moments.n:,} rows summed; engine {rows.choice.reason}")
        with clock("learn"):
            fit = self._learn(rows, say)
        validate_data(self, table.data, reset=True, skip_check_array=True)
        self.timing_ = clock.seconds
        self._store(fit, rows, say)
        return self

    def _learn(self, rows: Rows, say: Callable[[str], None]) -> Fit:
        """Hyperparameters and posterior from the statistics alone."""
        parts = zip(rows.terms, rows.harmonics, rows.details, strict=True)
        return fit_sum(
            rows.moments,
            rows.tails,
            [
                TermPlan(
                    term.name,
                    rows.binding.labels(term),
                    term.inner,
                    term.given,
                    M,
                    tuple(rows.extents[c] for c in term.columns),
                    detail,
                )
                for term, M, detail in parts
            ],
            check_noise(self.noise_variance),
            optimise=self.optimizer is not None,
            normalise=self.normalize_y,
            progress=say,
        )

    def _store(self, fit: Fit, rows: Rows, say: Callable[[str], None]) -> None:
        self.rows_, self.fit_, self.posterior_, self.target_ = rows, fit, fit.posterior, fit.target
        self.column_indices_ = tuple(column.index for column in rows.binding.columns)
        self.column_levels_ = tuple(column.levels for column in rows.binding.columns)
        learnt = tuple(
            term.term.with_values(values.variance, values.lengthscales)
            for term, values in zip(rows.terms, fit.terms, strict=True)
        )
        self.kernel_ = learnt[0] if len(learnt) == 1 else Sum(learnt)
        self.noise_variance_ = fit.noise_variance
        self.elbo_, self.elbo_error_, self.evidence_upper_bound_ = fit.elbo, fit.elbo_error, fit.upper_bound
        self.solver_ = fit.solver
        missed = fit.history[-1].missed
        self.elbo_gap_ = (missed, 2.0 * missed)
        self._store_choices(fit, rows)
        self.notes_ = fit.notes
        for note in fit.notes:
            say(f"note: {note}")

    def _store_choices(self, fit: Fit, rows: Rows) -> None:
        """What was settled: domains by column, harmonics and edge functions by term."""
        self.domain_, self.frequencies_, self.edges_ = {}, {}, {}
        for term, request, values in zip(rows.terms, rows.moments.request.terms, fit.terms, strict=True):
            for column, factor in zip(term.term.columns, request.factors, strict=True):
                if isinstance(factor.place, Interval):
                    self.domain_[column] = (factor.place.a, factor.place.b)
            edges = tuple(basis.q if isinstance(basis, ColumnBasis) else None for basis in request.bases)
            if any(q is not None for q in edges):
                self.frequencies_[term.key] = values.M
                self.edges_[term.key] = edges[0] if len(edges) == 1 else edges
        self.engine_, self.engine_reason_ = rows.choice.name, rows.choice.reason

    def _place_text(self, number: int, label: str) -> str:
        place = self.rows_.moments.request.columns[number].place
        if not isinstance(place, Interval):
            return f"hold a level of column {label} that the fit has not seen"
        return (
            f"lie outside the domain [{place.a:g}, {place.b:g}] of column {label} by more than a tenth of a lengthscale"
        )

    def predict_derivative(self, X: Any, column: str | int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the slope df/dx at every row, in units of y per unit of the column.

        ``column`` says which of several columns the slope is along.
        """
        x = np.concatenate(list(self._pieces(self._table(X))))
        columns = self.rows_.binding.columns
        along = [c for c, bound in enumerate(columns) if column is None or column in bound.aliases]
        if len(along) != 1:
            along = [c for c in along if columns[c].levels is None]
        if len(along) != 1:
            names = ", ".join(bound.label for bound in columns)
            raise ValueError(f"the slope is along one column, got column={column!r}; name one of {names}")
        if columns[along[0]].levels is not None:
            raise ValueError(f"column {column!r} is categorical and has no slope; name a column of numbers")
        mean, variance = self.fit_.posterior.slope(x, along[0])
        return self.target_.scale * mean, self.target_.scale**2 * variance

    def effects(self, X: Any) -> Effects:
        """Each term's posterior mean and standard deviation at the rows of X, centred on the rows of the fit.

        Both come from the joint posterior of all terms. The terms sum to ``predict_f(X)`` less a constant, the mean of
        the fitted function over the rows of the fit.
        """
        pieces = [self._effects(x) for x in self._pieces(self._table(X))]
        mean, variance = (np.concatenate(part) for part in zip(*pieces, strict=True))
        names = tuple(term.name for term in self.rows_.terms)
        return Effects(names, self.target_.scale * mean, self.target_.scale * np.sqrt(variance))

    def _effects(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        posterior = self.fit_.posterior
        rows = posterior.rows(x)
        parts = [term.centred(x, rows) for term in posterior.terms]
        return np.stack([mean for mean, _ in parts], axis=1), np.stack([variance for _, variance in parts], axis=1)


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - started
