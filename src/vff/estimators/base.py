"""What every model of a sum of terms does: read rows, learn, answer about its terms. Leaves add what y is."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from vff.data import Source, Table, open_rows
from vff.estimators.binding import Binding, notes_on
from vff.estimators.coefficients import ReadableMixin
from vff.estimators.draws import DrawsMixin
from vff.estimators.effects import EffectsMixin
from vff.estimators.fitting import Fitted, RowPasses, Stopwatch
from vff.estimators.formulas import for_rows, seen_by
from vff.estimators.named import introduce_source, recognised_source, with_word
from vff.estimators.options import (
    BY_ROW,
    COVARIANCES,
    MISSING,
    ChainOptions,
    FitSpec,
    Options,
    check_batch,
    check_choice,
    check_column,
    check_errors_given,
    engine_names,
)
from vff.estimators.pairs import fit_choosing
from vff.estimators.progress import lines_of_pass
from vff.estimators.statistics import Statistics, check_unchanged
from vff.estimators.tried import TriedInteractions
from vff.factors import sum_of
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood
from vff.moments import extent_of
from vff.parameters import bounds_of, start_of
from vff.words import shown

_FROM_TEXT = {"datetime": "to_datetime", "duration": "to_timedelta"}


class AdditiveModel(ReadableMixin, DrawsMixin, EffectsMixin):
    """A sum of terms under a likelihood; with Gaussian noise in closed form, else by natural gradients."""

    statistics_: Statistics
    learnt_statistics_: Statistics
    interactions_: TriedInteractions | None

    def __init__(
        self, kernel: Kernel | str | None, likelihood: Any, frequencies: Any, domain: Any, edges: Any, engine: str,
        optimizer: str | None, batch_size: int | None, covariance: Any, inference: str, hyperparameters: str,
        draws: Any, warmup: Any, chains: Any, sampler: Any, priors: Any, random_state: Any, verbose: int, offset: Any,
        missing: str, interactions: Any,
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
        self.hyperparameters = hyperparameters
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.sampler = sampler
        self.priors = priors
        self.random_state = random_state
        self.verbose = verbose
        self.offset = offset
        self.missing = missing
        self.interactions = interactions

    @abstractmethod
    def _requested_likelihood(self) -> AbstractLikelihood:
        """The likelihood as the user asked for it."""

    @abstractmethod
    def _centred(self) -> bool:
        """Whether the function has a constant mean that the data determine."""

    @abstractmethod
    def _noise(self, likelihood: AbstractLikelihood) -> float | None:
        """Where the variance of Gaussian noise starts; None: from the data."""

    def _likelihood_of_rows(self, errors: bool) -> AbstractLikelihood:
        """The likelihood of the rows, which may have brought error bars."""
        return self._requested_likelihood()

    def _noise_std(self) -> str | int | None:
        """The column of known standard deviations of y; None where there is none."""
        return None

    def _absorb(
        self, X: Any, y: Any, sample_weight: Any, before: Fitted | None, *, growing: bool, noise_std: Any = None
    ) -> Self:
        """Read rows on top of those that came before; nothing of the estimator changes until all of it has worked."""
        errors = noise_std is not None
        spec = self._spec(growing, errors=errors)
        found = None if before is None else before.fit
        if found is not None and found.samples is not None and found.memory is None and not found.from_sums:
            raise ValueError(
                "the rows seen so far were sampled, which leaves no sums to add to; fit all rows together, or begin "
                "again with inference='variational'"
            )
        seen = None if before is None else before.statistics
        source = open_rows(X)
        spec = self._spec_for(spec, source, y, sample_weight, seen)
        if seen is not None:
            check_unchanged(seen.options, spec.options)
        source = self._opened(source, y, sample_weight, spec, seen, noise_std)
        fitted = fit_choosing(spec, source, before)
        if before is None:
            for name in ("target_name_", "interactions_"):
                vars(self).pop(name, None)  # of an earlier fit
        introduce_source(self, source)
        self._store(fitted, spec.progress)
        source.finish()
        return self

    def _before(self) -> Fitted | None:
        """What this model has seen and learnt."""
        rows = getattr(self, "statistics_", None)
        return None if rows is None else Fitted(rows, getattr(self, "fit_", None), {})

    def _rows_again(self, X: Any, y: Any, sample_weight: Any, noise_std: Any = None) -> RowPasses:
        """The rows of the fit, to be looked at once more."""
        seen, errors, source = self.statistics_, noise_std is not None, open_rows(X)
        spec = self._spec_for(self._spec(errors=errors), source, y, sample_weight, seen)
        if errors != (seen.options.noise_std == repr(BY_ROW)):
            found = "got some" if errors else "got none"
            wanted = "without error bars" if errors else "whose error bars were given to fit row by row"
            raise ValueError(
                f"the model was fitted to rows {wanted}, and these rows {found}; give noise_std as it was given to fit"
            )
        return RowPasses(spec, self._opened(source, y, sample_weight, spec, seen, noise_std), Stopwatch())

    def _opened(
        self, rows: Source, y: Any, sample_weight: Any, spec: FitSpec, seen: Statistics | None, noise_std: Any = None
    ) -> Source:
        """The rows, wherever they are, with the columns of those seen before where they were."""
        known = getattr(self, "feature_names_in_", None)
        source = with_word(rows, spec.missing)
        source = source if noise_std is None else source.with_errors(check_errors_given(noise_std))
        source = source.assigned(spec.used, y, sample_weight, None if known is None else list(known))
        if self.verbose and source.expensive_pass and source.options.report is None:
            source = source.with_options(report=lines_of_pass(spec.progress))
        if seen is None:
            return source
        modelled = [column.index for column in seen.binding.columns]
        return recognised_source(self, source, modelled, spec.beside)

    def _spec_for(self, spec: FitSpec, source: Source, y: Any, sample_weight: Any, seen: Statistics | None) -> FitSpec:
        """What is asked for of rows on top of those seen, for which pairs of terms were chosen once and for all.

        A text is read even so: it may have named the offset.
        """
        spec = for_rows(spec, source, y, sample_weight, None if seen is None else seen_by(self))
        chosen = seen is not None and getattr(self, "interactions_", None) is not None
        return replace(spec, kernel=seen.binding.kernel) if chosen and seen is not None else spec

    def _spec(self, growing: bool = False, *, errors: bool = False) -> FitSpec:
        """What is asked for, when all options make sense together; a kernel may be text until there are rows.

        ``errors``: rows bring error bars along.
        """
        likelihood = self._likelihood_of_rows(errors)
        check_choice("engine", self.engine, engine_names())
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        check_choice("covariance", self.covariance, COVARIANCES)
        check_choice("missing", self.missing, MISSING)
        batch, centred, noise = check_batch(self.batch_size), self._centred(), self._noise(likelihood)
        chains = ChainOptions(self.draws, self.warmup, self.chains, self.sampler, self.random_state)
        kernel: Any = self.kernel
        spec = FitSpec(
            likelihood, self.inference, self.covariance, self.priors, growing, self.hyperparameters, kernel,
            self._options(errors),
            self.engine, self.optimizer, centred, start_of(noise), bounds_of(noise), batch, chains, self._progress(),
            self._noise_std(), check_column("offset", self.offset), self.missing, self.interactions,
        )  # fmt: skip
        spec.method()
        _ = spec.most_pairs  # refuses what is no number of them
        return spec

    def _options(self, errors: bool = False) -> Options:
        own = self.frequencies, self.domain, self.edges, self.covariance, self.likelihood, self.offset
        return Options(*own, BY_ROW if errors else self._noise_std())

    def _store(self, fitted: Fitted, progress: Callable[[str], None]) -> None:
        rows, fit, self.timing_, tried = fitted
        tried = getattr(self, "interactions_", None) if tried is None else tried
        self.interactions_ = tried
        assert fit is not None
        self.statistics_, self.fit_, self.posterior_, self.target_ = rows, fit, fit.posterior, fit.target
        self.offset_ = rows.offset_column  # which a kernel in text may have named
        self.learnt_statistics_ = rows
        self.column_indices_ = tuple(column.index for column in rows.binding.columns)
        self.column_levels_ = tuple(column.levels for column in rows.binding.columns)
        learnt = tuple(
            term.term.with_values(values.variance, values.lengthscales, [own.domain.numbers for own in request.factors])
            for term, values, request in zip(rows.terms, fit.terms, rows.moments.request.terms, strict=True)
        )
        self.kernel_ = sum_of(learnt)
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
        chosen = () if tried is None else (tried.note,)
        self.notes_ = (*rows.notes, *notes_on(self.kernel, rows.binding, rows.n), *chosen, *fit.notes)
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
            edges = tuple(leaf.factor.edges(own.numbers) for leaf, own in zip(leaves, request.bases, strict=True))
            if any(basis.detail is not None for basis in request.bases):
                self.frequencies_[term.key] = values.M
            if any(q is not None for q in edges):
                self.edges_[term.key] = edges[0] if len(edges) == 1 else edges

    def save(self, path: Any, *, units: Mapping[Any, str] | None = None) -> None:
        """Write all that was learnt, and the sums over the rows, to a file that ``vff.load`` reads.

        The rows themselves are not in it, unless they are at most 50, which then answer by themselves.

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

    def _function_draws(self, X: Any, n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the latent function, joint over the rows of X, (N, n_samples), and the variance of the rest, (N,).

        The rest is what the features do not carry, taken as independent by row: E[exp f | draw] = exp(draw + rest / 2).
        """
        (x,) = self._evaluate(X, lambda rows: (rows.x,), about="terms")
        values, rest = self.fit_.posterior.draws(x, n_samples, self._generator(random_state))
        return self._scaled(values), self.target_.scale**2 * rest

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "effect"
        return tags

    def _block(self, table: Table, word: str | None = None) -> np.ndarray:
        rows = self.statistics_
        try:
            x = np.stack([column.read(table, word=word) for column in rows.binding.columns]).T
        except ValueError:
            _refuse_times_as_text(table, rows.binding)
            raise
        for axis in rows.moments.request.axes if len(x) else ():
            own = list(axis.columns)
            labels = [table.label(self.column_indices_[c]) for c in own]
            axis.domain.refuse([extent_of(x[:, c]) for c in own], labels)
        return x

    def _outside_text(self, number: int, label: str) -> str:
        return self.statistics_.moments.request.columns[number].domain.outside_text(label)


def _refuse_times_as_text(table: Table, fitted: Binding) -> None:
    """The sentence for columns that were times in the fit: what was learnt of them are not the effects of levels."""
    for column in fitted.columns:
        if column.levels is None and column.kind in _FROM_TEXT and table.kind(column.index) == "text":
            example = next(iter(table.levels(column.index)), None)
            raise ValueError(
                f"column {column.label} of X holds text such as {shown(example)}, and the model was fitted to times in "
                f"it: convert the column, for instance with pandas.{_FROM_TEXT[column.kind]}(X[{column.label}])"
            )
