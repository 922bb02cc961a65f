"""BLAS threads: many for large matrices, one for small ones, where waking threads costs more than the arithmetic."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_SMALL = 800


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads_for(P: int) -> Iterator[None]:
    """Run a block of work on P x P matrices with a sensible number of BLAS threads."""
    if P > _SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
