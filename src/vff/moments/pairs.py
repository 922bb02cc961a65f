"""Records with something for every pair of terms."""

from collections.abc import Mapping
from typing import Any

Pair = tuple[int, int]
_LISTED = "listed by pairs"


class KeyedByPairs:
    """A record whose dictionaries by pairs travel as lists: formats made of JSON have no pairs among their keys."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        listed = [name for name, value in state.items() if isinstance(value, Mapping) and _has_pairs(value)]
        return state | {name: list(state[name].items()) for name in listed} | {_LISTED: listed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        listed = state.get(_LISTED, ())
        vars(self).update({name: value for name, value in state.items() if name != _LISTED})
        vars(self).update({name: dict(state[name]) for name in listed})


def _has_pairs(found: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, tuple) for key in found)
