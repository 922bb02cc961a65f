"""A damped oscillation that noise keeps going: a line spectrum of some width (theory §16)."""

from vff.factors.interval.basis import ColumnBasis, Interval
from vff.factors.oscillator.factor import Oscillator, OscillatorFactor, OscillatorPrior
from vff.factors.registry import Kind

KIND = Kind("oscillator", (Oscillator,), OscillatorFactor, OscillatorPrior, ColumnBasis, Interval)

__all__ = ["KIND"]
