"""How many cores this process may use, and threads for them."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

_SHARE: ContextVar[int | None] = ContextVar("_SHARE", default=None)
_CGROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_born_in = os.getpid()
_FEW_ROWS = 2**10

Each = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
"""A function of every item."""


def cores() -> int:
    """Cores that this process may have, or this thread's share of them.

    The least of what the system lets it have, of the quota of its container, of OMP_NUM_THREADS, which is how users and
    schedulers say it, and of what OpenMP was told since, as ``threadpool_limits`` does.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (allowed, _quota(), _from_environment(), _from_openmp(len(sys.modules)), _SHARE.get())
    return max(1, min(limit for limit in limits if limit is not None))


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


@contextmanager
def side_by_side(rows: int) -> Iterator[Each]:
    """A map over columns or sets of them, by threads where rows are many enough to be worth waking them."""
    if rows <= _FEW_ROWS:
        yield lambda function, items: [function(item) for item in items]
        return
    with workers(cores()) as pool:
        yield lambda function, items: list(pool.map(function, items))


def forked() -> bool:
    """Whether this process is a fork of one that had vff.

    Threads are not forked, and a library that had some may wait for them for ever, as GNU's OpenMP does.
    """
    return os.getpid() != _born_in


def _from_environment() -> int | None:
    """OMP_NUM_THREADS, which may be a list with the number for every level of nesting."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) > 0 else None


def _from_openmp(modules: int) -> int | None:
    """The least number of threads that a library of OpenMP has in this thread."""
    return min((own.num_threads or 1 for own in _openmp(modules).lib_controllers), default=None)


@lru_cache(maxsize=1)
def _openmp(modules: int) -> ThreadpoolController:
    """Libraries of OpenMP. Finding them takes milliseconds: it is done when there are more ``modules`` than before."""
    return ThreadpoolController().select(user_api="openmp")


@cache
def _quota() -> int | None:
    """Cores' worth of time that control groups of Linux allow this process and the groups it is in, rounded up."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return None
    quotas = [_quota_of(folder) for line in lines for folder in _groups(*line.split(":", 2)[1:])]
    return min((quota for quota in quotas if quota is not None), default=None)


def _groups(controllers: str, path: str) -> Iterator[Path]:
    """The folders of a group and of those around it, in version 2 (no controllers) or 1."""
    if controllers and "cpu" not in controllers.split(","):
        return
    for root in (_CGROUPS, _CGROUPS / "cpu") if controllers else (_CGROUPS,):
        inner = root / path.lstrip("/")
        yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(root))


def _quota_of(folder: Path) -> int | None:
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
            return -(-int(quota) // int(period)) if int(quota) > 0 and int(period) > 0 else None
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return None
