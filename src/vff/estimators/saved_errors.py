"""What sums by error bar from a file must be like: those of rows that there may have been."""

import numpy as np

from vff.estimators.saved_checks import demand
from vff.estimators.statistics import Statistics
from vff.inference import Fit
from vff.moments import Moments, NoisySums

_LARGEST = 1e281  # the square of the largest error bar
_ROUNDING = 1e-6
_MOST = 10_000  # nodes


def check_error_bars(rows: Statistics, fit: Fit | None) -> None:
    """Sums at every node, where the rows had error bars, and nowhere else."""
    moments, known = rows.moments, rows.options.noise_std
    nodes = moments.nodes
    demand(bool(nodes) <= (known not in (None, "None")), "rows with error bars", known)
    demand(len(nodes) <= _MOST, f"at most {_MOST:,} different error bars", len(nodes))
    if fit is not None and (fit.likelihood.known_errors or nodes):
        demand(fit.likelihood.known_errors and bool(nodes), "error bars in the sums and in the fit", len(nodes))
    for variance, node in nodes.items():
        demand(np.isfinite(variance) and 0.0 <= variance <= _LARGEST, "squares of error bars", variance)
        _check_node(node, moments)
    if nodes:
        _check_whole(NoisySums(moments))


def _check_node(node: Moments, moments: Moments) -> None:
    """The same sums as those of all rows."""
    demand(node.request == moments.request and not node.nodes, "sums of the same functions at every node", "others")
    demand(node.offset == moments.offset, f"sums measured from {moments.offset}", node.offset)
    numbers = np.array([node.weight, node.target, node.target_squared])
    demand(bool(np.isfinite(numbers).all()), "finite sums at every node", numbers.tolist())
    demand(set(node.blocks) == set(moments.blocks), "a block for every pair of terms", len(node.blocks))
    pairs = [(np.asarray(node.blocks[pair]), np.asarray(block)) for pair, block in moments.blocks.items()]
    for own, other in ((node.grams, moments.grams), (node.projects, moments.projects)):
        demand(len(own) == len(other), "sums for every term", len(own))
        pairs += zip(own, other, strict=True)
    for own, other in pairs:
        demand(own.shape == other.shape and own.dtype == float, f"sums of shape {other.shape}", own.shape)
        demand(bool(np.isfinite(own).all()), "finite sums at every node", "others")


def _check_whole(sums: NoisySums) -> None:
    """All nodes together are all rows, and no weight that learning gives them is below zero."""
    total, weight = float(sums.rows.sum()), sums.moments.weight
    demand(abs(total - weight) <= _ROUNDING * max(weight, 1.0), f"nodes of weight {weight:g}", total)
    for noise in np.geomspace(1e-12, 1e12, 9):
        weighed = sums.weighed(float(noise))
        demand(weighed.weight > 0.0 and weighed.target_squared >= 0.0, "weights above zero", weighed.weight)
