"""Continuous columns: type-1 and type-2 non-uniform FFTs. The only file that knows FINUFFT."""

from collections.abc import Sequence
from functools import partial
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from vff.moments.cores import cores
from vff.moments.engines.sheets import trigonometric_engine

_TOLERANCE = 1e-14
_PAIR_TOLERANCE = 1e-11  # of blocks between two columns; the cost goes as the square of the digits
_CHUNK_ROWS = 2**21
_THREAD_ROWS = 2**14  # below this, threads cost more than they bring


def _threads(rows: int) -> int:
    """All cores for many rows; one where another thread works on another pair of columns at the same time."""
    alone = current_thread() is main_thread()
    return cores() if alone and rows >= _THREAD_ROWS else 1


def _execute(
    kind: int, columns: Sequence[np.ndarray], data: np.ndarray, degrees: Sequence[int], eps: float
) -> np.ndarray:
    """All transforms of ``data`` over the rows of one or two columns, in one plan.

    ``data`` is (R, N) for type 1, and R times (2K + 1) per column for type 2, which is also what type 1 returns.
    """
    import finufft

    N, R = columns[0].size, data.shape[0]
    options: dict[str, Any] = {"eps": eps, "isign": 1, "dtype": "complex128", "nthreads": _threads(N)}
    plan = finufft.Plan(kind, tuple(2 * K + 1 for K in degrees), n_trans=R, **options)
    plan.setpts(*(np.pi * t for t in columns))
    result = plan.execute(np.ascontiguousarray(data if R > 1 else data[0]))
    return result if R > 1 else result[None]


def _signs(K: int) -> np.ndarray:
    """theta = pi (t + 1), but FINUFFT is most accurate near zero: exp(i k theta) = (-1)^k exp(i k pi t)."""
    return 1.0 - 2.0 * (np.arange(-K, K + 1) % 2)


def type1(t: np.ndarray, strengths: np.ndarray, K: int, eps: float = _TOLERANCE) -> np.ndarray:
    """F[r, k] = sum_n strengths[r, n] exp(i k theta_n), k = -K ... K."""
    return _execute(1, [t], strengths, [K], eps) * _signs(K)


def type2(t: np.ndarray, coefficients: np.ndarray, K: int, eps: float = _TOLERANCE) -> np.ndarray:
    """f[r, n] = sum_k coefficients[r, k] exp(i k theta_n)."""
    return _execute(2, [t], coefficients * _signs(K), [K], eps)


type1_for_pairs = partial(type1, eps=_PAIR_TOLERANCE)
type2_for_pairs = partial(type2, eps=_PAIR_TOLERANCE)


def type1_pair(s: np.ndarray, t: np.ndarray, strengths: np.ndarray, K: int, L: int) -> np.ndarray:
    """F[k, l] = sum_n strengths[n] exp(i k theta(s_n) + i l theta(t_n))."""
    F = _execute(1, [s, t], strengths.astype(complex)[None], [K, L], _PAIR_TOLERANCE)[0]
    return F * np.multiply.outer(_signs(K), _signs(L))


def type2_pair(s: np.ndarray, t: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """f[n] = sum_kl coefficients[k, l] exp(i k theta(s_n) + i l theta(t_n))."""
    K, L = (size // 2 for size in coefficients.shape)
    signed = coefficients * np.multiply.outer(_signs(K), _signs(L))
    return _execute(2, [s, t], signed[None], [K, L], _PAIR_TOLERANCE)[0]


NUFFT = trigonometric_engine("nufft", type1, type2, _CHUNK_ROWS)
