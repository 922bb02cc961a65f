"""Coefficients to rows: the mean and the quadratic form that a posterior asks for, theory (3.1).

evaluate Phi c             the single letters of every term
quad     diag(Phi S Phi')  the double letters of every term, and the letters of every pair of terms
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vff.basis.protocol import Domain, Letters
from vff.basis.several import parts_of, split
from vff.moments.distinct import DistinctValues, distinct_values_of
from vff.moments.engines.base import Engine, Job, Work
from vff.moments.engines.choice import ENGINES, choose
from vff.moments.gram import TermPair
from vff.moments.rows import ColumnRequest, ColumnRows, Place, numbers
from vff.moments.statistics import MomentRequest, Pair
from vff.moments.threads import side_by_side


def column_rows(request: ColumnRequest, x: np.ndarray) -> ColumnRows:
    """Rows in memory, with their distinct values when these are few; codes of levels are always worked on by value."""
    distinct = distinct_values_of(x)
    if distinct is None and request.domain.discrete:
        distinct = DistinctValues(np.unique(x))
    return ColumnRows(request, x, distinct)


@dataclass(frozen=True)
class LetterFunction:
    """A function of some columns: products of letters, one per column, with coefficients."""

    columns: tuple[int, ...]
    axis_letters: tuple[Letters, ...]
    """One for every column, which two may read."""
    coefficients: np.ndarray
    domains: tuple[Domain, ...] = ()
    """The same; those of the rows where there are none."""

    @classmethod
    def of(
        cls,
        places: Sequence[Place],
        letters: Sequence[Letters],
        coefficients: np.ndarray,
        domains: Sequence[Domain],
    ) -> "LetterFunction":
        """Of letters that may be of several columns each."""
        parts = tuple(part for domain in domains for part in domain.parts)
        return cls(numbers(places), parts_of(letters), split(letters, coefficients), parts)

    def on(self, rows: "Rows") -> list[ColumnRows]:
        """Its columns at these rows."""
        columns = [rows[c] for c in self.columns]
        if not self.domains:
            return columns
        return [one.on(domain) for one, domain in zip(columns, self.domains, strict=True)]


Rows = Sequence[ColumnRows] | Mapping[int, ColumnRows]
"""Rows by column."""
Tables = dict[Any, dict[Any, Any]]
"""What engines keep of functions, by their number, from stretch to stretch of the same columns."""
Weighed = tuple[float, LetterFunction]
"""A function and how often it counts."""


def synthesise(
    rows: Rows, functions: Sequence[LetterFunction], engine: str = "auto", tables: Tables | None = None
) -> list[np.ndarray]:
    """Every function at every row, (N,) each. Those of one axis are taken together.

    Who asks for the same functions at stretch after stretch of the same columns keeps ``tables`` between them.
    """
    together: dict[Any, list[int]] = {}
    for number, function in enumerate(functions):
        alone = len(function.columns) == 1
        together.setdefault((function.columns, function.domains) if alone else number, []).append(number)
    values: list[np.ndarray] = [np.empty(0)] * len(functions)
    kept, threaded, others = {} if tables is None else tables, [], []
    for some in together.values():
        columns = functions[some[0]].on(rows)
        work = Work(columns[0].x.size, [Job(functions[number].axis_letters) for number in some], columns)
        how = ENGINES[_engine(work, engine)]
        how.prepare(columns)
        own = threaded if work.alone is None and not how.parallel else others
        own.append((some, work, how))

    def one(group: tuple[list[int], Work, Engine]) -> None:
        some, work, engine = group
        own = kept.setdefault((engine.name, some[0]), {})
        coefficients = [functions[number].coefficients for number in some]
        found = engine.evaluate(work.columns, work.jobs, coefficients, own)
        for number, value in zip(some, found, strict=True):
            values[number] = value

    with side_by_side(threaded[0][1].n if len(threaded) > 1 else 0) as each:
        each(one, threaded)
    for group in others:
        one(group)
    return values


def combined(
    rows: Rows, request: MomentRequest, groups: Sequence[Sequence[Weighed]], tables: Tables
) -> list[np.ndarray]:
    """The sum of every group of functions of a request's terms, (N,) each; written rows have a way of their own."""
    own = getattr(rows, "combined", None)
    if own is not None:
        return own(request, groups, tables)
    values = iter(synthesise(rows, [function for group in groups for _, function in group], tables=tables))
    return [np.sum([weight * next(values) for weight, _ in group], axis=0) for group in groups]


def _engine(work: Work, engine: str) -> str:
    """As asked, where that is possible."""
    beyond = work.alone is None and (engine == "grid" or (engine == "nufft" and len(work.columns) > 3))
    return choose(work).name if engine == "auto" or work.bands is None or beyond else engine


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
        own = LetterFunction.of(term_pair.columns, term_pair.axis_letters, letters, term_pair.domains)
        merged[key] = own if seen is None else replace(own, coefficients=seen.coefficients + own.coefficients)
    return list(merged.values())


def summed(rows: Sequence[ColumnRows], functions: Sequence[LetterFunction], engine: str = "auto") -> np.ndarray:
    """The sum of some functions at every row, (N,)."""
    values = synthesise(rows, functions, engine)
    return np.sum(values, axis=0) if values else np.zeros(rows[0].x.size)
