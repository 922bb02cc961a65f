"""Shared by all tests: fixed seeds, quiet hypothesis."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "vff", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("vff")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
