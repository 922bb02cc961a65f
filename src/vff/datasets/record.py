"""What every loader returns."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Dataset:
    """A table, its target, and what a reader should know about them.

    Attributes
    ----------
    X : array (N, D)
        Inputs.
    y : array (N,)
        Target.
    names : tuple of str
        Of the columns of X, with their units.
    target : str
        Name of y, with its unit.
    description : str
        A few sentences on what was measured.
    source : str
        Who collected the data, and where they can be had.
    licence : str
        On what terms.
    dropped : int
        Rows left out because a value was missing.

    Examples
    --------
    >>> vff.datasets.load_coal()
    Dataset(191 rows; disasters against year; 0 incomplete rows left out)
    """

    X: np.ndarray
    """Inputs, (N, D)."""
    y: np.ndarray
    """Target, (N,)."""
    names: tuple[str, ...]
    """Names of the columns of X, with their units."""
    target: str
    """Name of y, with its unit."""
    description: str
    """A few sentences on what was measured."""
    source: str
    """Who collected the data, and where they can be had."""
    licence: str
    """On what terms."""
    dropped: int = 0
    """Rows left out because a value was missing."""

    def __repr__(self) -> str:
        columns = ", ".join(self.names)
        return f"Dataset({len(self.y)} rows; {self.target} against {columns}; {self.dropped} incomplete rows left out)"
