"""Records of the house to plain trees and back, by the types that the reader expects.

A file says what a record is called, and the type hint at its place says which records may be there. So a file can make
nothing but what its reader has a place for. Records (dataclasses and named tuples) and values that JSON does not know
are dictionaries of one entry, by their name:

    None, bool, int, float, str        themselves
    np.float64(1.5)                    {"float64": 1.5}
    datetime64(5, "us")                {"datetime64[us]": 5}
    Interval(0.0, 1.0)                 {"Interval": {"a": 0.0, "b": 1.0}}
    tuples, lists, sets                [...]                        as their hint says
    mappings                           [[key, value], ...]
    anything behind the hint Any       {"tuple": [...]}, {"list": [...]}, {"dict": [[key, value], ...]}
"""

import dataclasses
import inspect
import re
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from vff.storage.container import FileError, Tree

_NUMPY = {
    name: getattr(np, name)
    for name in (
        *("float64", "float32", "bool_", "str_"),
        *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    )
}
_NAMES = {kind: name for name, kind in _NUMPY.items()}
_TIME = re.compile(r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
_LARGEST = 2**63
_SEQUENCES = (tuple, list, frozenset)
_KINDS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str,),
    type(None): (type(None),),
}


def _refuse(expected: str, found: object) -> NoReturn:
    raise FileError(f"{expected} was expected, found {found!r:.120}; the file is damaged, or not of this kind")


