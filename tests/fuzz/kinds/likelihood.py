"""Every likelihood but the closed form, with every structure of the posterior's covariance, and labels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz import twins
from fuzz.findings import Outcome
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.laws import (
    answers_are_numbers,
    no_stray_warning,
    own_rows_lie_within_their_intervals,
    refusals_are_sentences,
)
from fuzz.models import random_domain, random_frequencies, random_leaf, random_source, random_terms
from fuzz.problems import Problem, Table
from fuzz.tables import (
    Rng,
    chance,
    one_of,
    random_function,
    random_size,
    random_table,
    random_target,
    random_weights,
    some_rows,
)
from fuzz.trials import tried_out

_NAME = "likelihood"
_ASKED = 20
_MOST_ROWS = 600  # a climb asks all rows at every step
_FEW = 80  # rows up to which the twins are tried, too
_BESIDE = "exposure or trials"

Draw = Callable[[np.ndarray, Table, Rng], np.ndarray]


def _rate(f: np.ndarray, rng: Rng) -> np.ndarray:
    return np.exp(np.clip(f + one_of(rng, (-2.0, 0.0, 3.0, 8.0)), -20.0, 14.0))


def _share(f: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-2.0 * f))


def _positive(f: np.ndarray, table: Table, rng: Rng) -> np.ndarray:
    """Of any size, and now and then over nineteen decades."""
    shape, spread = 10.0 ** rng.uniform(-0.5, 2.0), one_of(rng, (1.0, 1.0, 1.0, 6.0))
    return np.maximum(rng.gamma(shape, np.exp(spread * f) / shape) * 10.0 ** rng.uniform(-6, 6), 1e-200)


def _counted(f: np.ndarray, table: Table, rng: Rng) -> np.ndarray:
    return rng.poisson(table.get(_BESIDE, 1.0) * _rate(f, rng)).astype(float)


def _overdispersed(f: np.ndarray, table: Table, rng: Rng) -> np.ndarray:
    shape = 10.0 ** rng.uniform(-1, 2)
    return rng.poisson(table.get(_BESIDE, 1.0) * rng.gamma(shape, _rate(f, rng) / shape)).astype(float)


def _levels(f: np.ndarray, table: Table, rng: Rng) -> np.ndarray:
    cuts = np.sort(rng.normal(size=int(rng.integers(1, 5))))
    y = np.searchsorted(cuts, f + rng.logistic(size=f.size)).astype(float)
    return np.unique(y, return_inverse=True)[1].astype(float)  # every level up to the largest is there


TARGETS: dict[str, Draw] = {
    "'student-t'": lambda f, table, rng: random_target(table, rng),
    "StudentT(df=4.0)": lambda f, table, rng: 1e3 * (f + rng.standard_t(2, f.size)),
    "'poisson'": _counted,
    f"Poisson(exposure='{_BESIDE}')": _counted,
    "'negative-binomial'": _overdispersed,
    "'gamma'": _positive,
    "Gamma(shape=2.0)": _positive,
    "'beta'": lambda f, table, rng: np.clip(rng.beta(3 * _share(f) + 0.1, 3 - 2.9 * _share(f)), 1e-9, 1 - 1e-9),
    "'ordinal'": _levels,
    "'bernoulli'": lambda f, table, rng: (rng.random(f.size) < _share(f)).astype(float),
    f"Binomial(trials='{_BESIDE}')": lambda f, table, rng: rng.binomial(table[_BESIDE].astype(int), _share(f)).astype(
        float
    ),
}
LABELS: dict[str, Draw] = {
    "'logit'": lambda f, table, rng: np.array(["no", "yes"])[(rng.random(f.size) < _share(f)).astype(int)],
    "'probit'": lambda f, table, rng: (f + rng.normal(size=f.size) > 0.0).astype(int),
}

LAWS = (refusals_are_sentences, no_stray_warning, answers_are_numbers, own_rows_lie_within_their_intervals)
WAYS = (
    twins.with_rows_permuted,
    twins.with_rows_doubled,
    twins.with_other_units_of_x,
    twins.through_another_source,
    twins.saved_and_loaded,
    twins.once_more,
)


def random_problem(rng: Rng, most: int) -> Problem:
    labels, plain = chance(rng, 0.2), chance(rng, 0.6)
    likelihood = one_of(rng, LABELS if labels else TARGETS)
    n = random_size(rng, min(most, _MOST_ROWS))
    table = random_table(n, int(rng.integers(1, 4)), rng, plain=plain)
    terms, f = random_terms(table, rng), random_function(table, rng)
    if _BESIDE in likelihood:
        plain = False  # columns of an array have no names
        terms = terms or ((random_leaf("a", table["a"], rng),),)
        table = table | {_BESIDE: rng.integers(1, 20, n).astype(float)}
    y = (LABELS if labels else TARGETS)[likelihood](f, table, rng)
    problem = Problem(table, y, some_rows(table, _ASKED, rng), terms, random_weights(n, rng))
    estimator = "GPClassifier" if labels else "GPRegressor"
    problem = replace(problem, likelihood=likelihood, estimator=estimator, source=random_source(plain, rng))
    return replace(problem, options=random_options(problem, rng))


def random_options(problem: Problem, rng: Rng) -> dict[str, Any]:
    options = random_frequencies(problem.table, problem.terms, rng)
    if chance(rng, 0.35):
        options["covariance"] = one_of(rng, ["kronecker", "two kroneckers", "factorised"])
    if chance(rng, 0.2):
        options["optimizer"] = None
    if problem.estimator == "GPRegressor" and chance(rng, 0.15):
        options["normalize_y"] = False
    if chance(rng, 0.1):
        options["batch_size"] = 256
    if chance(rng, 0.15):
        options |= random_domain(problem, rng)
    return options


def attempt(seed: int, effort: Effort) -> Outcome:
    rng = generator(_NAME, seed)
    problem = random_problem(rng, effort.rows)
    ways = [one_of(rng, WAYS)] if problem.n <= _FEW and chance(rng, 0.6) else []
    return tried_out(problem, LAWS, ways, seed, effort)


KIND = Kind(_NAME, "all other likelihoods and structures, and labels", attempt, share=4.0, limit=600.0)
