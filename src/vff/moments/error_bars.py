"""Sums of rows whose noise variances are known but for a part that all share (theory §23).

A row of variance s^2 beside a common one, sigma^2, weighs 1 / (s^2 + sigma^2), which is smooth in u = log s^2 whatever
sigma^2 is: on a stretch of u of length one, the polynomial through twelve Chebyshev nodes meets it to a few parts in
1e13. With l_k its Lagrange polynomials, sums with weights w l_k(u) at every node are all that has to be known of rows:

    sum w phi phi' / (s^2 + sigma^2) = sum_k 1 / (v_k + sigma^2)  sum w l_k(log s^2) phi phi',       v_k = exp(u_k)

and sum w log(s^2 + sigma^2) = sum_k log(v_k + sigma^2) sum w l_k(log s^2) alike. Stretches and nodes are the same for
all rows there will ever be, and only those are kept that have rows, so that sums of any partition add up. Where
variances are few, each is a node of its own and nothing is interpolated; so is zero (``noise_nodes``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from vff.moments.engines.base import Choice
from vff.moments.noise_nodes import stretches
from vff.moments.plan import PassPlan, RowBlock
from vff.moments.run import PreparedRows, Sums
from vff.moments.statistics import Harmonics, Moments
from vff.moments.threads import side_by_side

_MOST_CELLS = 2**25


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
        # a stretch has few of the rows, and its nodes share their features
        prepared = PreparedRows(plan if whole else plan.of_rows(own.n), own)
        for some in _batches(plan, stretch.variances.size):
            every = _node_sums(prepared, own, stretch.shares[:, some], offset)
            nodes |= dict(zip(stretch.variances[some].tolist(), (sums.moments(offset) for sums in every), strict=True))
            choices = choices or every[0].choices
        done += own.n
        progress(done)
    plain = sum(nodes.values(), Moments.zero(plan.request, offset))
    nodes = {variance: replace(node, n=0) for variance, node in nodes.items()}
    return replace(plain, n=source.n, nodes=nodes), choices


def _batches(plan: PassPlan, count: int) -> list[slice]:
    """Nodes that are summed at once: all, unless their contingency tables would be too large together."""
    sizes = [[plan.distinct_values[c] for c in one.columns] for one in plan.sets]
    cells = sum(prod(own.size for own in some if own is not None) for some in sizes if None not in some)
    step = max(1, min(count, _MOST_CELLS // max(cells, 1)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _node_sums(prepared: PreparedRows, source: RowBlock, shares: np.ndarray, offset: float) -> list[Sums]:
    """One look at rows, for all nodes that they share."""
    first, *others = [Sums(prepared.plan) for _ in range(shares.shape[1])]
    with side_by_side(prepared.n) as each:
        for rows, columns in prepared.chunks():
            residual, weights = source.y[rows] - offset, source.w[rows] * shares[rows].T
            strengths = [(w, w * residual, float((w * residual) @ residual)) for w in weights]
            first.add_each(others, columns, strengths, each)
    return [first, *others]


@dataclass(frozen=True)
class NoisySums:
    """Sums by node, to be put together for a common variance again and again.

    They are put together first and restricted to fewer harmonics afterwards, which is a map of one set of sums; and for
    that map to be cheap, from no more than about twice as many.
    """

    moments: Moments
    """With nodes."""

    def terms(self, kept: Sequence[int]) -> "NoisySums":
        """Of some of the terms."""
        return self if list(kept) == [*range(len(self.moments.request.terms))] else NoisySums(self.moments.terms(kept))

    @cached_property
    def _levels(self) -> "dict[Harmonics, NoisySums]":
        return {}

    def near(self, harmonics: Harmonics) -> "NoisySums":
        """The sums for fewer harmonics, though no fewer than these: a power of two of every factor."""
        full = self.moments.request.harmonics
        wanted, twice = (
            tuple(
                tuple(
                    None if M is None or most is None else min(most, times * 2 ** (M - 1).bit_length())
                    for M, most in own
                )
                for own in (zip(*both, strict=True) for both in zip(harmonics, full, strict=True))
            )
            for times in (1, 2)
        )
        if wanted == full:
            return self
        if wanted not in self._levels:
            self._levels[wanted] = NoisySums(self.near(twice).moments.restricted(wanted))
        return self._levels[wanted]

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

    def combined(self, shares: np.ndarray) -> list[Moments]:
        """sum_k share_k (the sums at node k) for every row of shares, (R, K); without nodes. One look at the sums."""
        numbers, grams, projects, blocks = self._stacked

        def totals(stack: np.ndarray) -> np.ndarray:
            return (shares @ stack.reshape(len(stack), -1)).reshape(len(shares), *stack.shape[1:])

        found = totals(numbers), [totals(own) for own in grams], [totals(own) for own in projects]
        crossed = {pair: totals(stack) for pair, stack in blocks.items()}
        return [
            replace(
                self.moments,
                weight=float(found[0][r, 0]),
                target=float(found[0][r, 1]),
                target_squared=float(found[0][r, 2]),
                grams=tuple(own[r] for own in found[1]),
                projects=tuple(own[r] for own in found[2]),
                blocks={pair: own[r] for pair, own in crossed.items()},
                nodes={},
            )
            for r in range(len(shares))
        ]

    def weighed(self, noise: float) -> Moments:
        """With weights w / (s^2 + noise)."""
        return self.combined(1.0 / (self.variances + noise)[None])[0]

    def weighed_and_drift(self, noise: float) -> tuple[Moments, Moments]:
        """The same, and its derivative in log noise."""
        weights = 1.0 / (self.variances + noise)
        weighed, drift = self.combined(np.stack([weights, -noise * weights**2]))
        return weighed, drift

    def log_noise(self, noise: float) -> float:
        """sum w log(s^2 + noise)."""
        return float(self.rows @ np.log(self.variances + noise))

    def log_noise_drift(self, noise: float) -> float:
        """Its derivative in log noise."""
        return float(self.rows @ (noise / (self.variances + noise)))
