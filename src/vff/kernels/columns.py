"""What a formula may know of columns: their names or numbers, what each holds, and which are spoken for."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vff.factors import Column
from vff.kernels.grammar import AbstractDescent
from vff.kernels.tokens import INTEGER, WORD, Token, Voice
from vff.words import near, shortened, shown

NUMERIC = ("number", "datetime", "duration", "boolean")


class ColumnError(ValueError):
    """Terms that are well written, of columns that the data do not have or that cannot be used so."""


@dataclass(frozen=True)
class Columns:
    """The columns of the data that a formula is about."""

    kinds: Mapping[Any, str] | None = None
    """What every column holds: "number", "datetime", "duration", "boolean" or "text"; None where nothing is known."""
    apart: Mapping[Any, str] = field(default_factory=dict)
    """Those that are spoken for, as {"y": "the target"}: a term that names one is refused."""
    left_out: Collection[Column] = ()
    """Those beside them that "." leaves out."""
    target: str | None = None
    """What the target is called, where that is known."""
    look: Callable[[Column], tuple[str, str] | None] = lambda column: None
    """What a column of text turns out to hold, and what to do about it; None for words."""
    before_fit: bool = False
    """Whether the target is not known yet, so that no formula may name one."""

    @cached_property
    def named(self) -> bool:
        """Whether columns have names."""
        return self.kinds is not None and all(isinstance(column, str) for column in self.kinds)

    @property
    def numbered(self) -> bool:
        """Whether columns have numbers alone."""
        return self.kinds is not None and not self.named

    def kind(self, column: Column) -> str | None:
        """What a column holds; None where nobody knows."""
        return None if self.kinds is None else self.kinds[self._counted(column)]

    def _counted(self, column: Column) -> Column:
        """A column by its number from the first, where it was counted from the last."""
        count = len(self.kinds or ())
        return column + count if self.numbered and isinstance(column, int) and -count <= column < 0 else column

    def is_text(self, column: Column) -> bool | None:
        """Whether a column is one of levels rather than of numbers; None where nobody knows."""
        kind = self.kind(column)
        return None if kind is None else kind not in NUMERIC

    def others(self, named: Collection[Column]) -> list[Column]:
        """What "." stands for beside those that are named."""
        gone = {*map(self._counted, named), *self.apart, *map(self._counted, self.left_out), self.target}
        return [column for column in self.kinds or () if column not in gone]

    def refusal(self, column: Column) -> tuple[str, str, str] | None:
        """Why a term cannot be of a column: what was expected, what was found, and what to do."""
        if column in self.apart:
            return "a column to learn from", f"which is {self.apart[column]}", "leave it out of the terms"
        if self.kinds is None or self._counted(column) in self.kinds:
            return None
        if self.numbered:
            return "a column of the data", "which is none", f"these have numbers from 0 to {len(self.kinds) - 1}"
        known = [str(name) for name in self.kinds if name not in self.apart]
        return "a column of the data", "which is none", nearest(str(column), known)


def written(*columns: Column) -> str:
    """Columns as a formula has them, on one line."""
    plain = (str(one) if WORD.fullmatch(str(one)) or isinstance(one, int) else f"`{one}`" for one in columns[:4])
    return ", ".join([*map(shortened, plain), *(["..."] if len(columns) > 4 else [])])


def nearest(name: str, known: list[str]) -> str:
    """What to write instead of a column that is not there: the likeliest, or some."""
    likely = near(name, known)
    if likely:
        return f"perhaps {' or '.join(map(shown, likely))} was meant"
    return f"the columns are {', '.join(map(shown, known[:8]))}{', ...' if len(known) > 8 else ''}"


class ColumnDescent(AbstractDescent):
    """Descent that knows columns."""

    def __init__(self, text: str, voice: Voice, columns: Columns) -> None:
        super().__init__(text, voice)
        self._known = columns
        self._named: dict[Column, None] = {}
        """Columns in the order in which they were named."""

    def _name(self, token: Token) -> str:
        """The column that a word or a quoted text stands for."""
        return token.text if token.kind == "word" else self.unquoted(token)

    def _column(self) -> Column:
        """A column that is there and is not spoken for."""
        token, columns = self._seen, self._known
        if token.kind in ("word", "string"):
            column = self._name(token)
        elif INTEGER.fullmatch(token.text) and not columns.named:
            with self.refused_at(token.start):  # Python reads no integers of thousands of digits
                column = int(token.text)
        else:
            raise self._unexpected(self._voice.column)
        self._next()
        refused = columns.refusal(column)
        if refused is not None:
            expected, found, advice = refused
            raise self._column_error(token.start, expected, column, found, advice)
        self._named[column] = None
        return column

    def _numeric(self, start: int, column: Column) -> Column:
        """A column of numbers or times, as far as is known."""
        if self._known.is_text(column):
            found, advice = f"which holds {self._known.kind(column)}", f"write cat(...) around {shown(column)}"
            found, advice = self._known.look(column) or (found, advice)
            raise self._column_error(start, "a column of numbers or times", column, found, advice)
        return column

    def _column_error(self, start: int, expected: str, column: Column, found: str, advice: str) -> ColumnError:
        place = f"{self._voice.name}: at character {start + 1}"
        return ColumnError(f"{place}, {expected} was expected, found {shown(column)}, {found}; {advice}")
