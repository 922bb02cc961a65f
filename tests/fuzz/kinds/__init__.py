"""What is tried at random: one file per kind, and the list of them."""

from fuzz.kinds import command_line, concurrent, files, gaussian, kills, likelihood, text
from fuzz.kinds.base import Kind

_ALL = (gaussian, likelihood, text, command_line, files, concurrent, kills)

KINDS: tuple[Kind, ...] = tuple(module.KIND for module in _ALL if getattr(module, "AVAILABLE", True))


def kind_named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)
