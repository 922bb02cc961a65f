"""Which engines there are, and which one for these rows: by estimated seconds, with the reason in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from vff.moments.engines.base import Choice, Cost, Engine, Work
from vff.moments.engines.dense import Dense
from vff.moments.engines.grid import Grid
from vff.moments.engines.grouped import Grouped
from vff.moments.engines.spread import Nufft
from vff.moments.engines.table import Table

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Dense(), Nufft(), Table(), Grid(), Grouped())}
"""By name; the first of equals is taken."""


@contextmanager
def registered(engine: Engine) -> Iterator[Engine]:
    """An engine more, for as long as the context lasts."""
    if engine.name in ENGINES:
        raise ValueError(f"there is an engine called {engine.name!r} already; choose another name")
    ENGINES[engine.name] = engine
    try:
        yield engine
    finally:
        del ENGINES[engine.name]


def choose(work: Work) -> Choice:
    """The engine that takes the least time."""
    able: dict[str, tuple[float, Cost]] = {}
    for name, engine in ENGINES.items():
        cost = engine.cost(work)
        if cost.only:
            return Choice(name, f"{name}: {cost.reason}")
        if cost.seconds is not None:
            able[name] = cost.seconds, cost
    if not able:
        reasons = "; ".join(f"{name}: {engine.cost(work).reason}" for name, engine in ENGINES.items())
        raise ValueError(f"no engine can sum these letters ({reasons})")
    name = min(able, key=lambda one: able[one][0])
    seconds, cost = able[name]
    return Choice(name, f"{name}: {cost.reason} (estimated {seconds:.2g} s)")
