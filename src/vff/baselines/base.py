"""What the baselines share beside their predictions: checking at the door and storing at the end."""

from typing import Any

import numpy as np

from vff.baselines.covariances import Values
from vff.baselines.design import Design, Problem, check_nothing_held
from vff.baselines.features import AbstractFeatures, FeatureModel, learn
from vff.baselines.posterior import FeaturePosterior
from vff.data.checks import check_target
from vff.data.memory import MemorySource
from vff.data.table import Table
from vff.estimators.arguments import flag
from vff.estimators.named import introduce
from vff.estimators.options import check_choice, check_noise
from vff.estimators.predict import Posterior
from vff.estimators.predict_numbers import RegressionMixin
from vff.inference import Optimum, TargetScale
from vff.likelihoods import AbstractLikelihood, Gaussian


class Baseline(RegressionMixin):
    """Leaves write ``__init__``, ``fit`` and which kernels they refuse."""

    kernel: Any
    column_indices_: tuple[int, ...]
    optimizer: str | None
    normalize_y: bool

    def _checked(self, X: Any, y: Any) -> tuple[Table, np.ndarray]:
        """The table and the target."""
        check_choice("optimizer", self.optimizer, ("lbfgs", None))
        flag("normalize_y", self.normalize_y)
        rows = MemorySource(X).assigned(None, y)
        table, name = rows.whole, rows.target
        assert table is not None
        introduce(self, table)
        target = check_target(rows.y, table.n_rows)
        if table.n_rows < 2:
            raise ValueError(f"X has {table.n_rows} sample(s) and a minimum of 2 is required: one row shows no trend")
        vars(self).pop("target_name_", None)
        if name is not None:
            self.target_name_ = name
        return table, target

    def _design(self, table: Table, likelihood_column: int | None = None) -> tuple[Design, np.ndarray]:
        """The kernel, resolved, and the modelled columns, which are stored."""
        self._check_kernel(table.n_columns)
        design = Design.of(self.kernel, table, likelihood_column)
        if self.optimizer is not None:
            check_nothing_held(design)
        self.column_indices_, self.column_levels_ = design.columns, design.levels
        self.column_index_ = design.columns[0]
        x = self._block(table)
        design.check(x, table.label)
        for index, levels, column in zip(design.columns, design.levels, x.T, strict=True):
            if levels is None and column.min() == column.max():
                raise ValueError(
                    f"column {table.label(index)} of X is constant ({column[0]:g} in all {column.size} rows); "
                    "a column that varies was expected: model another one"
                )
        return design, x

    def _check_kernel(self, n_columns: int) -> None:
        """Refuse kernels that the leaf cannot use."""

    def _outside_text(self, number: int, label: str) -> str:
        return f"hold a level of column {label} that the fit has not seen"

    def _store(
        self,
        problem: Problem,
        optimum: Optimum,
        values: Values,
        posterior: Posterior,
        elbo: float,
        likelihood: AbstractLikelihood | None = None,
    ) -> None:
        """What was learnt in the user's units, and sentences about how learning ended."""
        own, layout = problem.in_user_units(values), problem.covariance.layout
        self.posterior_, self.target_ = posterior, problem.target
        self.kernel_ = problem.design.with_values(own, problem.domain)
        self.likelihood_ = likelihood or Gaussian(own.noise)
        self.noise_variance_ = self.likelihood_.values["variance"] if self.likelihood_.normal else np.nan
        self.elbo_ = float(problem.evidence_in_user_units(elbo))
        notes = [] if optimum.converged else [f"learning stopped before it converged: {optimum.message}"]
        if optimum.steps:
            for name, end in layout.at_bounds(optimum.theta[: len(layout.names)]).items():
                notes.append(f"{name} ended at its {end} bound; the data do not determine it")
        self.notes_ = tuple(notes)
        for note in notes:
            self._progress()(f"note: {note}")


class GaussianBaseline(Baseline):
    """Gaussian noise, whose variance is learnt with the other hyperparameters."""

    noise_variance: float | None

    def _problem(self, X: Any, y: Any) -> Problem:
        """Everything the user gave, checked and standardised."""
        noise = check_noise(self.noise_variance)
        table, y = self._checked(X, y)
        design, x = self._design(table)
        target = TargetScale.of_targets(y, np.ones(y.size), centred=self.normalize_y, robust=False)
        return Problem(design, x, target, y, noise, self.normalize_y)

    def _fit_features(
        self, problem: Problem, kind: type[AbstractFeatures], coordinates: np.ndarray, *, release: bool
    ) -> AbstractFeatures:
        """Learn a model of finite features, store it, and return the features it ended with."""
        own = problem.covariance, problem.T, problem.y, coordinates
        model = FeatureModel(kind, *own, intercept=problem.intercept)
        effort = {"optimise": self.optimizer is not None, "release": release}
        model, optimum, closed = learn(model, problem.given, **effort, progress=self._progress())
        features = model.features(optimum.theta)
        posterior = FeaturePosterior.from_form(problem.domains, features, closed)
        self._store(problem, optimum, features.values, posterior, closed.elbo)
        return features
