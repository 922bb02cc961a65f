"""Shared by all tests: fixed seeds, quiet hypothesis, and one store of compiled likelihoods for all processes."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

_QUICK = " ".join(
    f"--xla_{flag}"
    for flag in ("backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1")
)
# most of the time of these tests is compilation: of code that runs for a moment, it may be less thorough
os.environ.setdefault("XLA_FLAGS", _QUICK)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

settings.register_profile(
    "vff", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("vff")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
