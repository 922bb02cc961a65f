"""For every engine, sets of columns that it can sum: every kind of column, alone and beside others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vff.basis import Basis, Codes, ColumnBasis, Interval, Letters, LevelBasis, Products
from vff.factors.line.basis import LineBasis
from vff.factors.missing.basis import MissingBasis, MissingDomain
from vff.moments import ENGINES, ColumnRequest, ColumnRows, DistinctValues, Job, LetterFunction, synthesise

UNIT = Interval(-1.0, 1.0)
GAPS = "gaps in "
"""Before the kind of a column that has missing values."""


@dataclass(frozen=True)
class Powers(Letters):
    """t, or t^2: letters of which nothing is known but their values."""

    power: int

    @property
    def size(self) -> int:
        return 1

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        return t[:, None] ** self.power


@dataclass(frozen=True)
class SlopeBasis(Basis):
    """A straight line: a kind that no engine was written for."""

    family: ClassVar[str] = "slope"

    @property
    def size(self) -> int:
        return 1

    @property
    def single(self) -> Letters:
        return Powers(1)

    @property
    def double(self) -> Letters:
        return Powers(2)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        return [t, np.ones(t.size), np.zeros(t.size)][min(derivative, 2)][:, None]

    def products(self) -> Products:
        one = np.zeros(1, int)
        return Products.of(1, 1, (one, one, one, np.ones(1)), everywhere=True)

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def check(self) -> None:
        """There is nothing to be wrong."""


def column(kind: str, N: int, seed: int, basis: Basis | None = None) -> ColumnRows:
    """Rows of a kind of column, that every engine can work on."""
    rng = np.random.default_rng(seed)
    every: dict[str, tuple[Basis, Callable[[], np.ndarray]]] = {
        "integer": (ColumnBasis(3, 2), lambda: rng.integers(0, 9, N) / 4.5 - 1.0),
        "decimal": (ColumnBasis(2, 0), lambda: np.round(rng.uniform(-1.0, 1.0, N), 1)),
        "continuous": (ColumnBasis(4, 3), lambda: rng.uniform(-1.0, 1.0, N)),
        "clustered": (ColumnBasis(5, 2), lambda: np.clip(rng.normal(0.3, 1e-4, N), -1.0, 1.0)),
        "constant": (ColumnBasis(1, 1), lambda: np.full(N, 0.25)),
        "whole lattice": (ColumnBasis(4, 3), lambda: np.linspace(-1.0, 1.0, N)),
        "lattice": (ColumnBasis(4, 3), lambda: np.linspace(-0.71, 0.93, N)),
        "edges": (ColumnBasis(4, 3), lambda: rng.choice([-1.0, 1.0], N)),
        "slope": (SlopeBasis(), lambda: rng.uniform(-1.0, 1.0, N)),
        "line": (LineBasis(False), lambda: rng.uniform(-1.0, 1.0, N)),
        "line with intercept": (LineBasis(True), lambda: rng.uniform(-1.0, 1.0, N)),
        "levels": (LevelBasis(tuple("abcd")), lambda: rng.integers(0, 4, N).astype(float)),
    }
    if kind.startswith(GAPS):
        return _with_gaps(column(kind.removeprefix(GAPS), N, seed, basis), seed)
    own, draw = every[kind]
    x = draw()
    if kind == "levels":
        return ColumnRows(ColumnRequest(Codes(), own), x, DistinctValues(np.arange(4.0), 0.0, 1.0))
    return ColumnRows(ColumnRequest(UNIT, basis or own), x, DistinctValues(np.unique(x)))


def _with_gaps(whole: ColumnRows, seed: int) -> ColumnRows:
    """The same column, in which about a third of the rows are missing."""
    x = np.where(np.random.default_rng(seed + 1000).random(whole.x.size) < 0.3, np.nan, whole.x)
    request = ColumnRequest(MissingDomain(whole.request.domain), MissingBasis(whole.basis))
    return ColumnRows(request, x, whole.known_values.or_missing)


def jobs_of(columns: Sequence[ColumnRows]) -> list[Job]:
    """Single letters, double ones, and both; weights and targets."""
    bases = [one.basis for one in columns]
    mixed = Job((bases[0].single, *(basis.double for basis in bases[1:])))
    return [
        Job(tuple(basis.double for basis in bases)),
        Job(tuple(basis.single for basis in bases), targets=True),
        *([mixed] if len(bases) > 1 else []),
    ]


def evaluated(
    rows: ColumnRows, c: np.ndarray, S_letters: np.ndarray, engine: str = "auto"
) -> tuple[np.ndarray, np.ndarray]:
    """Phi c and diag(Phi S Phi') of one column, in one go."""
    both = ((rows.basis.single, c), (rows.basis.double, S_letters))
    values, squares = synthesise([rows], [LetterFunction((0,), (own,), some) for own, some in both], engine)
    return values, squares


@dataclass(frozen=True)
class Case:
    """An engine, and kinds of columns that it sums together."""

    engine: str
    kinds: tuple[str, ...]
    in_order: bool = False
    """Whether rows must be all there, one after another."""

    def columns(self, N: int = 40, seed: int = 0) -> list[ColumnRows]:
        return [column(kind, N, seed + d) for d, kind in enumerate(self.kinds)]

    def __str__(self) -> str:
        return f"{self.engine}: {', '.join(self.kinds)}"


NUMBERS = ("integer", "decimal", "continuous", "clustered", "constant", "edges", "lattice")
SMOOTH = [
    ("integer", "continuous"),
    ("continuous", "clustered"),
    ("edges", "edges"),
    ("decimal", "constant", "continuous"),
]
OTHERS = [
    ("levels", "continuous"),
    ("continuous", "levels"),
    ("levels", "levels"),
    ("slope", "continuous"),
    ("integer", "slope"),
    ("levels", "slope", "decimal"),
    ("continuous", "integer", "levels", "decimal"),
]


def _dense() -> Iterator[Case]:
    for kinds in (*((kind,) for kind in (*NUMBERS, "slope", "levels")), *SMOOTH, *OTHERS):
        yield Case("dense", kinds)


def _table() -> Iterator[Case]:
    for kinds in (*((kind,) for kind in (*NUMBERS, "slope", "levels")), *SMOOTH, *OTHERS):
        yield Case("table", kinds)


def _grouped() -> Iterator[Case]:
    for kinds in (*SMOOTH, *OTHERS):
        yield Case("grouped", kinds)


def _weighted() -> Iterator[Case]:
    lines = ("slope", "line", "line with intercept")
    for line in lines:
        for kinds in (*((kind,) for kind in (*NUMBERS, "levels")), *SMOOTH[:3], *((other,) for other in lines)):
            yield Case("weighted", (line, *kinds))
    yield Case("weighted", ("continuous", "line", "levels"))
    yield Case("weighted", ("levels", "slope", "decimal"))


def _nufft() -> Iterator[Case]:
    for kinds in (*((kind,) for kind in NUMBERS), *SMOOTH):
        yield Case("nufft", kinds)


def _grid() -> Iterator[Case]:
    for kind in ("lattice", "whole lattice"):
        yield Case("grid", (kind,), in_order=True)


def _missing() -> Iterator[Case]:
    every = (*NUMBERS, "levels", "slope", "line with intercept")
    for kinds in (*((kind,) for kind in every), *SMOOTH, *OTHERS):
        yield Case("missing", tuple(GAPS + kind for kind in kinds))
    yield Case("missing", (GAPS + "continuous", "integer", "levels"))
    yield Case("missing", ("line", GAPS + "clustered"))
    for other in ("dense", "table", "grouped"):
        yield Case(other, (GAPS + "integer", GAPS + "levels", "continuous"))


def _pairs() -> Iterator[Case]:
    for kinds in (("levels", "levels"), (GAPS + "levels", "levels"), (GAPS + "levels", GAPS + "levels")):
        yield Case("pairs", kinds)


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    "dense": _dense,
    "nufft": _nufft,
    "table": _table,
    "grid": _grid,
    "grouped": _grouped,
    "weighted": _weighted,
    "missing": _missing,
    "pairs": _pairs,
}


def cases() -> list[Case]:
    """All of them."""
    return [case for name in ENGINES.names if name in MAKERS for case in MAKERS[name]()]
