"""What is tried at random: one file per kind, and the list of them."""

from fuzz.kinds import gaussian, likelihood
from fuzz.kinds.base import Kind

KINDS: tuple[Kind, ...] = (gaussian.KIND, likelihood.KIND)


def kind_named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)
