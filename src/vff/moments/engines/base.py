"""What every engine is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vff.basis import Letters
from vff.moments.rows import ColumnRows

Job = tuple[Letters, np.ndarray]
"""An alphabet with the strengths of the rows (N,) to sum, or with the coefficients of its letters (size,)."""


@dataclass(frozen=True)
class Engine:
    """A named pair of adjoint maps between rows and letters. Jobs on the same rows share what can be shared."""

    name: str
    sum_letters: Callable[[ColumnRows, Sequence[Job]], list[np.ndarray]]
    """Rows and jobs with strengths (N,) -> for each job the sums of strengths times letters, (size,)."""
    evaluate_letters: Callable[[ColumnRows, Sequence[Job]], list[np.ndarray]]
    """Rows and jobs with coefficients (size,) -> for each job the letters times coefficients, (N,)."""
