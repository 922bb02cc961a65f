"""Kernels as text: written exact to the last bit, and read back by a grammar of a few lines.

    kernel  = sum END
    sum     = product {"+" product}
    product = atom {"*" atom}
    atom    = "(" sum ")" | leaf
    leaf    = KIND "(" column {"," column} {"," NAME "=" value} [","] ")"       as many columns as the kind reads
    value   = NUMBER | choice
    choice  = NUMBER | STRING | "True" | "False" | "[" [choice {"," choice}] "]" | "{" [entry {"," entry}] "}"
    entry   = (NUMBER | STRING) ":" choice

A choice stands only where a kernel takes one, as neighbours of areas are. A column is an integer or a quoted name
with the escapes that ``repr`` writes. Nothing is evaluated, so a text from elsewhere can build a kernel and do nothing
else. ``AbstractDescent`` is what this grammar shares with ``formula``.
"""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import chain, product
from math import isfinite, prod
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar

from vff.factors import KINDS, Column, Kernel, Leaf, Product, Sum, normal_form
from vff.factors.expression import factors_of, summands
from vff.words import shown

_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
INTEGER = re.compile(r"-?[0-9]+")
_SWITCHED = {"True": True, "False": False, "true": True, "false": False}
_DEEPEST = 100  # parentheses within parentheses; far beyond any kernel, and far from the end of Python's stack
MOST_TERMS, MOST_FACTORS = 1000, 32  # of the sum of products; a text of some lines can stand for millions
_DEEPEST_CHOICE = 2  # lists within lists by name
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))")
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


def write_kernel(kernel: Kernel) -> str:
    """The kernel as text that ``parse_kernel`` reads back as the same kernel, every bit of its values included.

    ``repr`` is for people and rounds to six digits; this is for files. Values are those of ints and float64. A ``Sum``
    or ``Product`` of one part is written, and read back, as that part.

    Parameters
    ----------
    kernel : kernel expression

    Returns
    -------
    str

    Examples
    --------
    >>> vff.kernels.write_kernel(vff.Matern32("x", lengthscale=1 / 3))
    "Matern32('x', lengthscale=0.3333333333333333)"
    """
    return " + ".join(" * ".join(factor.text(_exact) for factor in term.factors) for term in normal_form(kernel))


