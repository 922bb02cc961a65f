"""BLAS threads: many for large matrices, one for small ones, where waking threads costs more than the arithmetic."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import current_thread, main_thread

from threadpoolctl import ThreadpoolController

_SMALL = 800


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads_for(P: int) -> Iterator[None]:
    """Run a block of work on P x P matrices with a sensible number of BLAS threads.

    The number belongs to the whole process, so only the main thread changes it, and gives it back.
    """
    if P > _SMALL or current_thread() is not main_thread():
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
