"""A few hundred random cases with fixed seeds. ``make fuzz SECONDS=600`` tries thousands; see docs/reliability.md."""

import pytest

from fuzz.kinds import KINDS
from fuzz.kinds.base import Effort, Kind
from fuzz.reports import report
from fuzz.runner import attempted

EFFORT = Effort(rows=30, shrink_seconds=10.0)
CASES = {"gaussian": 45, "likelihood": 6, "text": 200, "command line": 60}
"""About a minute. Mutated files and kills have tests of their own, and concurrent programs take too long for this."""
STRIDE = {"gaussian": 3, "likelihood": 1, "text": 50, "command line": 20}
"""Cases of one test, so that processes share the work."""


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        pytest.param(kind, first, id=f"{kind.name}-{first}")
        for kind in KINDS
        if kind.name in CASES
        for first in range(0, CASES[kind.name], STRIDE[kind.name])
    ],
)
def test_random_cases(kind: Kind, first: int) -> None:
    for seed in range(first, min(first + STRIDE[kind.name], CASES[kind.name])):
        outcome = attempted(kind, seed, EFFORT)
        if outcome.finding is not None:
            pytest.fail(report(kind.name, seed, outcome.finding, None), pytrace=False)
