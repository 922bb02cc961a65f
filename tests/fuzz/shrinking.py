"""A problem that breaks a law, made smaller while it does: fewer rows, columns, terms, options."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fuzz.problems import Problem, picked

Breaks = Callable[[Problem], bool]


def shrunk(problem: Problem, breaks: Breaks, seconds: float) -> Problem:
    """The smallest that was found in time; it breaks the same law."""
    end, again = time.monotonic() + seconds, True
    while again:
        again = False
        for smaller in smaller_ones(problem):
            if time.monotonic() > end:
                return problem
            if breaks(smaller):
                problem, again = smaller, True
                break
    return problem


def smaller_ones(problem: Problem) -> Iterator[Problem]:
    """Simpler problems, those that take most away first."""
    yield from _fewer_rows(problem)
    for k in range(len(problem.terms) if len(problem.terms) > 1 else 0):
        yield replace(problem, terms=problem.terms[:k] + problem.terms[k + 1 :])
    yield from _fewer_factors(problem)
    yield from _fewer_columns(problem)
    if problem.weights is not None:
        yield replace(problem, weights=None)
    for name in problem.options:
        yield problem.without(name)
    plain = all(values.dtype == float for values in problem.table.values())
    if problem.source not in ("array", "pandas"):
        yield replace(problem, source="pandas")
    if problem.source == "pandas" and plain:
        yield replace(problem, source="array")
    yield from _plainer_values(problem)


def _fewer_rows(problem: Problem) -> Iterator[Problem]:
    n = problem.n
    pieces = 2
    while pieces <= min(2 * n, 64) and n > 1:
        for piece in np.array_split(np.arange(n), min(pieces, n)):
            rest = np.setdiff1d(np.arange(n), piece)
            if rest.size and np.any(problem.weight[rest] > 0.0):
                yield problem.at(rest) if problem.asks_outside else problem.at(rest).asking_inside()
        pieces *= 2
    asked = len(next(iter(problem.asked.values())))
    if asked > 1:
        yield replace(problem, asked=picked(problem.asked, slice(0, asked // 2)))
        yield replace(problem, asked=picked(problem.asked, slice(asked // 2, asked)))


def _fewer_factors(problem: Problem) -> Iterator[Problem]:
    for k, term in enumerate(problem.terms):
        for j in range(len(term) if len(term) > 1 else 0):
            yield replace(problem, terms=(*problem.terms[:k], term[:j] + term[j + 1 :], *problem.terms[k + 1 :]))
        for j, leaf in enumerate(term):
            if leaf.values:
                plain = (*term[:j], replace(leaf, values={}), *term[j + 1 :])
                yield replace(problem, terms=(*problem.terms[:k], plain, *problem.terms[k + 1 :]))


def _fewer_columns(problem: Problem) -> Iterator[Problem]:
    used = {leaf.column for term in problem.terms for leaf in term}
    for gone in problem.table if len(problem.table) > 1 else ():
        if gone in used or (problem.likelihood is not None and repr(gone) in problem.likelihood):
            continue
        table, asked = ({k: v for k, v in t.items() if k != gone} for t in (problem.table, problem.asked))
        options = {
            name: {k: v for k, v in value.items() if k != gone} if isinstance(value, dict) else value
            for name, value in problem.options.items()
        }
        yield replace(problem, table=table, asked=asked, options={k: v for k, v in options.items() if v != {}})


def _plainer_values(problem: Problem) -> Iterator[Problem]:
    """Numbers of three digits, where they have more."""
    for name in problem.numbers:
        values = rounded(problem.table[name])
        if not np.array_equal(values, problem.table[name]):
            yield replace(problem, table=problem.table | {name: values})
    if not np.array_equal(rounded(problem.y), problem.y):
        yield replace(problem, y=rounded(problem.y))


def rounded(values: np.ndarray) -> np.ndarray:
    return np.array([float(f"{value:.3g}") for value in values])
