"""Coefficients to rows: the mean and the quadratic form that a posterior asks for (design Fact C).

evaluate Phi c             the single letters of every term
quad     diag(Phi S Phi')  the double letters of every term, and the letters of every pair of terms
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from vff.basis import Alphabet, ColumnBasis, Indicators, LevelBasis
from vff.moments.cores import cores
from vff.moments.coupling import Coupling
from vff.moments.engines import ENGINES, READERS, Job, choose_engine, choose_set
from vff.moments.engines.sets import groups
from vff.moments.lattice import Codebook, codebook_of
from vff.moments.rows import ColumnRequest, ColumnRows
from vff.moments.statistics import Pair


def column_rows(request: ColumnRequest, x: np.ndarray) -> ColumnRows:
    """Rows in memory, with their distinct values when these are few; codes of levels are always worked on by value."""
    book = codebook_of(x)
    if book is None and isinstance(request.basis, LevelBasis):
        book = Codebook(np.unique(x))
    return ColumnRows(request, x, book)


@dataclass(frozen=True)
class LetterFunction:
    """A function of some columns: products of letters, one per column, with coefficients."""

    columns: tuple[int, ...]
    alphabets: tuple[Alphabet | Indicators, ...]
    coefficients: np.ndarray


def evaluate_letters(
    rows: Sequence[ColumnRows], functions: Sequence[LetterFunction], engine: str = "auto"
) -> list[np.ndarray]:
    """Every function at every row, (N,) each. Those of one column are taken together."""
    values: list[np.ndarray] = [np.empty(0)] * len(functions)
    single: dict[int, list[int]] = {}
    several: list[int] = []
    for number, function in enumerate(functions):
        if len(function.columns) == 1:
            single.setdefault(function.columns[0], []).append(number)
        else:
            several.append(number)
    for c, numbers in single.items():
        jobs = [(functions[number].alphabets[0], functions[number].coefficients) for number in numbers]
        for number, found in zip(numbers, _one_column(rows[c], jobs, engine), strict=True):
            values[number] = found
    for number, found in zip(several, _several(rows, [functions[number] for number in several], engine), strict=True):
        values[number] = found
    return values


def _one_column(
    rows: ColumnRows, jobs: Sequence[tuple[Alphabet | Indicators, np.ndarray]], engine: str
) -> list[np.ndarray]:
    asked = engine != "auto" and isinstance(rows.basis, ColumnBasis)  # levels have one engine
    name = engine if asked else choose_engine(rows).name
    if (
        name != "dense"
        and len({(alphabet.M, alphabet.q) for alphabet, _ in jobs if isinstance(alphabet, Alphabet)}) > 1
    ):
        # an engine takes its edge functions from one basis
        return [value for job in jobs for value in ENGINES[name].evaluate_letters(rows, [job])]
    return ENGINES[name].evaluate_letters(rows, jobs)


def _several(rows: Sequence[ColumnRows], functions: Sequence[LetterFunction], engine: str) -> list[np.ndarray]:
    jobs = [Job(function.alphabets) for function in functions]
    names = [_engine(rows, function, job, engine) for function, job in zip(functions, jobs, strict=True)]
    grouped = {
        c for function, name in zip(functions, names, strict=True) if name == "grouped" for c in function.columns
    }
    for c in grouped:
        if rows[c].book is not None:
            groups(rows[c])

    def one(number: int) -> np.ndarray:
        function = functions[number]
        return READERS[names[number]]([rows[c] for c in function.columns], jobs[number], function.coefficients)

    alone = [number for number, name in enumerate(names) if name == "dense" or len(functions) == 1]
    with ThreadPoolExecutor(cores()) as pool:
        together = [number for number in range(len(functions)) if number not in alone]
        found = dict(zip(together, pool.map(one, together), strict=True))
    found |= {number: one(number) for number in alone}
    return [found[number] for number in range(len(functions))]


def _engine(rows: Sequence[ColumnRows], function: LetterFunction, job: Job, engine: str) -> str:
    some = [rows[c] for c in function.columns]
    books = [column.book for column in some]
    smooth = all(isinstance(alphabet, Alphabet) for alphabet in function.alphabets)
    if engine not in ("auto", "grid") and smooth and not (engine == "nufft" and len(some) > 3):
        return engine
    return choose_set(some[0].x.size, [job], books).name


def evaluate_several(
    rows: ColumnRows, vectors: Sequence[np.ndarray], S_letters: np.ndarray | None = None, engine: str = "auto"
) -> list[np.ndarray]:
    """Phi c for several c, and diag(Phi S Phi') when S is given, of one column, (N,) each, in one go."""
    jobs = [(rows.basis.single, c) for c in vectors]
    if S_letters is not None:
        jobs.append((rows.basis.double, S_letters))
    return _one_column(rows, jobs, engine)


def quad_of_pairs(
    rows: Sequence[ColumnRows], couplings: Mapping[Pair, Coupling], S: Mapping[Pair, np.ndarray], engine: str = "auto"
) -> np.ndarray:
    """sum over pairs s < t of terms of phi_s' S_st phi_t at every row, (N,)."""
    functions = [
        LetterFunction(couplings[pair].columns, couplings[pair].alphabets, couplings[pair].letters(block))
        for pair, block in S.items()
    ]
    merged: dict[tuple, LetterFunction] = {}
    for function in functions:  # functions of the same letters are one function
        key = (function.columns, function.alphabets)
        seen = merged.get(key)
        total = function.coefficients if seen is None else seen.coefficients + function.coefficients
        merged[key] = LetterFunction(function.columns, function.alphabets, total)
    values = evaluate_letters(rows, list(merged.values()), engine)
    return np.sum(values, axis=0) if values else np.zeros(rows[0].x.size)
