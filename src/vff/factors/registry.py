"""The kinds of factors there are. Everything else asks this list, and knows no kind by its class.

with KINDS.registered(kind): ...        a kind of one's own, for as long as it is needed
KINDS.register(kind)                    for good
"""

from dataclasses import dataclass

from vff.basis import Basis, Domain, Letters
from vff.factors.expression import Leaf
from vff.factors.protocol import Factor, Prior
from vff.parameters import Between, Fixed, from_text
from vff.registry import Registry
from vff.storage import forbid, permit, permit_scalar


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
    def stored(self) -> tuple[type, ...]:
        """Those that files hold."""
        return (*self.leaves, self.prior, self.basis, self.domain)

    @property
    def classes(self) -> tuple[type, ...]:
        """All of them."""
        return (*self.leaves, self.factor, self.prior, self.basis, self.domain, *self.letters)


class FactorKinds(Registry[Kind]):
    """Kinds in the order in which they came. Names of kinds and leaves are new; files may hold what is theirs."""

    def __init__(self) -> None:
        super().__init__(
            "a kind of factor",
            names=lambda kind: (kind.name, *(leaf.__name__ for leaf in kind.leaves)),
            added=lambda kind: permit(*kind.stored),
            removed=lambda kind: forbid(*kind.stored),
        )

    @property
    def leaves(self) -> dict[str, type[Leaf]]:
        """What users may write, by name."""
        return {leaf.__name__: leaf for kind in self for leaf in kind.leaves}

    def default_leaf(self, kind_of_column: str) -> type[Leaf] | None:
        """What a bare column of this kind stands for; None where it cannot be used."""
        return next((leaf for leaf in self.leaves.values() if kind_of_column in leaf.default_for), None)


KINDS = FactorKinds()
permit_scalar("known", (Fixed, Between), repr, from_text)  # numbers of kernels that are held or bounded
