"""The nodes at which functions of log s^2 are known, s^2 the known noise variance of a row (theory §23).

The line of log s^2 is cut into stretches of length one with twelve Chebyshev nodes each, the same for all rows there
will ever be. A variance may be a node of its own, too: zero, which has no logarithm, always is, and so are those of a
stretch that has no more than twelve.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

NODES = 12
"""Of a stretch."""
_LENGTH = 1.0
_ANGLES = np.pi * (2.0 * np.arange(NODES) + 1.0) / (2.0 * NODES)
_PLACES, _SHARES = np.cos(_ANGLES), np.sin(_ANGLES) * (-1.0) ** np.arange(NODES)


class Stretch(NamedTuple):
    """Variances of one stretch, or all that are equal, with the nodes that stand for them."""

    rows: np.ndarray
    """Their numbers among all, rising, (N,)."""
    variances: np.ndarray
    """Of the nodes, (K,)."""
    shares: np.ndarray
    """The Lagrange polynomials of the nodes at every one, (N, K)."""


def stretches(variances: np.ndarray) -> Iterator[Stretch]:
    """All variances, those of one stretch together."""
    exact = np.flatnonzero(variances == 0.0)
    if exact.size:
        yield Stretch(exact, np.zeros(1), np.ones((exact.size, 1)))
    some = np.flatnonzero(variances > 0.0)
    numbers = _numbers(variances[some])
    order = np.argsort(numbers, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if order.size else ():
        own, values = some[rows], variances[some[rows]]
        few = np.unique(values[: 8 * NODES])
        few = np.unique(values) if few.size <= NODES else few
        if few.size > NODES:
            yield Stretch(own, nodes_of(float(numbers[rows[0]])), shares_of(values))
            continue
        for value in few:
            same = own[values == value]
            yield Stretch(same, np.array([value]), np.ones((same.size, 1)))


def _numbers(variances: np.ndarray) -> np.ndarray:
    """Which stretch every variance lies in."""
    return np.floor(np.log(variances) / _LENGTH)


def nodes_of(number: float) -> np.ndarray:
    """The variances at the nodes of a numbered stretch, (K,): the same bits wherever they are asked for."""
    return np.exp(_LENGTH * (number + 0.5 + 0.5 * _PLACES))


def shares_of(variances: np.ndarray) -> np.ndarray:
    """The Lagrange polynomials of its stretch at every variance, (N, K), by the barycentric formula."""
    t = 2.0 * (np.log(variances) / _LENGTH - _numbers(variances)) - 1.0
    away = t[:, None] - _PLACES
    hit = away == 0.0
    away[hit] = 1.0
    shares = _SHARES / away
    found = shares / shares.sum(axis=1, keepdims=True)
    rows = hit.any(axis=1)
    found[rows] = hit[rows]
    return found


def crowded(variances: Iterable[float]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Nodes of their own that are too many for a stretch, or stand beside its twelve, (N,), and the twelve, (K,)."""
    every = np.array([variance for variance in variances if variance > 0.0])
    numbers = _numbers(every) if every.size else every
    for number in np.unique(numbers):
        own, nodes = every[numbers == number], nodes_of(number)
        alone = own[~np.isin(own, nodes)]
        if alone.size and (alone.size < own.size or alone.size > NODES):
            yield alone, nodes
