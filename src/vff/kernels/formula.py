"""Formulas: terms as people write them, in our words, in those of mgcv and in those of lme4.

    formula = [[name] "~"] summand {"+" summand} END
    summand = "1" | "offset" "(" column ")" | product
    product = atom {("*" | ":") atom}                              a product of kernels: not R's a + b + a:b
    atom    = "(" sum ")" | group | smooth | "." | name | call
    call    = "smooth" "(" column ["," ORDER "/" 2] values ")"
            | KIND "(" column {"," column} ["," file] values ")"   as many columns as the kind reads
    file    = 'any text' | "any text"
    column  = name | NUMBER                                        numbers where columns have no names
    name    = WORD | `any text` | 'any text' | "any text"

``smooths`` has the smooth terms of mgcv, ``groups`` the grouped ones of lme4, ``grammar`` sums, products and values. A
KIND is a kernel or its nickname. What a bare name means depends on what its column holds: a ``Matern32`` of numbers and
times, a ``Categorical`` of text. ``.`` is the sum of all columns that are not named elsewhere. A file holds what is too
long to write, as the neighbours in ``areas(region, "pairs.csv")``; whoever asks says how it is read, or it is not.
Nothing is evaluated: a text from elsewhere can build a kernel and do nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from vff.factors import KINDS, Column, Kernel, Leaf, Sum
from vff.kernels.columns import ColumnError, Columns, nearest, written
from vff.kernels.groups import GroupedTerms
from vff.kernels.smooths import CALLS, SmoothTerms
from vff.kernels.tokens import Token, Voice
from vff.words import shown

__all__ = ["TERMS", "ColumnError", "Formula", "FormulaParser", "nearest", "parse_terms"]

Read = Callable[[str, str], Any]
_SYNONYMS = {"cc": "Periodic", "factor": "Categorical", "as.factor": "Categorical", "C": "Categorical"}
"""What others call our kernels."""
_ADVICE = "write terms as in hour + day * cat(zone), with a name of several words in `backticks`"
TERMS = Voice(
    "terms",
    "a column, or one of ( ) + * , = .",
    "a column, a call such as cat(name), . or (",
    "one of {names} before (",
    "a column",
    _ADVICE,
)
"""Those of a command line."""


@dataclass(frozen=True)
class Formula:
    """What a text means: a kernel, and the column that is added to the function, if it names one."""

    kernel: Kernel
    offset: Column | None = None


def parse_terms(
    text: str, kinds: Mapping[str, str], *, apart: Mapping[str, str] | None = None, read: Read | None = None
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
    return FormulaParser(text, Columns(dict(kinds), dict(apart or {})), TERMS, read, offsets=False).formula().kernel


class FormulaParser(GroupedTerms, SmoothTerms):
    """A method for each line of the grammar."""

    def __init__(
        self, text: str, columns: Columns, voice: Voice, read: Read | None = None, *, offsets: bool = True
    ) -> None:
        super().__init__(text, voice, columns)
        self._read, self._offsets = read, offsets
        self._dots = 0
        self._others_are: list[Column] | None = None
        """What "." stands for; None until all of the text was read once."""
        self._constants = 0
        self._offset: Column | None = None

    def formula(self) -> Formula:
        """What all of the text means."""
        self._left_side()
        kernel = self._whole()
        if self._dots and self._others_are is None:  # now it is known what is named elsewhere
            again = FormulaParser(self._text, self._known, self._voice, self._read, offsets=self._offsets)
            again._others_are = self._known.others(self._named)
            return again.formula()
        return Formula(kernel, self._offset)

    def _left_side(self) -> None:
        """The target before ~, where it is the one that is learnt."""
        if self._skipped("~") or not (self._seen.kind in ("word", "string") and self._after.is_mark("~")):
            return
        name, columns = self._name(self._seen), self._known
        known = name == columns.target or (columns.target is None and name not in (columns.kinds or ()))
        if columns.before_fit or not known:
            other = "" if columns.target is None else f", which is {shown(columns.target)}"
            raise self.error(
                self._seen.start, "terms alone", f"{shown(name)} ~ before them: the target is named in fit{other}",
                f"leave out {shown(name)} ~ and write fit(frame, {shown(name)})",
            )  # fmt: skip
        self._next()
        self._next()

    def _summand(self) -> Kernel | None:
        """A product; at the top also a constant, which is there anyway, and an offset, which is no term."""
        token = self._seen
        if token.kind == "number" and not self._after.is_mark("*", ":"):
            return self._constant(token)
        if token.text == "offset" and token.kind == "word" and self._after.is_mark("("):
            return self._read_offset(token)
        return self._product()

    def _constant(self, token: Token) -> None:
        if token.text in ("0", "-1"):
            advice = "set normalize_y=False (of a classifier, fit_intercept=False) to leave out the constant"
            raise self._unexpected("a term", advice=advice)
        if token.text != "1" or self._depth or self._constants:
            advice = "leave it out, since a constant is there anyway, and write s(0) for a column without a name"
            raise self._unexpected("a term", "a number", advice)
        self._constants += 1
        self._next()

    def _read_offset(self, token: Token) -> None:
        self._next()
        self._next()
        if self._seen.kind == "word" and self._after.is_mark("("):
            raise self._unexpected(
                "a column", f"a function of one: make the column first, and write {token.text}(name)"
            )
        column = self._numeric(self._seen.start, self._column())
        self._expect(")", ")")
        if not self._offsets or self._depth or self._offset is not None:
            what = "one offset beside the terms of the sum" if self._offsets else "a kernel alone"
            raise self.error(
                token.start,
                what,
                f"offset({written(column)})",
                f"give the model offset={shown(column)}, and leave this out",
            )
        self._offset = column

    def _atom(self) -> Kernel:
        token = self._seen
        if token.is_mark("("):
            return self._grouped() if self._is_grouped() else self._nested()
        if token.is_mark("."):
            return self._others()
        if token.kind == "word" and self._after.is_mark("("):
            return self._call()
        if self._known.kinds is None and token.text in self._calls:
            self._next()
            raise self._unexpected("(")
        if token.kind not in ("word", "string"):
            raise self._unexpected(self._voice.atom.format(leaves=", ".join(KINDS.leaves)))
        return self._bare(token.start, self._column())

    def _others(self) -> Kernel:
        """The sum of what is not named elsewhere; before that is known, a place is held for it."""
        start = self._next().start
        self._dots += 1
        default = KINDS.default_leaf("number")
        if self._known.kinds is None:
            advice = "name them, or give data"
            raise self.error(start, "a term", "., which stands for other columns, which are not known here", advice)
        assert default is not None
        if self._others_are is None:
            return default(f".{self._dots}")
        if not self._others_are:
            raise ColumnError(
                f"{self._voice.name}: at character {start + 1}, . stands for the columns that are not named elsewhere, "
                "and there are none; leave it out"
            )
        leaves = tuple(self._bare(start, column) for column in self._others_are)
        return leaves[0] if len(leaves) == 1 else Sum(leaves)

    def _bare(self, start: int, column: Column) -> Leaf:
        kind = self._known.kind(column)
        if kind is None:
            raise self.error(
                start, "a term", f"{shown(column)}, a column of which nobody knows here what it holds",
                f"write s({written(column)}) for numbers, (1 | {written(column)}) for levels, or give data",
            )  # fmt: skip
        leaf = KINDS.default_leaf(kind)
        if leaf is None:
            advice = "leave it out, or convert it first"
            raise self._column_error(start, "a column of numbers, times or text", column, f"which holds {kind}", advice)
        return leaf(column)

    @cached_property
    def _calls(self) -> dict[str, type[Leaf]]:
        """Kernels by what may be written for them."""
        leaves = KINDS.leaves
        nicknames = {leaf.nickname: leaf for leaf in leaves.values() if leaf.nickname}
        return nicknames | {name: leaves[own] for name, own in _SYNONYMS.items()} | leaves

    def _call(self) -> Kernel:
        token, calls = self._seen, self._calls
        if token.text in CALLS:
            return self._smooth_term(token.text)
        if token.text == "offset":
            raise self._unexpected("a factor", "which stands beside the terms", "write it with + as a summand")
        if token.text not in calls and token.text != "smooth":
            raise self._unknown_call(token)
        self._next()
        self._expect("(", "(")
        column = self._column()
        kind = self._order() if token.text == "smooth" else calls[token.text]
        columns = self._columns(kind, column)
        for own in columns if kind.reads == "numbers" else ():
            self._numeric(token.start, own)
        return self._with_values(token.start, kind, columns, self._file(kind, columns[0]))

    def _unknown_call(self, token: Token) -> ValueError:
        leaves, own = KINDS.leaves, ["smooth", *CALLS, "offset"]
        names = dict.fromkeys([*(name for name in self._calls if name not in leaves), *own[1:], own[0], *leaves])
        near = get_close_matches(token.text[:40], names, n=1)
        why = "which is no kernel (a function of a column is a column: make it first, and name it)"
        if near:
            why = f"which is no kernel (perhaps {near[0]} was meant)"
        return self._unexpected(self._voice.call.format(names=", ".join(names), leaves=", ".join(leaves)), why)

    def _file(self, kind: type[Leaf], column: Column) -> dict[str, Any]:
        """What a file holds that stands behind the column, for a kind that takes one."""
        if kind.from_file is None or not self._seen.is_mark(",") or self._after.kind != "string":
            return {}
        self._next()
        if self._read is None:
            raise self._unexpected(f"{kind.from_file}= (files are read for a command line)")
        return {kind.from_file: self._read(self.unquoted(self._next()), self._known.kind(column) or "text")}

    def _order(self) -> type[Leaf]:
        """The smoothness after the column, that of a bare column of numbers when there is none."""
        if not self._seen.is_mark(",") or self._after.kind != "number":
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
