"""Sums of rows whose noise variances are known but for a part that all share (theory §23).

A row of variance s^2 beside a common one, sigma^2, weighs 1 / (s^2 + sigma^2), which is smooth in u = log s^2 whatever
sigma^2 is: on a stretch of u of length one, the polynomial through twelve Chebyshev nodes meets it to a few parts in
1e13. With l_k its Lagrange polynomials, sums with weights w l_k(u) at every node are all that has to be known of rows:

    sum w phi phi' / (s^2 + sigma^2) = sum_k 1 / (v_k + sigma^2)  sum w l_k(log s^2) phi phi',       v_k = exp(u_k)

and sum w log(s^2 + sigma^2) = sum_k log(v_k + sigma^2) sum w l_k(log s^2) alike. Stretches and nodes are the same for all
rows there will ever be, and only those are kept that have rows, so that sums of any partition add up. Where variances
are few, each is a node of its own and nothing is interpolated; so is zero, which has no logarithm.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vff.moments.engines.base import Choice
from vff.moments.plan import PassPlan, RowBlock
from vff.moments.run import PreparedRows, Sums
from vff.moments.statistics import Moments
from vff.moments.threads import side_by_side

NODES = 12
"""Of a stretch."""
_LENGTH = 1.0  # of a stretch, in log s^2
_MOST_EXACT = NODES  # different variances, of which each is a node
_ANGLES = np.pi * (2.0 * np.arange(NODES) + 1.0) / (2.0 * NODES)
_PLACES, _SHARES = np.cos(_ANGLES), np.sin(_ANGLES) * (-1.0) ** np.arange(NODES)


class Stretch(NamedTuple):
    """Rows with the nodes that stand for their variances."""

    rows: np.ndarray
    """Their numbers, rising, (N,)."""
    variances: np.ndarray
    """Of the nodes, (K,)."""
    shares: np.ndarray
    """l_k at every row, (N, K)."""


def stretches(variances: np.ndarray) -> Iterator[Stretch]:
    """All rows, those of one stretch together."""
    few = _few(variances)
    if few is not None:
        for value in few:
            rows = np.flatnonzero(variances == value)
            yield Stretch(rows, np.array([value]), np.ones((rows.size, 1)))
        return
    exact = np.flatnonzero(variances == 0.0)
    if exact.size:
        yield Stretch(exact, np.zeros(1), np.ones((exact.size, 1)))
    some = np.flatnonzero(variances > 0.0)
    u = np.log(variances[some]) / _LENGTH
    numbers = np.floor(u)
    order = np.argsort(numbers, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        first = numbers[rows[0]]
        yield Stretch(some[rows], nodes_of(first), _lagrange(2.0 * (u[rows] - first) - 1.0))


def nodes_of(number: float) -> np.ndarray:
    """The variances at the nodes of a numbered stretch, (K,): the same bits wherever they are asked for."""
    return np.exp(_LENGTH * (number + 0.5 + 0.5 * _PLACES))


def _few(variances: np.ndarray) -> np.ndarray | None:
    """The different variances, where they are few."""
    some = np.unique(variances[: 16 * _MOST_EXACT])
    if some.size > _MOST_EXACT:
        return None
    found = np.unique(variances)
    return found if found.size <= _MOST_EXACT else None


def _lagrange(t: np.ndarray) -> np.ndarray:
    """The Lagrange polynomials of the nodes at places t in [-1, 1], (N, K), by the barycentric formula."""
    away = t[:, None] - _PLACES
    hit = away == 0.0
    away[hit] = 1.0
    shares = _SHARES / away
    found = shares / shares.sum(axis=1, keepdims=True)
    rows = hit.any(axis=1)
    found[rows] = hit[rows]
    return found


def run_noisy_pass(
    plan: PassPlan,
    source: RowBlock,
    variances: np.ndarray,
    offset: float = 0.0,
    progress: Callable[[int], None] = lambda rows: None,
) -> tuple[Moments, list[Choice]]:
    """The moments by node of rows of known variances, all of which lie inside, and the engine of every column.

    What rows are is worked out once for all nodes of their stretch.
    """
    nodes: dict[float, Moments] = {}
    choices: list[Choice] = []
    columns, done = len(plan.distinct_values), 0
    for stretch in stretches(variances):
        whole = stretch.rows.size == source.n
        own = source if whole else source.taken(columns, [stretch.rows])
        prepared = PreparedRows(plan, own)
        for k, variance in enumerate(stretch.variances.tolist()):
            sums = _node_sums(prepared, own, stretch.shares[:, k], offset)
            nodes[variance], choices = sums.moments(offset), choices or sums.choices
        done += own.n
        progress(done)
    plain = sum(nodes.values(), Moments.zero(plan.request, offset))
    nodes = {variance: replace(node, n=0) for variance, node in nodes.items()}
    return replace(plain, n=source.n, nodes=nodes), choices


def _node_sums(prepared: PreparedRows, source: RowBlock, shares: np.ndarray, offset: float) -> Sums:
    sums = Sums(prepared.plan)
    with side_by_side(prepared.n) as each:
        for rows, columns in prepared.chunks():
            residual, w = source.y[rows] - offset, source.w[rows] * shares[rows]
            sums.add(columns, w, w * residual, float((w * residual) @ residual), each)
    return sums


@dataclass(frozen=True)
class NoisySums:
    """Sums by node, to be put together for a common variance again and again."""

    moments: Moments
    """With nodes."""

    @cached_property
    def variances(self) -> np.ndarray:
        """v_k, (K,)."""
        return np.array(list(self.moments.nodes))

    @cached_property
    def rows(self) -> np.ndarray:
        """sum w l_k at every node, (K,): how many rows it stands for."""
        return np.array([node.weight for node in self.moments.nodes.values()])

    @cached_property
    def _stacked(self) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray], dict[tuple[int, int], np.ndarray]]:
        every = list(self.moments.nodes.values())
        numbers = np.array([[node.weight, node.target, node.target_squared] for node in every])
        grams, projects = (
            [np.stack(part) for part in zip(*(getattr(node, name) for node in every), strict=True)]
            for name in ("grams", "projects")
        )
        blocks = {pair: np.stack([node.blocks[pair] for node in every]) for pair in self.moments.blocks}
        return numbers, grams, projects, blocks

    def combined(self, shares: np.ndarray) -> Moments:
        """sum_k share_k (the sums at node k); without nodes."""
        numbers, grams, projects, blocks = self._stacked

        def total(stack: np.ndarray) -> np.ndarray:
            return (shares @ stack.reshape(shares.size, -1)).reshape(stack.shape[1:])

        weight, target, squares = (shares @ numbers).tolist()
        return replace(
            self.moments,
            weight=weight,
            target=target,
            target_squared=squares,
            grams=tuple(map(total, grams)),
            projects=tuple(map(total, projects)),
            blocks={pair: total(stack) for pair, stack in blocks.items()},
            nodes={},
        )

    def weighed(self, noise: float) -> Moments:
        """With weights w / (s^2 + noise)."""
        return self.combined(1.0 / (self.variances + noise))

    def drift(self, noise: float) -> Moments:
        """The derivative of ``weighed`` in log noise."""
        return self.combined(-noise / (self.variances + noise) ** 2)

    def log_noise(self, noise: float) -> float:
        """sum w log(s^2 + noise)."""
        return float(self.rows @ np.log(self.variances + noise))

    def log_noise_drift(self, noise: float) -> float:
        """Its derivative in log noise."""
        return float(self.rows @ (noise / (self.variances + noise)))
