"""The kinds of factors there are. Everything else asks this list, and knows no kind by its class.

with KINDS.registered(kind): ...        a kind of one's own, for as long as it is needed
KINDS.register(kind)                    for good
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vff.basis import Basis, Domain, Letters
from vff.factors.expression import Leaf
from vff.factors.protocol import Factor, Prior
from vff.storage import forbid, permit


@dataclass(frozen=True)
class Kind:
    """One kind of factor: the classes that are its own."""

    name: str
    leaves: tuple[type[Leaf], ...]
    factor: type[Factor]
    prior: type[Prior]
    basis: type[Basis]
    domain: type[Domain]
    letters: tuple[type[Letters], ...] = ()

    @property
    def classes(self) -> tuple[type, ...]:
        """All of them."""
        return (*self.leaves, self.factor, self.prior, self.basis, self.domain, *self.letters)


@dataclass
class Registry:
    """Kinds in the order in which they came."""

    _kinds: list[Kind] = field(default_factory=list)

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._kinds))

    def __len__(self) -> int:
        return len(self._kinds)

    def register(self, kind: Kind) -> Kind:
        """A new kind; names of kinds and of leaves must be new."""
        taken = {own.name for own in self._kinds} | set(self.leaves)
        for name in (kind.name, *(leaf.__name__ for leaf in kind.leaves)):
            if name in taken:
                raise ValueError(f"a kind of factor of a new name was expected, found {name!r}; call it otherwise")
        permit(*kind.leaves, kind.prior, kind.basis, kind.domain)
        self._kinds.append(kind)
        return kind

    @contextmanager
    def registered(self, kind: Kind) -> Iterator[Kind]:
        """A kind that is known within the block."""
        self.register(kind)
        try:
            yield kind
        finally:
            self._kinds.remove(kind)
            forbid(*kind.leaves, kind.prior, kind.basis, kind.domain)

    @property
    def leaves(self) -> dict[str, type[Leaf]]:
        """What users may write, by name."""
        return {leaf.__name__: leaf for kind in self._kinds for leaf in kind.leaves}

    def default_leaf(self, kind_of_column: str) -> type[Leaf] | None:
        """What a bare column of this kind stands for; None where it cannot be used."""
        return next((leaf for leaf in self.leaves.values() if kind_of_column in leaf.default_for), None)


KINDS = Registry()