def is_record(kind: Any) -> bool:
    """Whether a type is a dataclass or a named tuple."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "_field_defaults"))


@cache
def stored_fields(kind: Any) -> dict[str, bool]:
    """The fields that define a record, and whether each has a default. Those that do not compare are memories."""
    if hasattr(kind, "_field_defaults"):
        return {name: name in kind._field_defaults for name in kind._fields}
    missing = dataclasses.MISSING
    return {
        own.name: own.default is not missing or own.default_factory is not missing
        for own in dataclasses.fields(kind)
        if own.init and own.compare
    }


_PERMITTED: set[type] = set()


def permit(*kinds: type) -> None:
    """Records from elsewhere that files may hold, where a hint has a place for them."""
    _PERMITTED.update(kinds)
    _leaves.cache_clear()


def forbid(*kinds: type) -> None:
    """The opposite of ``permit``."""
    _PERMITTED.difference_update(kinds)
    _leaves.cache_clear()


_SCALARS: dict[str, tuple[tuple[type, ...], Callable[[Any], str], Callable[[str], Any]]] = {}


def permit_scalar(name: str, kinds: tuple[type, ...], write: Callable[[Any], str], read: Callable[[str], Any]) -> None:
    """Numbers from elsewhere that say more than their value, written as a text under a name of their own."""
    _SCALARS[name] = kinds, write, read


def stored_name(kind: type) -> str:
    """What files call a record: its name, or what it was once called."""
    return kind.__dict__.get("stored_as", kind.__name__)


@dataclasses.dataclass(frozen=True)
class Codec:
    """Both ways, for the records of one package; ``names`` are types that its hints write but do not import."""

    package: str
    names: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    _known: dict[type, dict[str, Any]] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    def encode(self, value: Any, hint: Any) -> Tree:
        """The tree of a value that has the hinted type."""
        arm = next((one for one in _arms(hint) if self._fits(value, one)), None)
        if arm is None:
            _refuse_value(value, hint)
        if arm in _KINDS or arm is Hashable:
            return _encoded_scalar(value)
        if arm is Any:
            return self._encoded_anything(value)
        if arm is np.ndarray:
            return value
        origin = _outer(arm)
        if origin in _SEQUENCES:
            ordered = sorted(value, key=repr) if origin is frozenset else value
            return [self.encode(one, part) for one, part in zip(ordered, _each(arm, len(value)), strict=True)]
        if origin is dict:
            parts = get_args(arm)
            return [[self.encode(key, parts[0]), self.encode(one, parts[1])] for key, one in value.items()]
        hints = self._hints(type(value))
        fields = {name: self.encode(getattr(value, name), hints[name]) for name in stored_fields(type(value))}
        return {stored_name(type(value)): fields}

    def decode(self, tree: Tree, hint: Any) -> Any:
        """The value of the hinted type; ``FileError`` where the tree is that of another."""
        arm = next((one for one in _arms(hint) if self._suits(tree, one)), None)
        if arm is None:
            _refuse(_text(hint), tree)
        if arm in _KINDS or arm is Hashable:
            return _decoded_scalar(tree, arm)
        if arm is Any:
            return self._decoded_anything(tree)
        if arm is np.ndarray:
            return tree
        origin = _outer(arm)
        if origin in _SEQUENCES:
            found = [self.decode(one, part) for one, part in zip(tree, _each(arm, len(tree)), strict=True)]
            return origin(_distinct(found) if origin is frozenset else found)
        if origin is dict:
            return self._decoded_pairs(tree, get_args(arm))
        return self._decoded_record(tree, arm)

    def allowed(self, hint: type) -> dict[str, type]:
        """The records that may stand where a hint is: itself and its subclasses, if they are leaves.

        They are those of the package, and others that were permitted.
        """
        return _leaves(hint, self.package)

    def _fits(self, value: Any, arm: Any) -> bool:
        if arm in _KINDS:
            return isinstance(value, _KINDS[arm]) and (arm is bool or not isinstance(value, bool | np.bool_))
        if arm is Any or arm is Hashable:
            return True
        origin = _outer(arm)
        if origin is dict or origin in _SEQUENCES:
            return isinstance(value, Mapping if origin is dict else origin)
        if arm is np.ndarray or not isinstance(origin, type):
            return isinstance(value, origin)
        return type(value) in self.allowed(origin).values()

    def _suits(self, tree: Tree, arm: Any) -> bool:
        if arm in _KINDS:
            value = _loose_scalar(tree)
            return value is not NotImplemented and self._fits(value, arm)
        if arm is Any or arm is Hashable:
            return True
        if arm is np.ndarray:
            return isinstance(tree, np.ndarray)
        if _outer(arm) in (*_SEQUENCES, dict):
            return isinstance(tree, list)
        return isinstance(arm, type) and isinstance(tree, dict) and len(tree) == 1 and set(tree) <= {*self.allowed(arm)}

    def _hints(self, kind: type) -> dict[str, Any]:
        if kind not in self._known:  # working them out takes longer than all else that is done for a record
            self._known[kind] = get_type_hints(kind, localns=dict(self.names))
        return self._known[kind]

    def _decoded_record(self, tree: Tree, arm: type) -> Any:
        ((name, fields),) = tree.items()
        kind = self.allowed(arm)[name]
        known = stored_fields(kind)
        if not isinstance(fields, dict) or not set(fields) <= set(known):
            _refuse(f"{name} with the fields {', '.join(known)}", fields)
        missing = [own for own, default in known.items() if not default and own not in fields]
        if missing:
            _refuse(f"{name} with the field {missing[0]}", sorted(fields))
        hints = self._hints(kind)
        return kind(**{own: self.decode(part, hints[own]) for own, part in fields.items()})

    def _decoded_pairs(self, tree: Tree, parts: Sequence[Any]) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in tree):
            _refuse("pairs of a key and a value", tree)
        keys = _distinct([self.decode(key, parts[0]) for key, _ in tree])
        return dict(zip(keys, (self.decode(one, parts[1]) for _, one in tree), strict=True))

    def _encoded_anything(self, value: Any) -> Tree:
        if isinstance(value, np.ndarray):
            return value
        if type(value) in (tuple, list):
            return {type(value).__name__: [self._encoded_anything(one) for one in value]}
        if type(value) is dict:
            pairs = value.items()
            return {"dict": [[self._encoded_anything(key), self._encoded_anything(one)] for key, one in pairs]}
        return _encoded_scalar(value)

    def _decoded_anything(self, tree: Tree) -> Any:
        if isinstance(tree, np.ndarray):
            return tree
        if not (isinstance(tree, dict) and len(tree) == 1 and set(tree) <= {"tuple", "list", "dict"}):
            return _decoded_scalar(tree, Any)
        ((name, parts),) = tree.items()
        if not isinstance(parts, list):
            _refuse(f"the parts of a {name}", parts)
        if name == "dict":
            return self._decoded_pairs(parts, (Any, Any))
        found = map(self._decoded_anything, parts)
        return tuple(found) if name == "tuple" else list(found)


@cache
def _arms(hint: Any) -> list[Any]:
    """The alternatives of a hint; those that take anything come last."""
    if get_origin(hint) not in (Union, types.UnionType):
        return [type(None) if hint is None else hint]
    arms = [arm for part in get_args(hint) for arm in _arms(part)]
    return sorted(arms, key=lambda arm: arm is Any or arm is Hashable)


def _outer(arm: Any) -> Any:
    """The type without what it holds; every mapping is a dictionary."""
    origin = get_origin(arm) or arm
    return dict if origin is Mapping else origin


def _each(arm: Any, count: int) -> Sequence[Any]:
    """The hint of every entry of a sequence."""
    parts = get_args(arm)
    if _outer(arm) is not tuple or parts[1:] == (Ellipsis,):
        return [parts[0]] * count
    if len(parts) != count:
        _refuse(f"a tuple of {len(parts)}", f"one of {count}")
    return parts


def _distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        _refuse("entries that differ", "one of them twice")
    return values


@cache
def _leaves(hint: type, package: str) -> dict[str, type]:
    found: dict[str, type] = {}
    waiting = [hint]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        public = not kind.__name__.startswith("_") and not inspect.isabstract(kind)
        ours = kind.__module__.split(".")[0] == package or kind in _PERMITTED
        name = stored_name(kind)
        if public and ours and is_record(kind) and found.setdefault(name, kind) is not kind:
            raise TypeError(f"two records are called {name}, and a file could not tell them apart")
    return found


def _text(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint)) if isinstance(hint, type) else str(hint)


def _refuse_value(value: Any, hint: Any) -> NoReturn:
    if callable(value) or any(_outer(arm) is Callable for arm in _arms(hint)):
        raise FileError(
            "the model holds a function of your own, as a Custom likelihood does, and a file can keep none; use a "
            "likelihood of vff.likelihoods, or keep the script that makes the model"
        )
    raise FileError(
        f"a value of type {type(value).__name__} cannot be written to a file where {_text(hint)} is expected; convert "
        "it to text, numbers or times"
    )


def _encoded_scalar(value: Any) -> Tree:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.datetime64 | np.timedelta64):
        name = value.dtype.name
        if _TIME.fullmatch(name) and not np.isnat(value):
            return {name: int(value.astype(np.int64))}
    if type(value) in _NAMES:
        return {_NAMES[type(value)]: value.item()}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    for name, (kinds, write, _) in _SCALARS.items():
        if type(value) in kinds:
            return {name: write(value)}
    _refuse_value(value, Any)


def _loose_scalar(tree: Tree) -> Any:
    """The scalar that a tree stands for; NotImplemented where it stands for none."""
    if tree is None or type(tree) in (bool, int, float, str):
        return tree
    if not isinstance(tree, dict) or len(tree) != 1:
        return NotImplemented
    ((name, part),) = tree.items()
    time = _TIME.fullmatch(name)
    if time and type(part) is int and -_LARGEST < part < _LARGEST:
        return np.array(part, np.int64).astype(name)[()]
    if name == "bytes" and isinstance(part, str):
        return bytes.fromhex(part)
    if name in _SCALARS and isinstance(part, str):
        try:
            return _SCALARS[name][2](part)
        except ValueError:
            return NotImplemented
    return _numpy_scalar(name, part) if name in _NUMPY else NotImplemented


def _numpy_scalar(name: str, part: Tree) -> Any:
    kind = _NUMPY[name]
    known = type(part) is type(kind().item())
    if known and type(part) is int:
        known = np.iinfo(kind).min <= part <= np.iinfo(kind).max
    return kind(part) if known else NotImplemented


def _decoded_scalar(tree: Tree, hint: Any) -> Any:
    value = _loose_scalar(tree)
    if value is NotImplemented:
        _refuse("a number, a text or a time" if hint in (Any, Hashable) else _text(hint), tree)
    return value
