"""Four ways to sum letters over rows, and the choice between them.

An engine is a module-level record of two functions that are transposes of one another:

    sum_letters(alphabet, t, strengths)      (R, N) strengths  ->  (R, size)  sums of strengths times letters
    evaluate_letters(alphabet, t, coefs)     (R, size)         ->  (R, N)     letters times coefficients

with t in [-1, 1]. A new engine is one file with these two functions and a line in ``ENGINES``.
"""

from vff.moments.engines.base import Engine
from vff.moments.engines.choice import Choice, choose_engine
from vff.moments.engines.dense import DENSE
from vff.moments.engines.grid import GRID
from vff.moments.engines.nufft import NUFFT
from vff.moments.engines.table import TABLE

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (DENSE, NUFFT, TABLE, GRID)}

__all__ = ["ENGINES", "Choice", "Engine", "choose_engine"]
