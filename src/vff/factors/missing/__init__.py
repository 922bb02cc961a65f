"""Missing numbers: one more function beside those of any kind, which is one where the value is missing (theory §22)."""

from vff.factors.missing.basis import MissingBasis, MissingDomain, MissingLetters
from vff.factors.missing.factor import MissingFactor
from vff.factors.missing.prior import MissingPrior
from vff.factors.registry import Kind

KIND = Kind("missing", (), MissingFactor, MissingPrior, MissingBasis, MissingDomain, (MissingLetters,))

__all__ = ["KIND"]
