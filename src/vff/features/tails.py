"""Beyond the edges: cov(u, f(x)) for x outside [a, b] (paper, Table 1, for every order).

The Matérn is Markov in its state, so f(b + r) is predicted from the state at b by the weights ``HalfInteger.tail``;
hence phi(b + r) = sum_j tail_j(r) phi^(j)(b). At the left edge time runs backwards and odd derivatives change sign.
Features of outside rows therefore lie in a space of dimension p + 1 per edge, and depend on the rate.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from vff.features.rkhs import ColumnPrior
from vff.kernels.matern import HalfInteger


def outward_state(prior: ColumnPrior, side: int) -> np.ndarray:
    """The state of every feature at the edge, as seen by someone walking outwards, (P, p + 1)."""
    signs = np.where(np.arange(prior.p + 1) % 2 == 1, float(side), 1.0)
    return prior.state(side) * signs


def tail_features(prior: ColumnPrior, t: np.ndarray, derivative: int = 0) -> np.ndarray:
    """The given derivative (in t) of the features T phi at |t| > 1, (N, P)."""
    kernel = HalfInteger(prior.p, prior.rate)
    features = np.empty((t.size, prior.basis.size))
    for side in (-1, 1):
        rows = side * t > 1.0
        weights = kernel.tail(np.abs(t[rows]) - 1.0, derivative) * float(side) ** derivative
        features[rows] = weights @ outward_state(prior, side).T
    return features


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

    def normal_equations(self, kernel: HalfInteger) -> tuple[np.ndarray, np.ndarray]:
        """(T, v) such that these rows add Z T Z' to the Gram matrix and Z v to the projection, Z = outward_state."""
        H = kernel.tail(self.r)
        return H.T @ (self.w[:, None] * H), H.T @ (self.w * self.y)

    def rate_derivatives(self, kernel: HalfInteger) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(dT, dv, dh) / d log rate; h is v with ones for targets."""
        H, dH = kernel.tail(self.r), kernel.tail_rate_derivative(self.r)
        half = H.T @ (self.w[:, None] * dH)
        return half + half.T, dH.T @ (self.w * self.y), dH.T @ self.w


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
    places: dict[tuple[float, float], list[int]] = {}
    for place, key in enumerate(zip(kept.r.tolist(), kept.w.tolist(), strict=True)):
        places.setdefault(key, []).append(place)
    stays = np.ones(kept.r.size, bool)
    for r, w, y in zip(*map(np.ndarray.tolist, _arrays(gone)), strict=True):
        there = places.get((r, w), [])
        near = min(there, key=lambda place: abs(kept.y[place] - y), default=None)
        if near is None or abs(kept.y[near] - y) > _SAME * (abs(y) + abs(offset)):
            raise ValueError("rows to forget lie beyond the domain and were never seen there; give rows as they were")
        there.remove(near)
        stays[near] = False
    return TailRows(kept.side, *(values[stays] for values in _arrays(kept)))


def _arrays(tail: TailRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tail.r, tail.w, tail.y
