"""Regression with Gaussian noise: every law of one fit, and of the same rows told in another way."""

from collections.abc import Callable
from dataclasses import replace

from fuzz.findings import Finding, Outcome
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.laws import LAWS
from fuzz.models import random_options, random_source, random_terms
from fuzz.problems import Problem
from fuzz.programs import Run, run, script
from fuzz.shrinking import shrunk
from fuzz.tables import Rng, chance, random_size, random_table, random_target, random_weights, some_rows
from fuzz.twins import WAYS, tried

_NAME = "gaussian"
_ASKED = 40  # rows that are asked about
_FEW = 400  # rows up to which the twins are tried, too


def random_problem(rng: Rng, most: int) -> Problem:
    n, plain = random_size(rng, most), chance(rng, 0.6)
    table = random_table(n, int(rng.integers(1, 5)), rng, plain=plain)
    problem = Problem(table, random_target(table, rng), some_rows(table, _ASKED, rng), random_terms(table, rng))
    problem = replace(problem, weights=random_weights(n, rng), source=random_source(plain, rng))
    return replace(problem, options=random_options(problem, rng))


def broken_by(way: Callable | None, law: str, problem: Problem, seed: int) -> tuple[str | None, tuple[Problem, ...]]:
    """The sentence of one law about a problem, and the problems that show it."""
    first = run(problem)
    if way is None:
        return _sentence(law, problem, first), (problem,)
    sentence, other = tried(way, problem, first, generator(law, seed))
    return sentence, (problem, other)


def _sentence(law: str, problem: Problem, first: Run) -> str | None:
    return next(each for each in LAWS if each.__name__ == law)(problem, first)


def found(way: Callable | None, law: str, problem: Problem, seed: int, effort: Effort) -> Finding:
    """A broken law, with the smallest problem that breaks it."""

    def breaks(smaller: Problem) -> bool:
        return broken_by(way, law, smaller, seed)[0] is not None

    small = shrunk(problem, breaks, effort.shrink_seconds)
    sentence, problems = broken_by(way, law, small, seed)
    said = sentence or "broken once, and not again: the answer changes from run to run"
    return Finding(law.replace("_", " "), said, script(problems, law.replace("_", " "), said))


def attempt(seed: int, effort: Effort) -> Outcome:
    rng = generator(_NAME, seed)
    problem = random_problem(rng, effort.rows)
    ways = [WAYS[k] for k in rng.permutation(len(WAYS))[:2]] if problem.n <= _FEW else []
    first = run(problem)
    counts = {"fits": 1, "refused": int(first.error is not None)}
    for law in LAWS:
        if law(problem, first) is not None:
            return Outcome(found(None, law.__name__, problem, seed, effort), counts)
    for way in ways:
        counts["fits"] += 1
        if tried(way, problem, first, generator(way.__name__, seed))[0] is not None:
            return Outcome(found(way, way.__name__, problem, seed, effort), counts)
    return Outcome(None, counts)


KIND = Kind(_NAME, "Gaussian noise: tables, kernels, options, engines, sources", attempt, share=4.0)
