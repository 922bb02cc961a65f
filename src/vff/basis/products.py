"""Products of two features in double letters, written out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse


class Products(NamedTuple):
    """Where products of two features live, and what they are in double letters: (phi phi')[rows, columns] = E psi."""

    rows: np.ndarray
    columns: np.ndarray
    """(nnz,) each; all other products vanish. Row after row when all P x P are there."""
    map: sparse.csr_array
    """E, (nnz, Q)."""
    transposed: sparse.csr_array
    """E', (Q, nnz)."""

    @classmethod
    def of(cls, size: int, letters: int, entries: Sequence[np.ndarray], everywhere: bool) -> "Products":
        """From (letter, row, column, factor) as vectors; entries of the same letter, row and column add up."""
        letter, row, column, factor = entries
        if everywhere:
            where = row * size + column
            rows, columns = (index.reshape(-1) for index in np.indices((size, size)))
        else:
            cells, where = np.unique(row * size + column, return_inverse=True)
            rows, columns = np.divmod(cells, size)
        transposed = sparse.csr_array((factor, (letter, where)), shape=(letters, rows.size))
        return cls(rows, columns, sparse.csr_array(transposed.T), transposed)
