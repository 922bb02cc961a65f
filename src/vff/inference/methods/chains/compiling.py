"""Compilation, which takes longer than many a chain."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax

# the emitters of fused loops take as long as all other passes together, and code without them runs as fast here
_QUICK = {"xla_cpu_use_fusion_emitters": False}


@lru_cache(maxsize=1)
def _options() -> dict[str, Any] | None:
    """Options that this version of JAX knows."""
    try:
        jax.jit(lambda x: x + 1, compiler_options=_QUICK)(0.0)
    except (TypeError, ValueError, RuntimeError):
        return None
    return dict(_QUICK)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``jax.jit``, in less time."""
    return jax.jit(function, compiler_options=_options())
