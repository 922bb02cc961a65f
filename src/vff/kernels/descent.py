"""What every grammar of kernels shares: tokens with their places, sums of products, values by name, errors that point.

Nothing is evaluated, so a text from elsewhere can build a kernel and do nothing else.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import isfinite
from operator import add, mul

from vff.kernels.expression import Categorical, Factor, Kernel, Matern12, Matern32, Matern52, Matern72, Matern92

KINDS: dict[str, type[Factor]] = {
    kind.__name__: kind for kind in (Categorical, Matern12, Matern32, Matern52, Matern72, Matern92)
}
NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
INTEGER = re.compile(r"-?[0-9]+")
_DEEPEST = 100  # parentheses within parentheses; far beyond any kernel, and far from the end of Python's stack
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))")
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Token:
    """A piece of the text: its kind (a group of the grammar's pattern, or "end"), its characters, where it starts."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True)
class Language:
    """How a text is cut into tokens, and what is said of one that cannot be."""

    name: str
    """Who speaks in messages."""
    pattern: re.Pattern[str]
    """Groups are kinds of tokens; "space" is passed over, "string" and "mark" are known here."""
    quotes: str
    expected: str
    """What might have stood where nothing fits."""
    advice: str

    def error(self, start: int, expected: str, found: str) -> ValueError:
        place = f"{self.name}: at character {start + 1}"
        return ValueError(f"{place}, {expected} was expected, found {found}; {self.advice}")

    def tokens(self, text: str) -> Iterator[Token]:
        """The pieces from left to right without the spaces between them, and an "end" that is never passed."""
        start = 0
        while start < len(text):
            match = self.pattern.match(text, start)
            if match is None and text[start] in self.quotes:
                rest = text[start:].splitlines()[0]
                raise self.error(start, f"a closing {text[start]}", f"none after {excerpt(rest)}")
            if match is None:
                raise self.error(start, self.expected, repr(text[start]))
            if match.lastgroup != "space":
                yield Token(str(match.lastgroup), match[0], start)
            start = match.end()
        yield Token("end", "", start)

    def unquoted(self, token: Token) -> str:
        """The name that a text in quotes stands for, with the escapes that ``repr`` writes."""

        def character(match: re.Match[str]) -> str:
            code = match[1] or match[2] or match[3]
            if code is None and match[4] not in _ESCAPED:
                place = token.start + 1 + match.start()
                expected = "an escape that repr writes (\\\\ \\' \\\" \\n \\r \\t \\x \\u \\U)"
                raise self.error(place, expected, match[0])
            return chr(int(code, 16)) if code else _ESCAPED[match[4]]

        return _ESCAPE.sub(character, token.text[1:-1])

    @contextmanager
    def refused_at(self, start: int) -> Iterator[None]:
        """What a kernel says of its parts, with the place in the text."""
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{self.name}: at character {start + 1}, {error}") from error


def excerpt(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def number(text: str) -> float:
    """As Python reads it; an integer too large for a float is infinite, which a kernel then refuses by name."""
    value = float(text)
    return int(text) if INTEGER.fullmatch(text) and isfinite(value) else value


class AbstractDescent(ABC):
    """Recursive descent with one token in view: sums of products of what a grammar calls an atom.

    sum     = product {"+" product}
    product = atom {"*" atom}
    values  = {"," NAME "=" NUMBER} [","]
    """

    def __init__(self, language: Language, text: str) -> None:
        self._language = language
        self._tokens = list(language.tokens(text))
        self._at = 0
        self._depth = 0

    @abstractmethod
    def _atom(self) -> Kernel:
        """What stands between + and *."""

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
        with self._language.refused_at(start):
            return reduce(combine, parts)

    def _nested(self) -> Kernel:
        """A sum in parentheses."""
        start = self._next().start
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._language.error(start, f"at most {_DEEPEST} parentheses within each other", "one more")
        inner = self._sum()
        self._expect(")", "+, * or )")
        self._depth -= 1
        return inner

    def _values(self, names: list[str]) -> dict[str, float]:
        """Values by name, each at most once; as in Python, a comma may come last."""
        values: dict[str, float] = {}
        while self._skipped(",") and self._seen.text != ")":
            missing = [f"{name}=" for name in names if name not in values]
            if f"{self._seen.text}=" not in missing:
                raise self._unexpected(" or ".join([*missing, ")"]))
            name = self._next().text
            self._expect("=", "=")
            if self._seen.kind != "number":
                raise self._unexpected("a number")
            values[name] = number(self._next().text)
        return values

    @property
    def _seen(self) -> Token:
        return self._tokens[self._at]

    @property
    def _after(self) -> Token:
        """The token behind the one in view."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _next(self) -> Token:
        """The token in view, which is passed; the end never is."""
        token = self._seen
        self._at = min(self._at + 1, len(self._tokens) - 1)
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
        found = "the end" if self._seen.kind == "end" else excerpt(" ".join(self._seen.text.split()))
        return self._language.error(self._seen.start, expected, found)
