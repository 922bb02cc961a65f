"""Smooth terms as mgcv writes them.

    smooth = ("s" | "te" | "ti" | "t2") "(" column {"," column} {"," NAME "=" value} [","] ")"

``s`` is a smooth function of one column, ``te``, ``ti`` and ``t2`` are products of those of several: here one kernel
has main effects and interaction, of which the pure part is shown. ``by=`` multiplies with another column, ``bs=`` says
which basis mgcv would take, and so which kernel; other values are those of the kernel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from vff.factors import KINDS, Column, Kernel, Leaf
from vff.factors.circle.factor import Periodic
from vff.factors.graph.leaf import Areas
from vff.factors.interval.leaf import Matern32
from vff.factors.levels.factor import Categorical
from vff.factors.line.factor import Linear
from vff.factors.sphere.factor import Sphere
from vff.factors.trend.leaf import Trend
from vff.kernels.columns import ColumnDescent, written
from vff.kernels.grammar import MOST_FACTORS
from vff.kernels.tokens import Token, excerpt
from vff.words import shown

CALLS = ("s", "te", "ti", "t2")
_BASES: Mapping[str, type[Leaf]] = {
    **dict.fromkeys(("tp", "ts", "cr", "cs", "ps", "bs", "ds"), Trend),
    "gp": Matern32,
    **dict.fromkeys(("cc", "cp"), Periodic),
    "sos": Sphere,
    "mrf": Areas,
    "re": Categorical,
}
_BY_LEVEL = ("fs", "sz")
_OF_ONE = (Trend, Matern32)
"""Kernels of one column that need nothing else, so that products can be made of them."""
_NOT_HERE = {
    "k": "the number of functions is no part of a kernel: give the model frequencies={%s: %s}",
    "knots": "knots are spread over the rows: give the model domain=, and a period as in cc(x, 24)",
    "m": "write Trend(x, order=1), Matern52(x) or Periodic(x, 24, order=2) for another order",
    "sp": "write variance= and lengthscale= to start from, and fixed(...) to hold them",
    "fx": "write variance= to start from, and fixed(...) to hold it",
    "id": "factors of one product share their smoothness: write s(x) * cat(g)",
    "xt": "write neighbours={'a': ['b', 'c']}, or areas(region, 'pairs.csv') on a command line",
    "d": "write the factors with * between them, as in sphere(lat, lon) * s(t)",
    "pc": "leave it out: no point is held at zero",
    "df": "leave it out: degrees of freedom are learnt",
}
"""What else mgcv takes, and what to do instead."""


@dataclass(frozen=True)
class _Arguments:
    """What stands in the parentheses of a smooth term."""

    call: Token
    columns: list[Column]
    by: Column | None
    basis: str | None
    values: dict[str, Any]
    places: dict[str, Token]
    """Where each name stands."""


class SmoothTerms(ColumnDescent):
    """Reads them."""

    def _smooth_term(self, called: str) -> Kernel:
        """A smooth term, times what it is by."""
        own = self._arguments()
        kernel = self._smooth_of_one(own) if called == "s" else self._tensor(own)
        if own.by is None:
            return kernel
        levels = self._known.is_text(own.by)
        if levels is None:
            name = written(own.by)
            raise self.error(
                own.places["by"].start, "a column of which it is known what it holds", f"by={name}",
                f"write s(...) * cat({name}) for levels, linear({name}) * s(...) for numbers, or give data",
            )  # fmt: skip
        parts = [kernel, Categorical(own.by)] if levels else [Linear(own.by), kernel]
        return self._multiplied(own.call.start, parts)

    def _arguments(self) -> _Arguments:
        call = self._next()
        self._expect("(", "(")
        columns, values, places = [self._column()], dict[str, Any](), dict[str, Token]()
        while self._skipped(",") and not self._seen.is_mark(")"):
            if not self._after.is_mark("="):
                if places:
                    raise self._unexpected("a name and =, or )")
                columns.append(self._column())
                self._check_size(self._seen.start, len(columns), "columns", MOST_FACTORS)
                continue
            token = self._next()
            self._next()
            if token.text in places:
                raise self.error(token.start, "every name once", f"{excerpt(token.text)}= again")
            places[token.text] = token
            values[token.text] = self._argument(token, columns)
            self._check_size(token.start, len(places), "values", MOST_FACTORS)
        self._expect(")", ", or )")
        by, basis = values.pop("by", None), values.pop("bs", None)
        return _Arguments(call, columns, by, basis, values, places)

    def _argument(self, token: Token, columns: Sequence[Column]) -> Any:
        """One value, by its name."""
        if token.text in _NOT_HERE:
            advice = _NOT_HERE[token.text]
            if token.text == "k":
                advice %= shown(columns[0]), self._seen.text[:20] if self._seen.kind == "number" else "20"
            raise self.error(token.start, "by=, bs=, a value of the kernel or )", f"{token.text}=", advice)
        if token.text == "by" or any(token.text in leaf.value_columns for leaf in KINDS.leaves.values()):
            return self._column()
        if token.text == "bs":
            return self._basis()
        return self._number() if self._knows_more() else self._choice()

    def _basis(self) -> str:
        """What mgcv calls a basis."""
        names = [*_BASES, *_BY_LEVEL]
        if self._seen.kind != "string" or self.unquoted(self._seen) not in names:
            expected = f"one basis in quotes ({', '.join(names)})"
            raise self._unexpected(expected, advice="write margins that differ as factors, as in cc(x, 24) * s(z)")
        return self.unquoted(self._next())

    def _smooth_of_one(self, own: _Arguments) -> Kernel:
        """``s``."""
        if own.basis in _BY_LEVEL:
            return self._curves(own)
        if own.basis == "re" and len(own.columns) > 1:
            return self._slopes(own)
        leaf = self._leaf_of(own)
        if len(own.columns) != len(leaf.column_fields):
            names = written(*own.columns)
            count = f"{len(leaf.column_fields)} column(s) for {leaf.__name__}"
            advice = f"write te({names}) for a surface, s(lat, lon, bs='sos') on the globe"
            raise self.error(own.call.start, count, f"s({names})", advice)
        for column in own.columns if leaf.reads == "numbers" else ():
            self._numeric(own.call.start, column)
        if leaf is Periodic and "period" not in own.values:
            column = written(own.columns[0])
            advice = (
                f"write cc({column}, 24) or s({column}, bs={shown(own.basis)}, period=24) in the units of the column"
            )
            raise self.error(
                own.places["bs"].start, "a period", "none, which is not taken from the range of rows", advice
            )
        names = [field.name for field in fields(leaf) if field.name not in leaf.column_fields]
        for name in own.values:
            if name not in names:
                expected = " or ".join(["by=", "bs=", *(f"{known}=" for known in names)])
                raise self.error(own.places[name].start, expected, f"{excerpt(name)}=")
        make: Any = leaf
        with self.refused_at(own.call.start):
            return make(*own.columns, **own.values)

    def _leaf_of(self, own: _Arguments) -> type[Leaf]:
        """The kernel that a basis stands for, that of a bare column of numbers where none is named."""
        leaf = KINDS.default_leaf("number") if own.basis is None else _BASES[own.basis]
        assert leaf is not None
        return leaf

    def _tensor(self, own: _Arguments) -> Kernel:
        """``te``, ``ti`` and ``t2``."""
        self._refuse_values(own, "s(x, lengthscale=2) * s(z)")
        leaf = None if own.basis in _BY_LEVEL else self._leaf_of(own)
        if leaf not in _OF_ONE:
            advice = "write the factors with * between them, as in cc(x, 24) * s(z) or s(x) * cat(g)"
            raise self.error(own.places["bs"].start, "a basis that all columns may have", f"bs={own.basis}", advice)
        return self._multiplied(own.call.start, [leaf(self._numeric(own.call.start, c)) for c in own.columns])

    def _curves(self, own: _Arguments) -> Kernel:
        """A curve for every level: which column has levels is known of the data, or it is the last."""
        self._refuse_values(own, "s(x, lengthscale=2) * cat(g)")
        levels = [column for column in own.columns if self._known.is_text(column)] or own.columns[-1:]
        curves = [Matern32(column) for column in own.columns if column not in levels]
        if not curves:
            advice = "write s(x, g, bs='fs')"
            raise self.error(
                own.call.start, "a column of numbers and one of levels", f"s({written(*own.columns)})", advice
            )
        return self._multiplied(own.call.start, [*curves, *map(Categorical, levels)])

    def _slopes(self, own: _Arguments) -> Kernel:
        """Random effects of combinations of levels, times the columns of numbers among them."""
        self._refuse_values(own, "Linear(x) * Categorical(g, variance=2)")
        levels = [column for column in own.columns if self._known.is_text(column)]
        if not levels:
            what = (
                "a column of levels among them" if self._known.kinds else "columns of which it is known what they hold"
            )
            advice = f"write Linear({written(own.columns[0])}) * Categorical({written(own.columns[-1])})"
            raise self.error(own.call.start, what, f"s({written(*own.columns)}, bs='re')", advice)
        lines = [Linear(column) for column in own.columns if column not in levels]
        return self._multiplied(own.call.start, [*lines, *map(Categorical, levels)])

    def _refuse_values(self, own: _Arguments, instead: str) -> None:
        for name in own.values:
            raise self.error(own.places[name].start, "by= or bs= or )", f"{excerpt(name)}=", f"write {instead}")
