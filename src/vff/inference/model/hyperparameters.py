"""Hyperparameters by term, and whose each of them is."""

from typing import NamedTuple


class Key(NamedTuple):
    """Whose hyperparameter it is."""

    term: int | None
    """None for the noise variance."""
    factor: int | None
    """None where it belongs to the whole term."""
    name: str

    def __str__(self) -> str:
        return " ".join(str(part) for part in (self.name, self.term, self.factor) if part is not None)


NOISE = Key(None, None, "noise")


class Hyperparameters(NamedTuple):
    """Hyperparameters by term, and the noise variance."""

    terms: tuple[dict[str, float], ...]
    noise: float
