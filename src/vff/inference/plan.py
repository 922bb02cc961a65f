"""Decisions taken before the rows are read: the interval, the edge polynomials, the most harmonics to sum."""

from dataclasses import dataclass

import numpy as np

from vff.basis import ColumnBasis, Interval, largest_resolved
from vff.features import TailRows
from vff.moments import ENGINES, MomentRequest, Moments, choose_engine, read_rows, sample_distinct

_PAPER_PADDING = 0.5  # of the data's range on each side, when no edge polynomials correct the ends
_LARGEST_M = 1024
_CHUNK = 2**22


@dataclass(frozen=True)
class Plan:
    """What will be summed and by which engine."""

    request: MomentRequest
    engine: str
    reason: str


def choose_domain(low: float, high: float, edges: int) -> Interval:
    """Hug the data when edge polynomials are there; otherwise pad, as the paper advises."""
    pad = 0.0 if edges else _PAPER_PADDING * (high - low)
    return Interval(low - pad, high + pad)


def largest_harmonic(x: np.ndarray, q: int) -> int:
    """The most harmonics worth summing: about one feature per distinct row, at most 1024, and what float64 resolves."""
    found, seen = sample_distinct(x)
    distinct = found if found <= 0.5 * seen else x.size
    return int(min(np.clip(distinct // 2, 16, _LARGEST_M), largest_resolved(q)))


def make_plan(x: np.ndarray, interval: Interval, M: int, q: int, engine: str) -> Plan:
    """Settle the engine for the rows inside the interval."""
    basis = ColumnBasis(M, q)
    request = MomentRequest(interval, basis)
    if engine != "auto":
        return Plan(request, engine, f"{engine}: as asked")
    choice = choose_engine(interval.to_unit(x), basis)
    return Plan(request, choice.name, choice.reason)


def read(
    plan: Plan, x: np.ndarray, y: np.ndarray, w: np.ndarray, offset: float
) -> tuple[Moments, tuple[TailRows, ...]]:
    """One pass over the rows: moments of those inside, and the few outside kept as they are.

    y of outside rows is measured from the same offset as the moments'.
    """
    interval = plan.request.interval
    moments = Moments.zero(plan.request, offset)
    tails: list[TailRows] = []
    for start in range(0, x.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        t, yr, wr = interval.to_unit(x[rows]), y[rows], w[rows]
        inside = np.abs(t) <= 1.0
        if not inside.all():
            for side in (-1, 1):
                out = side * t > 1.0
                if out.any():
                    tails.append(TailRows(side, np.abs(t[out]) - 1.0, wr[out], yr[out] - offset))
            t, yr, wr = t[inside], yr[inside], wr[inside]
        moments = moments + read_rows(ENGINES[plan.engine], plan.request, t, yr, wr, offset)
    return moments, tuple(tails)
