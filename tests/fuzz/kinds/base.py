"""What a kind of random case is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fuzz.findings import Outcome


@dataclass(frozen=True)
class Effort:
    """How large a case may be, and how long a failure may be made smaller."""

    rows: int = 3000
    shrink_seconds: float = 60.0


@dataclass(frozen=True)
class Kind:
    """A case is a kind and a seed: ``attempt`` draws it and tries it."""

    name: str
    about: str
    attempt: Callable[[int, Effort], Outcome]
    share: float = 1.0
    """Of the time of a run, beside the other kinds' shares."""
    limit: float = 300.0
    """Seconds after which a case counts as hanging."""


def generator(kind: str, seed: int) -> np.random.Generator:
    """The random numbers of a case: other ones for every kind and seed."""
    return np.random.default_rng(np.random.SeedSequence([seed, *kind.encode()]))
