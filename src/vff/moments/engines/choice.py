"""Which engine for these rows, by estimated seconds, with the reason in a sentence."""

from dataclasses import dataclass

import numpy as np

from vff.basis import ColumnBasis
from vff.moments.engines.lattice import sample_distinct, spacing

# Seconds, measured on two cores; only their ratios matter.
_PER_LETTER = 12e-9  # dense: one cosine and one multiplication
_PER_ROW_TABLE = 25e-9
_PER_ROW_NUFFT = 250e-9
_PER_ROW_GRID = 60e-9
_PER_ROW_AND_HARMONIC_GRID = 2e-9
_START_NUFFT = 1e-3
_DISTINCT_AT_MOST = 0.5  # of the sampled rows


@dataclass(frozen=True)
class Choice:
    """An engine's name and why it was taken."""

    name: str
    reason: str


def choose_engine(t: np.ndarray, basis: ColumnBasis) -> Choice:
    """Pick for rows t in [-1, 1]."""
    N, letters = t.size, basis.double.size
    if N == 0:
        return Choice("dense", "dense: no rows")
    costs = {"dense": N * letters * _PER_LETTER, "nufft": _START_NUFFT + N * _PER_ROW_NUFFT}
    reasons = {"dense": f"{N} rows x {letters} letters is little work", "nufft": f"{N} rows of a continuous column"}
    found, seen = sample_distinct(t)
    if found <= _DISTINCT_AT_MOST * seen:
        reasons["nufft"] = f"{N} rows, quicker than {letters} letters at each of about {found} distinct values"
        costs["table"] = N * _PER_ROW_TABLE + found * letters * _PER_LETTER
        reasons["table"] = f"about {found} distinct values in {N} rows"
    elif min(costs.values()) > _START_NUFFT and spacing(t) is not None:
        costs["grid"] = N * (_PER_ROW_GRID + _PER_ROW_AND_HARMONIC_GRID * basis.double.highest)
        reasons["grid"] = f"{N} rows equally spaced"
    name = min(costs, key=costs.__getitem__)
    return Choice(name, f"{name}: {reasons[name]} (estimated {costs[name]:.2g} s)")
