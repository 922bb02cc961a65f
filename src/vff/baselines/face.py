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
from vff.kernels import Kernel


class BaselineFace(RegressionFace):
    """One column, Gaussian noise. Leaves write ``__init__`` and ``fit``."""

    kernel: Kernel | None
    noise_variance: float | None
    optimizer: str | None
    normalize_y: bool

    def _problem(self, X: Any, y: Any) -> Problem:
        """Everything the user gave, checked and standardised."""
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        noise = check_noise(self.noise_variance)
        table = Table.of(X)
        validate_data(self, table.data, reset=True, skip_check_array=True)
        term = only_term(self.kernel, table.n_columns)
        index = table.index(term.columns[0])
        target = check_target(y, table.n_rows)
        if table.n_rows < 2:
            raise ValueError(f"X has {table.n_rows} sample(s) and a minimum of 2 is required: one row shows no trend")
        x = table.column(index)
        if x.min() == x.max():
            raise ValueError(
                f"column {table.label(index)} of X is constant ({x[0]:g} in all {x.size} rows); "
                "a column that varies was expected: model another one"
            )
        self.column_index_ = index
        return Problem.of(term, x, target, noise, centre=self.normalize_y)

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
        self.notes_ = notes(optimum)
        for note in self.notes_:
            self._progress()(f"note: {note}")
        return self
