"""``GPClassifier``: Gaussian process classification by natural gradients."""

from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from vff.data import Positive, Roles, Source, UsedColumns, open_rows
from vff.data.checks import as_labels, check_weights, coded
from vff.data.table import Table
from vff.estimators.arguments import flag
from vff.estimators.base import AdditiveModel
from vff.estimators.effects import Effects
from vff.estimators.fitting import RowPasses
from vff.estimators.formulas import for_rows
from vff.estimators.named import introduce, used_columns, with_word
from vff.estimators.predict_classes import ClassificationMixin
from vff.estimators.tasks import FindLabels
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood, binary_names, by_name
from vff.words import shown


class GPClassifier(ClassificationMixin, AdditiveModel):
    """Gaussian process classification with variational Fourier features.

    Two classes have one latent function f and P(second class) = F(f), F logistic or normal. More classes are fitted one
    against the rest, a model per class; their probabilities are divided by their sum.

    Parameters
    ----------
    kernel : kernel expression, str or None
        As for ``GPRegressor``; the variances are of the latent function.
    likelihood : "logit", "probit" or a ``vff.likelihoods.Bernoulli``
    frequencies, domain, edges, engine, optimizer
        As for ``GPRegressor``.
    fit_intercept : bool
        The latent function has a constant with a weak prior (standard deviation 10 around the constant that fits best),
        which is integrated out; with False its prior mean is zero and there is none.
    batch_size, covariance, inference, hyperparameters, draws, warmup, chains, sampler, priors
        As for ``GPRegressor``.
    offset, missing, interactions, random_state, verbose
        As for ``GPRegressor``.

    Attributes
    ----------
    classes_ : the labels, sorted
    kernel_, elbo_, elbo_gap_, domain_, frequencies_, edges_, engine_, timing_, notes_, fit_, likelihood_, interactions_
        As for ``GPRegressor``, of two classes. With more, ``elbo_`` is the sum over the models.
    intercept_, intercept_std_ : float
        Mean of the latent function over the rows of the fit, from which ``effects`` are measured, and its standard
        deviation; of two classes.
    estimators_ : list of GPClassifier
        With more than two classes: each class against the rest, in the order of ``classes_``.

    Examples
    --------
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> vff.GPClassifier(vff.Matern32(0), frequencies=5).fit(X, X[:, 0] > 3).predict([[1.0], [5.0]])
    array([False,  True])
    """

    classes_: np.ndarray
    estimators_: "list[GPClassifier]"

    def __init__(
        self,
        kernel: Kernel | str | None = None,
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
        hyperparameters: str = "auto",
        draws: int = 500,
        warmup: int | None = None,
        chains: int = 4,
        sampler: str = "nuts",
        priors: dict | None = None,
        offset: str | int | None = None,
        missing: str = "effect",
        interactions: str | int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel, likelihood=likelihood, frequencies=frequencies, domain=domain, edges=edges, engine=engine,
            optimizer=optimizer, batch_size=batch_size, covariance=covariance, inference=inference,
            hyperparameters=hyperparameters, draws=draws, warmup=warmup, chains=chains, sampler=sampler, priors=priors,
            random_state=random_state, verbose=verbose, offset=offset, missing=missing, interactions=interactions,
        )  # fmt: skip
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table X and labels y.

        Parameters
        ----------
        X : array (N, D), frame, or what ``vff.scan`` takes
        y : array (N,) of labels, or name of a column of X
        sample_weight : array (N,), name of a column of X, or None
            A row of weight w counts as w equal rows.

        Returns
        -------
        GPClassifier
            The model itself, fitted.

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> vff.GPClassifier(frequencies=8).fit(X, np.where(X[:, 0] > 3, "late", "early")).classes_
        array(['early', 'late'], dtype='<U5')
        """
        source = with_word(open_rows(X), self.missing)
        if source.whole is None:
            return self._fit_chunks(source, y, sample_weight)
        source = source.assigned(self._named(source, y, sample_weight), y, sample_weight)
        labels, table, sample_weight = as_labels(source.y), source.whole, source.w
        assert table is not None
        if labels.size != table.n_rows:
            raise ValueError(
                f"y has {labels.size} labels and X has {table.n_rows} rows (inconsistent numbers of samples)"
            )
        counted = labels[check_weights(sample_weight, table.n_rows) > 0.0]
        classes = np.unique(counted)
        _check_several(classes)
        self._fit_each(classes, source, lambda k: (labels == classes[k]).astype(float), sample_weight)
        if source.target is not None:
            self.target_name_ = source.target
        return self

    def _named(self, source: Source, y: Any, sample_weight: Any) -> UsedColumns:
        """The columns that the kernel, the likelihood and the offset name."""
        spec = for_rows(self._spec(), source, y, sample_weight)
        return used_columns(spec.kernel, self._requested_likelihood(), spec.offset)

    def _fit_chunks(self, source: Source, y: Any, sample_weight: Any) -> Self:
        """Labels are found in a pass of their own; then there is a fit per class, or one for two."""
        source, roles, (column, weight) = self._labelled(source, y, sample_weight)
        again: Any = source.select(roles).revisitable()
        if again.whole is not None:
            return self.fit(again, again.y, again.w)
        source = source.with_options(keep_missing=roles.levels).with_integers(roles.labels)
        # rows that will be left out for another column must not show their labels either
        whole = source.options.faulty == "skip" or source.options.missing == "drop"
        columns = [name for name in (roles.all if whole else (roles.target, roles.weight)) if name is not None]
        some = source.restricted(columns) if roles.features is not None and columns else source
        labels = FindLabels(replace(roles, features=None if roles.features is None else ()))
        found = some.reduce(labels).committed
        classes = np.array(() if found is None else found.found)
        _check_several(classes)
        return self._fit_each(classes, source, lambda k: Positive(column, classes.tolist()[k]), weight)

    def _fit_each(self, classes: np.ndarray, X: Any, target: Callable[[int], Any], sample_weight: Any) -> Self:
        """A fit of each class against the rest, or one for two; ``target`` of a class has ones in its rows."""
        fitted: Any = clone(self)
        fitted.classes_ = classes
        models: list[Any] = [fitted] if classes.size == 2 else [clone(self) for _ in classes]
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

        Parameters
        ----------
        X, y
            As for ``fit``. Where X is not in memory, every chunk of its rows is added to those before.
        classes : array of labels
            All that will come; needed by the first call.
        sample_weight : array (N,), name of a column of X, or None

        Returns
        -------
        GPClassifier
            The model itself, fitted to all rows seen.

        Examples
        --------
        >>> X, model = np.linspace(0, 6, 30)[:, None], vff.GPClassifier(domain=(0, 6), frequencies=8)
        >>> for part in (slice(0, 30, 2), slice(1, 30, 2)):
        ...     model = model.partial_fit(X[part], X[part, 0] > 3, classes=[False, True])
        >>> model.predict([[1.0], [5.0]])
        array([False,  True])
        """
        source = with_word(open_rows(X), self.missing)
        if source.whole is None:
            return self._absorb_chunks(source, y, classes, sample_weight)
        source = source.assigned(self._named(source, y, sample_weight), y, sample_weight)
        labels, sample_weight = as_labels(source.y), source.w
        known = getattr(self, "classes_", None)
        if known is None and classes is None:
            raise ValueError("the first call of partial_fit must name all classes, got classes=None")
        known = np.unique(np.asarray(classes)) if known is None else known
        codes = coded(labels, known)
        if not hasattr(self, "classes_"):
            if known.size < 2:
                raise ValueError(f"classes names {known.tolist()}, and a classifier needs at least two")
            missing = np.setdiff1d(known, labels[check_weights(sample_weight, labels.size) > 0.0])
            if missing.size:
                raise ValueError(
                    f"the first rows given to partial_fit hold no row of class {shown(missing.tolist()[0])}, and rows "
                    "of one class alone leave nothing to remember: begin with rows of all classes"
                )
        if known.size == 2:
            self._absorb(source, codes.astype(float), sample_weight, self._before(), growing=True)
        else:
            models: list[Any] = getattr(self, "estimators_", None) or [clone(self) for _ in known]
            for model, label in zip(models, known, strict=True):
                model.partial_fit(source, labels == label, np.array([False, True]), sample_weight)
            introduce(self, Table.of(source.whole))
            self._gather(models, known)
        self.classes_ = known
        return self

    def _absorb_chunks(self, source: Source, y: Any, classes: Any, sample_weight: Any) -> Self:
        """One chunk after another, on a copy: where one cannot be read, nothing of this model has changed."""
        source, roles, _ = self._labelled(source, y, sample_weight)
        roles, twin = roles.ordered(getattr(self, "feature_names_in_", None)), deepcopy(self)
        with closing(source.select(roles).chunks()) as chunks:
            for chunk in chunks:
                if chunk.n_rows:
                    table, labels, weights = roles.split(chunk)
                    rows = open_rows(table).with_options(missing=source.options.missing)
                    twin.partial_fit(rows, labels, classes, weights)
        return self._become(twin)

    def _rows_again(self, X: Any, y: Any, sample_weight: Any, noise_std: Any = None) -> RowPasses:
        """With ones in the rows of the second class."""
        source, second = open_rows(X), self.classes_.tolist()[1]
        if source.whole is None:
            source, _, (column, weight) = self._labelled(source, y, sample_weight)
            return super()._rows_again(source, Positive(column, second), weight, noise_std)
        source = source.assigned(self._named(source, y, sample_weight), y, sample_weight)
        ones = coded(as_labels(source.y), self.classes_).astype(float)
        return super()._rows_again(source.whole, ones, source.w, noise_std)

    def _labelled(self, source: Source, y: Any, sample_weight: Any) -> tuple[Source, Roles, Any]:
        """The rows, what their columns are for, and the names of targets and weights."""
        source, column, weight = source.with_targets(y, sample_weight)
        used = Roles.of(source, self._named(source, column, weight), column, weight)
        return source, replace(used, labelled=True), (column, weight)

    def _gather(self, models: "list[GPClassifier]", classes: np.ndarray) -> None:
        """A model per class; their notes have the class before them."""
        self.estimators_ = models
        self.elbo_ = float(sum(model.elbo_ for model in models))
        rows = models[0].statistics_.notes  # on the rows, which are those of all: once
        each = zip(models, classes, strict=True)
        own = (f"{label}: {note}" for model, label in each for note in model.notes_ if note not in rows)
        self.notes_ = (*rows, *own)

    def effects(self, X: Any, pure: bool = True) -> Effects:
        self._refuse_several("ask estimators_[k].effects(X)")
        return super().effects(X, pure)

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

    def _noise(self, likelihood: AbstractLikelihood) -> float | None:
        return None


def _check_several(classes: np.ndarray) -> None:
    if classes.size < 2:
        held = f"one class, {shown(classes.tolist()[0])}" if classes.size else "no class"
        raise ValueError(
            f"y holds {held} in rows of positive weight, and a classifier needs at least two: give it rows of another "
            "class"
        )
