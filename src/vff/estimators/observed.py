"""What a likelihood takes from a table beside y."""

import numpy as np

from vff.estimators.tables import Table
from vff.likelihoods import AbstractLikelihood


def extra_of(likelihood: AbstractLikelihood, table: Table) -> np.ndarray:
    """Exposure or trials of every row, (N,); ones when the likelihood takes none."""
    if likelihood.column is None:
        return np.ones(table.n_rows)
    return np.array(table.numbers(table.index(likelihood.column)), float)
