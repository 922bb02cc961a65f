"""Terms as people write them on a command line: ``month + dep_time * arr_time + cat(airline)``.

    terms   = sum END
    sum     = product {"+" product}
    product = atom {"*" atom}
    atom    = "(" sum ")" | "." | name | call
    call    = "cat" "(" name ")"
            | "smooth" "(" name ["," ORDER "/" 2] values ")"
            | KIND "(" name values ")"
    values  = {"," NAME "=" NUMBER} [","]
    name    = WORD | `any text` | 'any text' | "any text"

What a bare name means depends on what its column holds: a ``Matern32`` of numbers and times, a ``Categorical`` of text.
``.`` is the sum of all columns that are not named elsewhere. Nothing is evaluated: a text from elsewhere can build a
kernel and do nothing else. What ``write_kernel`` writes is read here too, if its columns have names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from functools import reduce
from itertools import pairwise
from operator import add, mul

from vff.kernels.expression import Categorical, Factor, Kernel, Matern32, Sum
from vff.kernels.grammar import _DEEPEST, _ESCAPE, _ESCAPED, _KINDS, _excerpt, _number, _Token

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<word>[^\W\d][\w.]*)
      | (?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`]|``)*`)
      | (?P<mark>[()+*,=/.])""",
    re.VERBOSE,
)
_SMOOTH = {f"{2 * p + 1}/2": _KINDS[f"Matern{2 * p + 1}2"] for p in range(5)}
_CALLS = ("cat", "smooth", *_KINDS)
_NUMERIC = ("number", "datetime", "duration", "boolean")


class ColumnError(ValueError):
    """Terms that are well written, of columns that the data do not have or that cannot be used so."""


def parse_terms(text: str, kinds: Mapping[str, str], *, apart: Mapping[str, str] | None = None) -> Kernel:
    """The kernel that a text describes over columns of these kinds.

    ``kinds`` says what every column holds: "number", "datetime", "duration", "boolean" or "text". Columns ``apart``
    are spoken for, as {"y": "the target"}: "." leaves them out, and a term that names one is refused.

    >>> kinds = {"hour": "number", "zone": "number", "wind speed": "number"}
    >>> parse_terms("hour + cat(zone) * smooth(`wind speed`, 5/2)", kinds)
    Matern32('hour') + Categorical('zone') * Matern52('wind speed')
    """
    if not isinstance(text, str):
        raise TypeError(f"terms: a text was expected, got {text!r}; a kernel needs no parsing")
    return _Parser(text, kinds, apart or {}).kernel()


def _error(start: int, expected: str, found: str) -> ValueError:
    return ValueError(
        f"terms: at character {start + 1}, {expected} was expected, found {found}; "
        "write terms as in hour + day * cat(zone), with a name of several words in `backticks`"
    )


def _column_error(start: int, expected: str, name: str, found: str, advice: str) -> ColumnError:
    return ColumnError(f"terms: at character {start + 1}, {expected} was expected, found {name!r}, {found}; {advice}")


def _tokens(text: str) -> Iterator[_Token]:
    """The pieces from left to right without the spaces between them, and an "end"."""
    start = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None and text[start] in "'\"`":
            rest = " ".join(text[start:].split())
            raise _error(start, f"a closing {text[start]}", f"none after {_excerpt(rest)}")
        if match is None:
            raise _error(start, "a column, or one of ( ) + * , = .", repr(text[start]))
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match[0], start)
        start = match.end()
    yield _Token("end", "", start)


def _name(token: _Token) -> str:
    """The column that a word or a quoted text stands for."""
    if token.kind == "word":
        return token.text
    if token.text[0] == "`":
        return token.text[1:-1].replace("``", "`")

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code is None and match[4] not in _ESCAPED:
            place = token.start + 1 + match.start()
            raise _error(place, "an escape that repr writes (\\\\ \\' \\\" \\n \\r \\t \\x \\u \\U)", match[0])
        return chr(int(code, 16)) if code else _ESCAPED[match[4]]

    return _ESCAPE.sub(character, token.text[1:-1])


def _named(tokens: list[_Token]) -> set[str]:
    """All names that are not those of calls or of their values: what "." leaves out."""
    return {
        _name(token)
        for token, after in pairwise(tokens)
        if token.kind == "string" or (token.kind == "word" and after.text not in ("(", "="))
    }


