"""What a file of a model holds, as records, and what it says about itself."""

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import numpy as np

from vff.estimators.pattern import Grid
from vff.estimators.statistics import Statistics
from vff.estimators.tried import TriedInteractions
from vff.inference import Fit
from vff.kernels import Kernel, write_kernel
from vff.likelihoods import AbstractLikelihood
from vff.priors import AbstractPrior
from vff.words import listed, shown

_NO_STATE = "random_state was a generator, which a file does not keep; it is None after loading"


@dataclass(frozen=True)
class ColumnNote:
    """One column of the table that a model was fitted to."""

    name: str | int
    kind: str | None
    """What it holds: "number", "datetime", "duration", "boolean" or "text"; None where the model does not look."""
    unit: str | None
    levels: int | None
    """How many levels a categorical one has."""


@dataclass(frozen=True)
class Description:
    """What a file says about itself."""

    estimator: str
    kernel: str | None
    """As learnt; for statistics, as asked for."""
    likelihood: str
    columns: tuple[ColumnNote, ...]
    target: str | None
    """What y is called, where that is known."""
    units: dict[str, str]
    """As they were given, by name; that of the target among them."""
    rows: int
    """That were summed; with a likelihood that is not Gaussian, the different ones."""
    weight: float | None
    """Sum of their weights; None with a likelihood that is not Gaussian, where it is not kept."""
    rows_beyond: int
    """Rows beyond the domain of a single column, which are in the file as they are."""
    features: int
    solver: str | None
    elbo: float | None
    notes: tuple[str, ...]
    vff: str
    """The version that wrote the file."""
    numpy: str
    created: str
    """When, in UTC."""
    provenance: dict[str, Any]
    """What else the writer had to say."""


@dataclass(frozen=True)
class Labels:
    """Labels of classes, with the type of their array."""

    dtype: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Pattern:
    """What a Cox process keeps beside the model of its cells."""

    columns: tuple[str | int, ...]
    kinds: tuple[str, ...]
    frame: str | None
    window: tuple[tuple[float, float], ...]
    grid: Grid
    counts: np.ndarray
    exposure: np.ndarray
    inference: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Saved:
    """One estimator."""

    estimator: str
    kernel: str | None
    likelihood: str | AbstractLikelihood | None
    priors: dict[str, AbstractPrior | float | None] | None
    parameters: dict[str, Any]
    n_features: int
    names: tuple[str, ...] | None
    rows: Statistics | None
    fit: Fit | None
    timing: dict[str, float] | None
    classes: Labels | None
    members: "tuple[Saved, ...]"
    """The models of single classes, or of the cells of a pattern."""
    pattern: Pattern | None
    formula: str | None = None
    """The kernel as it was given, where that was a text; ``kernel`` is None then."""
    interactions: TriedInteractions | None = None
    """Products that might have joined the sum, where that was asked for."""


def description_of(model: Any, saved: Saved, units: dict[Any, str], provenance: dict[str, Any]) -> Description:
    inner = saved
    while inner.rows is None:
        inner = inner.members[0]
    rows, fit, target = inner.rows, inner.fit, provenance.get("target", getattr(model, "target_name_", None))
    names = saved.names or tuple(range(saved.n_features))
    by_name = {str(name): str(unit) for name, unit in units.items()}
    for name in units:
        if str(name) not in (*map(str, names), target):
            raise ValueError(
                f"units names {shown(name)}, and the model knows {listed(names)}; name one of these, or the target by "
                "provenance={'target': name}"
            )
    columns = []
    for index, name in enumerate(names):
        bound = [column for column in rows.binding.columns if column.index == index]
        levels = [len(column.levels) for column in bound if column.levels is not None]
        kind = bound[0].kind if bound else None
        columns.append(ColumnNote(name, kind, by_name.get(str(name)), levels[0] if levels else None))
    kept = isinstance(model.get_params(deep=False)["random_state"], int | np.integer | None)
    learnt = described_kernel(model, saved)
    beyond, weight = sum(tail.r.size for tail in rows.tails), sum(float(tail.w.sum()) for tail in rows.tails)
    return Description(
        saved.estimator,
        None if learnt is None else write_kernel(learnt),
        repr(getattr(model, "likelihood_", saved.likelihood) if fit is None else fit.likelihood),
        tuple(columns),
        None if target is None else str(target),
        by_name,
        rows.n or (rows.moments.n + beyond if fit is None else fit.n),
        float(rows.moments.weight + weight) if fit is None or fit.from_sums else None,
        beyond,
        rows.moments.request.size if fit is None else fit.posterior.request.size,
        None if fit is None else fit.solver,
        getattr(model, "elbo_", None),
        (*getattr(model, "notes_", rows.notes), *(() if kept else (_NO_STATE,))),
        import_module("vff").__version__,  # not imported above: it knows the rooms over this one
        np.__version__,
        datetime.now(UTC).isoformat(timespec="seconds"),
        provenance,
    )


def described_kernel(model: Any, saved: Saved) -> Kernel | None:
    """The kernel that a file tells of its model: as learnt, or as asked for where nothing was learnt."""
    given: Any = model.kernel
    if isinstance(given, str):
        given = None if saved.rows is None else saved.rows.binding.kernel
    return getattr(model, "kernel_", given) if saved.fit is not None or saved.members else given
