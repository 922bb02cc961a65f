"""Coefficients to rows: the mean and the quadratic form that a posterior asks for (design Fact C).

evaluate Phi c             the single letters of every term
quad     diag(Phi S Phi')  the double letters of every term, and the letters of every pair of terms
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vff.basis import Letters
from vff.moments.cores import cores, workers
from vff.moments.coupling import Coupling
from vff.moments.engines import ENGINES, READERS, Job, choose_engine, choose_set
from vff.moments.engines.sets import groups, look_up, table_of
from vff.moments.lattice import Codebook, codebook_of
from vff.moments.pairs import Pair
from vff.moments.rows import ColumnRequest, ColumnRows


def column_rows(request: ColumnRequest, x: np.ndarray) -> ColumnRows:
    """Rows in memory, with their distinct values when these are few; codes of levels are always worked on by value."""
    book = codebook_of(x)
    if book is None and request.place.discrete:
        book = Codebook(np.unique(x))
    return ColumnRows(request, x, book)


@dataclass(frozen=True)
class LetterFunction:
    """A function of some columns: products of letters, one per column, with coefficients."""

    columns: tuple[int, ...]
    alphabets: tuple[Letters, ...]
    coefficients: np.ndarray


Tables = dict[int, np.ndarray]
"""Values of functions, by their number, at all combinations of their columns' values."""


def evaluate_letters(
    rows: Sequence[ColumnRows],
    functions: Sequence[LetterFunction],
    engine: str = "auto",
    tables: Tables | None = None,
) -> list[np.ndarray]:
    """Every function at every row, (N,) each. Those of one column are taken together.

    Who asks for the same functions at stretch after stretch of the same columns keeps ``tables`` between them.
    """
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
    found = _several(rows, {number: functions[number] for number in several}, engine, {} if tables is None else tables)
    for number, value in found.items():
        values[number] = value
    return values


def _one_column(rows: ColumnRows, jobs: Sequence[tuple[Letters, np.ndarray]], engine: str) -> list[np.ndarray]:
    asked = engine != "auto" and not rows.request.place.discrete  # levels have one engine
    name = engine if asked else choose_engine(rows).name
    if (
        name != "dense"
        and len({alphabet.trigonometric and alphabet.trigonometric.multipliers for alphabet, _ in jobs}) > 1
    ):
        # an engine takes its edge functions from one basis
        return [value for job in jobs for value in ENGINES[name].evaluate_letters(rows, [job])]
    return ENGINES[name].evaluate_letters(rows, jobs)


def _several(
    rows: Sequence[ColumnRows], functions: Mapping[int, LetterFunction], engine: str, tables: Tables
) -> dict[int, np.ndarray]:
    jobs = {number: Job(function.alphabets) for number, function in functions.items()}
    names = {number: _engine(rows, function, jobs[number], engine) for number, function in functions.items()}
    grouped = {c for number, function in functions.items() if names[number] == "grouped" for c in function.columns}
    for c in grouped:
        if rows[c].book is not None:
            groups(rows[c])

    def one(number: int) -> np.ndarray:
        function, job = functions[number], jobs[number]
        columns = [rows[c] for c in function.columns]
        if names[number] != "table":
            return READERS[names[number]](columns, job, function.coefficients)
        if number not in tables:
            tables[number] = table_of(columns, job, function.coefficients)
        return look_up(columns, tables[number])

    alone = [number for number, name in names.items() if name == "dense" or len(functions) == 1]
    with workers(cores()) as pool:
        together = [number for number in functions if number not in alone]
        found = dict(zip(together, pool.map(one, together), strict=True))
    return found | {number: one(number) for number in alone}


def _engine(rows: Sequence[ColumnRows], function: LetterFunction, job: Job, engine: str) -> str:
    some = [rows[c] for c in function.columns]
    books = [column.book for column in some]
    smooth = all(alphabet.band is not None for alphabet in function.alphabets)
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


def pair_functions(couplings: Mapping[Pair, Coupling], S: Mapping[Pair, np.ndarray]) -> list[LetterFunction]:
    """Functions whose sum is that over pairs s < t of terms of phi_s' S_st phi_t."""
    merged: dict[tuple, LetterFunction] = {}
    for pair, block in S.items():
        coupling = couplings[pair]
        key, letters = (coupling.columns, coupling.alphabets), coupling.letters(block)
        seen = merged.get(key)  # functions of the same letters are one function
        total = letters if seen is None else seen.coefficients + letters
        merged[key] = LetterFunction(coupling.columns, coupling.alphabets, total)
    return list(merged.values())


def summed(rows: Sequence[ColumnRows], functions: Sequence[LetterFunction], engine: str = "auto") -> np.ndarray:
    """The sum of some functions at every row, (N,)."""
    values = evaluate_letters(rows, functions, engine)
    return np.sum(values, axis=0) if values else np.zeros(rows[0].x.size)
