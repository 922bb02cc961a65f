"""The door to JAX: every computation of the house with it happens within ``float64()``.

JAX keeps threads. A process that is forked from one with such threads has none of them, but waits for their work, for
ever. So the door stays closed there. The files of the room that import JAX are imported when they are first used.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class _Later:
    def __init__(self, name: str) -> None:
        self._name = f"vff.likelihoods.{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


compiled, numerics = _Later("compiled"), _Later("numerics")

_awake_in: int | None = None
"""The process in which JAX has its threads."""


@contextmanager
def float64() -> Iterator[None]:
    """JAX in float64 for the time of a block, whatever the caller's flags are."""
    global _awake_in
    if _awake_in is None:
        _awake_in = os.getpid()
    elif _awake_in != os.getpid():
        raise RuntimeError(
            "expected a process of its own for what needs JAX (likelihoods that are not Gaussian, Markov chains), "
            "found a fork of one that had used JAX, where it would wait for ever; start processes with "
            "multiprocessing.get_context('spawn') or joblib's 'loky', or fork before the first such fit"
        )
    import jax

    with jax.enable_x64(True):
        yield


def _remember() -> None:
    """A caller may have used JAX before the fork, and vff not."""
    global _awake_in
    initialised = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    if _awake_in is None and initialised is not None and initialised():
        _awake_in = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_remember)
