"""Decisions taken before the rows are read (the interval, the most harmonics to sum), and the reading itself."""

from dataclasses import dataclass

import numpy as np

from vff.basis import Interval, largest_resolved
from vff.features import TailRows
from vff.moments import ENGINES, Choice, MomentRequest, Moments, choose_engine, read_rows, sample_distinct

_PAPER_PADDING = 0.5  # of the data's range on each side, when no edge functions correct the ends
_ROOM_TO_GROW = 0.25  # the same, when more rows are to come
_LARGEST_M = 1024
_CHUNK = 2**22


def choose_domain(low: float, high: float, edges: int, *, growing: bool) -> Interval:
    """Hug the data when edge functions are there; pad, as the paper advises, when not, or when more rows will come."""
    share = _PAPER_PADDING if edges == 0 else _ROOM_TO_GROW if growing else 0.0
    pad = share * (high - low)
    return Interval(low - pad, high + pad)


def largest_harmonic(x: np.ndarray, q: int, *, growing: bool) -> int:
    """The most harmonics worth summing: about one feature per distinct row, at most 1024, and what float64 resolves."""
    found, seen = sample_distinct(x)
    distinct = found if found <= 0.5 * seen else x.size
    wanted = _LARGEST_M if growing else np.clip(distinct // 2, 16, _LARGEST_M)
    return int(min(wanted, largest_resolved(q)))


@dataclass(frozen=True)
class Reading:
    """What one pass found."""

    moments: Moments
    tails: tuple[TailRows, ...]
    """The few rows beyond the interval, as they are; y is measured from the same offset as in the moments."""
    choice: Choice
    """The engine that read the first rows, and why."""


def read(request: MomentRequest, engine: str, x: np.ndarray, y: np.ndarray, w: np.ndarray, offset: float) -> Reading:
    """One pass over the rows, a chunk at a time; with engine "auto" each chunk gets the engine that suits it."""
    moments = Moments.zero(request, offset)
    tails: list[TailRows] = []
    choices: list[Choice] = []
    for start in range(0, x.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        t, yr, wr = request.interval.to_unit(x[rows]), y[rows], w[rows]
        inside = np.abs(t) <= 1.0
        if not inside.all():
            tails += _beyond(t, yr - offset, wr)
            t, yr, wr = t[inside], yr[inside], wr[inside]
        auto = engine == "auto"
        choices.append(choose_engine(t, request.basis) if auto else Choice(engine, f"{engine}: as asked"))
        moments = moments + read_rows(ENGINES[choices[-1].name], request, t, yr, wr, offset)
    return Reading(moments, tuple(tails), choices[0])


def _beyond(t: np.ndarray, y: np.ndarray, w: np.ndarray) -> list[TailRows]:
    sides = [(side, side * t > 1.0) for side in (-1, 1)]
    return [TailRows(side, np.abs(t[out]) - 1.0, w[out], y[out]) for side, out in sides if out.any()]
