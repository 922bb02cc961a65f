"""What a likelihood takes from a table beside y."""

from collections.abc import Hashable

import numpy as np

from vff.data.table import Table
from vff.likelihoods import AbstractLikelihood
from vff.words import listed, shown


def extra_of(likelihood: AbstractLikelihood, table: Table) -> np.ndarray:
    """Exposure or trials of every row, (N,); ones when the likelihood takes none."""
    if likelihood.column is None:
        return np.broadcast_to(1.0, table.n_rows)  # one number, however many rows
    return np.array(table.numbers(column_of(likelihood.column, table)), float)


def refuse_negative(extra: np.ndarray, likelihood: AbstractLikelihood, first: int = 0) -> np.ndarray:
    """Exposure or trials of new rows, whose y is not there to be checked with them."""
    if np.any(extra < 0.0):
        row = int(np.argmax(extra < 0.0))
        raise ValueError(
            f"column {shown(likelihood.column)}, which the likelihood takes for exposure or trials, must not be "
            f"negative; it is {extra[row]:g} in row {first + row}: drop that row, or mend it"
        )
    return extra


def column_of(name: Hashable, table: Table) -> int:
    """Where the likelihood's column stands in the table."""
    if not isinstance(name, str | int):
        raise TypeError(f"the likelihood's column must be a name or a number, got {shown(name)}")
    try:
        return table.index(name)
    except ValueError as error:
        there = listed(table.names) if table.names else f"{table.n_columns} columns without names"
        raise ValueError(
            f"the likelihood takes column {shown(name)} for exposure or trials, and X has {there}; name one of them"
        ) from error
