"""Ways to sum letters over rows, and the choice between them.

An engine is a module-level record of two functions that are transposes of one another:

    sum_letters(rows, [(alphabet, strengths), ...])          strengths (N,) -> sums of strengths times letters, (size,)
    evaluate_letters(rows, [(alphabet, coefficients), ...])  (size,)        -> letters times coefficients, (N,)

one result per job. A new engine is one file with these two functions and a line in ``ENGINES``. Several columns at once
are the business of ``sets``.
"""

from vff.moments.engines.base import Engine
from vff.moments.engines.choice import LARGEST_CONTINGENCY, Choice, choose_engine, choose_set
from vff.moments.engines.dense import DENSE
from vff.moments.engines.grid import GRID
from vff.moments.engines.nufft import NUFFT
from vff.moments.engines.sets import READERS, TALLIES, Job, SetTally, contract
from vff.moments.engines.table import TABLE

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (DENSE, NUFFT, TABLE, GRID)}

__all__ = [
    "ENGINES",
    "LARGEST_CONTINGENCY",
    "READERS",
    "TALLIES",
    "Choice",
    "Engine",
    "Job",
    "SetTally",
    "choose_engine",
    "choose_set",
    "contract",
]
