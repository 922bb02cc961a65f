"""Random tables, made to be awkward: ties, constants, copies, lattices, dates, levels, wild units and weights."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.problems import Table, is_number, picked

Rng = np.random.Generator
_OFFSETS = (0.0, 0.0, 1.0, -1e3, 1e6)  # in units of a column's spread, so that float64 resolves what is left

NUMBERS: dict[str, Callable[[int, np.ndarray, Rng], np.ndarray]] = {
    "continuous": lambda n, first, rng: rng.uniform(-1, 1, n),
    "normal": lambda n, first, rng: rng.normal(size=n),
    "ties": lambda n, first, rng: rng.choice([-1.0, 0.0, 0.3], n),
    "constant": lambda n, first, rng: np.full(n, 0.7),
    "collinear": lambda n, first, rng: 2.0 * first - 1.0,
    "copy": lambda n, first, rng: first.copy(),
    "near copy": lambda n, first, rng: first + 1e-7 * rng.normal(size=n),
    "lattice": lambda n, first, rng: 0.1 * rng.integers(0, 40, n),
    "regular": lambda n, first, rng: np.arange(float(n)),
    "clustered": lambda n, first, rng: rng.integers(0, 2, n) + 1e-4 * rng.normal(size=n),
    "outlier": lambda n, first, rng: np.where(np.arange(n) == 0, 1e4, rng.normal(size=n)),
    "heavy": lambda n, first, rng: np.exp(3.0 * rng.normal(size=n)),
}
LEVELS: dict[str, Callable[[int, Rng], np.ndarray]] = {
    "few levels": lambda n, rng: np.array(["a", "b", "ç", "d e"], object)[rng.integers(0, 4, n)],
    "one level": lambda n, rng: np.full(n, "only", object),
    "many levels": lambda n, rng: np.array([f"level {k}" for k in rng.integers(0, max(2, n // 2), n)], object),
    "missing": lambda n, rng: np.array(["a", None, "b"], object)[rng.integers(0, 3, n)],
}
TARGETS: dict[str, Callable[[np.ndarray, Rng], np.ndarray]] = {
    "smooth": lambda f, rng: f + 0.3 * rng.normal(size=f.size),
    "rough": lambda f, rng: np.cumsum(rng.normal(size=f.size)) / max(1.0, f.size) ** 0.5 + 0.1 * f,
    "noise": lambda f, rng: rng.normal(size=f.size),
    "tiny noise": lambda f, rng: f + 1e-6 * rng.normal(size=f.size),
    "no noise": lambda f, rng: f,
    "constant": lambda f, rng: np.full(f.size, 3.0),
    "outlier": lambda f, rng: np.where(np.arange(f.size) == f.size - 1, 1e6, rng.normal(size=f.size)),
    "step": lambda f, rng: (f > 0.1).astype(float),
    "integers": lambda f, rng: np.round(3.0 * f + rng.normal(size=f.size)),
}
WEIGHTS: dict[str, Callable[[int, Rng], np.ndarray | None]] = {
    "none": lambda n, rng: None,
    "counts": lambda n, rng: rng.integers(1, 5, n).astype(float),
    "zeros": lambda n, rng: np.where(np.arange(n) == 0, 1.0, rng.integers(0, 3, n)).astype(float),
    "eight decades": lambda n, rng: 10.0 ** rng.uniform(-4, 4, n),
    "large": lambda n, rng: np.full(n, 1e6),
    "small": lambda n, rng: np.full(n, 1e-3),
}


def one_of(rng: Rng, choices: Any) -> Any:
    """One of a list, or a key of a dictionary, as it is and not as NumPy's."""
    found = list(choices)
    return found[int(rng.integers(len(found)))]


def chance(rng: Rng, share: float) -> bool:
    return bool(rng.random() < share)


def random_size(rng: Rng, most: int) -> int:
    """Rows: mostly few, and now and then as many as there may be."""
    low, high = one_of(rng, [(1, 10), (1, 10), (10, 80), (10, 80), (10, 80), (80, 400), (400, 3000)])
    return int(rng.integers(min(low, most), min(high, most) + 1))


def random_number(n: int, first: np.ndarray, rng: Rng) -> np.ndarray:
    """A column of numbers, often in strange units."""
    values = NUMBERS[one_of(rng, NUMBERS)](n, first, rng)
    if chance(rng, 0.5):
        return values
    scale = 10.0 ** rng.uniform(-8, 8)
    return scale * (values + one_of(rng, _OFFSETS))


def random_dates(n: int, rng: Rng) -> np.ndarray:
    unit, most = one_of(rng, [("D", 4000), ("ms", 10**10), ("ns", 10**15)])
    start = np.datetime64("2024-02-28", unit)
    return start + rng.integers(0, most, n).astype(f"timedelta64[{unit}]")


def random_table(n: int, columns: int, rng: Rng, *, plain: bool) -> Table:
    """Columns a, b, ...; ``plain`` for a table that an array can hold."""
    first = rng.uniform(-1, 1, n)
    table: Table = {}
    for name in "abcdefgh"[:columns]:
        kind = "number" if plain else one_of(rng, ["number", "number", "number", "dates", "levels"])
        if kind == "number":
            table[name] = random_number(n, first, rng)
        else:
            table[name] = random_dates(n, rng) if kind == "dates" else LEVELS[one_of(rng, LEVELS)](n, rng)
    return table


def random_function(table: Table, rng: Rng) -> np.ndarray:
    """Something that depends on the columns, of size one."""
    n = len(next(iter(table.values())))
    total = np.zeros(n)
    for values in table.values():
        if not is_number(values):
            codes = np.unique(values.astype(str), return_inverse=True)[1]
            total += rng.normal(size=codes.max() + 1)[codes]
            continue
        spread = np.ptp(values)
        unit = (values - values.min()) / (spread if spread > 0.0 else 1.0)
        total += rng.normal() * np.sin(rng.uniform(1, 9) * unit) + rng.normal() * unit
    return total


def random_target(table: Table, rng: Rng) -> np.ndarray:
    """y of any kind, over eighteen decades."""
    y = TARGETS[one_of(rng, TARGETS)](random_function(table, rng), rng)
    if chance(rng, 0.5):
        return y
    return 10.0 ** rng.uniform(-9, 9) * (y + one_of(rng, (0.0, 0.0, -1.0, 1e4, 1e8)))


def random_weights(n: int, rng: Rng) -> np.ndarray | None:
    return WEIGHTS[one_of(rng, ["none"] * 5 + list(WEIGHTS))](n, rng)


def some_rows(table: Table, most: int, rng: Rng) -> Table:
    n = len(next(iter(table.values())))
    return picked(table, np.sort(rng.permutation(n)[:most]))
