"""A few of every kind of basis, with the domain it lives on, and what the laws need to know of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from tests.makers import factors

from vff.basis import Basis, Codes, ColumnBasis, Domain, Interval, LevelBasis
from vff.factors.blurred.basis import BlurredBasis, BlurredInterval
from vff.factors.blurred.nodes import Breadth, BreadthBasis
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

    around: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    """Of rows with uncertain inputs: one row to inputs that are known, and their probabilities."""

    def square(self, one: Any) -> np.ndarray:
        """phi phi' of one row in units of the domain, by the definition, (P, P)."""
        at, weights = (np.array([one]), np.ones(1)) if self.around is None else self.around(one)
        phi = self.basis.evaluate(at)
        return phi.T @ (weights[:, None] * phi)

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
    """Beside any kind, a globe of two columns and averages among them."""
    plain = [
        *_columns(),
        *_levels(),
        *_globes(),
        *(case for case in _averages() if case.around is None),
        Case(CircleBasis(4), Circle(7.0), (CircleBasis(2),)),
        Case(LineBasis(True), Line(4.0), (LineBasis(False),)),
        Case(LineBasis(False), Line(4.0)),
    ]
    for case in plain:
        others = tuple(map(MissingBasis, case.others))
        yield Case(MissingBasis(case.basis), MissingDomain(case.domain), others, case.later)


def _averages() -> Iterator[Case]:
    top = {"width": 2.0, "std": 0.3}
    nodes, weights = hermegauss(60)

    def around(one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.stack([one[0] + one[1] * nodes, 0.0 * nodes], axis=1), weights / weights.sum()

    for kind, largest in top.items():
        domain = BlurredInterval(-2.0, 5.5, largest, kind)
        others = tuple(BlurredBasis(M, q, kind, largest / 3.75) for M, q in ((7, 1), (3, 4), (1, 0)))
        for M, q in ((1, 0), (5, 3)):
            own = BlurredBasis(M, q, kind, largest / 3.75)
            yield Case(own, domain, others, around=around if kind == "std" else None)
    domain = BlurredInterval(-2.0, 5.5, 0.0, "width")
    yield Case(BlurredBasis(3, 2, "width", 0.0), domain, (BlurredBasis(2, 4, "width", 0.0),))


def _breadths() -> Iterator[Case]:
    yield Case(BreadthBasis(5, 0.7), Breadth(2.0, 1.4), (BreadthBasis(3, 0.7), BreadthBasis(8, 0.7)))
    yield Case(BreadthBasis(1, 0.0), Breadth(2.0, 0.0))


MAKERS: dict[type[Basis], Callable[[], Iterator[Case]]] = {
    ColumnBasis: _columns,
    LevelBasis: _levels,
    SphereBasis: _globes,
    MissingBasis: _with_missing,
    BlurredBasis: _averages,
    BreadthBasis: _breadths,
}


def cases() -> list[Case]:
    """All of them; of a kind of factor that has none here, those of its factors."""
    own = [case for maker in MAKERS.values() for case in maker()]
    return own + [Case(case.basis, case.domain) for case in factors.cases() if type(case.basis) not in MAKERS]
