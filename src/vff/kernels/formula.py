"""Terms as people write them on a command line: ``month + dep_time * arr_time + cat(airline)``.

    terms   = sum END
    sum     = product {"+" product}
    product = atom {"*" atom}
    atom    = "(" sum ")" | "." | name | call
    call    = "cat" "(" name ")"
            | "smooth" "(" name ["," ORDER "/" 2] values ")"
            | KIND "(" name {"," name} ["," file] values ")"       as many names as the kind reads columns
    values  = {"," NAME "=" value} [","]
    file    = 'any text' | "any text"
    name    = WORD | `any text` | 'any text' | "any text"

What a bare name means depends on what its column holds: a ``Matern32`` of numbers and times, a ``Categorical`` of text.
``.`` is the sum of all columns that are not named elsewhere. A file holds what is too long to write, as the neighbours
in ``areas(region, "pairs.csv")``; whoever asks says how it is read, or it is not. Nothing is evaluated: a text from
elsewhere can build a kernel and do nothing else. What ``write_kernel`` writes is read here too, if its columns have
names.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from vff.factors import KINDS, Kernel, Leaf, Sum
from vff.kernels.grammar import AbstractDescent, Token
from vff.words import shown

_NUMERIC = ("number", "datetime", "duration", "boolean")


class ColumnError(ValueError):
    """Terms that are well written, of columns that the data do not have or that cannot be used so."""


def parse_terms(
    text: str,
    kinds: Mapping[str, str],
    *,
    apart: Mapping[str, str] | None = None,
    read: Callable[[str, str], Any] | None = None,
) -> Kernel:
    """The kernel that a text describes over columns of these kinds.

    ``kinds`` says what every column holds: "number", "datetime", "duration", "boolean" or "text". Columns ``apart``
    are spoken for, as {"y": "the target"}: "." leaves them out, and a term that names one is refused. ``read`` opens a
    file that a term names, of a column that holds what it is told; without it none is opened.

    >>> kinds = {"hour": "number", "zone": "number", "wind speed": "number"}
    >>> parse_terms("hour + cat(zone) * smooth(`wind speed`, 5/2)", kinds)
    Matern32('hour') + Categorical('zone') * Matern52('wind speed')
    """
    if not isinstance(text, str):
        raise TypeError(f"terms: a text was expected, got {shown(text)}; a kernel needs no parsing")
    return _Parser(text, kinds, apart or {}, read).kernel()


def _column_error(start: int, expected: str, name: str, found: str, advice: str) -> ColumnError:
    return ColumnError(
        f"terms: at character {start + 1}, {expected} was expected, found {shown(name)}, {found}; {advice}"
    )


class _Parser(AbstractDescent):
    """A method for each line of the grammar."""

    name = "terms"
    word = r"[^\W\d][\w.]*"
    quotes: ClassVar[Mapping[str, str]] = {**AbstractDescent.quotes, "`": "(?:[^`]|``)*"}
    marks = r"[()+*,=/.\[\]{}:]"
    expected = "a column, or one of ( ) + * , = ."
    advice = "write terms as in hour + day * cat(zone), with a name of several words in `backticks`"

    def __init__(
        self, text: str, kinds: Mapping[str, str], apart: Mapping[str, str], read: Callable[[str, str], Any] | None
    ) -> None:
        super().__init__(text)
        self._kinds, self._apart, self._read = kinds, apart, read

    def _name(self, token: Token) -> str:
        """The column that a word or a quoted text stands for."""
        if token.kind == "word":
            return token.text
        return token.text[1:-1].replace("``", "`") if token.text[0] == "`" else self.unquoted(token)

    def _atom(self) -> Kernel:
        if self._seen.kind == "mark" and self._seen.text == "(":
            return self._nested()
        if self._seen.kind == "mark" and self._seen.text == ".":
            return self._others()
        if self._seen.kind == "word" and self._after.text == "(":
            return self._call()
        start = self._seen.start
        return self._bare(start, self._column("a column, a call such as cat(name), . or ("))

    @cached_property
    def _named(self) -> set[str]:
        """All names that are not those of calls or of their values: what "." leaves out."""
        found, within, before = set(), 0, ""
        for token, after in pairwise(self.tokens(self._text)):
            within += (token.kind == "mark") * ((token.text in "[{") - (token.text in "]}"))
            chosen = within > 0 or before == "="  # a level, or a word for a value
            if not chosen and (token.kind == "string" or (token.kind == "word" and after.text not in ("(", "="))):
                found.add(self._name(token))
            before = token.text
        return found

    def _others(self) -> Kernel:
        """The sum of what is not named elsewhere."""
        start, named = self._next().start, self._named
        rest = [name for name in self._kinds if name not in named and name not in self._apart]
        if not rest:
            raise ColumnError(
                f"terms: at character {start + 1}, . stands for the columns that are not named elsewhere, and there "
                "are none; leave it out"
            )
        leaves = tuple(self._bare(start, name) for name in rest)
        return leaves[0] if len(leaves) == 1 else Sum(leaves)

    def _bare(self, start: int, name: str) -> Leaf:
        kind = self._kinds[name]
        leaf = KINDS.default_leaf(kind)
        if leaf is None:
            advice = "leave it out, or convert it first"
            raise _column_error(start, "a column of numbers, times or text", name, f"which holds {kind}", advice)
        return leaf(name)

    def _call(self) -> Leaf:
        start, called, leaves = self._seen.start, self._seen.text, KINDS.leaves
        calls = {leaf.nickname: leaf for leaf in leaves.values() if leaf.nickname} | leaves
        if called not in calls and called != "smooth":
            names = dict.fromkeys([*(name for name in calls if name not in leaves), "smooth", *calls])
            raise self._unexpected(f"one of {', '.join(names)} before (")
        self._next()
        self._expect("(", "(")
        name = self._column("a column")
        kind = self._order() if called == "smooth" else calls[called]
        names = self._columns(kind, name, lambda: self._column("a column"))
        for name in names if kind.reads == "numbers" else ():
            if self._kinds[str(name)] not in _NUMERIC:
                found = f"which holds {self._kinds[str(name)]}"
                raise _column_error(
                    start, "a column of numbers or times", str(name), found, f"write cat(...) around {shown(name)}"
                )
        return self._with_values(start, kind, names, self._file(kind, str(names[0])))

    def _file(self, kind: type[Leaf], column: str) -> dict[str, Any]:
        """What a file holds that stands behind the column, for a kind that takes one."""
        if kind.from_file is None or self._seen.text != "," or self._after.kind != "string":
            return {}
        self._next()
        if self._read is None:
            raise self._unexpected(f"{kind.from_file}= (files are read for a command line)")
        return {kind.from_file: self._read(self._name(self._next()), self._kinds[column])}

    def _order(self) -> type[Leaf]:
        """The smoothness after the column, that of a bare column of numbers when there is none."""
        if self._seen.text != "," or self._after.kind != "number":
            leaf = KINDS.default_leaf("number")
            assert leaf is not None
            return leaf
        self._next()
        smooth = {leaf.smoothness: leaf for leaf in KINDS.leaves.values() if leaf.smoothness}
        order = "".join(self._peek(ahead).text for ahead in range(3))
        if order not in smooth:
            raise self._unexpected(f"a smoothness ({', '.join(smooth)})")
        for _ in range(3):
            self._next()
        return smooth[order]

    def _column(self, expected: str) -> str:
        """A name, of a column that is there and is not spoken for."""
        if self._seen.kind not in ("word", "string"):
            raise self._unexpected(expected)
        token = self._next()
        name = self._name(token)
        if name in self._apart:
            found = f"which is {self._apart[name]}"
            raise _column_error(token.start, "a column to learn from", name, found, "leave it out of the terms")
        if name not in self._kinds:
            advice = nearest(name, [column for column in self._kinds if column not in self._apart])
            raise _column_error(token.start, "a column of the data", name, "which is none", advice)
        return name


def nearest(name: str, known: list[str]) -> str:
    """What to write instead of a column that is not there: the likeliest, or some."""
    lowered = {column.lower(): column for column in known}
    near = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3)]
    if near:
        return f"perhaps {' or '.join(map(shown, near))} was meant"
    return f"the columns are {', '.join(map(shown, known[:8]))}{', ...' if len(known) > 8 else ''}"
