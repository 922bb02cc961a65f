"""Nobody tells kinds apart by their classes: what is registered is known to its own folder, and asked by all others.

Read from the syntax trees: ``isinstance`` and ``issubclass``, ``match`` on a class, and comparisons of ``type(...)``.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import vff
from vff.data.dask import DaskSource
from vff.data.database import DatabaseTable
from vff.data.files import FileSource
from vff.data.memory import MemorySource
from vff.data.streams import LazySource, StreamSource
from vff.factors import KINDS
from vff.inference.learning.solver import SOLVERS
from vff.inference.methods.registry import METHODS
from vff.inference.posterior import Averaged, Direct, Pieces, Probed
from vff.inference.solvers.direct import DirectLinearGaussian
from vff.inference.solvers.iterative import IterativeLinearGaussian
from vff.likelihoods.registry import LIKELIHOODS
from vff.moments.engines.choice import ENGINES

SRC = Path(vff.__file__).parent
ALLOWED: dict[str, int] = {}
"""How often kinds are told apart outside their own folder, by registry; these numbers only fall."""


def registered() -> dict[str, tuple[type, ...]]:
    """The classes of all kinds, by registry. A new registry is a line here."""
    return {
        "factors": tuple(own for kind in KINDS for own in kind.classes),
        "likelihoods": tuple(kind for kind in LIKELIHOODS if kind.__module__.startswith("vff.")),
        "engines": tuple(type(engine) for engine in ENGINES),
        "solvers": (*(type(solver) for solver in SOLVERS), DirectLinearGaussian, IterativeLinearGaussian),
        "covariances": (Averaged, Direct, Pieces, Probed),
        "methods": tuple(type(method) for method in METHODS),
        "sources": (DaskSource, DatabaseTable, FileSource, LazySource, MemorySource, StreamSource),
    }


def names_of(classes: Iterable[type]) -> dict[str, set[Path]]:
    """The names by which classes are known, and the folders that may know them."""
    found: dict[str, set[Path]] = {}
    for own in classes:
        for kind in (one for one in own.__mro__ if is_of_a_kind(one, own)):
            home = Path(inspect.getfile(kind)).parent
            found.setdefault(kind.__name__, set()).add(home)
    return found


def is_of_a_kind(base: type, own: type) -> bool:
    """Whether a class is one of a kind, or a base that only its kind has."""
    return base.__module__.rpartition(".")[0] == own.__module__.rpartition(".")[0]


def told_apart(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Places where something is asked for its class, with the classes that it is compared to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
                yield node.lineno, node.args[1]
        elif isinstance(node, ast.MatchClass):
            yield node.cls.lineno, node.cls
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Call) and getattr(side.func, "id", "") == "type" for side in sides):
                yield from ((node.lineno, side) for side in sides)


def names_in(expression: ast.expr) -> set[str]:
    """All names in an expression, whatever they are read from."""
    nodes = list(ast.walk(expression))
    return {one.id for one in nodes if isinstance(one, ast.Name)} | {
        one.attr for one in nodes if isinstance(one, ast.Attribute)
    }


def sites(classes: Iterable[type]) -> list[str]:
    known, found = names_of(classes), []
    for path in sorted(SRC.rglob("*.py")):
        for line, expression in told_apart(ast.parse(path.read_text())):
            strangers = [
                name
                for name in names_in(expression) & set(known)
                if not any(home == path.parent or home in path.parents for home in known[name])
            ]
            found += [f"{path.relative_to(SRC)}:{line} {name}" for name in sorted(strangers)]
    return found


@pytest.mark.parametrize("registry", registered())
def test_kinds_are_told_apart_by_their_own_folder_alone(registry: str) -> None:
    found = sites(registered()[registry])
    assert len(found) == ALLOWED.get(registry, 0), "\n".join(found)


def test_telling_apart_is_seen() -> None:
    tree = ast.parse(
        "isinstance(x, A | m.B)\nissubclass(k, (C, int))\ntype(x) is D\ntype(x) == E\n"
        "match x:\n    case F():\n        pass\n    case m.G(a=1):\n        pass\n"
    )
    found = [name for _, expression in told_apart(tree) for name in names_in(expression)]
    assert {"A", "B", "C", "D", "E", "F", "G"} <= set(found)
