"""Rows as they are, while they are few: the process given them needs no sums."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vff.moments.plan import RowBlock

MOST_FEW = 50
"""Rows that are kept, and may be solved for in as many dimensions."""


@dataclass(frozen=True)
class FewRows:
    """Some rows, of any order."""

    x: np.ndarray
    """(N, C), in the columns' own units; of levels, their codes."""
    y: np.ndarray
    """(N,)."""
    w: np.ndarray
    """(N,)."""
    variances: np.ndarray
    """The squares of their error bars, (N,); zero where they have none."""

    @property
    def few(self) -> bool:
        """Whether they are, a row of weight two counting as two."""
        return max(len(self.w), float(self.w.sum())) <= MOST_FEW

    @classmethod
    def of(cls, rows: RowBlock, columns: int, variances: np.ndarray | None) -> "FewRows | None":
        """All rows of a block; None where they are many, or count as many."""
        if rows.n > MOST_FEW:
            return None
        whole = slice(0, rows.n)
        x = np.stack([np.asarray(rows.column(c, whole), float) for c in range(columns)], axis=1)
        found = cls(x, rows.y, rows.w, np.zeros(rows.n) if variances is None else variances)
        return found if found.few else None

    @staticmethod
    def merged(parts: "Sequence[FewRows | None]") -> "FewRows | None":
        """All of them; None where some are not known, or all together are many."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        names = "x", "y", "w", "variances"
        whole = FewRows(*(np.concatenate([getattr(part, name) for part in known]) for name in names))
        return whole if whole.few else None

    @property
    def different(self) -> "FewRows":
        """Equal rows taken together, in an order that is that of their numbers."""
        table = np.stack([*np.where(np.isnan(self.x), np.inf, self.x).T, self.y, self.variances], axis=1)
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        w = np.bincount(which.reshape(-1), self.w)
        return FewRows(self.x[first], self.y[first], w, self.variances[first])

    def without(self, others: "FewRows") -> "FewRows | None":
        """The rows that are left when others, which are among them, are taken out; None where one is not."""
        left = list(zip(*self._numbers, strict=True))
        for row in zip(*others._numbers, strict=True):
            if row not in left:
                return None
            left.remove(row)
        index = [list(zip(*self._numbers, strict=True)).index(row) for row in left]
        return FewRows(self.x[index], self.y[index], self.w[index], self.variances[index])

    @property
    def _numbers(self) -> list[list[float]]:
        """By column; a missing value is like another."""
        columns = [*np.where(np.isnan(self.x), np.inf, self.x).T, self.y, self.w, self.variances]
        return [column.tolist() for column in columns]
