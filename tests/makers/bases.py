"""A few of every kind of basis, with the domain it lives on, and what the laws need to know of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.makers import factors

from vff.basis import Basis, Codes, ColumnBasis, Domain, Interval, LevelBasis
from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.line.basis import Line, LineBasis
from vff.factors.missing.basis import MissingBasis, MissingDomain
from vff.factors.sphere.basis import Globe, SphereBasis


@dataclass(frozen=True)
class Case:
    """A basis on its domain."""

    basis: Basis
    domain: Domain
    others: tuple[Basis, ...] = ()
    """Of the same family, on the same axis."""
    later: tuple[Any, ...] = ()
    """Values of a discrete domain that the basis does not know yet."""

    def draw(self, n: int, seed: int = 0) -> np.ndarray:
        """Inputs in the column's own units."""
        return self.domain.draw(np.random.default_rng(seed), n, self.basis.size)

    def units(self, n: int, seed: int = 0) -> np.ndarray:
        """The same in those of the domain."""
        return self.domain.to_unit(self.draw(n, seed))


def _columns() -> Iterator[Case]:
    others = ColumnBasis(7, 1), ColumnBasis(3, 4), ColumnBasis(1, 0)
    for M, q in ((1, 0), (1, 1), (5, 3), (3, 4)):
        yield Case(ColumnBasis(M, q), Interval(-2.0, 5.5), others)


def _levels() -> Iterator[Case]:
    yield Case(LevelBasis(("a",)), Codes(), later=("b",))
    yield Case(LevelBasis(("red", "green", 3)), Codes(), later=(7, "blue"))


def _globes() -> Iterator[Case]:
    others = SphereBasis(7), SphereBasis(2), SphereBasis(1)
    for L in (1, 5):
        yield Case(SphereBasis(L), Globe(), others)


def _with_missing() -> Iterator[Case]:
    """Beside any kind, a globe of two columns among them."""
    plain = [
        *_columns(),
        *_levels(),
        *_globes(),
        Case(CircleBasis(4), Circle(7.0), (CircleBasis(2),)),
        Case(LineBasis(True), Line(4.0), (LineBasis(False),)),
        Case(LineBasis(False), Line(4.0)),
    ]
    for case in plain:
        others = tuple(map(MissingBasis, case.others))
        yield Case(MissingBasis(case.basis), MissingDomain(case.domain), others, case.later)


MAKERS: dict[type[Basis], Callable[[], Iterator[Case]]] = {
    ColumnBasis: _columns,
    LevelBasis: _levels,
    SphereBasis: _globes,
    MissingBasis: _with_missing,
}


def cases() -> list[Case]:
    """All of them; of a kind of factor that has none here, those of its factors."""
    own = [case for maker in MAKERS.values() for case in maker()]
    return own + [Case(case.basis, case.domain) for case in factors.cases() if type(case.basis) not in MAKERS]
