"""Regression with Gaussian noise: every law of one fit, and of the same rows told in another way."""

from dataclasses import replace

from fuzz.findings import Outcome
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.laws import LAWS
from fuzz.models import random_options, random_source, random_terms
from fuzz.problems import Problem
from fuzz.tables import Rng, chance, random_size, random_table, random_target, random_weights, some_rows
from fuzz.trials import tried_out
from fuzz.twins import WAYS

_NAME = "gaussian"
_ASKED = 40  # rows that are asked about
_FEW = 400  # rows up to which the twins are tried, too


def random_problem(rng: Rng, most: int) -> Problem:
    n, plain = random_size(rng, most), chance(rng, 0.6)
    table = random_table(n, int(rng.integers(1, 5)), rng, plain=plain)
    problem = Problem(table, random_target(table, rng), some_rows(table, _ASKED, rng), random_terms(table, rng))
    problem = replace(problem, weights=random_weights(n, rng), source=random_source(plain, rng))
    return replace(problem, options=random_options(problem, rng))


def attempt(seed: int, effort: Effort) -> Outcome:
    rng = generator(_NAME, seed)
    problem = random_problem(rng, effort.rows)
    ways = [WAYS[k] for k in rng.permutation(len(WAYS))[:2]] if problem.n <= _FEW else []
    return tried_out(problem, LAWS, ways, seed, effort)


KIND = Kind(_NAME, "Gaussian noise: tables, kernels, options, engines, sources", attempt, share=7.0)
