"""What a basis is: where inputs live, the functions that are summed over rows, and the features. Kernels are unknown.

``protocol`` says what any kind of basis is; the pass over the rows knows nothing else of one. The kinds themselves
stand with their factors, in ``vff.factors``; here they go by the names that users know.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vff.basis.protocol import (
    Axis,
    Basis,
    Change,
    Domain,
    Letters,
    Products,
    Same,
)
from vff.basis.several import SeveralColumns, SeveralLetters
from vff.basis.trigonometric import HarmonicBlock, TrigonometricLetters

if TYPE_CHECKING:
    from vff.factors.interval.basis import ColumnBasis, Interval
    from vff.factors.interval.letters import (
        CONSTANT,
        EdgeLetters,
        bernoulli_rows,
        bernoulli_state,
        double_letters,
        harmonic_part,
        largest_resolved,
        single_letters,
    )
    from vff.factors.levels.basis import Codes, Indicators, LevelBasis

__all__ = [
    "CONSTANT",
    "Axis",
    "Basis",
    "Change",
    "Codes",
    "ColumnBasis",
    "Domain",
    "EdgeLetters",
    "HarmonicBlock",
    "Indicators",
    "Interval",
    "Letters",
    "LevelBasis",
    "Products",
    "Same",
    "SeveralColumns",
    "SeveralLetters",
    "TrigonometricLetters",
    "bernoulli_rows",
    "bernoulli_state",
    "double_letters",
    "harmonic_part",
    "largest_resolved",
    "single_letters",
]


# Where the bases of the kinds live. Resolved on first use, since kinds stand above this room.
_HOMES = ("vff.factors.interval.letters", "vff.factors.interval.basis", "vff.factors.levels.basis")


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = next(home for home in map(import_module, _HOMES) if hasattr(home, name))
        return getattr(home, name)
    raise AttributeError(f"module 'vff.basis' has no attribute {name!r}; it has {', '.join(__all__)}")
