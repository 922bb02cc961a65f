"""Expectations of log-densities over f ~ N(mean, variance), row by row: NumPy in, NumPy float64 out.

Likelihoods that are logistic in f need no compiler (``logistic.py``). For the others JAX computes, in float64 whatever
the caller's flags are. Rows go through in blocks of a fixed length, the last one padded with copies of its last row, so
that shapes recur and nothing is compiled twice.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from vff.likelihoods import logistic
from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.float64 import compiled, float64
from vff.likelihoods.rules import counts_for, padded
from vff.moments.threads import cores

BLOCK = 2**15
SMALLEST = 2**8
FEW = 2**12  # rows that are not worth sorting by the nodes they need
THREADS = 2

# of log_predictive
POINTS = 160
REACH = 12.0  # standard deviations of f from its mean
NEAR = 3.5  # sinh of it is 16 widths of the integrand
SMALLEST_VARIANCE = 1e-30


class Expected(NamedTuple):
    """E log p(y | f) and what moves it, per row."""

    value: np.ndarray  # (N,) E log p
    slope: np.ndarray  # (N,) E ∂ log p/∂f, the derivative of the value in the mean
    curvature: np.ndarray  # (N,) E ∂² log p/∂f², twice the derivative of the value in the variance


def expected(
    likelihood: AbstractLikelihood,
    psi: np.ndarray,
    y: np.ndarray,
    extra: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
) -> Expected:
    """E log p, its slope and its curvature, in closed form or by quadrature with nodes that all three share."""
    parts = _logistic(likelihood, psi, y, extra)
    if parts is not None:
        return Expected(*logistic.expected_parts(parts, mean, variance))
    function, rows = compiled.expected(likelihood.form), (y, extra, mean, np.maximum(variance, 0.0))
    results = Expected(*(np.empty(len(y)) for _ in range(3)))
    for nodes, some in _by_nodes(rows[3], likelihood.width(psi)):
        rule = padded(nodes)
        found = _by_blocks(lambda block, rule=rule: function(psi, *block, *rule), tuple(part[some] for part in rows), 3)
        if isinstance(some, slice):
            return Expected(*found)
        for result, part in zip(results, found, strict=True):
            result[some] = part
    return results


def parameter_derivatives(
    likelihood: AbstractLikelihood,
    psi: np.ndarray,
    y: np.ndarray,
    extra: np.ndarray,
    w: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Σ w E log p as a function of psi: value, gradient (R,), Hessian (R, R)."""
    parts = _logistic(likelihood, psi, y, extra)
    if parts is not None:
        return logistic.parameter_sums(parts, w, mean, variance)
    function, rows = compiled.of_parameters(likelihood.form), (y, extra, w, mean, np.maximum(variance, 0.0))
    size, value = len(psi), 0.0
    gradient, hessian = np.zeros(size), np.zeros((size, size))
    for nodes, some in _by_nodes(rows[4], likelihood.width(psi)):
        for block, _ in _blocks(tuple(part[some] for part in rows), weights=2):
            parts = _in_float64(lambda block=block, nodes=nodes: function(psi, *block, *padded(nodes)))
            value, gradient, hessian = value + float(parts[0]), gradient + parts[1], hessian + parts[2]
    return value, gradient, hessian


