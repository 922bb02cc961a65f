"""The drill: a factor, an engine, a likelihood and a source that are defined in tests, registered, and fitted together.

The factor is here, and obeys every law of factors; likelihoods and sources of one's own obey theirs in
``tests/likelihoods/test_registered.py`` and ``test_own_source.py``, and come from there. Nothing in the package knows
of any of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from tests.laws import test_factors as laws
from tests.laws.test_own_source import Tape, TapeSource
from tests.likelihoods.test_registered import Logistic
from tests.makers.factors import MAKERS, Case

from vff import GPRegressor, Matern32, load, parse_kernel
from vff.basis import Basis, Domain, Letters, Products
from vff.data import SOURCES, SourceKind
from vff.factors import KINDS, Block, Factor, FactorOptions, Kind, Leaf, Prior, Values
from vff.likelihoods import register, unregister
from vff.moments import ENGINES
from vff.moments.engines.dense import DenseEngine

FIXED_PERIOD = 7.0


@dataclass(frozen=True)
class Dial(Domain):
    """Inputs that come again after seven."""

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return 2.0 * np.pi * x / FIXED_PERIOD

    @property
    def half_length(self) -> float:
        return FIXED_PERIOD / (2.0 * np.pi)

    def describe(self) -> str:
        return "a dial"

    def draw(self, rng: np.random.Generator, n: int, size: int) -> np.ndarray:
        return rng.uniform(0.0, FIXED_PERIOD, n)

    def drawn(self, low: float, high: float, count: int, size: int) -> np.ndarray:
        return np.linspace(0.0, FIXED_PERIOD, count)

    def spread(self, share: np.ndarray, size: int) -> np.ndarray:
        return FIXED_PERIOD * share


@dataclass(frozen=True)
class Hands(Letters):
    """1, cos t, sin t, ..., cos kt, sin kt; engines are not told that they are harmonics."""

    k: int

    @property
    def size(self) -> int:
        return 2 * self.k + 1

    def evaluate(self, t: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(t.size), *(f(j * t) for j in range(1, self.k + 1) for f in (np.cos, np.sin))])


@dataclass(frozen=True)
class TideBasis(Basis):
    """One, cosine and sine."""

    family: ClassVar[str] = "tide"

    @property
    def size(self) -> int:
        return 3

    @property
    def single(self) -> Hands:
        return Hands(1)

    @property
    def double(self) -> Hands:
        return Hands(2)

    def evaluate(self, t: np.ndarray, derivative: int = 0) -> np.ndarray:
        turned = t + 0.5 * np.pi * derivative
        return np.column_stack([np.full(t.size, float(derivative == 0)), np.cos(turned), np.sin(turned)])

    def products(self) -> Products:
        """cos cos = 1/2 + cos 2t / 2 and so on; letters are 1, cos, sin, cos 2t, sin 2t."""
        half = [(0, 1, 1, 0.5), (3, 1, 1, 0.5), (0, 2, 2, 0.5), (3, 2, 2, -0.5), (4, 1, 2, 0.5), (4, 2, 1, 0.5)]
        ones = [(0, 0, 0, 1.0), (1, 0, 1, 1.0), (1, 1, 0, 1.0), (2, 0, 2, 1.0), (2, 2, 0, 1.0)]
        letter, row, column, factor = zip(*half, *ones, strict=True)
        entries = [np.array(letter), np.array(row), np.array(column), np.array(factor)]
        return Products.of(3, 5, entries, everywhere=True)

    def features_sum(self, sums: np.ndarray) -> np.ndarray:
        return sums[:3]


@dataclass(frozen=True)
class TidePrior(Prior[Dial, TideBasis]):
    """Half of the variance in the level, half in the tide."""

    @property
    def domain(self) -> Dial:
        return Dial()

    @property
    def basis(self) -> TideBasis:
        return TideBasis()

    @property
    def factor(self) -> "TideFactor":
        return TideFactor()

    def slope_variance(self, x: np.ndarray) -> float:
        return 0.5 / self.domain.unit() ** 2


@dataclass(frozen=True)
class TideFactor(Factor[Dial, TideBasis]):
    """A level and a tide, without hyperparameters and with nothing to grow."""

    family: ClassVar[str] = "tide"

    @property
    def title(self) -> str:
        return "a tide"

    def least(self, options: FactorOptions) -> TideBasis:
        return TideBasis()

    def spanning(self, low: float, high: float) -> Dial:
        return Dial()

    def prior(self, domain: Dial, basis: TideBasis, values: Values) -> TidePrior:
        return TidePrior()

    def variances(self, basis: TideBasis, values: Values) -> np.ndarray:
        return np.full(3, 0.5)

    def block(self, x: np.ndarray, z: np.ndarray, values: Values) -> Block:
        return Block(0.5 + 0.5 * np.cos(np.subtract.outer(x, z)), None, list, lambda: None)


@dataclass(frozen=True, repr=False)
class Tide(Leaf):
    """What a user would write."""

    nickname: ClassVar[str] = "tide"

    @property
    def factor(self) -> TideFactor:
        return TideFactor()


class WrittenOut(DenseEngine):
    """Letters written out, under a name of its own."""

    name = "written out"


def _cases() -> list[Case]:
    """The inner product of three functions, by their coefficients."""
    precision = np.diag([2.0, 2.0, 2.0])

    def with_kernel(prior: Prior, x: float) -> np.ndarray:
        angle = 2.0 * np.pi * x / FIXED_PERIOD
        return precision @ np.array([0.5, 0.5 * np.cos(angle), 0.5 * np.sin(angle)])

    own = Tide("x", variance=2.0), Dial(), TideBasis(), np.array([0.0, 1.2, 6.9, 30.0]), np.empty(0)
    return [Case("tide", *own, lambda prior, values: precision, with_kernel, lambda rng, n: rng.uniform(0, 30, n))]


globals().update({name: law for name, law in vars(laws).items() if name.startswith("test_")})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    laws.over(metafunc, _cases())


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    MAKERS["tide"] = _cases
    register(Logistic, "logistic")
    tapes = SourceKind("tape", lambda data: isinstance(data, Tape), TapeSource)
    kind = Kind("tide", (Tide,), TideFactor, TidePrior, TideBasis, Dial, (Hands,))
    with KINDS.registered(kind), ENGINES.registered(WrittenOut()), SOURCES.registered(tapes, first=True):
        yield
    unregister(Logistic)
    del MAKERS["tide"]


def test_all_four_make_one_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x, z = rng.uniform(0.0, 70.0, 300), rng.uniform(0.0, 1.0, 300)
    y = np.cos(2.0 * np.pi * x / 7.0) + np.sin(4.0 * z) + rng.logistic(scale=0.1, size=300)
    frame = pd.DataFrame({"x": x, "z": z, "y": y})
    tape = Tape((frame[:120], frame[120:]))
    options: dict[str, Any] = {"likelihood": "logistic", "frequencies": 6}
    model = GPRegressor(Tide("x") + Matern32("z"), engine="written out", **options).fit(tape, "y")
    assert "written out" in model.engine_reason_
    assert 0.05 < model.likelihood_.values["scale"] < 0.2
    mean = model.predict(tape)
    np.testing.assert_allclose(mean, np.cos(2.0 * np.pi * x / 7.0) + np.sin(4.0 * z), atol=0.25)
    assert parse_kernel(str(Tide("x") + Matern32("z"))) == Tide("x") + Matern32("z")
    model.save(tmp_path / "model.vff")
    np.testing.assert_array_equal(load(tmp_path / "model.vff").predict(frame[["x", "z"]]), mean)
