"""Predictions of a new label at every row: what a classifier answers once it is fitted."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from vff.data.checks import as_labels, check_weights, coded, label_text
from vff.estimators.arguments import flag
from vff.estimators.evaluation import Block, evaluate
from vff.estimators.predict import ProcessMixin
from vff.estimators.table_summary import weights_of
from vff.likelihoods import Predictive


class ClassificationMixin(ClassifierMixin, ProcessMixin):
    """Predictions of a class at every row, by one latent function or by one per class."""

    classes_: np.ndarray

    @property
    @abstractmethod
    def functions_(self) -> tuple[Any, ...]:
        """The models of one latent function each."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class at every row, with the uncertainty of the function in it.

        Parameters
        ----------
        X : what ``fit`` takes

        Returns
        -------
        array (N, classes), in the order of ``classes_``

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> vff.GPClassifier(frequencies=5).fit(X, X[:, 0] > 3).predict_proba([[1.0]]).round(1)
        array([[1., 0.]])
        """
        return self._of_classes(X, lambda rows: (self._probabilities(rows),))[0]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``, of two classes each to its own last digits.

        Parameters
        ----------
        X : what ``fit`` takes

        Returns
        -------
        array (N, classes), nats

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> bool(vff.GPClassifier(frequencies=5).fit(X, X[:, 0] > 3).predict_log_proba([[1.0]])[0, 1] < -2)
        True
        """
        return self._of_classes(X, lambda rows: (self._log_probabilities(rows),))[0]

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class at every row.

        Parameters
        ----------
        X : what ``fit`` takes

        Returns
        -------
        array (N,) of labels

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> vff.GPClassifier(frequencies=5).fit(X, X[:, 0] > 3).predict([[1.0], [5.0]])
        array([False,  True])
        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of the second class at every row, or of every class against the rest.

        Parameters
        ----------
        X : what ``fit`` takes

        Returns
        -------
        array (N,), or (N, classes) with more than two, nats

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> np.sign(vff.GPClassifier(frequencies=5).fit(X, X[:, 0] > 3).decision_function([[1.0], [5.0]]))
        array([-1.,  1.])
        """

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
        check_is_fitted(self, "classes_")
        if len(self.functions_) == 1:
            return super().predict_f(X, full_covariance)
        if flag("full_covariance", full_covariance):
            parts = [model.predict_f(X, full_covariance) for model in self.functions_]
            mean, covariance = (np.stack(part, axis=-1) for part in zip(*parts, strict=True))
            return mean, covariance
        found = evaluate(
            self.functions_, X, lambda all_: [part for one in all_ for part in one.model._latent(one)], about="function"
        )
        return np.stack(found[::2], axis=-1), np.stack(found[1::2], axis=-1)

    def log_predictive_density(self, X: Any, y: Any = None) -> np.ndarray:
        """Log probability log P(y | data) of every row by itself.

        Parameters
        ----------
        X : what ``fit`` takes
        y : array (N,) of labels, or name of a column of X

        Returns
        -------
        array (N,)
            Nats.

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> bool(vff.GPClassifier(frequencies=5).fit(X, X[:, 0] > 3).log_predictive_density([[1.0]], [False])[0] > -0.1)
        True
        """

        def compute(rows: Sequence[Block]) -> tuple[np.ndarray]:
            return (self._log_probabilities(rows)[np.arange(len(rows[0])), coded(rows[0].y, self.classes_)],)

        return self._of_classes(X, compute, y, None, _labels_of)[0]

    @property
    def _described_names(self) -> tuple[str, ...]:
        return *(f"P({label_text(label)})" for label in self._labels), "predicted"

    def _described(self, X: Any, level: float) -> tuple[np.ndarray, ...]:
        """The probability of every class and the most probable one, (N,) each."""
        each = self.predict_proba(X)
        return *each.T, self.classes_[np.argmax(each, axis=1)]

    @property
    def _labels(self) -> tuple[Any, ...]:
        return tuple(self.classes_.tolist())

    def _as_numbers(self, y: Any, n: int) -> np.ndarray:
        return coded(_labels_of(y, n), self.classes_).astype(float)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is the most probable one.

        Parameters
        ----------
        X : what ``fit`` takes
        y : array (N,) of labels, or name of a column of X
        sample_weight : array (N,), name of a column of X, or None

        Returns
        -------
        float

        Examples
        --------
        >>> X = np.linspace(0, 6, 30)[:, None]
        >>> vff.GPClassifier(frequencies=5).fit(X, X[:, 0] > 3).score(X, X[:, 0] > 3)
        1.0
        """

        def compute(rows: Sequence[Block]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            best = self.classes_[np.argmax(self._probabilities(rows), axis=1)]
            return best, rows[0].y, weights_of(rows[0].w, len(rows[0]))

        best, labels, weights = self._of_classes(X, compute, y, sample_weight, _labels_of)
        return float(accuracy_score(labels, best, sample_weight=check_weights(weights, best.size)))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        self._refuse_several("draw labels from predict_proba(X)")
        return self.classes_[super().sample_y(X, n_samples, random_state).astype(int)]

    def _refuse_several(self, advice: str) -> None:
        if len(self.functions_) > 1:
            raise ValueError(f"with {self.classes_.size} classes there is a function per class; {advice}")


def _labels_of(y: Any, n: int) -> np.ndarray:
    labels = as_labels(y)
    if labels.size != n:
        raise ValueError(f"y has {labels.size} labels, X has {n} rows (inconsistent numbers of samples)")
    return labels
