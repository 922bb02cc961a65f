"""Coefficients to rows: the mean and the quadratic form that a posterior asks for (design Fact C).

evaluate Phi c             the single letters of every column
quad     diag(Phi S Phi')  the double letters of every column, coefficients ``gram_adjoint``, and the pairs of columns
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from vff.basis import ColumnBasis, LevelBasis
from vff.moments.cores import cores
from vff.moments.engines import ENGINES, PAIR_ENGINES, choose_engine, choose_pair
from vff.moments.engines.pairs import prepare_pairs
from vff.moments.lattice import Codebook, codebook_of
from vff.moments.rows import ColumnRequest, ColumnRows
from vff.moments.statistics import Pair

_WRITTEN = 2**22  # features written out at a time


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
    values, squares = evaluate_several(rows, [c], S_letters, engine)
    return values, squares


def evaluate_several(
    rows: ColumnRows, vectors: Sequence[np.ndarray], S_letters: np.ndarray | None = None, engine: str = "auto"
) -> list[np.ndarray]:
    """Phi c for several c, and diag(Phi S Phi') when S is given, of one column, (N,) each, in one go."""
    asked = engine != "auto" and isinstance(rows.basis, ColumnBasis)  # levels have one engine
    name = engine if asked else choose_engine(rows).name
    jobs = [(rows.basis.single, c) for c in vectors]
    if S_letters is not None:
        jobs.append((rows.basis.double, S_letters))
    return ENGINES[name].evaluate_letters(rows, jobs)


def quad_of_pairs(columns: Sequence[ColumnRows], S: Mapping[Pair, np.ndarray], engine: str = "auto") -> np.ndarray:
    """sum over pairs s < t of phi_s' S_st phi_t at every row, (N,)."""
    engines = {pair: _pair_engine(columns, pair, engine) for pair in S}
    total = np.zeros(columns[0].x.size)

    def one(pair: Pair) -> np.ndarray:
        s, t = pair
        return PAIR_ENGINES[engines[pair]].evaluate_block(columns[s], columns[t], S[pair])

    with ThreadPoolExecutor(cores()) as pool:
        prepare_pairs(columns, engines, pool)
        for part in pool.map(one, [pair for pair, name in engines.items() if name != "dense"]):
            total += part
    written = {pair: S[pair] for pair, name in engines.items() if name == "dense"}
    return total + _written_pairs(columns, written) if written else total


def _written_pairs(columns: Sequence[ColumnRows], S: Mapping[Pair, np.ndarray]) -> np.ndarray:
    """The pairs whose features are written out, a stretch of rows at a time."""
    N, needed = columns[0].x.size, {s for pair in S for s in pair}
    step = max(64, _WRITTEN // sum(columns[s].basis.size for s in needed))
    total = np.zeros(N)
    for start in range(0, N, step):
        rows = slice(start, start + step)
        stretch = {s: ColumnRows(columns[s].request, columns[s].x[rows]) for s in needed}
        for (s, t), block in S.items():
            total[rows] += PAIR_ENGINES["dense"].evaluate_block(stretch[s], stretch[t], block)
    return total


def _pair_engine(columns: Sequence[ColumnRows], pair: Pair, engine: str) -> str:
    left, right = (columns[s] for s in pair)
    if engine != "auto" and all(isinstance(rows.basis, ColumnBasis) for rows in (left, right)):
        return engine
    share = 1.0 / max(1, len(columns) - 1)
    return choose_pair(left.x.size, (left.request, right.request), (left.book, right.book), share).name
