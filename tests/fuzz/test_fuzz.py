"""A few hundred random cases with fixed seeds. ``make fuzz SECONDS=600`` tries thousands; see docs/reliability.md."""

import warnings

import pytest

from fuzz.kinds import KINDS
from fuzz.kinds.base import Effort, Kind
from fuzz.reports import report
from fuzz.runner import attempted

EFFORT = Effort(rows=60, shrink_seconds=10.0)
CASES = {"gaussian": 60}
STRIDE = 5  # cases of a test: enough that a failure is found quickly, few enough that processes share the work


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        pytest.param(kind, first, id=f"{kind.name}-{first}")
        for kind in KINDS
        for first in range(0, CASES[kind.name], STRIDE)
    ],
)
def test_random_cases(kind: Kind, first: int) -> None:
    for seed in range(first, min(first + STRIDE, CASES[kind.name])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = attempted(kind, seed, EFFORT)
        assert outcome.finding is None, "\n" + report(kind.name, seed, outcome.finding, None)
