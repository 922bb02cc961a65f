"""Likelihoods that are logistic in f, without a compiler: log p(y | f) = constant + linear f - counts softplus(u).

u = sign f + shift. Labels and successes by the logistic link and negative binomial counts are of this form, and what a
row needs of f ~ N(m, v) is then one function of two numbers, E softplus, with its slope and curvature (theory (9.3)).
It is summed over the nodes of ``rules.py`` in blocks that stay in the cache, on threads: NumPy releases the lock.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from vff.likelihoods.rules import counts_for, rule
from vff.moments.threads import cores

MOST_COUNTS = 2**20
"""Up to which sums over all smaller counts are tabled."""
_BLOCK, _THREADS = 2**13, 2
_NEWTON_STEPS = 200
_ARRIVED, _ROUNDING = 1e-9, 1e-13  # of the width of the mode, and of where it is


class Change(NamedTuple):
    """Derivatives in the one parameter of a likelihood; a shift that moves with it moves as it does."""

    counts: np.ndarray | float
    constant: np.ndarray | float
    shift: float


class Logistic(NamedTuple):
    """The parts of log p(y | f), numbers or (N,) each."""

    linear: np.ndarray | float
    counts: np.ndarray | float
    constant: np.ndarray | float
    sign: np.ndarray | float = 1.0
    shift: np.ndarray | float = 0.0
    first: Change | None = None
    """First derivatives of counts, constant and shift in the likelihood's parameter, where it has one."""
    second: Change | None = None
    """Second derivatives."""


class Softplus(NamedTuple):
    """E softplus(u), E sigmoid(u) and its slope, u ~ N(m, v), (N,) each."""

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


def expected_softplus(mean: np.ndarray, variance: np.ndarray) -> Softplus:
    """By quadrature, with as many nodes as every row needs."""
    sd, found = np.sqrt(np.maximum(variance, 0.0)), Softplus(*(np.empty(mean.size) for _ in range(3)))
    counts = counts_for(sd)

    def work(block: slice) -> None:
        m, s, own = mean[block], sd[block], counts[block]
        for nodes in np.unique(own).tolist():
            rows = own == nodes
            some = slice(None) if rows.all() else np.flatnonzero(rows)
            for whole, part in zip(found, _summed(m[some], s[some], nodes), strict=True):
                whole[block][some] = part

    _side_by_side(work, mean.size)
    return found


def _summed(mean: np.ndarray, sd: np.ndarray, nodes: int) -> Softplus:
    """Of a few rows that need the same nodes."""
    totals, (places, weights) = Softplus(*(np.zeros(mean.size) for _ in range(3))), rule(nodes)
    for place, weight in zip(places.tolist(), weights.tolist(), strict=True):
        for total, part in zip(totals, softplus(mean + sd * place if place else mean), strict=True):
            part *= weight
            total += part
    return totals


def softplus(x: np.ndarray) -> Softplus:
    """log(1 + exp(x)), its slope and its curvature, in new arrays, all to their last digits."""
    small = np.exp(-np.abs(x))
    value, near_one = np.log1p(small), 1.0 / (1.0 + small)
    value += np.maximum(x, 0.0)
    small *= near_one
    curvature = small * near_one
    return Softplus(value, np.where(x >= 0.0, near_one, small), curvature)


def expected_parts(
    parts: Logistic, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E log p and its two derivatives in the mean of f, (N,) each."""
    found = expected_softplus(parts.sign * mean + parts.shift, variance)
    value = parts.linear * mean + parts.constant - parts.counts * found.value
    return value, parts.linear - parts.counts * parts.sign * found.slope, -parts.counts * found.curvature


def parameter_sums(
    parts: Logistic, w: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum w E log p with its gradient (R,) and Hessian (R, R) in the likelihood's parameter, R at most one."""
    found = expected_softplus(parts.sign * mean + parts.shift, variance)
    value = float(w @ (parts.linear * mean + parts.constant - parts.counts * found.value))
    if parts.first is None or parts.second is None:
        return value, np.zeros(0), np.zeros((0, 0))
    (n1, c1, u1), (n2, c2, u2) = parts.first, parts.second
    once = c1 - n1 * found.value - u1 * parts.counts * found.slope
    twice = c2 - n2 * found.value - (2.0 * u1 * n1 + u2 * parts.counts) * found.slope
    twice = twice - u1**2 * parts.counts * found.curvature
    return value, np.array([float(w @ once)]), np.array([[float(w @ twice)]])


def modes(
    parts: Logistic, start: np.ndarray, centre: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The f that maximises log p - (f - centre)² / (2 spread²), and slope and curvature of log p there, (N,) each.

    The slope of that falls and its root lies between two bounds, since the sigmoid is between zero and one: Newton's
    steps, and halves of what is left where they would leave it or do not shorten.
    """
    found = np.empty(start.size), np.empty(start.size), np.empty(start.size)
    linear, count, sign, shift = (
        np.broadcast_to(own, start.shape) for own in (parts.linear, parts.counts, parts.sign, parts.shift)
    )

    def work(block: slice) -> None:
        own = (linear[block], count[block], sign[block], shift[block])
        for whole, part in zip(found, _modes(own, start[block], centre[block], spread[block]), strict=True):
            whole[block] = part

    _side_by_side(work, start.size)
    return found


def _modes(
    parts: tuple[np.ndarray, ...], start: np.ndarray, centre: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    linear, count, sign, shift = parts
    variance, pull = spread**2, count * sign
    ends = centre + variance * linear, centre + variance * (linear - pull)
    low, high = np.minimum(*ends), np.maximum(*ends)
    f, last = np.clip(start, low, high), np.full(start.size, np.inf)
    for _ in range(_NEWTON_STEPS):
        _, sigmoid, bell = softplus(sign * f + shift)
        slope, curvature = linear - pull * sigmoid, -count * bell
        uphill, downward = slope - (f - centre) / variance, 1.0 / variance - curvature
        low, high = np.where(uphill > 0.0, f, low), np.where(uphill < 0.0, f, high)
        step = uphill / downward
        near = np.abs(step) <= np.maximum(_ARRIVED / np.sqrt(downward), _ROUNDING * np.abs(f))
        good = (f + step > low) & (f + step < high) & (np.abs(step) <= 0.5 * last)
        there = np.where(near | good, f + step, 0.5 * (low + high))
        f, last = there, np.abs(there - f)
        if near.all():
            break
    _, sigmoid, bell = softplus(sign * f + shift)
    return f, linear - pull * sigmoid, -count * bell


def rising(r: float, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log Γ(r + y) - log Γ(r) - y log r for y = 0 … most, and its derivatives in -log r: sums of positive numbers."""
    k = np.arange(most, dtype=float)
    parts = np.log1p(k / r), k / (r + k), k / (r + k) * (r / (r + k))
    once, first, second = (np.concatenate([[0.0], np.cumsum(part)]) for part in parts)
    return once, first, second


def _side_by_side(work: Callable[[slice], None], n: int) -> None:
    """Blocks of rows, on a few threads where there are many."""
    blocks = [slice(low, min(low + _BLOCK, n)) for low in range(0, n, _BLOCK)]
    if len(blocks) <= 4:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(min(_THREADS, cores())) as pool:
        list(pool.map(work, blocks))
