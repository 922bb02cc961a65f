"""Columns that go by their names: those of a model, those of a fit in another table, and the likelihood's own."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from vff.data import Source, Table, UsedColumns
from vff.kernels import Kernel, normal_form
from vff.likelihoods import AbstractLikelihood
from vff.words import listed, perhaps, shown


def used_columns(kernel: Kernel | None, likelihood: AbstractLikelihood, offset: Hashable | None = None) -> UsedColumns:
    """All columns that a kernel and a likelihood name; kernel=None names none, and takes what there is."""
    if kernel is None:
        return UsedColumns(None, (), offset)
    leaves = [leaf for term in normal_form(kernel) for leaf in term.factors]
    own = () if likelihood.column is None else (likelihood.column,)
    levels = tuple(column for leaf in leaves if leaf.reads == "levels" for column in leaf.columns)
    return UsedColumns((*(column for leaf in leaves for column in leaf.columns), *own), levels, offset)


def beside(likelihood: AbstractLikelihood, offset: Hashable | None) -> tuple[Hashable, ...]:
    """The columns that are read and not modelled: that of the likelihood, and what is added to the function."""
    return tuple(column for column in (likelihood.column, offset) if column is not None)


def introduce(model: Any, table: Table) -> None:
    """Tell a model how many columns there are, and what they are called."""
    validate_data(model, table.data, reset=True, skip_check_array=True)
    if table.positions is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
        model.n_features_in_ = table.n_columns


def introduce_source(model: Any, source: Source) -> None:
    """The same of a source with roles, and what the target is called."""
    features = None if source.roles is None else source.roles.features
    if source.whole is not None:
        introduce(model, source.whole)
    elif features is not None:
        model.feature_names_in_, model.n_features_in_ = np.array(features, dtype=object), len(features)
    elif source.n_columns is not None:
        model.n_features_in_ = source.n_columns
    if source.target is not None:
        model.target_name_ = source.target


def with_word(source: Source, missing: str) -> Source:
    """A source that says what missing values are in it: its own word, or else that of the model."""
    return source if source.options.missing is not None else source.with_options(missing=missing)


def recognised_source(model: Any, source: Source, modelled: Iterable[int], others: Iterable[Hashable]) -> Source:
    """A source with the columns that a model has seen where it saw them; others are refused."""
    if source.whole is not None:
        return source.with_table(recognised(model, source.whole, modelled, others))
    features = None if source.roles is None else source.roles.features
    known = getattr(model, "feature_names_in_", None)
    if features is None or known is None or set(features) == set(known):
        return source
    if model.kernel is None or not set(features) <= set(known):
        raise ValueError(
            f"the feature names should match those that were passed during fit, which are {', '.join(known)}; "
            f"these rows have {', '.join(features)}: name columns as they were"
        )
    return source


def recognised(model: Any, table: Table, modelled: Iterable[int], others: Iterable[Hashable] = ()) -> Table:
    """A table with the columns of the fit in their places.

    Columns go by name where both have names, and those must be there that are modelled, and the ``others`` that are
    read (``beside``). Else there must be as many as in the fit, and they stand where they stood.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or table.names is None:
        validate_data(model, table.data, reset=False, skip_check_array=True)
        return table
    refuse_without_widths(model, table.names)
    own = named(others, names)
    return table.arranged(list(names), {*(names[index] for index in modelled), *own})


def named(columns: Iterable[Any], names: Any) -> tuple[str, ...]:
    """Columns by name, those too that were given by number."""
    return tuple(column if isinstance(column, str) else str(names[column]) for column in columns)


def offset_missing(column: str, names: Sequence[str]) -> str:
    """The sentence about rows to predict that do not say what is added to the function there."""
    return (
        f"column {shown(column)} is the offset of the fit, which is added to the function wherever it is predicted, "
        f"and X has {listed(names)}; add the column, with zeros for the function alone"
    )


def errors_missing(column: str, names: Sequence[str]) -> str:
    """The sentence about rows to predict that do not say how well they will be measured."""
    return (
        f"column {shown(column)} has the standard deviations of y in the fit, a new y has that of its own row, and X "
        f"has {listed(names)}; add the column, with zeros for an instrument without error"
    )


def offset_of(column: Hashable | None, table: Table) -> np.ndarray | None:
    """What is added to the function at every row, (N,); None where nothing is."""
    if column is None:
        return None
    there = listed(table.names) if table.names else f"{table.n_columns} column(s) without names"
    try:
        index = table.index(column)  # pyright: ignore[reportArgumentType]  checked at the door of fit
    except ValueError as error:
        raise ValueError(
            f"offset names column {shown(column)}, which is added to the function, and X has {there}; name one of "
            f"them, or add the column{perhaps(column, table.names)}"
        ) from error
    return np.array(table.numbers(index, role="the offset"), float)


def refuse_without_widths(model: Any, known: Collection[str]) -> None:
    """The sentence about columns that say what of a function a row sees, where a table has none."""
    statistics = getattr(model, "statistics_", None)
    if statistics is None:
        return
    both = zip(statistics.binding.columns, statistics.moments.request.columns, strict=True)
    for name in (str(model.feature_names_in_[own.index]) for own, read in both if read.domain.held is not None):
        if name not in known:
            raise ValueError(
                f"X has no column {shown(name)}, which says what every row sees of the function, a width or a std; "
                f"give it the column: X.assign({name if name.isidentifier() else 'width'}=0.0) asks for the function "
                "itself"
            )


def extra_of(likelihood: AbstractLikelihood, table: Table) -> np.ndarray:
    """Exposure or trials of every row, (N,); ones when the likelihood takes none."""
    if likelihood.column is None:
        return np.broadcast_to(likelihood.extra_alone, table.n_rows)  # one number, however many rows
    index = column_of(likelihood.column, table, _use_of(likelihood))
    return np.array(table.numbers(index, role=_USES[_use_of(likelihood)]), float)


_ERRORS, _COUNTED_BY = "standard deviations of y", "exposure or trials"
_USES = {
    _ERRORS: "noise_std, the standard deviations of y",
    _COUNTED_BY: "the exposure or the trials of the likelihood",
}


def _use_of(likelihood: AbstractLikelihood) -> str:
    """What a likelihood takes its column for."""
    return _ERRORS if likelihood.known_errors else _COUNTED_BY


def refuse_negative(extra: np.ndarray, likelihood: AbstractLikelihood, first: int = 0) -> np.ndarray:
    """Exposure or trials of new rows, whose y is not there to be checked with them."""
    if np.any(extra < 0.0):
        row = int(np.argmax(extra < 0.0))
        raise ValueError(
            f"column {shown(likelihood.column)}, which the likelihood takes for {_use_of(likelihood)}, must not be "
            f"negative; it is {extra[row]:g} in row {first + row}: drop that row, or mend it"
        )
    return extra


def column_of(name: Hashable, table: Table, use: str = "exposure or trials") -> int:
    """Where the likelihood's column stands in the table."""
    if not isinstance(name, str | int):
        raise TypeError(f"the likelihood's column must be a name or a number, got {shown(name)}")
    try:
        return table.index(name)
    except ValueError as error:
        there = listed(table.names) if table.names else f"{table.n_columns} columns without names"
        who = f"the likelihood takes column {shown(name)} for {use}"
        if use == _ERRORS:
            who = f"noise_std names column {shown(name)}, which has the {use}"
        raise ValueError(f"{who}, and X has {there}; name one of them{perhaps(name, table.names)}") from error
