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
    HarmonicBlock,
    Letters,
    Products,
    Same,
    TrigonometricLetters,
)

if TYPE_CHECKING:
    from vff.factors.interval.basis import ColumnBasis, Interval
    from vff.factors.interval.bernoulli import (
        CONSTANT,
        bernoulli_rows,
        bernoulli_state,
        harmonic_part,
        largest_resolved,
    )
    from vff.factors.interval.letters import EdgeLetters, double_letters, single_letters
    from vff.factors.levels.basis import Codes, Indicators, LevelBasis

# Where the bases of the kinds live. Resolved on first use, since kinds stand above this room.
_HOMES = {
    "CONSTANT": "vff.factors.interval.bernoulli",
    "Codes": "vff.factors.levels.basis",
    "ColumnBasis": "vff.factors.interval.basis",
    "EdgeLetters": "vff.factors.interval.letters",
    "Indicators": "vff.factors.levels.basis",
    "Interval": "vff.factors.interval.basis",
    "LevelBasis": "vff.factors.levels.basis",
    "bernoulli_rows": "vff.factors.interval.bernoulli",
    "bernoulli_state": "vff.factors.interval.bernoulli",
    "double_letters": "vff.factors.interval.letters",
    "harmonic_part": "vff.factors.interval.bernoulli",
    "largest_resolved": "vff.factors.interval.bernoulli",
    "single_letters": "vff.factors.interval.letters",
}

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
    "TrigonometricLetters",
    "bernoulli_rows",
    "bernoulli_state",
    "double_letters",
    "harmonic_part",
    "largest_resolved",
    "single_letters",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'vff.basis' has no attribute {name!r}; it has {', '.join(__all__)}")
