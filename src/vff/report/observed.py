"""What a picture shows of y under a likelihood: its mean and intervals, the rows, words for the scale of effects."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from vff.data.checks import as_labels, check_target, coded
from vff.data.table import Table
from vff.estimators.named import extra_of
from vff.estimators.predict import ProcessMixin

Ends = tuple[np.ndarray, np.ndarray]
_SCALES = {"y": "y", "f": "the latent function", "log": "the logarithm of the mean of y"}


class Curves(NamedTuple):
    """A prediction at some places, on the scale of y (per unit of exposure, or per trial, where rows have these)."""

    mean: np.ndarray
    """Of a new y."""
    function: Ends
    """Interval of the mean of y given the function."""
    observation: Ends | None
    """Interval of a new y; None where it says nothing: of zeros and ones, and where it would depend on an exposure."""


def refuse_several(model: ProcessMixin, caller: str) -> None:
    """A model of more than two classes is a model per class."""
    if len(getattr(model, "functions_", ())) > 1:
        raise ValueError(
            f"{caller} draws one function, and with more than two classes there is one per class; give it one of the "
            "classifier's estimators_"
        )


def latent(model: ProcessMixin, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the latent function at rows x (N, C) of the modelled columns."""
    mean, variance = model.posterior_.marginals(x)
    target = model.target_
    return target.mean + target.scale * mean, target.scale**2 * variance


def mean_of_y(model: ProcessMixin, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Of a new y where the latent function has this mean and variance."""
    return model.likelihood_.predictive(mean, variance, np.ones(mean.size)).mean()


def curves(model: ProcessMixin, x: np.ndarray, level: float) -> Curves:
    """The prediction at rows x, with intervals of this level."""
    z, (mean, variance) = NormalDist().inv_cdf(0.5 + 0.5 * level), latent(model, x)
    likelihood, ones, half = model.likelihood_, np.ones(mean.size), z * np.sqrt(variance)
    new = likelihood.predictive(mean, variance, ones)
    # the mean of y never falls in f, so that it takes quantiles to quantiles
    low, high = (likelihood.conditional_mean(mean + side * half, ones) for side in (-1.0, 1.0))
    scatters = likelihood.column is None and not likelihood.binary
    return Curves(new.mean(), (low, high), new.interval(level) if scatters else None)


def targets(model: ProcessMixin, table: Table, y: Any) -> np.ndarray:
    """y of the rows as it is drawn: a number, 0 or 1 for the classes, or per unit of exposure."""
    if hasattr(model, "classes_"):
        return coded(as_labels(y), getattr(model, "classes_")).astype(float)  # noqa: B009
    return check_target(y, table.n_rows) / extra_of(model.likelihood_, table)


def target_text(model: ProcessMixin, y: Any) -> str:
    """What the scale of y is called."""
    name = y if isinstance(y, str) else str(getattr(y, "name", None) or "y")
    if model.likelihood_.binary:
        return f"P({name} = {_second(model)})"
    column = model.likelihood_.column
    return name if column is None else f"{name} / {column}"


def effect_text(model: ProcessMixin) -> str:
    """What an effect is an effect on."""
    return f"effect on {scale_text(model)}"


def scale_text(model: ProcessMixin) -> str:
    """The scale on which the latent function is a sum."""
    name = model.likelihood_.scale_name
    if name in _SCALES:
        return _SCALES[name]
    return f"the {name} of " + (f"P(y = {_second(model)})" if model.likelihood_.binary else "the mean of y")


def _second(model: ProcessMixin) -> str:
    return str(getattr(model, "classes_", (0, 1))[1])
