"""Type-1 and type-2 non-uniform FFTs, and the spreading that they begin with. The only file that knows FINUFFT."""

from collections.abc import Sequence
from functools import cache, reduce
from math import prod
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from vff.moments.threads import cores, forked, workers

_TOLERANCE = 1e-14
_THREAD_ROWS = 2**15  # below this, threads cost more than they bring
_STRETCHES = 4
_QUIET = {"showwarn": 0}  # standard error is the user's; what makes a transform wrong comes back as an error
_LARGEST_SHARED = 2**22  # nodes of a lattice that every stretch has one of


def _threads(rows: int) -> int:
    """All cores for many rows; one where another thread works on other columns at the same time, or after a fork."""
    return cores() if _alone() and rows >= _THREAD_ROWS and not forked() else 1


def _alone() -> bool:
    return current_thread() is main_thread()


def _run(
    kind: int,
    columns: Sequence[np.ndarray],
    data: np.ndarray,
    shape: tuple[int, ...],
    eps: float,
    threads: int,
    **more: Any,
) -> np.ndarray:
    """All transforms of ``data`` over the rows of some columns, in one plan.

    ``data`` is (R, N) for type 1, and (R, *shape) for type 2, which is also what type 1 returns.
    """
    import finufft

    R = data.shape[0]
    options: dict[str, Any] = {"eps": eps, "isign": 1, "dtype": "complex128", "nthreads": threads, **_QUIET, **more}
    plan = finufft.Plan(kind, shape, n_trans=R, **options)
    plan.setpts(*(np.pi * t for t in columns))
    result = plan.execute(np.ascontiguousarray(data if R > 1 else data[0]))
    return result if R > 1 else result[None]


def _summed(
    columns: Sequence[np.ndarray], strengths: np.ndarray, shape: tuple[int, ...], eps: float, **more: Any
) -> np.ndarray:
    """Type 1, by one thread per stretch of rows, and the stretches added in order.

    Threads that share a transform would add in an order of their own every time, and the last bits with it. Stretches
    do not depend on the cores there are; where a lattice is too large to have several of, its bits are given up.
    """
    N = columns[0].size
    if strengths.shape[0] * prod(shape) > _LARGEST_SHARED:
        return _run(1, columns, strengths, shape, eps, _threads(N), **more)
    if N < _THREAD_ROWS:
        return _run(1, columns, strengths, shape, eps, 1, **more)
    ends = [N * piece // _STRETCHES for piece in range(_STRETCHES + 1)]

    def one(piece: int) -> np.ndarray:
        rows = slice(ends[piece], ends[piece + 1])
        return _run(1, [t[rows] for t in columns], strengths[:, rows], shape, eps, 1, **more)

    with workers(min(cores(), _STRETCHES) if _alone() else 1) as pool:
        return reduce(np.add, pool.map(one, range(_STRETCHES)))


def _signs(K: int) -> np.ndarray:
    """theta = pi (t + 1), but FINUFFT is most accurate near zero: exp(i k theta) = (-1)^k exp(i k pi t)."""
    return 1.0 - 2.0 * (np.arange(-K, K + 1) % 2)


def type1(t: np.ndarray, strengths: np.ndarray, K: int) -> np.ndarray:
    """F[r, k] = sum_n strengths[r, n] exp(i k theta_n), k = -K ... K."""
    return _summed([t], strengths, (2 * K + 1,), _TOLERANCE) * _signs(K)


def type2(t: np.ndarray, coefficients: np.ndarray, K: int) -> np.ndarray:
    """f[r, n] = sum_k coefficients[r, k] exp(i k theta_n)."""
    return _run(2, [t], coefficients * _signs(K), (2 * K + 1,), _TOLERANCE, _threads(t.size))


_SPREAD_ONLY: dict[str, Any] = {"spreadinterponly": 1, "upsampfac": 2.0}


def spread(columns: Sequence[np.ndarray], strengths: np.ndarray, shape: tuple[int, ...], eps: float) -> np.ndarray:
    """Complex strengths (R, N) of points in [-1, 1)^d added to the nodes 2 j / n of a periodic lattice, (R, *shape)."""
    return _summed(columns, strengths, shape, eps, **_SPREAD_ONLY)


def interpolate(columns: Sequence[np.ndarray], values: np.ndarray, eps: float) -> np.ndarray:
    """Complex node values (R, *shape) seen at points through the same kernel, (R, N); the transpose of ``spread``."""
    return _run(2, columns, values, values.shape[1:], eps, _threads(columns[0].size), **_SPREAD_ONLY)


@cache
def spread_width(eps: float) -> int:
    """Nodes on which one point falls."""
    n = 64
    return int(np.count_nonzero(spread([np.array([0.3 / n])], np.ones((1, 1), complex), (n,), eps)))


def kernel_transfer(xi: np.ndarray, eps: float) -> np.ndarray:
    """phi_hat: what interpolation makes of exp(i xi j) on the nodes j, relative to the wave itself."""
    n = 64
    nodes, points = np.arange(n) - n // 2, np.array([0.0, 0.13, 0.29, 0.47, 0.61, 0.83])
    waves = np.exp(1j * np.multiply.outer(xi, nodes))
    seen = interpolate([2.0 * points / n], waves, eps)
    return np.mean(seen * np.exp(-1j * np.multiply.outer(xi, points)), axis=1).real
