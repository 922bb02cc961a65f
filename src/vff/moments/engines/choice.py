"""Which engines there are, and which one for these rows: by estimated seconds, with the reason in a sentence."""

from vff.moments.engines.base import Choice, Cost, Engine, Work
from vff.moments.engines.dense import DenseEngine
from vff.moments.engines.grid import GridEngine
from vff.moments.engines.grouped import GroupedEngine
from vff.moments.engines.spread import NufftEngine
from vff.moments.engines.table import TableEngine
from vff.registry import Registry

ENGINES: Registry[Engine] = Registry(
    "an engine", DenseEngine(), NufftEngine(), TableEngine(), GridEngine(), GroupedEngine()
)
"""The first of equals is taken."""


def choose(work: Work) -> Choice:
    """The engine that takes the least time."""
    able: dict[str, tuple[float, Cost]] = {}
    for engine in ENGINES:
        cost = engine.cost(work)
        if cost.only:
            return Choice(engine.name, f"{engine.name}: {cost.reason}")
        if cost.seconds is not None:
            able[engine.name] = cost.seconds, cost
    if not able:
        reasons = "; ".join(f"{engine.name}: {engine.cost(work).reason}" for engine in ENGINES)
        raise ValueError(f"no engine can sum these letters ({reasons})")
    name = min(able, key=lambda one: able[one][0])
    seconds, cost = able[name]
    return Choice(name, f"{name}: {cost.reason} (estimated {seconds:.2g} s)")
