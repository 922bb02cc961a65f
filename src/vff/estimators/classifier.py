"""``GPClassifier``: Gaussian process classification by natural gradients."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from vff.data import Positive, Roles, Source, UsedColumns, open_rows
from vff.data.checks import check_weights
from vff.data.labels import as_labels, coded
from vff.data.memory import column_or_values, given
from vff.data.table import Table
from vff.estimators.arguments import flag
from vff.estimators.base import AdditiveModel, Effects
from vff.estimators.evaluation import Block, evaluate
from vff.estimators.named import columns_used, introduce, levels_used
from vff.estimators.table_summary import weights_of
from vff.estimators.tasks import FindLabels
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood, Predictive, binary_names, by_name
from vff.words import shown


class GPClassifier(ClassifierMixin, AdditiveModel):
    """Gaussian process classification with variational Fourier features.

    Two classes have one latent function f and P(second class) = F(f), F logistic or normal. More classes are fitted one
    against the rest, a model per class; their probabilities are divided by their sum.

    Parameters
    ----------
    kernel : kernel expression or None
        As for ``GPRegressor``; the variances are of the latent function.
    likelihood : "logit", "probit" or a ``vff.likelihoods.Bernoulli``
    frequencies, domain, edges, engine, optimizer, batch_size, covariance, random_state, verbose
        As for ``GPRegressor``.
    inference, draws, warmup, chains, sampler, priors
        As for ``GPRegressor``: "variational", or Markov chains.
    fit_intercept : bool
        The latent function has a constant with a weak prior (standard deviation 10 around the constant that fits best),
        which is integrated out; with False its prior mean is zero and there is none.

    Attributes
    ----------
    classes_ : the labels, sorted
    kernel_, elbo_, elbo_gap_, domain_, frequencies_, edges_, engine_, timing_, notes_, fit_, likelihood_
        As for ``GPRegressor``, of two classes. With more, ``elbo_`` is the sum over the models.
    intercept_, intercept_std_ : float
        Mean of the latent function over the rows of the fit, from which ``effects`` are measured, and its standard
        deviation; of two classes.
    estimators_ : list of GPClassifier
        With more than two classes: each class against the rest, in the order of ``classes_``.
    """

    classes_: np.ndarray
    estimators_: "list[GPClassifier]"
    fit_intercept: bool

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: str | AbstractLikelihood = "logit",
        frequencies: int | str | dict = "auto",
        domain: tuple[float, float] | str | dict = "auto",
        edges: int | str | dict = "auto",
        engine: str = "auto",
        optimizer: str | None = "lbfgs",
        fit_intercept: bool = True,
        batch_size: int | None = None,
        covariance: str = "full",
        inference: str = "variational",
        draws: int = 500,
        warmup: int | None = None,
        chains: int = 4,
        sampler: str = "nuts",
        priors: dict | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table X and labels y. A row of weight w counts as w equal rows.

        Of a frame, y and sample_weight may be the names of columns. X may also be what ``vff.scan`` takes; then they
        must be.
        """
        source = open_rows(X)
        if source.whole is None:
            return self._fit_chunks(source, y, sample_weight)
        table, y, sample_weight, target = given(X, y, sample_weight, self._columns_used())
        labels = as_labels(y)
        if labels.size != table.n_rows:
            raise ValueError(
                f"y has {labels.size} labels and X has {table.n_rows} rows (inconsistent numbers of samples)"
            )
        counted = labels[check_weights(sample_weight, table.n_rows) > 0.0]
        classes = np.unique(counted)
        _check_several(classes)
        self._fit_each(classes, table, lambda k: (labels == classes[k]).astype(float), sample_weight)
        if target is not None:
            self.target_name_ = target
        return self

    def _columns_used(self) -> tuple[Hashable, ...]:
        return columns_used(self.kernel, self._requested_likelihood())

    def _fit_chunks(self, source: Source, y: Any, sample_weight: Any) -> Self:
        """Labels are found in a pass of their own; then there is a fit per class, or one for two."""
        source, column, weight = source.with_targets(y, sample_weight)
        used = None if self.kernel is None else UsedColumns(self._columns_used(), levels_used(self.kernel))
        roles = replace(Roles.of(source.schema, used, column, weight), labelled=True)
        again: Any = source.select(roles).revisitable()
        if again.whole is not None:
            return self.fit(again.whole, again.y, again.w)
        source = source.handled(keep_missing=roles.levels).with_integers(roles.labels)
        # rows that will be left out for another column must not show their labels either
        whole = source.handling.faulty == "skip" or source.handling.missing == "drop"
        columns = [name for name in (roles.all if whole else (roles.target, roles.weight)) if name is not None]
        some = source.restricted(columns) if roles.features is not None and columns else source
        labels = FindLabels(replace(roles, features=None if roles.features is None else ()))
        found = some.reduce(labels).committed
        classes = np.array(() if found is None else found.found)
        _check_several(classes)
        return self._fit_each(classes, source, lambda k: Positive(column, classes.tolist()[k]), weight)

    def _fit_each(self, classes: np.ndarray, X: Any, target: Callable[[int], Any], sample_weight: Any) -> Self:
        """A fit of each class against the rest, or one for two; ``target`` of a class has ones in its rows."""
        fitted = _copy(self)
        fitted.classes_ = classes
        models = [fitted] if classes.size == 2 else [_copy(self) for _ in classes]
        for k, model in enumerate(models, classes.size - len(models)):
            model._absorb(X, target(k), sample_weight, None, growing=False)
            model.classes_ = classes if classes.size == 2 else np.array([False, True])
        if classes.size > 2:
            fitted._gather(models, classes)
            vars(fitted).update({name: value for name, value in vars(models[0]).items() if name.endswith("_in_")})
        return self._become(fitted)

    @property
    def functions_(self) -> "tuple[GPClassifier, ...]":
        """The models of one latent function each: this one, or with more than two classes one per class."""
        return tuple(getattr(self, "estimators_", (self,)))

    def _become(self, fitted: "GPClassifier") -> Self:
        """What another has learnt is this one's."""
        # two classes and more leave different things behind: all of the earlier fit goes, when the new one has worked
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those already seen; the first call must name all ``classes``.

        Earlier rows are remembered by the Gaussian factors that stood for them when they were seen. Rows of one class
        alone would be explained by a constant and leave nothing to remember, so the first rows must show all classes.
        """
        if open_rows(X).whole is None:
            raise ValueError(
                "partial_fit of a classifier takes tables in memory; call it with one chunk after another, or fit "
                "all rows together"
            )
        X, y, sample_weight, _ = given(X, y, sample_weight, self._columns_used())
        labels = as_labels(y)
        known = getattr(self, "classes_", None)
        if known is None and classes is None:
            raise ValueError("the first call of partial_fit must name all classes, got classes=None")
        known = np.unique(np.asarray(classes)) if known is None else known
        codes = coded(labels, known)
        if not hasattr(self, "classes_"):
            if known.size < 2:
                raise ValueError(f"classes names {known.tolist()}, and a classifier needs at least two")
            _check_all_seen(labels[check_weights(sample_weight, labels.size) > 0.0], known)
        if known.size == 2:
            self._absorb(X, codes.astype(float), sample_weight, self._before(), growing=True)
        else:
            models: list[GPClassifier] = getattr(self, "estimators_", None) or [_copy(self) for _ in known]
            for model, label in zip(models, known, strict=True):
                model.partial_fit(X, labels == label, np.array([False, True]), sample_weight)
            introduce(self, Table.of(X))
            self._gather(models, known)
        self.classes_ = known
        return self

    def _gather(self, models: "list[GPClassifier]", classes: np.ndarray) -> None:
        """A model per class."""
        self.estimators_ = models
        self.elbo_ = float(sum(model.elbo_ for model in models))
        self.notes_ = notes_together(models, classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class at every row, (N, classes), with the uncertainty of the function in it."""
        return self._of_classes(X, lambda rows: (self._probabilities(rows),))[0]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``."""
        return self._of_classes(X, lambda rows: (self._log_probabilities(rows),))[0]

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class at every row."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of the second class at every row, (N,), or of every class against the rest, (N, classes)."""

        def odds(rows: Block) -> np.ndarray:
            against, for_it = rows.model._log_of_two(rows)
            return for_it - against

        (found,) = self._of_classes(X, lambda rows: (np.stack([odds(one) for one in rows], axis=1),))
        return found if len(self.functions_) > 1 else found[:, 0]

    def _of_classes(
        self, X: Any, compute: Callable[[Sequence[Block]], Sequence[np.ndarray]], *targets: Any
    ) -> list[np.ndarray]:
        """What the models of all classes answer, in one pass over the rows; of two classes there is one model."""
        check_is_fitted(self, "classes_")
        return evaluate(self.functions_, X, compute, *targets)

    def _probabilities(self, rows: Sequence[Block]) -> np.ndarray:
        """Of every class at some rows, (N, classes)."""
        seconds = [one.model._new(one, lambda new, _: (new.mean(),))[0] for one in rows]
        if len(seconds) == 1:
            return np.stack([1.0 - seconds[0], seconds[0]], axis=1)
        each = np.stack(seconds, axis=1)
        return each / each.sum(axis=1, keepdims=True)

    def _log_probabilities(self, rows: Sequence[Block]) -> np.ndarray:
        """Their logarithms, of two classes each to its own last digits."""
        return np.stack(self._log_of_two(rows[0]), axis=1) if len(rows) == 1 else np.log(self._probabilities(rows))

    def _log_of_two(self, rows: Block) -> list[np.ndarray]:
        """log P(first class) and log P(second class) of two at some rows."""

        def compute(one: Predictive, some: slice) -> list[np.ndarray]:
            return [one.log_density(np.full(some.stop - some.start, y)) for y in (0.0, 1.0)]

        return self._new(rows, compute)

    def predict_f(self, X: Any, full_covariance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function: (N,) each, or (N, classes) with more than two."""
        check_is_fitted(self, "classes_")
        if len(self.functions_) == 1:
            return super().predict_f(X, full_covariance)
        if flag("full_covariance", full_covariance):
            parts = [model.predict_f(X, full_covariance) for model in self.functions_]
            mean, covariance = (np.stack(part, axis=-1) for part in zip(*parts, strict=True))
            return mean, covariance
        found = evaluate(self.functions_, X, lambda all_: [part for one in all_ for part in one.model._latent(one)])
        return np.stack(found[::2], axis=-1), np.stack(found[1::2], axis=-1)

    def effects(self, X: Any) -> Effects:
        """Each term's part of the latent function of two classes, as for ``GPRegressor``."""
        self._refuse_several("ask estimators_[k].effects(X)")
        return super().effects(X)

    def log_predictive_density(self, X: Any, y: Any = None) -> np.ndarray:
        """log P(y) of every row, nats."""

        def codes_of(y: Any, n: int) -> np.ndarray:
            codes = coded(as_labels(y), self.classes_)
            if codes.size != n:
                raise ValueError(f"y has {codes.size} labels, X has {n} rows (inconsistent numbers of samples)")
            return codes

        def compute(rows: Sequence[Block]) -> tuple[np.ndarray]:
            return (self._log_probabilities(rows)[np.arange(len(rows[0])), rows[0].y],)

        return self._of_classes(X, compute, y, None, codes_of)[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is the most probable one; y and the weights may be columns of X, by name."""
        source = open_rows(X)
        if source.whole is not None:
            table = source.whole
            labels = as_labels(column_or_values(table, y, "y")) if isinstance(y, str) else y
            weights = column_or_values(table, sample_weight, "sample_weight")
            return super().score(table, labels, None if weights is None else check_weights(weights, table.n_rows))

        def compute(rows: Sequence[Block]) -> tuple[np.ndarray, np.ndarray]:
            best = self.classes_[np.argmax(self._probabilities(rows), axis=1)]
            return best == rows[0].y, weights_of(rows[0].w, len(rows[0]))

        right, weights = self._of_classes(source, compute, y, sample_weight, lambda labels, _: as_labels(labels))
        return float(np.average(right, weights=weights))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint draws of labels at the rows of X, (N, n_samples); of two classes."""
        self._refuse_several("draw labels from predict_proba(X)")
        return self.classes_[super().sample_y(X, n_samples, random_state).astype(int)]

    def _refuse_several(self, advice: str) -> None:
        if len(self.functions_) > 1:
            raise ValueError(f"with {self.classes_.size} classes there is a function per class; {advice}")

    def _requested_likelihood(self) -> AbstractLikelihood:
        names, requested = binary_names(), self.likelihood
        if isinstance(requested, str) and requested in names:
            requested = by_name(requested)
        if isinstance(requested, str) or not getattr(requested, "binary", False):
            raise ValueError(
                f"likelihood of a classifier must be {', '.join(map(repr, names))} or a Bernoulli object; got "
                f"{shown(self.likelihood)}"
            )
        return requested

    def _centred(self) -> bool:
        return flag("fit_intercept", self.fit_intercept)

    def _noise(self) -> float | None:
        return None


def _check_several(classes: np.ndarray) -> None:
    if classes.size < 2:
        held = f"one class, {shown(classes.tolist()[0])}" if classes.size else "no class"
        raise ValueError(
            f"y holds {held} in rows of positive weight, and a classifier needs at least two: give it rows of another "
            "class"
        )


def _check_all_seen(labels: np.ndarray, classes: np.ndarray) -> None:
    missing = np.setdiff1d(classes, labels)
    if missing.size:
        raise ValueError(
            f"the first rows given to partial_fit hold no row of class {shown(missing.tolist()[0])}, and rows of one "
            "class alone leave nothing to remember: begin with rows of all classes"
        )


def _copy(model: GPClassifier) -> GPClassifier:
    """The same options, not fitted."""
    copy = clone(model)
    assert isinstance(copy, GPClassifier)
    return copy


def notes_together(models: Sequence[GPClassifier], classes: Iterable[Any]) -> tuple[str, ...]:
    """The notes of a model per class, with the class before them; on the rows, which are those of all, once."""
    rows = models[0].statistics_.notes
    each = zip(models, classes, strict=True)
    return (*rows, *(f"{label}: {note}" for model, label in each for note in model.notes_ if note not in rows))