class _Parser:
    """Recursive descent with one token in view: a method for each line of the grammar."""

    def __init__(self, text: str, kinds: Mapping[str, str], apart: Mapping[str, str]) -> None:
        self._tokens = list(_tokens(text))
        self._kinds, self._apart = kinds, apart
        self._at = 0
        self._depth = 0

    @property
    def _seen(self) -> _Token:
        return self._tokens[self._at]

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
        if self._seen.text == "(":
            return self._nested()
        if self._seen.text == ".":
            return self._others()
        if self._seen.kind == "word" and self._tokens[self._at + 1].text == "(":
            return self._call()
        start = self._seen.start
        return self._bare(start, self._column("a column, a call such as cat(name), . or ("))

    def _nested(self) -> Kernel:
        start = self._next().start
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _error(start, f"at most {_DEEPEST} parentheses within each other", "one more")
        inner = self._sum()
        self._expect(")", "+, * or )")
        self._depth -= 1
        return inner

    def _others(self) -> Kernel:
        """The sum of what is not named elsewhere."""
        start, named = self._next().start, _named(self._tokens)
        rest = [name for name in self._kinds if name not in named and name not in self._apart]
        if not rest:
            raise ColumnError(
                f"terms: at character {start + 1}, . stands for the columns that are not named elsewhere, and there "
                "are none; leave it out"
            )
        leaves = tuple(self._bare(start, name) for name in rest)
        return leaves[0] if len(leaves) == 1 else Sum(leaves)

    def _bare(self, start: int, name: str) -> Factor:
        kind = self._kinds[name]
        if kind == "text":
            return Categorical(name)
        if kind not in _NUMERIC:
            advice = "leave it out, or convert it first"
            raise _column_error(start, "a column of numbers, times or text", name, f"which holds {kind}", advice)
        return Matern32(name)

    def _call(self) -> Factor:
        start, called = self._seen.start, self._seen.text
        if called not in _CALLS:
            raise self._unexpected(f"one of {', '.join(_CALLS)} before (")
        self._next()
        self._expect("(", "(")
        name = self._column("a column")
        kind = Categorical if called == "cat" else _KINDS.get(called, Matern32)
        if called == "smooth":
            kind = self._order()
        values = self._values([field.name for field in fields(kind) if field.name != "column"])
        self._expect(")", ", or )")
        if kind is not Categorical and self._kinds[name] not in _NUMERIC:
            found = f"which holds {self._kinds[name]}"
            raise _column_error(start, "a column of numbers or times", name, found, f"write cat(...) around {name!r}")
        with _refused_at(start):
            return kind(name, **values)

    def _order(self) -> type[Factor]:
        """The smoothness after the column, 3/2 when there is none."""
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if self._seen.text != "," or after.kind != "number":
            return Matern32
        self._next()
        order = "".join(token.text for token in self._tokens[self._at : self._at + 3])
        if order not in _SMOOTH:
            raise self._unexpected(f"a smoothness ({', '.join(_SMOOTH)})")
        self._at += 3
        return _SMOOTH[order]

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
            values[name] = _number(self._next().text)
        return values

    def _column(self, expected: str) -> str:
        """A name, of a column that is there and is not spoken for."""
        if self._seen.kind not in ("word", "string"):
            raise self._unexpected(expected)
        token = self._next()
        name = _name(token)
        if name in self._apart:
            found = f"which is {self._apart[name]}"
            raise _column_error(token.start, "a column to learn from", name, found, "leave it out of the terms")
        if name not in self._kinds:
            advice = _nearest(name, [column for column in self._kinds if column not in self._apart])
            raise _column_error(token.start, "a column of the data", name, "which is none", advice)
        return name

    def _next(self) -> _Token:
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
        found = "the end" if self._seen.kind == "end" else _excerpt(" ".join(self._seen.text.split()))
        return _error(self._seen.start, expected, found)


def _nearest(name: str, known: list[str]) -> str:
    """What to write instead of a column that is not there: the likeliest, or some."""
    lowered = {column.lower(): column for column in known}
    near = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3)]
    if near:
        return f"perhaps {' or '.join(map(repr, near))} was meant"
    return f"the columns are {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}"


@contextmanager
def _refused_at(start: int) -> Iterator[None]:
    """What a kernel says of its parts, with the place in the text."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"terms: at character {start + 1}, {error}") from error
