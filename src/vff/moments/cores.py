"""How many cores this process may use, and threads for them."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_SHARE: ContextVar[int | None] = ContextVar("_SHARE", default=None)


def cores() -> int:
    """Cores that the system lets this process have, or this thread's share of them."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(found, _SHARE.get() or found)


@contextmanager
def at_most(share: int) -> Iterator[None]:
    """Use so many cores in this thread, because others of its kind work beside it."""
    token = _SHARE.set(share)
    try:
        yield
    finally:
        _SHARE.reset(token)


def workers(count: int) -> ThreadPoolExecutor:
    """Threads that take numbers beyond float64 as the thread that asks for them does: NumPy has them start anew."""
    state = np.geterr()
    return ThreadPoolExecutor(count, initializer=lambda: np.seterr(**state))
