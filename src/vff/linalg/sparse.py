"""A matrix that is zero nearly everywhere: how often two levels of different columns were seen together."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class SparseBlock:
    """A block between two terms, (P_s, P_t), by its rows; its entries are written out when all of it is asked for.

    It is used like an array: added, multiplied by a number, turned, and multiplied by vectors.
    """

    __array_ufunc__: ClassVar[None] = None  # a number of NumPy times a block is a block

    columns: int
    """P_t."""
    starts: np.ndarray
    """Where the entries of every row begin, and where the last end, (P_s + 1,)."""
    places: np.ndarray
    """The column of every entry, ascending within a row."""
    entries: np.ndarray

    @classmethod
    def of(cls, matrix: Any) -> "SparseBlock":
        """From an array or a sparse matrix, without entries that are zero."""
        if isinstance(matrix, SparseBlock):
            return matrix
        own = sparse.csr_array(np.asarray(matrix) if isinstance(matrix, np.ndarray) else matrix, dtype=float)
        own.sum_duplicates()
        own.eliminate_zeros()
        kind = np.int32 if own.nnz < 2**31 else np.int64
        return cls(int(np.shape(matrix)[1]), own.indptr.astype(kind), own.indices.astype(kind), own.data)

    @classmethod
    def zeros(cls, shape: tuple[int, int]) -> "SparseBlock":
        return cls.of(sparse.csr_array(shape))

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """The same for SciPy, which shares its arrays."""
        return sparse.csr_array((self.entries, self.places, self.starts), shape=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        return self.starts.size - 1, self.columns

    @cached_property
    def T(self) -> "SparseBlock":
        return SparseBlock.of(self.matrix.T.tocsr())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.matrix.toarray()

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return self.matrix @ v

    def __rmatmul__(self, v: np.ndarray) -> np.ndarray:
        return (self.matrix.T @ v.T).T

    def __add__(self, other: Any) -> "SparseBlock":
        return SparseBlock.of(self.matrix + SparseBlock.of(other).matrix)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "SparseBlock":
        return self + -1.0 * SparseBlock.of(other)

    def __mul__(self, factor: float) -> "SparseBlock":
        return SparseBlock(self.columns, self.starts, self.places, float(factor) * self.entries)

    __rmul__ = __mul__

    def __truediv__(self, factor: float) -> "SparseBlock":
        return self * (1.0 / factor)

    def placed(self, rows: np.ndarray, shape: tuple[int, int]) -> "SparseBlock":
        """The same rows at other places, among more, (P_s,)."""
        own = self.matrix.tocoo()
        return SparseBlock.of(sparse.csr_array((own.data, (rows[own.row], own.col)), shape=shape))

    def check(self) -> None:
        """ValueError unless its arrays are a matrix, wherever they came from."""
        ends = self.starts.size and self.starts[0] == 0 and self.starts[-1] == self.entries.size == self.places.size
        if not ends or np.diff(self.starts).min(initial=0) < 0:
            raise ValueError(f"{self.entries.size} entries by row were expected, found others")
        if self.places.min(initial=0) < 0 or self.places.max(initial=0) >= max(self.columns, 1):
            raise ValueError(f"entries in {self.columns} columns were expected, found others")
        same_row = np.ones(max(self.entries.size - 1, 0), bool)
        inner = self.starts[1:-1]
        same_row[inner[(inner > 0) & (inner < self.entries.size)] - 1] = False
        if (np.diff(self.places)[same_row] <= 0).any():
            raise ValueError("different columns in ascending order were expected within a row, found others")


def entries_of(block: np.ndarray | SparseBlock, shape: tuple[int, int]) -> tuple[np.ndarray, tuple[int, ...]]:
    """The entries of a block, and their shape if it has this one; ValueError where a sparse one is no such matrix."""
    if not isinstance(block, SparseBlock):
        return block, shape
    block.check()
    if block.shape != shape:
        raise ValueError(f"pairs of {shape[0]} and {shape[1]} levels were expected, found {block.shape}")
    return block.entries, (block.entries.size,)
