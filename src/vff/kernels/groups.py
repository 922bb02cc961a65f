"""Effects of groups as lme4 writes them, in parentheses of their own.

    group  = "(" side ("|" | "||") nested ")"
    side   = item {"+" item} ["-" 1]
    item   = "1" | "0" | column
    nested = cross {"/" cross}
    cross  = column {":" column}

``(1 | g)`` is a value for every level of g, ``(0 + x | g)`` a slope, ``(x | g)`` both with a correlation, and
``(x || g)`` both without one. ``g/h`` is g and, within it, h: ``g + g:h``.
"""

from typing import NamedTuple

from vff.factors import Column, Kernel, Sum
from vff.factors.levels.factor import Categorical
from vff.factors.line.factor import Linear
from vff.kernels.columns import ColumnDescent, written
from vff.kernels.grammar import MOST_FACTORS

_FURTHEST = 4 * MOST_FACTORS  # tokens that are looked at in search of |


class _Side(NamedTuple):
    """What varies by group."""

    intercept: bool
    slopes: list[Column]


class GroupedTerms(ColumnDescent):
    """Reads them."""

    def _is_grouped(self) -> bool:
        """Whether the parenthesis in view holds a |, before anything that it may not hold."""
        for ahead in range(1, _FURTHEST):
            token = self._peek(ahead)
            if token.is_mark("|", "||"):
                return True
            if token.kind not in ("word", "string", "number") and not token.is_mark("+", "-"):
                return False
        return False

    def _grouped(self) -> Kernel:
        start = self._next().start
        side = self._side()
        apart = self._next().text == "||"
        crosses = [self._cross()]
        while self._skipped("/"):
            crosses.append(self._cross())
            self._check_size(start, sum(map(len, crosses)), "factors in a term", MOST_FACTORS)
        if self._seen.is_mark("+", "*"):
            raise self._unexpected(": or / or )", advice="write groups beside each other as (1 | g) + (1 | h)")
        self._expect(")", ": or / or )")
        by_group = self._varying(start, side, crosses[-1], apart)
        terms = []
        for depth in range(len(crosses)):
            columns = dict.fromkeys(column for cross in crosses[: depth + 1] for column in cross)
            levels = [Categorical(column) for column in columns]
            terms += [self._multiplied(start, [*([] if own is None else [own]), *levels]) for own in by_group]
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def _side(self) -> _Side:
        """Intercept and slopes; the intercept is there unless it is taken out."""
        intercept, slopes = True, dict[Column, None]()
        while True:
            token = self._seen
            if token.kind == "number":
                if token.text not in ("0", "1", "-1"):
                    raise self._unexpected("1, 0 or a column")
                intercept = intercept and token.text == "1"
                self._next()
            else:
                column = self._column()
                if self._known.is_text(column):
                    found = f"which holds {self._known.kind(column)}"
                    advice = f"write (1 | g:{written(column)}) for a value for every pair of levels"
                    raise self._column_error(token.start, "a column of numbers", column, found, advice)
                slopes[column] = None
            if self._seen.is_mark("-") and self._after.text == "1":
                intercept = False
                self._next()
                self._next()
            if not self._skipped("+"):
                break
        if not self._seen.is_mark("|", "||"):
            raise self._unexpected("+ or |")
        return _Side(intercept, list(slopes))

    def _cross(self) -> list[Column]:
        columns = [self._column()]
        while self._skipped(":"):
            columns.append(self._column())
            self._check_size(self._seen.start, len(columns), "factors in a term", MOST_FACTORS)
        return columns

    def _varying(self, start: int, side: _Side, group: list[Column], apart: bool) -> list[Linear | None]:
        """The lines that vary by group, None for a constant, each independent of the others."""
        constant: list[Linear | None] = [None] if side.intercept else []
        if not constant and not side.slopes:
            advice = "write (1 | g) for a value, (0 + x | g) for a slope of every group"
            raise self.error(start, "1 or a column before |", "nothing that varies by group", advice)
        lines = [Linear(column) for column in side.slopes]
        if apart or not lines or (len(lines) == 1 and not constant):
            return [*constant, *lines]
        if len(lines) == 1:
            return [Linear(side.slopes[0], intercept=True)]
        g = ":".join(map(written, group))
        more = [
            f"({'1' if number == 0 and side.intercept else '0'} + {written(x)} | {g})"
            for number, x in enumerate(side.slopes)
        ]
        raise self.error(
            start, "an intercept and at most one slope with a correlation", f"slopes of {written(*side.slopes[:4])}",
            f"write {' + '.join(more[:4])}, or || for none",
        )  # fmt: skip
