"""Coefficients to rows: the mean and the quadratic form that a posterior asks for, theory (3.1).

evaluate Phi c             the single letters of every term
quad     diag(Phi S Phi')  the double letters of every term, and the letters of every pair of terms
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vff.basis.protocol import Domain, Letters
from vff.moments.distinct import DistinctValues, distinct_values_of
from vff.moments.engines import ENGINES, Job, Work, choose
from vff.moments.gram import TermPair
from vff.moments.pairs import Pair
from vff.moments.rows import ColumnRequest, ColumnRows
from vff.moments.threads import cores, workers


def column_rows(request: ColumnRequest, x: np.ndarray) -> ColumnRows:
    """Rows in memory, with their distinct values when these are few; codes of levels are always worked on by value."""
    distinct = distinct_values_of(x)
    if distinct is None and request.domain.discrete:
        distinct = DistinctValues(np.unique(x))
    return ColumnRows(request, x, distinct)


@dataclass(frozen=True)
class LetterFunction:
    """A function of some axes: products of letters, one per axis, with coefficients."""

    columns: tuple[int, ...]
    """The column of the rows behind every axis."""
    axis_letters: tuple[Letters, ...]
    coefficients: np.ndarray
    domains: tuple[Domain, ...] = ()
    """Of every axis; those of the columns where there are none."""

    @property
    def job(self) -> Job:
        return Job(self.axis_letters)

    def on(self, rows: "Rows") -> list[ColumnRows]:
        """Its axes at these rows."""
        columns = [rows[c] for c in self.columns]
        if not self.domains:
            return columns
        return [one.on(domain) for one, domain in zip(columns, self.domains, strict=True)]


Rows = Sequence[ColumnRows] | Mapping[int, ColumnRows]
"""Rows by column."""
Tables = dict[Any, dict[Any, np.ndarray]]
"""What engines keep of functions, by their number, from stretch to stretch of the same columns."""


def synthesise(
    rows: Rows, functions: Sequence[LetterFunction], engine: str = "auto", tables: Tables | None = None
) -> list[np.ndarray]:
    """Every function at every row, (N,) each. Those of one axis are taken together.

    Who asks for the same functions at stretch after stretch of the same columns keeps ``tables`` between them.
    """
    values: list[np.ndarray] = [np.empty(0)] * len(functions)
    alone: dict[tuple[int, tuple[Domain, ...]], list[int]] = {}
    several: list[int] = []
    for number, function in enumerate(functions):
        if len(function.columns) == 1:
            alone.setdefault((function.columns[0], function.domains), []).append(number)
        else:
            several.append(number)
    for numbers in alone.values():
        some = [functions[number] for number in numbers]
        jobs, coefficients = [own.job for own in some], [own.coefficients for own in some]
        for number, found in zip(numbers, _one_axis(some[0].on(rows)[0], jobs, coefficients, engine), strict=True):
            values[number] = found
    found = _several(rows, {number: functions[number] for number in several}, engine, {} if tables is None else tables)
    for number, value in found.items():
        values[number] = value
    return values


def _one_axis(
    rows: ColumnRows, jobs: Sequence[Job], coefficients: Sequence[np.ndarray], engine: str
) -> list[np.ndarray]:
    work = Work(rows.x.size, jobs, [rows])
    name = engine if engine != "auto" and not rows.request.domain.discrete else choose(work).name
    return ENGINES[name].evaluate([rows], jobs, coefficients)


def _several(rows: Rows, functions: Mapping[int, LetterFunction], engine: str, tables: Tables) -> dict[int, np.ndarray]:
    columns = {number: function.on(rows) for number, function in functions.items()}
    names = {number: _engine(columns[number], function.job, engine) for number, function in functions.items()}
    for number, name in names.items():
        ENGINES[name].prepare(columns[number])

    def one(number: int) -> np.ndarray:
        function, kept = functions[number], tables.setdefault((names[number], number), {})
        (values,) = ENGINES[names[number]].evaluate(columns[number], [function.job], [function.coefficients], kept)
        return values

    alone = [number for number, name in names.items() if ENGINES[name].parallel or len(functions) == 1]
    with workers(cores()) as pool:
        together = [number for number in functions if number not in alone]
        found = dict(zip(together, pool.map(one, together), strict=True))
    return found | {number: one(number) for number in alone}


def _engine(columns: Sequence[ColumnRows], job: Job, engine: str) -> str:
    work = Work(columns[0].x.size, [job], columns)
    if engine not in ("auto", "grid") and work.bands is not None and not (engine == "nufft" and len(columns) > 3):
        return engine
    return choose(work).name


def evaluate_several(
    rows: ColumnRows, vectors: Sequence[np.ndarray], S_letters: np.ndarray | None = None, engine: str = "auto"
) -> list[np.ndarray]:
    """Phi c for several c, and diag(Phi S Phi') when S is given, of one column, (N,) each, in one go."""
    jobs, coefficients = [Job((rows.basis.single,)) for _ in vectors], [*vectors]
    if S_letters is not None:
        jobs.append(Job((rows.basis.double,)))
        coefficients.append(S_letters)
    return _one_axis(rows, jobs, coefficients, engine)


def analyse(rows: ColumnRows, letters: Letters, strengths: np.ndarray) -> np.ndarray:
    """Strengths times the letters of one column, summed over its rows, (size,)."""
    jobs = [Job((letters,))]
    engine = ENGINES[choose(Work(rows.x.size, jobs, [rows])).name]
    return engine.sum([rows], jobs, strengths, strengths)[0]


def pair_functions(term_pairs: Mapping[Pair, TermPair], S: Mapping[Pair, np.ndarray]) -> list[LetterFunction]:
    """Functions whose sum is that over pairs s < t of terms of phi_s' S_st phi_t."""
    merged: dict[tuple, LetterFunction] = {}
    for pair, block in S.items():
        term_pair = term_pairs[pair]
        key, letters = (term_pair.axes, term_pair.axis_letters), term_pair.letters(block)
        seen = merged.get(key)  # functions of the same letters are one function
        total = letters if seen is None else seen.coefficients + letters
        merged[key] = LetterFunction(term_pair.columns, term_pair.axis_letters, total, term_pair.domains)
    return list(merged.values())


def summed(rows: Sequence[ColumnRows], functions: Sequence[LetterFunction], engine: str = "auto") -> np.ndarray:
    """The sum of some functions at every row, (N,)."""
    values = synthesise(rows, functions, engine)
    return np.sum(values, axis=0) if values else np.zeros(rows[0].x.size)
