"""Continuous columns: type-1 and type-2 non-uniform FFTs. The only file that knows FINUFFT."""

import os
from typing import Any

import numpy as np

from vff.moments.engines.sheets import trigonometric_engine

_TOLERANCE = 1e-14
_CHUNK_ROWS = 2**21
_THREAD_ROWS = 2**14  # below this, threads cost more than they bring


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _execute(kind: int, t: np.ndarray, data: np.ndarray, K: int) -> np.ndarray:
    """All transforms of ``data`` in one plan: (R, N) for type 1, (R, 2K + 1) for type 2."""
    import finufft

    threads = 1 if t.size < _THREAD_ROWS else _cores()
    options: dict[str, Any] = {"eps": _TOLERANCE, "isign": 1, "dtype": "complex128", "nthreads": threads}
    plan = finufft.Plan(kind, (2 * K + 1,), n_trans=data.shape[0], **options)
    plan.setpts(np.pi * t)
    return np.atleast_2d(plan.execute(data if data.shape[0] > 1 else data[0]))


def _signs(K: int) -> np.ndarray:
    """theta = pi (t + 1), but FINUFFT is most accurate near zero: exp(i k theta) = (-1)^k exp(i k pi t)."""
    return 1.0 - 2.0 * (np.arange(-K, K + 1) % 2)


def _type1(t: np.ndarray, strengths: np.ndarray, K: int) -> np.ndarray:
    return _execute(1, t, strengths, K) * _signs(K)


def _type2(t: np.ndarray, coefficients: np.ndarray, K: int) -> np.ndarray:
    return _execute(2, t, coefficients * _signs(K), K)


NUFFT = trigonometric_engine("nufft", _type1, _type2, _CHUNK_ROWS)
