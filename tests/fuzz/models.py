"""Random kernels and options for a table."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from fuzz.problems import Leaf, Problem, Table, Terms, in_days
from fuzz.tables import Rng, chance, one_of

MATERNS = ("Matern12", "Matern32", "Matern52", "Matern72", "Matern92")
_FEW_ROWS, _MOST_FEATURES = 80, 300
_PLAIN = ("array", "array", "pandas", "polars", "arrow", "list of chunks", "function of chunks", "parquet", "dask")


def random_leaf(name: str, values: np.ndarray, rng: Rng) -> Leaf:
    """A factor that suits its column, now and then with values to start from."""
    if values.dtype.kind == "O" or (np.unique(values).size <= 4 and chance(rng, 0.3) and values.dtype.kind == "f"):
        return Leaf("Categorical", name)
    start: dict[str, float] = {}
    if chance(rng, 0.3):
        numbers = in_days(values)
        spread = float(np.ptp(numbers)) or abs(float(numbers[0])) or 1.0  # a constant has units, too
        start["lengthscale"] = spread * float(10.0 ** rng.uniform(-1.5, 1.0))
    return Leaf(one_of(rng, MATERNS), name, start)


def random_terms(table: Table, rng: Rng) -> Terms:
    """A sum of products over the columns; now and then none, which stands for the default kernel."""
    if chance(rng, 0.15):
        return ()
    names, terms = list(table), []
    for _ in range(int(rng.integers(1, 4))):
        size = min(len(names), one_of(rng, [1, 1, 1, 2, 2, 3]))
        columns = [names[k] for k in rng.permutation(len(names))[:size]]
        term = tuple(random_leaf(name, table[name], rng) for name in columns)
        while len(term) > 1 and _features(table, term, 1) > _MOST_FEATURES:
            term = term[:-1]
        terms.append(term)
    return tuple(terms)


def _features(table: Table, term: Sequence[Leaf], M: int) -> int:
    """How many a product has, with the edge functions that it gets by itself."""

    def of_one(leaf: Leaf) -> int:
        if leaf.kernel == "Categorical":
            return np.unique(table[leaf.column].astype(str)).size
        return 2 * M + 3 + MATERNS.index(leaf.kernel)

    return prod(map(of_one, term))


def random_frequencies(table: Table, terms: Terms, rng: Rng) -> dict[str, Any]:
    """Mostly so few that a case takes a second; those of sums of products are never left to the fit."""
    n, products = len(next(iter(table.values()))), [term for term in terms if len(term) > 1]
    found = len(products) < 2 and max(map(len, products), default=1) < 3 and (n <= _FEW_ROWS or not products)
    if found and chance(rng, 0.3 if n <= _FEW_ROWS else 0.1):
        return {}
    every = terms or tuple((Leaf("Matern32", name),) for name in table)
    most = next((M for M in range(24, 1, -1) if sum(_features(table, term, M) for term in every) <= _MOST_FEATURES), 1)
    return {"frequencies": int(rng.integers(1, most + 1))}


def random_domain(problem: Problem, rng: Rng) -> dict[str, Any]:
    """Around the rows, wide of them, or narrower than they are, for some of the columns that have one."""
    used = {leaf.column for term in problem.terms for leaf in term} or set(problem.table)
    domain = {}
    for name in problem.numbers:
        values = problem.table[name]
        low, spread = float(values.min()), float(np.ptp(values))
        if name in used and spread > 0.0 and chance(rng, 0.5):
            before, after = rng.uniform(-0.1, 1.0, 2) * spread
            domain[name] = (float(low - before), float(low + spread + after))
    return {"domain": domain} if domain else {}


def random_options(problem: Problem, rng: Rng) -> dict[str, Any]:
    """Of a Gaussian fit."""
    options = random_frequencies(problem.table, problem.terms, rng)
    scale = float(np.std(problem.y)) or 1.0
    if chance(rng, 0.4):
        options |= {"optimizer": None, "noise_variance": scale**2 * float(10.0 ** rng.uniform(-4, 0.5))}
    elif chance(rng, 0.2):
        options["noise_variance"] = scale**2 * float(10.0 ** rng.uniform(-8, 1))
    if chance(rng, 0.2):
        options["normalize_y"] = False
    if chance(rng, 0.25):
        options["edges"] = int(rng.integers(0, 5))
    if chance(rng, 0.3):
        options["engine"] = one_of(rng, ["dense", "nufft", "nufft", "table"])
    if chance(rng, 0.25):
        options |= random_domain(problem, rng)
    return options


def random_source(problem_is_plain: bool, rng: Rng) -> str:
    return one_of(rng, _PLAIN if problem_is_plain else [name for name in _PLAIN if name != "array"])
