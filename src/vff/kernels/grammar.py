"""Kernels as text: written exact to the last bit, and read back by a grammar of five lines.

    kernel  = sum END
    sum     = product {"+" product}
    product = atom {"*" atom}
    atom    = "(" sum ")" | leaf
    leaf    = KIND "(" column {"," NAME "=" NUMBER} [","] ")"

A column is an integer or a quoted name with the escapes that ``repr`` writes. Nothing is evaluated, so a text from
elsewhere can build a kernel and do nothing else.
"""

from dataclasses import fields
from numbers import Integral
from typing import Any

from vff.factors import KINDS, Column, Kernel, Leaf, normal_form
from vff.kernels.descent import INTEGER, QUOTED, AbstractDescent, Language
from vff.words import shown

_LANGUAGE = Language(
    "parse_kernel",
    word="[A-Za-z_][A-Za-z0-9_]*",
    quotes=QUOTED,
    marks="[()+*,=]",
    expected="a kernel, a value, or one of ( ) + * , =",
    advice="write kernels as they print, as in Matern32('x', lengthscale=2) * Categorical('g')",
)


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
        raise TypeError(f"parse_kernel: a text was expected, got {shown(text)}; a kernel needs no parsing")
    return _Parser(_LANGUAGE, text).kernel()


def _exact(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


class _Parser(AbstractDescent):
    """A method for each line of the grammar."""

    def _atom(self) -> Kernel:
        return self._nested() if self._seen.text == "(" and self._seen.kind == "mark" else self._leaf()

    def _leaf(self) -> Leaf:
        start, kind = self._seen.start, KINDS.leaves.get(self._seen.text)
        if kind is None:
            raise self._unexpected(f"a kernel ({', '.join(KINDS.leaves)}) or (")
        self._next()
        self._expect("(", "(")
        column = self._column()
        values = self._values([field.name for field in fields(kind) if field.name != "column"])
        self._expect(")", ", or )")
        with self._language.refused_at(start):
            return kind(column, **values)

    def _column(self) -> Column:
        if self._seen.kind == "string":
            return self._language.unquoted(self._next())
        if not INTEGER.fullmatch(self._seen.text):
            raise self._unexpected("a column (a quoted name or an index)")
        with self._language.refused_at(self._seen.start):  # Python reads no integers of thousands of digits
            return int(self._next().text)
