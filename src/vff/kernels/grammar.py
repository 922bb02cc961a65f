"""Kernels as text: written exact to the last bit, and read back by a grammar of five lines.

    kernel  = sum END
    sum     = product {"+" product}
    product = atom {"*" atom}
    atom    = "(" sum ")" | leaf
    leaf    = KIND "(" column {"," NAME "=" NUMBER} [","] ")"

A column is an integer or a quoted name with the escapes that ``repr`` writes. Nothing is evaluated, so a text from
elsewhere can build a kernel and do nothing else.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import reduce
from math import isfinite
from numbers import Integral
from operator import add, mul
from typing import Any

from vff.kernels.expression import (
    Categorical,
    Column,
    Factor,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Matern92,
    normal_form,
)

_KINDS: dict[str, type[Factor]] = {
    kind.__name__: kind for kind in (Categorical, Matern12, Matern32, Matern52, Matern72, Matern92)
}
_DEEPEST = 100  # parentheses within parentheses; far beyond any kernel, and far from the end of Python's stack

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<mark>[()+*,=])""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"-?[0-9]+")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))")
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


def write_kernel(kernel: Kernel) -> str:
    """The kernel as text that ``parse_kernel`` reads back as the same kernel, every bit of its values included.

    ``repr`` is for people and rounds to six digits; this is for files. Values are those of ints and float64. A
    ``Sum`` or ``Product`` of one part is written, and read back, as that part.
    """
    return " + ".join(" * ".join(factor.text(_exact) for factor in term.factors) for term in normal_form(kernel))


def parse_kernel(text: str) -> Kernel:
    """The kernel that a text describes: anything ``repr`` or ``write_kernel`` gives, with parentheses where wanted.

    >>> parse_kernel("(Matern32('lon') + Matern12('lat', lengthscale=0.5)) * Categorical('season')")
    Matern32('lon') * Categorical('season') + Matern12('lat', lengthscale=0.5) * Categorical('season')
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_kernel: a text was expected, got {text!r}; a kernel needs no parsing")
    return _Parser(text).kernel()


def _exact(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


def _number(text: str) -> float:
    """As Python reads it; an integer too large for a float is infinite, which a kernel then refuses by name."""
    value = float(text)
    return int(text) if _INTEGER.fullmatch(text) and isfinite(value) else value


@dataclass(frozen=True)
class _Token:
    """A piece of the text: its kind (a group of ``_TOKEN``, or "end"), its characters, and where it starts."""

    kind: str
    text: str
    start: int


def _error(start: int, expected: str, found: str) -> ValueError:
    return ValueError(
        f"parse_kernel: at character {start + 1}, {expected} was expected, found {found}; "
        "write kernels as they print, as in Matern32('x', lengthscale=2) * Categorical('g')"
    )


def _tokens(text: str) -> Iterator[_Token]:
    """The pieces from left to right without the spaces between them, and an "end" that is never passed."""
    start = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None and text[start] in "'\"":
            raise _error(start, f"a closing {text[start]}", f"none after {_excerpt(text[start:].splitlines()[0])}")
        if match is None:
            raise _error(start, "a kernel, a value, or one of ( ) + * , =", repr(text[start]))
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0], start)
        start = match.end()
    yield _Token("end", "", start)


def _excerpt(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _unquoted(token: _Token) -> str:
    """The name that a quoted text stands for."""

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code is None and match[4] not in _ESCAPED:
            place = token.start + 1 + match.start()
            raise _error(place, "an escape that repr writes (\\\\ \\' \\\" \\n \\r \\t \\x \\u \\U)", match[0])
        return chr(int(code, 16)) if code else _ESCAPED[match[4]]

    return _ESCAPE.sub(character, token.text[1:-1])


class _Parser:
    """Recursive descent with one token in view: a method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self._rest = _tokens(text)
        self._seen = next(self._rest)
        self._depth = 0

    def kernel(self) -> Kernel:
        whole = self._sum()
        if self._seen.kind != "end":
            raise self._unexpected("+, * or the end")
        return whole

    def _sum(self) -> Kernel:
        return self._chain("+", add, self._product)

    def _product(self) -> Kernel:
        return self._chain("*", mul, self._atom)

    def _chain(self, mark: str, combine: Callable[[Kernel, Kernel], Kernel], part: Callable[[], Kernel]) -> Kernel:
        """Parts with ``mark`` between them."""
        start, parts = self._seen.start, [part()]
        while self._skipped(mark):
            parts.append(part())
        with _refused_at(start):
            return reduce(combine, parts)

    def _atom(self) -> Kernel:
        start = self._seen.start
        if not self._skipped("("):
            return self._leaf()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _error(start, f"at most {_DEEPEST} parentheses within each other", "one more")
        inner = self._sum()
        self._expect(")", "+, * or )")
        self._depth -= 1
        return inner

    def _leaf(self) -> Factor:
        start, kind = self._seen.start, _KINDS.get(self._seen.text)
        if kind is None:
            raise self._unexpected(f"a kernel ({', '.join(_KINDS)}) or (")
        self._next()
        self._expect("(", "(")
        column = self._column()
        values = self._values([field.name for field in fields(kind) if field.name != "column"])
        self._expect(")", ", or )")
        with _refused_at(start):
            return kind(column, **values)

    def _values(self, names: list[str]) -> dict[str, float]:
        """Values by name, each at most once; as in Python, a comma may come last."""
        values: dict[str, float] = {}
        while self._skipped(",") and self._seen.text != ")":
            missing = [f"{name}=" for name in names if name not in values]
            if f"{self._seen.text}=" not in missing:
                raise self._unexpected(" or ".join([*missing, ")"]))
            name = self._next().text
            self._expect("=", "=")
            values[name] = self._value()
        return values

    def _column(self) -> Column:
        if self._seen.kind == "string":
            return _unquoted(self._next())
        if not _INTEGER.fullmatch(self._seen.text):
            raise self._unexpected("a column (a quoted name or an index)")
        with _refused_at(self._seen.start):  # Python reads no integers of thousands of digits
            return int(self._next().text)

    def _value(self) -> float:
        if self._seen.kind != "number":
            raise self._unexpected("a number")
        return _number(self._next().text)

    def _next(self) -> _Token:
        """The token in view, which is passed."""
        token, self._seen = self._seen, next(self._rest)
        return token

    def _skipped(self, mark: str) -> bool:
        """Whether ``mark`` was in view, and is passed."""
        found = self._seen.kind == "mark" and self._seen.text == mark
        if found:
            self._next()
        return found

    def _expect(self, mark: str, expected: str) -> None:
        if not self._skipped(mark):
            raise self._unexpected(expected)

    def _unexpected(self, expected: str) -> ValueError:
        found = "the end" if self._seen.kind == "end" else _excerpt(self._seen.text)
        return _error(self._seen.start, expected, found)


@contextmanager
def _refused_at(start: int) -> Iterator[None]:
    """What a kernel says of its parts, with the place in the text."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"parse_kernel: at character {start + 1}, {error}") from error
