"""What the four baselines share beside their predictions: checking at the door and storing at the end."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from vff.baselines.features import AbstractFeatures
from vff.baselines.model import FeatureModel, learn
from vff.baselines.posterior import FeaturePosterior
from vff.baselines.problem import Problem, notes, only_term
from vff.estimators.face import Posterior, RegressionFace
from vff.estimators.options import check_choice, check_noise
from vff.estimators.tables import Table, check_target
from vff.inference import Optimum


class BaselineFace(RegressionFace):
    """Gaussian noise, and one column unless the leaf says more. Leaves write ``__init__`` and ``fit``."""

    kernel: Any
    column_indices_: tuple[int, ...]
    noise_variance: float | None
    optimizer: str | None
    normalize_y: bool

    def _checked(self, X: Any, y: Any) -> tuple[Table, np.ndarray, float | None]:
        """The table, the target and the noise that was given."""
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        noise = check_noise(self.noise_variance)
        table = Table.of(X)
        validate_data(self, table.data, reset=True, skip_check_array=True)
        target = check_target(y, table.n_rows)
        if table.n_rows < 2:
            raise ValueError(f"X has {table.n_rows} sample(s) and a minimum of 2 is required: one row shows no trend")
        return table, target, noise

    def _columns(self, table: Table, indices: tuple[int, ...]) -> np.ndarray:
        """The modelled columns, (N, C), none of them constant; their places are stored."""
        x = np.column_stack([table.column(index) for index in indices])
        for index, column in zip(indices, x.T, strict=True):
            if column.min() == column.max():
                raise ValueError(
                    f"column {table.label(index)} of X is constant ({column[0]:g} in all {column.size} rows); "
                    "a column that varies was expected: model another one"
                )
        self.column_indices_ = indices
        self.column_index_ = indices[0]
        return x

    def _problem(self, X: Any, y: Any) -> Problem:
        """Everything the user gave for one column, checked and standardised."""
        table, target, noise = self._checked(X, y)
        term = only_term(self.kernel, table.n_columns)
        x = self._columns(table, (table.index(term.columns[0]),))
        return Problem.of(term, x[:, 0], target, noise, centre=self.normalize_y)

    def _fit_features(
        self, problem: Problem, kind: type[AbstractFeatures], coordinates: np.ndarray, *, release: bool
    ) -> AbstractFeatures:
        """Learn a model of finite features, store it, and return the features it ended with."""
        model = FeatureModel(kind, problem.p, problem.t, problem.y, coordinates)
        optimise = self.optimizer is not None
        model, optimum = learn(model, problem.given, optimise=optimise, release=release, progress=self._progress())
        features, closed = model.features(optimum.theta), model.at(optimum.theta)
        variance = closed.prior_trace / closed.equations.weight
        self._store(problem, optimum, FeaturePosterior.from_closed_form(closed, problem.interval, features, variance))
        return features

    def _store(self, problem: Problem, optimum: Optimum, posterior: Posterior) -> Self:
        values = problem.in_user_units(optimum.theta)
        self.posterior_, self.target_ = posterior, problem.target
        self.kernel_ = problem.term.with_values(values["variance"], (values["lengthscale"],))
        self.noise_variance_ = values["noise"]
        self.elbo_ = problem.bound_in_user_units(optimum.elbo)
        self._say_notes(notes(optimum))
        return self

    def _say_notes(self, said: tuple[str, ...]) -> None:
        self.notes_ = said
        for note in said:
            self._progress()(f"note: {note}")
