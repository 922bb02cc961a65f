"""Kernels as text: written exact to the last bit, and the part of their grammar that knows no columns.

    sum     = product {"+" product}
    product = atom {("*" | ":") atom}
    values  = {"," [NAME "="] value} [","]          names may be left out as in Python, in the order of the fields
    value   = known | choice | column               whichever the kernel takes there
    known   = NUMBER | "fixed" "(" NUMBER ")" | "between" "(" NUMBER "," NUMBER ["," NUMBER] ")"
    choice  = NUMBER | STRING | "True" | "False" | "[" [choice {"," choice}] "]" | "{" [entry {"," entry}] "}"
    entry   = (NUMBER | STRING) ":" choice

A choice stands only where a kernel takes one, as neighbours of areas are. What an atom is, ``formula`` says. Nothing is
evaluated, so a text from elsewhere can build a kernel and do nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import chain, product
from math import prod
from numbers import Integral
from types import MappingProxyType
from typing import Any

from vff.factors import Column, Kernel, Leaf, Product, Sum, normal_form
from vff.factors.expression import factors_of, summands
from vff.kernels.tokens import INTEGER, Reader, Token, Voice, excerpt, number
from vff.parameters import between, fixed

__all__ = ["INTEGER", "MOST_FACTORS", "MOST_TERMS", "AbstractDescent", "Token", "write_kernel"]

_SWITCHED = {"True": True, "False": False, "true": True, "false": False}
_KNOWN: Mapping[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "fixed": (fixed, (1,)),
    "between": (between, (2, 3)),
}
"""What may be said of a number beforehand, and of how many numbers it is made."""
_DEEPEST = 100  # parentheses within parentheses; far beyond any kernel, and far from the end of Python's stack
MOST_TERMS, MOST_FACTORS = 1000, 32  # of the sum of products; a text of some lines can stand for millions
_DEEPEST_CHOICE = 2  # lists within lists by name
_NOTHING: Mapping[str, Any] = MappingProxyType({})


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


def _exact(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if isinstance(value, Integral) else repr(float(value))


class AbstractDescent(Reader, ABC):
    """Recursive descent with a few tokens in view: sums of products of what a grammar calls an atom.

    Terms are counted before they are made.
    """

    def __init__(self, text: str, voice: Voice) -> None:
        super().__init__(text, voice)
        self._depth = 0

    @abstractmethod
    def _atom(self) -> Kernel:
        """What stands between + and *."""

    @abstractmethod
    def _column(self) -> Column:
        """A column."""

    def _whole(self) -> Kernel:
        """A sum, and nothing behind it."""
        whole = self._sum()
        if self._seen.kind != "end":
            raise self._unexpected("+, * or the end")
        return whole

    def _summand(self) -> Kernel | None:
        """What stands between +; None for what is no term."""
        return self._product()

    def _sum(self) -> Kernel:
        """Products with + between them."""
        first, parts, count = self._seen, list[Kernel](), 0
        while True:
            start, part = self._seen.start, self._summand()
            if part is not None:
                count += len(summands(part))
                self._check_size(start, count, "terms", MOST_TERMS)
                parts.append(part)
            if not self._skipped("+"):
                break
        if not parts:
            raise self.error(first.start, "a term beside it", f"{first.text} alone", "name a column to learn from")
        return parts[0] if len(parts) == 1 else Sum(tuple(chain.from_iterable(map(summands, parts))))

    def _product(self) -> Kernel:
        """Atoms with * or : between them, multiplied out; the last one varies fastest."""
        first = start = self._seen.start
        parts = [self._atom()]
        while self._skipped("*") or self._skipped(":"):
            start = self._seen.start
            parts.append(self._atom())
            self._check_product(start, parts)
        return self._multiplied(first, parts)

    def _check_product(self, start: int, parts: Sequence[Kernel]) -> None:
        self._check_size(start, prod(len(summands(part)) for part in parts), "terms", MOST_TERMS)
        self._check_size(start, sum(map(_most_factors, parts)), "factors in a term", MOST_FACTORS)

    def _multiplied(self, start: int, parts: Sequence[Kernel]) -> Kernel:
        """The product of parts, as a sum of products."""
        if len(parts) == 1:
            return parts[0]
        self._check_product(start, parts)
        with self.refused_at(start):
            terms = tuple(
                Product(tuple(chain.from_iterable(map(factors_of, row)))) for row in product(*map(summands, parts))
            )
        return terms[0] if len(terms) == 1 else Sum(terms)

    def _check_size(self, start: int, count: int, what: str, most: int) -> None:
        if count > most:
            raise ValueError(
                f"{self._voice.name}: at character {start + 1}, at most {most:,} {what} were expected, found "
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

    def _columns(self, kind: type[Leaf], first: Column) -> list[Column]:
        """All columns that a kind reads, with commas between them; the first was read before."""
        found = [first]
        for _ in kind.column_fields[1:]:
            self._expect(",", f", and another column, of {len(kind.column_fields)} that {kind.__name__} reads,")
            found.append(self._column())
        return found

    def _with_values(
        self, start: int, kind: type[Leaf], columns: Sequence[Column], known: Mapping[str, Any] = _NOTHING
    ) -> Leaf:
        """A kernel on its columns, with values that are known and those that stand before the closing parenthesis."""
        values = {**known, **self._values(kind, set(known))}
        self._expect(")", ", or )")
        with self.refused_at(start):
            return kind(*columns, **values)

    def _values(self, kind: type[Leaf], known: set[str]) -> dict[str, Any]:
        """Values by name, or in the order of the fields, each at most once; as in Python, a comma may come last."""
        own = [field for field in fields(kind) if field.name not in {*kind.column_fields, *known}]
        names, in_order = [field.name for field in own], [field.name for field in own if not field.kw_only]
        values: dict[str, Any] = {}
        while self._skipped(",") and self._seen.text != ")":
            missing = [name for name in names if name not in values]
            if in_order and not self._after.is_mark("=") and self._is_value():
                name = in_order.pop(0)
            elif self._seen.text in missing and self._seen.kind == "word":
                name, in_order = self._next().text, []
                self._expect("=", "=")
            else:
                raise self._unexpected(" or ".join([*(f"{name}=" for name in missing), ")"]))
            values[name] = self._value(kind, name)
        return values

    def _is_value(self) -> bool:
        """Whether a value is in view, rather than its name."""
        return self._seen.kind in ("number", "string") or self._seen.is_mark("[", "{") or self._knows_more()

    def _value(self, kind: type[Leaf], name: str) -> Any:
        """What a kernel takes for one of its fields."""
        if name in kind.value_columns:
            return self._column()
        return self._choice() if name in kind.choices else self._number()

    def _knows_more(self) -> bool:
        """Whether ``fixed`` or ``between`` is in view."""
        return self._seen.text in _KNOWN and self._seen.kind == "word" and self._after.is_mark("(")

    def _number(self) -> Any:
        """A number, or what is known of it."""
        if not self._knows_more():
            return self._plain_number("fixed(number), between(low, high) or a number")
        token = self._next()
        make, counts = _KNOWN[token.text]
        self._next()
        numbers = [self._plain_number("a number")]
        while len(numbers) < counts[-1] and self._skipped(","):
            numbers.append(self._plain_number("a number"))
        if len(numbers) < counts[0]:
            raise self._unexpected(", and another number")
        self._expect(")", ")")
        with self.refused_at(token.start):
            return make(*numbers)

    def _plain_number(self, expected: str) -> float:
        if self._seen.kind != "number":
            raise self._unexpected(expected)
        token = self._next()
        try:
            return number(token.text)
        except ValueError as error:  # Python reads no integers of thousands of digits
            raise self.error(token.start, expected, excerpt(token.text), f"write fewer digits ({error})") from error

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
        return self.unquoted(self._next()) if self._seen.kind == "string" else self._plain_number(expected)


def _most_factors(kernel: Kernel) -> int:
    return max(len(factors_of(term)) for term in summands(kernel))