def parse_kernel(text: str) -> Kernel:
    """The kernel that a text describes.

    Parameters
    ----------
    text : str
        Anything ``repr`` or ``write_kernel`` gives, with parentheses where wanted. Nothing in it is evaluated.

    Returns
    -------
    kernel expression

    Examples
    --------
    >>> vff.parse_kernel("(Matern32('lon') + Matern12('lat', lengthscale=0.5)) * Categorical('season')")
    Matern32('lon') * Categorical('season') + Matern12('lat', lengthscale=0.5) * Categorical('season')
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_kernel: a text was expected, got {shown(text)}; a kernel needs no parsing")
    return _Parser(text).kernel()


def _exact(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


@dataclass(frozen=True)
class Token:
    """A piece of the text: its kind (a group of the grammar's pattern, or "end"), its characters, where it starts."""

    kind: str
    text: str
    start: int


def excerpt(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def number(text: str) -> float:
    """As Python reads it; an integer too large for a float is infinite, which a kernel then refuses by name."""
    value = float(text)
    return int(text) if INTEGER.fullmatch(text) and isfinite(value) else value


class AbstractDescent(ABC):
    """Recursive descent with one token in view: sums of products of what a grammar calls an atom.

    Terms are counted before they are made, and tokens are cut when they are asked for, so that a text is refused long
    before it has become large.

    sum     = product {"+" product}
    product = atom {"*" atom}
    values  = {"," NAME "=" value} [","]
    """

    name: ClassVar[str]
    """Who speaks in messages."""
    word: ClassVar[str]
    """How a word is written."""
    quotes: ClassVar[Mapping[str, str]] = {"'": r"(?:[^'\\\n]|\\.)*", '"': r'(?:[^"\\\n]|\\.)*'}
    """How a text in each kind of quotes goes on to its end."""
    marks: ClassVar[str]
    expected: ClassVar[str]
    """What might have stood where nothing fits."""
    advice: ClassVar[str]

    def __init__(self, text: str) -> None:
        self._text, self._rest = text, self.tokens(text)
        self._ahead: deque[Token] = deque()
        self._depth = 0

    def error(self, start: int, expected: str, found: str) -> ValueError:
        place = f"{self.name}: at character {start + 1}"
        return ValueError(f"{place}, {expected} was expected, found {found}; {self.advice}")

    def tokens(self, text: str) -> Iterator[Token]:
        """The pieces from left to right without the spaces between them, and an "end" that is never passed."""
        strings = "|".join(f"{quote}{inside}{quote}" for quote, inside in self.quotes.items())
        kinds = {"space": r"\s+", "word": self.word, "number": _NUMBER, "string": strings, "mark": self.marks}
        pattern = re.compile("|".join(f"(?P<{kind}>{own})" for kind, own in kinds.items()))
        start = 0
        while start < len(text):
            match = pattern.match(text, start)
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
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name}: at character {start + 1}, {error}") from error

    @abstractmethod
    def _atom(self) -> Kernel:
        """What stands between + and *."""

    def kernel(self) -> Kernel:
        whole = self._sum()
        if self._seen.kind != "end":
            raise self._unexpected("+, * or the end")
        return whole

    def _sum(self) -> Kernel:
        """Products with + between them."""
        start, parts, count = self._seen.start, [self._product()], 0
        while True:
            count += len(summands(parts[-1]))
            self._check_size(start, count, "terms", MOST_TERMS)
            if not self._skipped("+"):
                break
            start = self._seen.start
            parts.append(self._product())
        return parts[0] if len(parts) == 1 else Sum(tuple(chain.from_iterable(map(summands, parts))))

    def _product(self) -> Kernel:
        """Atoms with * between them, multiplied out; the last one varies fastest."""
        first = start = self._seen.start
        parts = [self._atom()]
        while self._skipped("*"):
            start = self._seen.start
            parts.append(self._atom())
            self._check_size(start, prod(len(summands(part)) for part in parts), "terms", MOST_TERMS)
            self._check_size(start, sum(map(_most_factors, parts)), "factors in a term", MOST_FACTORS)
        if len(parts) == 1:
            return parts[0]
        with self.refused_at(first):
            terms = tuple(
                Product(tuple(chain.from_iterable(map(factors_of, row)))) for row in product(*map(summands, parts))
            )
        return terms[0] if len(terms) == 1 else Sum(terms)

    def _check_size(self, start: int, count: int, what: str, most: int) -> None:
        if count > most:
            raise ValueError(
                f"{self.name}: at character {start + 1}, at most {most:,} {what} were expected, found "
                f"{count:,} or more when all is multiplied out; leave some out"
            )

    def _nested(self) -> Kernel:
        """A sum in parentheses."""
        start = self._next().start
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.error(start, f"at most {_DEEPEST} parentheses within each other", "one more")
        inner = self._sum()
        self._expect(")", "+, * or )")
        self._depth -= 1
        return inner

    def _columns(self, kind: type[Leaf], first: Column, column: Callable[[], Column]) -> list[Column]:
        """All columns that a kind reads, with commas between them; the first was read before."""
        found = [first]
        for _ in kind.column_fields[1:]:
            self._expect(",", f", and another column, of {len(kind.column_fields)} that {kind.__name__} reads,")
            found.append(column())
        return found

    def _with_values(
        self, start: int, kind: type[Leaf], columns: Sequence[Column], known: Mapping[str, Any] = _NOTHING
    ) -> Leaf:
        """A kernel on its columns, with values that are known and those that stand before the closing parenthesis."""
        names = [field.name for field in fields(kind) if field.name not in {*kind.column_fields, *known}]
        values = {**known, **self._values(names, kind.choices)}
        self._expect(")", ", or )")
        with self.refused_at(start):
            return kind(*columns, **values)

    def _values(self, names: list[str], choices: frozenset[str]) -> dict[str, Any]:
        """Values by name, each at most once; as in Python, a comma may come last."""
        values: dict[str, Any] = {}
        while self._skipped(",") and self._seen.text != ")":
            missing = [f"{name}=" for name in names if name not in values]
            if f"{self._seen.text}=" not in missing:
                raise self._unexpected(" or ".join([*missing, ")"]))
            name = self._next().text
            self._expect("=", "=")
            if name in choices:
                values[name] = self._choice()
                continue
            if self._seen.kind != "number":
                raise self._unexpected("a number")
            values[name] = number(self._next().text)
        return values

    def _choice(self, depth: int = 0) -> Any:
        """A word, a number, or lists of these, by name or not."""
        if depth <= _DEEPEST_CHOICE and self._skipped("["):
            return self._listed("]", lambda: self._choice(depth + 1))
        if depth <= _DEEPEST_CHOICE and self._skipped("{"):
            return dict(self._listed("}", lambda: self._entry(depth)))
        if self._seen.text in _SWITCHED and self._seen.kind == "word":
            return _SWITCHED[self._next().text]
        return self._scalar("a text in quotes, a number, True, False, [ or {")

    def _entry(self, depth: int) -> tuple[Any, Any]:
        key = self._scalar("a text in quotes or a number")
        self._expect(":", ":")
        return key, self._choice(depth + 1)

    def _listed(self, end: str, read: Callable[[], Any]) -> list[Any]:
        """Parts with commas between them up to a mark; a comma may come last."""
        parts: list[Any] = []
        while not self._skipped(end):
            parts.append(read())
            if not self._skipped(","):
                self._expect(end, f", or {end}")
                break
        return parts

    def _scalar(self, expected: str) -> str | float:
        if self._seen.kind == "string":
            return self.unquoted(self._next())
        if self._seen.kind != "number":
            raise self._unexpected(expected)
        return number(self._next().text)

    def _peek(self, places: int) -> Token:
        """A token so many places behind the one in view; the end is followed by itself."""
        while len(self._ahead) <= places:
            self._ahead.append(next(self._rest, None) or self._ahead[-1])
        return self._ahead[places]

    @property
    def _seen(self) -> Token:
        return self._peek(0)

    @property
    def _after(self) -> Token:
        """The token behind the one in view."""
        return self._peek(1)

    def _next(self) -> Token:
        """The token in view, which is passed; the end never is."""
        token = self._seen
        if token.kind != "end":
            self._ahead.popleft()
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
        return self.error(self._seen.start, expected, found)


def _most_factors(kernel: Kernel) -> int:
    return max(len(factors_of(term)) for term in summands(kernel))


class _Parser(AbstractDescent):
    """A method for each line of the grammar."""

    name = "parse_kernel"
    word = "[A-Za-z_][A-Za-z0-9_]*"
    marks = r"[()+*,=\[\]{}:]"
    expected = "a kernel, a value, or one of ( ) + * , = [ ] { } :"
    advice = "write kernels as they print, as in Matern32('x', lengthscale=2) * Categorical('g')"

    def _atom(self) -> Kernel:
        return self._nested() if self._seen.text == "(" and self._seen.kind == "mark" else self._leaf()

    def _leaf(self) -> Leaf:
        start, kind = self._seen.start, KINDS.leaves.get(self._seen.text)
        if kind is None:
            raise self._unexpected(f"a kernel ({', '.join(KINDS.leaves)}) or (")
        self._next()
        self._expect("(", "(")
        return self._with_values(start, kind, self._columns(kind, self._column(), self._column))

    def _column(self) -> Column:
        if self._seen.kind == "string":
            return self.unquoted(self._next())
        if not INTEGER.fullmatch(self._seen.text):
            raise self._unexpected("a column (a quoted name or an index)")
        with self.refused_at(self._seen.start):  # Python reads no integers of thousands of digits
            return int(self._next().text)
