"""Columns that go by their names: targets and weights inside a frame, the columns of a fit in another table."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from vff.estimators.tables import Table
from vff.kernels import Kernel, normal_form
from vff.likelihoods import AbstractLikelihood
from vff.words import listed, shown


class Given(NamedTuple):
    """What ``fit`` was given, with names replaced by the columns they stand for."""

    table: Table
    """Without the columns of targets and weights."""
    y: Any
    sample_weight: Any
    target: str | None = None
    """The name of the column that y was."""


def columns_used(kernel: Kernel | None, likelihood: AbstractLikelihood) -> tuple[Hashable, ...]:
    """All columns that a kernel and a likelihood name; kernel=None names none, and takes what there is."""
    terms = () if kernel is None else normal_form(kernel)
    used = [factor.column for term in terms for factor in term.factors]
    return tuple(used) if likelihood.column is None else (*used, likelihood.column)


def given(X: Any, y: Any, sample_weight: Any = None, used: Iterable[Hashable] = ()) -> Given:
    """A table, and y and weights, which may be names of columns of it; ``used`` are columns that the model names."""
    table, used = Table.of(X), set(used)
    target, weight = (value if isinstance(value, str) else None for value in (y, sample_weight))
    if target is None and weight is None:
        return Given(table, y, sample_weight)
    y, sample_weight = beside(table, y, "y"), beside(table, sample_weight, "sample_weight")
    if target is not None and target in used:
        raise ValueError(f"the kernel has a term of {target!r}, which is the target; leave it out of the kernel")
    left = [name for name in table.names or () if name != target and (name != weight or name in used)]
    if not left:
        raise ValueError(f"X has no column beside {listed([n for n in (target, weight) if n])}; give it one to model")
    return Given(table.arranged(left, ()), y, sample_weight, target)


def beside(table: Table, value: Any, what: str) -> Any:
    """Targets or weights: those that were given, or the column of the table that has this name."""
    if not isinstance(value, str):
        return value
    if table.names is None:
        raise ValueError(f"{what} names column {shown(value)}, and X has no column names; give one number per row")
    if table.names.count(value) != 1:
        found = "has more than once" if value in table.names else "does not have"
        raise ValueError(
            f"{what} names column {shown(value)}, which X {found}; its columns are {listed(table.names)}: name one of "
            "them"
        )
    return table.raw(table.names.index(value))


def introduce(model: Any, table: Table) -> None:
    """Tell a model how many columns there are, and what they are called."""
    validate_data(model, table.data, reset=True, skip_check_array=True)
    if table.places is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
        model.n_features_in_ = table.n_columns


def recognised(model: Any, table: Table, modelled: Iterable[int], beside: Any = None) -> Table:
    """A table with the columns of the fit in their places.

    Columns go by name where both have names, and those must be there that are modelled, and the likelihood's own,
    ``beside`` them. Else there must be as many as in the fit, and they stand where they stood.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or table.names is None:
        validate_data(model, table.data, reset=False, skip_check_array=True)
        return table
    own = () if beside is None else (beside if isinstance(beside, str) else names[beside],)
    return table.arranged(list(names), {*(names[index] for index in modelled), *own})
