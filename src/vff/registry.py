"""Registries: the kinds of a thing that there are, and how one's own comes in.

with ENGINES.registered(mine): ...      for as long as the block lasts
ENGINES.register(mine)                  for good
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def _name(member: Any) -> tuple[str, ...]:
    return (member.name,)


class Registry(Generic[T]):
    """Kinds by name, in the order in which they are asked."""

    def __init__(
        self,
        what: str,
        *members: T,
        names: Callable[[T], tuple[str, ...]] = _name,
        added: Callable[[T], None] = lambda member: None,
        removed: Callable[[T], None] = lambda member: None,
    ) -> None:
        """``what`` one of them is called; all its ``names`` must be new; what else follows from coming and going."""
        self._what, self._names, self._added, self._removed = what, names, added, removed
        self._members: list[T] = []
        for member in members:
            self.register(member)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._members))

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return any(name in self._names(own) for own in self._members)

    def __getitem__(self, name: str) -> T:
        """The one of this name."""
        for own in self._members:
            if name in self._names(own):
                return own
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all of them, in order."""
        return tuple(self._names(own)[0] for own in self._members)

    def register(self, member: T, *, first: bool = False) -> T:
        """One more, asked after the others or before them."""
        for name in self._names(member):
            if name in self:
                raise ValueError(f"there is {self._what} called {name!r} already; choose another name")
        self._members.insert(0 if first else len(self._members), member)
        self._added(member)
        return member

    @contextmanager
    def registered(self, member: T, *, first: bool = False) -> Iterator[T]:
        """One more, for as long as the block lasts."""
        self.register(member, first=first)
        try:
            yield member
        finally:
            self._members.remove(member)
            self._removed(member)
