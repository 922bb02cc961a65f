"""Four ways to sum letters over rows, and the choice between them.

An engine is a module-level record of two functions that are transposes of one another:

    sum_letters(t, [(alphabet, strengths), ...])          strengths (N,)  ->  sums of strengths times letters, (size,)
    evaluate_letters(t, [(alphabet, coefficients), ...])  (size,)         ->  letters times coefficients, (N,)

with t (N,) in [-1, 1]; one result per job. A new engine is one file with these two functions and a line in ``ENGINES``.
"""

from vff.moments.engines.base import Engine
from vff.moments.engines.choice import Choice, choose_engine
from vff.moments.engines.dense import DENSE
from vff.moments.engines.grid import GRID
from vff.moments.engines.nufft import NUFFT
from vff.moments.engines.table import TABLE

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (DENSE, NUFFT, TABLE, GRID)}

__all__ = ["ENGINES", "Choice", "Engine", "choose_engine"]
