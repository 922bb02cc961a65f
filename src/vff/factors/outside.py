"""Rows beyond the edges of a domain, which the pass over the rows cannot sum and which are kept as they are."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_SAME = 1e-9  # of a target and its offset: how far rounding may have moved it


@dataclass(frozen=True)
class TailRows:
    """Training rows beyond one edge: distances (in half domains), weights and targets, (N_out,) each."""

    side: int
    r: np.ndarray
    w: np.ndarray
    y: np.ndarray

    @property
    def yy(self) -> float:
        """sum w y^2."""
        return float(self.w @ self.y**2)


def tails_together(tails: Iterable[TailRows]) -> tuple[TailRows, ...]:
    """The same rows, those of an edge in one record."""
    sides: dict[int, list[TailRows]] = {}
    for tail in tails:
        sides.setdefault(tail.side, []).append(tail)
    return tuple(
        some[0]
        if len(some) == 1
        else TailRows(side, *(np.concatenate(part) for part in zip(*map(_arrays, some), strict=True)))
        for side, some in sides.items()
    )


def tails_without(tails: Iterable[TailRows], gone: Iterable[TailRows], offset: float) -> tuple[TailRows, ...]:
    """The rows that are left when some are taken out; targets, from ``offset``, may have been rounded since."""
    left = {tail.side: tail for tail in tails_together(tails)}
    for tail in tails_together(gone):
        kept = left.get(tail.side, TailRows(tail.side, *np.zeros((3, 0))))
        left[tail.side] = _without(kept, tail, offset)
    return tuple(tail for tail in left.values() if tail.r.size)


def _without(kept: TailRows, gone: TailRows, offset: float) -> TailRows:
    positions: dict[tuple[float, float], list[int]] = {}
    for position, key in enumerate(zip(kept.r.tolist(), kept.w.tolist(), strict=True)):
        positions.setdefault(key, []).append(position)
    stays = np.ones(kept.r.size, bool)
    for r, w, y in zip(*map(np.ndarray.tolist, _arrays(gone)), strict=True):
        there = positions.get((r, w), [])
        near = min(there, key=lambda position: abs(kept.y[position] - y), default=None)
        if near is None or abs(kept.y[near] - y) > _SAME * (abs(y) + abs(offset)):
            raise ValueError("rows to forget lie beyond the domain and were never seen there; give rows as they were")
        there.remove(near)
        stays[near] = False
    return TailRows(kept.side, *(values[stays] for values in _arrays(kept)))


def _arrays(tail: TailRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tail.r, tail.w, tail.y
