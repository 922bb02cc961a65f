"""BLAS threads: many for large matrices, one for small ones, where waking threads costs more than the arithmetic."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_SMALL = 800


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _Limit:
    """One limit shared by all Python threads that ask for it: set by the first to come, lifted by the last to leave."""

    def __init__(self) -> None:
        self._lock, self._users, self._stack = Lock(), 0, ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._stack.enter_context(_controller().limit(limits=1, user_api="blas"))
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._stack.close()


_LIMIT = _Limit()


@contextmanager
def threads_for(P: int) -> Iterator[None]:
    """Run a block of work on P x P matrices with a sensible number of BLAS threads."""
    if P > _SMALL:
        yield
        return
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
