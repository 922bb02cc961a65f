"""What every model of a sum of terms does: read rows, learn, answer about its terms. Leaves add what y is."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vff.data import Source, Table, open_rows
from vff.estimators.arguments import flag
from vff.estimators.binding import Binding, notes_on
from vff.estimators.coefficients import ReadableMixin
from vff.estimators.effects import Effects
from vff.estimators.evaluation import Block
from vff.estimators.fitting import Fitted, fit, lines_of_pass
from vff.estimators.named import introduce_source, recognised_source
from vff.estimators.options import (
    COVARIANCES,
    ChainOptions,
    FitSpec,
    Options,
    check_batch,
    check_choice,
    engine_names,
)
from vff.estimators.predict import ProcessMixin
from vff.estimators.statistics import Statistics, check_unchanged
from vff.inference import EffectAt, PureEffect, Samples
from vff.kernels import Kernel, Sum
from vff.likelihoods import AbstractLikelihood
from vff.words import shown

_FROM_TEXT = {"datetime": "to_datetime", "duration": "to_timedelta"}
_DIMENSIONS = {"variance": "term", "lengthscale": "column"}


class AdditiveModel(ReadableMixin, ProcessMixin):
    """A sum of terms under a likelihood; with Gaussian noise in closed form, else by natural gradients."""

    statistics_: Statistics
    learnt_statistics_: Statistics

    def __init__(
        self, kernel: Kernel | None, likelihood: Any, frequencies: Any, domain: Any, edges: Any, engine: str,
        optimizer: str | None, batch_size: int | None, covariance: Any, inference: str, draws: Any, warmup: Any,
        chains: Any, sampler: Any, priors: Any, random_state: Any, verbose: int,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.likelihood = likelihood
        self.frequencies = frequencies
        self.domain = domain
        self.edges = edges
        self.engine = engine
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.covariance = covariance
        self.inference = inference
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.sampler = sampler
        self.priors = priors
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _requested_likelihood(self) -> AbstractLikelihood:
        """The likelihood as the user asked for it."""

    @abstractmethod
    def _centred(self) -> bool:
        """Whether the function has a constant mean that the data determine."""

    @abstractmethod
    def _noise(self) -> float | None:
        """Where the variance of Gaussian noise starts; None: from the data."""

    def _absorb(self, X: Any, y: Any, sample_weight: Any, before: Fitted | None, *, growing: bool) -> Self:
        """Read rows on top of those that came before; nothing of the estimator changes until all of it has worked."""
        spec, found = self._spec(growing), None if before is None else before.fit
        if found is not None and found.samples is not None and not found.from_sums:
            raise ValueError(
                "the rows seen so far were sampled, which leaves no sums to add to; fit all rows together, or begin "
                "again with inference='variational'"
            )
        if before is not None:
            check_unchanged(before.statistics.options, self._options())
        source = self._opened(X, y, sample_weight, spec, None if before is None else before.statistics)
        fitted = fit(spec, source, before)
        if before is None:
            vars(self).pop("target_name_", None)  # of an earlier fit
        introduce_source(self, source)
        self._store(fitted, spec.progress)
        source.finish()
        return self

    def _before(self) -> Fitted | None:
        """What this model has seen and learnt."""
        rows = getattr(self, "statistics_", None)
        return None if rows is None else Fitted(rows, getattr(self, "fit_", None), {})

    def _opened(self, X: Any, y: Any, sample_weight: Any, spec: FitSpec, seen: Statistics | None) -> Source:
        """The rows, wherever they are, with the columns of those seen before where they were."""
        known = getattr(self, "feature_names_in_", None)
        source = open_rows(X).assigned(spec.used, y, sample_weight, None if known is None else list(known))
        if self.verbose and source.expensive_pass and source.options.report is None:
            source = source.with_options(report=lines_of_pass(spec.progress))
        if seen is None:
            return source
        modelled = [column.index for column in seen.binding.columns]
        return recognised_source(self, source, modelled, spec.likelihood)

    def _spec(self, growing: bool = False) -> FitSpec:
        """What is asked for, when all options make sense together."""
        likelihood = self._requested_likelihood()
        check_choice("engine", self.engine, engine_names())
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        check_choice("covariance", self.covariance, COVARIANCES)
        batch, centred, noise = check_batch(self.batch_size), self._centred(), self._noise()
        chains = ChainOptions(self.draws, self.warmup, self.chains, self.sampler, self.random_state)
        spec = FitSpec(
            likelihood, self.inference, self.covariance, self.priors, growing, self.kernel, self._options(),
            self.engine, self.optimizer, centred, noise, batch, chains, self._progress(),
        )  # fmt: skip
        spec.method()
        return spec

    def _options(self) -> Options:
        return Options(self.frequencies, self.domain, self.edges, self.covariance, self.likelihood)

    def _store(self, fitted: Fitted, progress: Callable[[str], None]) -> None:
        rows, fit, self.timing_ = fitted
        assert fit is not None
        self.statistics_, self.fit_, self.posterior_, self.target_ = rows, fit, fit.posterior, fit.target
        self.learnt_statistics_ = rows
        self.column_indices_ = tuple(column.index for column in rows.binding.columns)
        self.column_levels_ = tuple(column.levels for column in rows.binding.columns)
        learnt = tuple(
            term.term.with_values(values.variance, values.lengthscales, [own.domain for own in request.factors])
            for term, values, request in zip(rows.terms, fit.terms, rows.moments.request.terms, strict=True)
        )
        self.kernel_ = learnt[0] if len(learnt) == 1 else Sum(learnt)
        self.noise_variance_ = fit.noise_variance
        self.likelihood_ = fit.likelihood
        self.samples_ = fit.samples
        self.elbo_, self.elbo_error_, self.evidence_upper_bound_ = fit.elbo, fit.elbo_error, fit.upper_bound
        self.solver_ = fit.solver
        level, variance = fit.posterior.average()
        self.intercept_ = float(fit.target.mean + fit.target.scale * level)
        self.intercept_std_ = fit.target.scale * float(np.sqrt(variance))
        bound_gap = fit.history[-1].bound_gap
        self.elbo_gap_ = (bound_gap, 2.0 * bound_gap)
        self.engine_, self.engine_reason_ = rows.choice.name, rows.choice.reason
        self.notes_ = (*rows.notes, *notes_on(self.kernel, rows.binding, rows.n), *fit.notes)
        for note in self.notes_:
            progress(f"note: {note}")
        # what was settled: domains by column, harmonics and edge functions by term
        self.domain_, self.frequencies_, self.edges_ = {}, {}, {}
        for term, request, values in zip(rows.terms, rows.moments.request.terms, fit.terms, strict=True):
            leaves = term.term.factors
            for leaf, factor in zip(leaves, request.factors, strict=True):
                for column, part in zip(leaf.columns, factor.domain.parts, strict=True):
                    if part.ends is not None:
                        self.domain_[column] = part.ends
            edges = tuple(leaf.factor.edges(basis) for leaf, basis in zip(leaves, request.bases, strict=True))
            if any(basis.detail is not None for basis in request.bases):
                self.frequencies_[term.key] = values.M
            if any(q is not None for q in edges):
                self.edges_[term.key] = edges[0] if len(edges) == 1 else edges

    def save(self, path: Any, *, units: Mapping[Any, str] | None = None) -> None:
        """Write all that was learnt, and the sums over the rows, to a file that ``vff.load`` reads, without the rows.

        Parameters
        ----------
        path : str or Path
        units : mapping from columns to str, or None
            Texts that are kept for whoever opens the file.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0])).save("sine.vff", units={0: "seconds"})
        >>> vff.load("sine.vff").units_
        {'0': 'seconds'}
        """
        from vff.estimators.saving import save

        if hasattr(self, "fit_") and self.learnt_statistics_ is not self.statistics_:
            raise ValueError("rows were collected after the model was learnt; call learn() before it is saved")
        save(self, path, units=units)  # pyright: ignore[reportArgumentType]

    @property
    def rows_(self) -> Statistics:
        """``statistics_``, by its earlier name."""
        return self.statistics_

    @property
    def functions_(self) -> tuple[Any, ...]:
        """The models of one latent function each that this one consists of: itself, or one per class."""
        return (self,)

    def to_arviz(self) -> Any:
        """Draws of ``inference="mcmc"`` for ArviZ.

        Returns
        -------
        arviz.InferenceData
            With the groups posterior, sample_stats and observed_data.

        Examples
        --------
        (Not run by the tests, since chains are compiled for many seconds.)

        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> model = vff.GPRegressor(vff.Matern32(0), inference="mcmc", frequencies=5, draws=10, warmup=20, chains=2)
        >>> sorted(model.fit(X, np.sin(X[:, 0])).to_arviz().groups())  # doctest: +SKIP
        ['observed_data', 'posterior', 'sample_stats']
        """
        if len(self.functions_) > 1:
            raise ValueError("with more than two classes there is a model per class; ask estimators_[k].to_arviz()")
        check_is_fitted(self, "posterior_")
        if self.samples_ is None:
            raise ValueError("to_arviz needs draws, and this model was fitted with inference='variational'; use 'mcmc'")
        return _inference_data(self.samples_)

    def _function_draws(self, X: Any, n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the latent function, joint over the rows of X, (N, n_samples), and the variance of the rest, (N,).

        The rest is what the features do not carry, taken as independent by row: E[exp f | draw] = exp(draw + rest / 2).
        """
        (x,) = self._evaluate(X, lambda rows: (rows.x,))
        values, rest = self.fit_.posterior.draws(x, n_samples, self._generator(random_state))
        return self.target_.mean + self.target_.scale * values, self.target_.scale**2 * rest

    def _block(self, table: Table) -> np.ndarray:
        try:
            x = super()._block(table)
        except ValueError:
            _refuse_times_as_text(table, self.statistics_.binding)
            raise
        for axis in self.statistics_.moments.request.axes if len(x) else ():
            own = list(axis.columns)
            labels = [table.label(self.column_indices_[c]) for c in own]
            axis.domain.refuse([(float(x[:, c].min()), float(x[:, c].max())) for c in own], labels)
        return x

    def _outside_text(self, number: int, label: str) -> str:
        return self.statistics_.moments.request.columns[number].domain.outside_text(label)

    def predict_derivative(self, X: Any, column: str | int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the slope df/dx at every row.

        Parameters
        ----------
        X : what ``fit`` takes
        column : str, int or None
            Which of several columns of numbers the slope is along.

        Returns
        -------
        mean, variance : array (N,)
            Of units of y per unit of the column; with a link, of units of the latent function.

        Examples
        --------
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> model = vff.GPRegressor(vff.Matern52(0), frequencies=10).fit(X, np.sin(X[:, 0]))
        >>> mean, variance = model.predict_derivative([[3.1416]])
        >>> mean.round(1)
        array([-1.])
        """
        (x,) = self._evaluate(X, lambda rows: (rows.x,))
        columns = self.statistics_.binding.columns
        named = isinstance(column, str | Integral) and not isinstance(column, bool)
        along = [c for c, bound in enumerate(columns) if column is None or (named and column in bound.aliases)]
        if len(along) != 1:
            along = [c for c in along if columns[c].levels is None]
        if len({columns[c].index for c in along}) != 1:
            names = ", ".join(bound.label for bound in columns[:12])
            raise ValueError(f"the slope is along one column, got column={shown(column)}; name one of {names}")
        together = [place for place in self.statistics_.binding.places if not isinstance(place, int)]
        if any(columns[along[0]].index == columns[c].index for place in together for c in place):
            raise ValueError(
                f"column {shown(column)} is read together with another, as on a globe, along which a slope means "
                "little; ask for predictions nearby, and take their difference"
            )
        if columns[along[0]].levels is not None:
            raise ValueError(f"column {shown(column)} is categorical and has no slope; name a column of numbers")
        mean, variance = self.fit_.posterior.slope(x, *along)
        return self.target_.scale * mean, self.target_.scale**2 * variance

    def effects(self, X: Any, pure: bool = True) -> Effects:
        """Posterior of each term at the rows of X, centred on the rows of the fit.

        Products are pure interactions: what a product says of one of its columns alone, on average over the rows of the
        fit, is added to the term that is over this column alone, where the model has one, and stays with the product
        where it has none; likewise for two of three columns. So ``x + g + x * g`` shows the common curve, the groups'
        levels, and how the curves of the groups differ from the common one. ``pure=False`` shows terms as they are in
        the prior, in which the data cannot tell a product's average along a column from that column's own term.

        (After ``partial_fit`` with a likelihood that is not Gaussian, on the rows of the last call.) Both moments come
        from the joint posterior of all terms and the constant. The terms sum to ``predict_f(X)`` less ``intercept_``,
        the mean of the fitted function over the rows of the fit, whose own uncertainty is ``intercept_std_``.

        Parameters
        ----------
        X : what ``fit`` takes
        pure : bool

        Returns
        -------
        Effects
            ``names`` of the T terms, ``mean`` and ``std``, (N, T) each: in the units of y, or on the scale of the link.
            With more than two classes, each of ``estimators_`` has its own.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(50, 2))
        >>> model = vff.GPRegressor(frequencies=5).fit(X, X[:, 0] - X[:, 1])
        >>> np.allclose(model.effects(X).mean.sum(axis=1) + model.intercept_, model.predict_f(X)[0])
        True
        """

        flag("pure", pure)

        def compute(rows: Block) -> tuple[np.ndarray, np.ndarray]:
            ready = self.fit_.posterior.rows(rows.x)
            parts = [self._effect(s, rows.x, ready, pure) for s in range(len(self.statistics_.terms))]
            means, variances, _ = zip(*parts, strict=True)
            return np.stack(means, axis=1), np.stack(variances, axis=1)

        mean, variance = self._evaluate(X, compute)
        names = tuple(term.name for term in self.statistics_.terms)
        return Effects(names, self.target_.scale * mean, self.target_.scale * np.sqrt(variance))

    def _effect(self, s: int, x: np.ndarray, ready: Any, pure: bool) -> EffectAt:
        """One effect at rows of the modelled columns, as learning sees y."""
        return self.fit_.posterior.effect_at(s, self._pure_effects[s] if pure else None, x, ready)

    @property
    def _pure_effects(self) -> tuple[PureEffect, ...]:
        """The effect of every term, with margins of products where they belong."""
        return self.fit_.posterior.pure_effects(self.statistics_.binding.sources)


def _refuse_times_as_text(table: Table, fitted: Binding) -> None:
    """The sentence for columns that were times in the fit: what was learnt of them are not the effects of levels."""
    for column in fitted.columns:
        if column.levels is None and column.kind in _FROM_TEXT and table.kind(column.index) == "text":
            example = next(iter(table.levels(column.index)), None)
            raise ValueError(
                f"column {column.label} of X holds text such as {shown(example)}, and the model was fitted to times in "
                f"it: convert the column, for instance with pandas.{_FROM_TEXT[column.kind]}(X[{column.label}])"
            )


def _inference_data(samples: Samples) -> Any:
    """Draws, how the chains went, and the targets, as ArviZ has them."""
    if find_spec("arviz") is None:
        raise ImportError("to_arviz needs ArviZ, which is not installed; pip install 'vff[mcmc]'")
    with warnings.catch_warnings():
        # said on the first import of a day, and remembered in the user's cache: it is about code that calls ArviZ,
        # and both of its faces are called below
        warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing a major refactor", category=FutureWarning)
        import arviz

    posterior, coords, dims = {}, {}, {}
    kinds = dict.fromkeys(own.kind for own in samples.parameters if own.prior is not None)
    for kind in kinds:
        own = [one for one in samples.parameters if one.kind == kind and one.prior is not None]
        draws = [samples.values[one.name] for one in own]
        labels = [one.label for one in own if one.label is not None]
        if labels:
            dim = _DIMENSIONS.get(kind, kind)
            posterior[kind], coords[dim], dims[kind] = np.stack(draws, axis=-1), labels, [dim]
        else:
            posterior[kind] = draws[0]
    groups: dict[str, Any] = {"posterior": posterior, "sample_stats": dict(samples.stats)}
    if samples.y is not None:
        groups["observed_data"] = {"y": samples.y}
    if arviz.__version__.startswith("0."):  # groups were arguments then; asking 1.x for the names of 0.x warns
        return arviz.from_dict(**groups, coords=coords, dims=dims)
    return arviz.from_dict(groups, coords=coords, dims=dims)
