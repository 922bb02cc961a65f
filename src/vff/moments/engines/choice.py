"""Which engines there are, and which one for these rows: by estimated seconds, with the reason in a sentence."""

from vff.moments.engines.base import Choice, Cost, Engine, Work
from vff.moments.engines.dense import DenseEngine
from vff.moments.engines.grid import GridEngine
from vff.moments.engines.grouped import GroupedEngine
from vff.moments.engines.missing import MissingEngine
from vff.moments.engines.pairs import PairsEngine
from vff.moments.engines.spread import NufftEngine
from vff.moments.engines.table import TableEngine
from vff.moments.engines.weighted import WeightedEngine
from vff.registry import Registry


def cheapest(work: Work) -> tuple[Engine, Cost]:
    """The engine that takes the least time, and what it takes."""
    able: list[tuple[float, Engine, Cost]] = []
    for engine in ENGINES:
        cost = engine.cost(work)
        if cost.only:
            return engine, cost
        if cost.seconds is not None:
            able.append((cost.seconds, engine, cost))
    if not able:
        reasons = "; ".join(f"{engine.name}: {engine.cost(work).reason}" for engine in ENGINES)
        raise ValueError(f"no engine can sum these letters ({reasons})")
    _, engine, cost = min(able, key=lambda one: one[0])
    return engine, cost


def choose(work: Work) -> Choice:
    """The same, with the reason in a sentence."""
    engine, cost = cheapest(work)
    estimated = "" if cost.only else f" (estimated {cost.seconds:.2g} s)"
    return Choice(engine.name, f"{engine.name}: {cost.reason}{estimated}")


ENGINES: Registry[Engine] = Registry(
    "an engine",
    PairsEngine(),
    DenseEngine(),
    NufftEngine(),
    TableEngine(),
    GridEngine(),
    GroupedEngine(),
    WeightedEngine(cheapest),
    MissingEngine(cheapest),
)
"""The first of equals is taken."""