def row_modes(
    likelihood: AbstractLikelihood,
    psi: np.ndarray,
    y: np.ndarray,
    extra: np.ndarray,
    centre: np.ndarray | float,
    spread: np.ndarray | float,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per row the f that maximises log p(y | f) - (f - centre)²/(2 spread²); slope and curvature of log p there.

    Uphill from ``start``, or from the centre.
    """
    begin, own = centre if start is None else start, _logistic(likelihood, psi, y, extra)
    parts = [np.broadcast_to(np.asarray(part, dtype=float), y.shape) for part in (begin, centre, spread)]
    if own is not None:
        return logistic.modes(own, *parts)
    function = compiled.modes(likelihood.form)
    f, slope, curvature = _by_blocks(lambda block: function(psi, *block), (y, extra, *parts), 3)
    return f, slope, curvature


def log_predictive(
    likelihood: AbstractLikelihood,
    psi: np.ndarray,
    y: np.ndarray,
    extra: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
) -> np.ndarray:
    """Log density log ∫ p(y | f) N(f; mean, variance) df of every row.

    The trapezoidal rule in t, f = f̂ + s sinh(t), with f̂ the mode of the integrand and s its width there: dense where
    the integrand is narrow, and reaching twelve standard deviations whichever is the narrower factor. When log p is not
    concave there may be a second mode: uphill from the mean and uphill from y are both looked at, or from zero where f
    is on another scale.

    Parameters
    ----------
    likelihood : likelihood
    psi : array
        Its unconstrained parameters, ``likelihood.psi``.
    y, extra : array (N,)
    mean, variance : array (N,)
        Of f.

    Returns
    -------
    array (N,)
        Nats.

    Examples
    --------
    >>> likelihood, one = vff.likelihoods.Gaussian(1.0), np.ones(1)
    >>> vff.likelihoods.log_predictive(likelihood, likelihood.psi, one, one, one, one).round(3)
    array([-1.266])
    """
    mean, sd = np.asarray(mean, dtype=float), np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
    function = compiled.log_integral(likelihood.form)

    def mode_and_width(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, _, curvature = row_modes(likelihood, psi, y, extra, mean, sd, start)
        return f, 1 / np.sqrt(np.maximum(-curvature, 0.0) + 1 / sd**2)

    def integral(f: np.ndarray, width: np.ndarray, other: np.ndarray, narrow: np.ndarray) -> np.ndarray:
        low = np.minimum(np.arcsinh((mean - REACH * sd - f) / width), -NEAR)
        high = np.maximum(np.arcsinh((mean + REACH * sd - f) / width), NEAR)
        rows = (y, extra, mean, sd, f, width, low, high, other, narrow)
        return _by_blocks(lambda block: (function(psi, *block, POINTS),), rows, 1)[0]

    first = mode_and_width(mean)
    if likelihood.log_concave:
        return integral(*first, *first)
    # with both modes the same the shares are one half each
    second = mode_and_width(y if likelihood.standardised else np.zeros_like(mean))
    narrow = np.minimum(first[1], second[1])
    return np.logaddexp(integral(*first, second[0], narrow), integral(*second, first[0], narrow))


def best_constant(
    likelihood: AbstractLikelihood,
    psi: np.ndarray,
    y: np.ndarray,
    extra: np.ndarray,
    w: np.ndarray,
    offset: np.ndarray | None = None,
) -> float:
    """The f that maximises Σ w log p(y | f + offset), within the reach that the likelihood gives its own guess."""
    w = np.asarray(w, dtype=float)
    start, reach = likelihood.location(y, extra, w)
    added = 0.0 if offset is None else offset
    if offset is not None:
        start, reach = start - float(np.average(offset, weights=w)), reach + float(np.ptp(offset))
    low, high = start - reach, start + reach

    def at(f: float) -> tuple[float, float, float]:
        value, slope, curvature = likelihood.expected(psi, y, extra, np.full_like(w, f) + added, np.zeros_like(w))
        return float(w @ value), float(w @ slope), float(w @ curvature)

    f, here, radius = start, at(start), reach / 2
    for _ in range(40):
        downward = max(-here[2], abs(here[1]) / radius)  # a step of at most the radius, also where not concave
        new = float(np.clip(f + here[1] / downward, low, high)) if downward > 0 else f
        if abs(new - f) <= 1e-9 * (1 + abs(f)):
            break
        there = at(new)
        if there[0] >= here[0]:
            f, here, radius = new, there, min(2 * radius, reach)
        else:
            radius = abs(new - f) / 4
    return f


def _logistic(
    likelihood: AbstractLikelihood, psi: np.ndarray, y: np.ndarray, extra: np.ndarray
) -> logistic.Logistic | None:
    """What needs no compiler; None where log p is another function, or a subclass wrote its own."""
    for kind in type(likelihood).__mro__:
        if "logistic" in vars(kind):
            return likelihood.logistic(psi, y, extra)
        if "log_density" in vars(kind) or "expected_log_density" in vars(kind):
            return None
    return None


def _by_nodes(variance: np.ndarray, width: float) -> Iterator[tuple[int, slice | np.ndarray]]:
    """Numbers of nodes and the rows that need them; few rows all take what the widest of them needs."""
    if variance.size <= FEW or np.isinf(width):
        if variance.size:
            yield int(counts_for(np.sqrt(variance.max(keepdims=True)) / width)[0]), slice(None)
        return
    counts = counts_for(np.sqrt(variance) / width)
    for nodes in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == nodes)
        yield nodes, slice(None) if rows.size == variance.size else rows


def _in_float64(call: Callable[[], Any]) -> tuple[np.ndarray, ...]:
    """What compiled code answers, with JAX in float64 for the time of the call alone."""
    with float64():
        return tuple(np.asarray(part) for part in call())


def _blocks(rows: tuple[np.ndarray, ...], weights: int | None = None) -> Iterator[tuple[tuple[np.ndarray, ...], slice]]:
    """Blocks of equal length and where their rows belong; the last padded, with weight zero."""
    total = len(rows[0])
    rows = tuple(np.ascontiguousarray(part, dtype=np.float64) for part in rows)
    for begin in range(0, total, BLOCK):
        end = min(begin + BLOCK, total)
        length = max(SMALLEST, 1 << (end - begin - 1).bit_length())
        block = tuple(part[begin:end] for part in rows)
        if length > end - begin:
            block = tuple(np.pad(part, (0, length - (end - begin)), mode="edge") for part in block)
            if weights is not None:
                block[weights][end - begin :] = 0.0
        yield block, slice(begin, end)


def _by_blocks(
    run: Callable[[tuple[np.ndarray, ...]], Any], rows: tuple[np.ndarray, ...], outputs: int
) -> tuple[np.ndarray, ...]:
    """Rows in, as many arrays of rows out, block by block on a few threads."""
    results = tuple(np.empty(len(rows[0])) for _ in range(outputs))

    def work(item: tuple[tuple[np.ndarray, ...], slice]) -> None:
        block, where = item
        parts = _in_float64(lambda: run(block))
        for result, part in zip(results, parts, strict=True):
            result[where] = part[: where.stop - where.start]

    if len(rows[0]) <= BLOCK:
        for item in _blocks(rows):
            work(item)
    else:
        with ThreadPoolExecutor(min(THREADS, cores())) as pool:
            list(pool.map(work, _blocks(rows)))
    return results
