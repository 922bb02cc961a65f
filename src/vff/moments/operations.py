"""Coefficients to rows: the mean and the quadratic form that a posterior asks for (design Fact C).

evaluate Phi c             the single letters of every column
quad     diag(Phi S Phi')  the double letters of every column, coefficients ``gram_adjoint``, and the pairs of columns
"""

from collections.abc import Mapping, Sequence

import numpy as np

from vff.basis import ColumnBasis, LevelBasis
from vff.moments.engines import ENGINES, PAIR_ENGINES, choose_engine, choose_pair
from vff.moments.lattice import Codebook, codebook_of
from vff.moments.rows import ColumnRequest, ColumnRows
from vff.moments.statistics import Pair


def column_rows(request: ColumnRequest, x: np.ndarray) -> ColumnRows:
    """Rows in memory, with their distinct values when these are few; codes of levels are always worked on by value."""
    book = codebook_of(x)
    if book is None and isinstance(request.basis, LevelBasis):
        book = Codebook(np.unique(x))
    return ColumnRows(request, x, book)


def evaluate_and_quad(
    rows: ColumnRows, c: np.ndarray, S_letters: np.ndarray, engine: str = "auto"
) -> tuple[np.ndarray, np.ndarray]:
    """Phi c and diag(Phi S Phi') of one column, (N,) each; ``S_letters`` is ``gram_adjoint(basis, S)``."""
    asked = engine != "auto" and isinstance(rows.basis, ColumnBasis)  # levels have one engine
    name = engine if asked else choose_engine(rows).name
    jobs = [(rows.basis.single, c), (rows.basis.double, S_letters)]
    values, squares = ENGINES[name].evaluate_letters(rows, jobs)
    return values, squares


def quad_of_pairs(columns: Sequence[ColumnRows], S: Mapping[Pair, np.ndarray], engine: str = "auto") -> np.ndarray:
    """sum over pairs s < t of phi_s' S_st phi_t at every row, (N,)."""
    N, share = columns[0].x.size, 1.0 / max(1, len(columns) - 1)
    total = np.zeros(N)
    for (s, t), block in S.items():
        left, right = columns[s], columns[t]
        choice = choose_pair(N, (left.request, right.request), (left.book, right.book), share)
        asked = engine != "auto" and all(isinstance(rows.basis, ColumnBasis) for rows in (left, right))
        total += PAIR_ENGINES[engine if asked else choice.name].evaluate_block(left, right, block)
    return total
