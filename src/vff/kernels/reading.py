"""The doors to formulas: a text and what is known of the data, to a kernel."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from vff.factors import Column, Kernel
from vff.kernels.columns import NUMERIC, Columns
from vff.kernels.formula import TERMS, Formula, FormulaParser, Read
from vff.kernels.tokens import Voice
from vff.words import shown

_KERNEL = Voice(
    "parse_kernel",
    "a kernel, a value, or one of ( ) + * , = [ ] { } :",
    "a kernel ({leaves}), a term such as s(x) or (1 | g), or (",
    "a kernel ({leaves}), or a term as s(x),",
    "a column (a quoted name or an index), or a name as it is,",
    "write kernels as they print, as in Matern32('x', lengthscale=2) * Categorical('g'), or as in s(x) + (1 | g)",
)
_HELD = {kind: kind for kind in (*NUMERIC, "text")} | {"integer": "number"}
_MODEL = Voice(
    "kernel",
    TERMS.marks,
    "a column, a term such as s(x) or (1 | g), . or (",
    "a kernel, or a term such as s(x), te(x, z), cc(x, 24) or cat(g),",
    TERMS.column,
    TERMS.advice,
)


def parse_kernel(text: str, data: Any = None) -> Kernel:
    """The kernel that a text describes.

    Parameters
    ----------
    text : str
        Anything ``repr`` or ``write_kernel`` gives, with parentheses where wanted, or a formula, as in "s(hour) +
        te(lon, lat) + (1 | house)": docs/formulas.md has the grammar and a table. ``a * b`` is the product of two
        kernels, not R's a + b + a:b. Nothing in it is evaluated.
    data : table, what ``vff.scan`` takes, mapping from columns to what they hold, or None
        Needed where the meaning of a term depends on what its column holds, as that of a bare name does: "number",
        "datetime", "duration", "boolean" or "text". Columns must then be there.

    Returns
    -------
    kernel expression

    Examples
    --------
    >>> vff.parse_kernel("(Matern32('lon') + Matern12('lat', lengthscale=0.5)) * Categorical('season')")
    Matern32('lon') * Categorical('season') + Matern12('lat', lengthscale=0.5) * Categorical('season')
    >>> vff.parse_kernel("s(hour) + te(lon, lat) + (1 | house) + cc(doy, 365.25)")
    Matern32('hour') + Matern32('lon') * Matern32('lat') + Categorical('house') + Periodic('doy', period=365.25)
    >>> vff.parse_kernel("hour * zone", {"hour": "number", "zone": "text"})
    Matern32('hour') * Categorical('zone')
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_kernel: a text was expected, got {shown(text)}; a kernel needs no parsing")
    columns = Columns(None if data is None else _kinds_of(data), before_fit=True)
    return FormulaParser(text, columns, _KERNEL, offsets=False).formula().kernel


def parse_formula(text: str, columns: Columns, *, terms: bool = False, read: Read | None = None) -> Formula:
    """The kernel and the offset that a text describes, for a model or, ``terms``, for a command line."""
    return FormulaParser(text, columns, TERMS if terms else _MODEL, read).formula()


def _kinds_of(data: Any) -> Mapping[Column, str]:
    """What every column holds, as it was said or as the data are."""
    if isinstance(data, Mapping) and all(isinstance(kind, str) for kind in data.values()):
        unknown = [kind for kind in data.values() if kind not in _HELD]
        if unknown:
            raise ValueError(
                f"parse_kernel: columns were expected to hold one of {', '.join(_HELD)}, got {shown(unknown[0])}; say "
                "which of these it is"
            )
        return {column: _HELD[kind] for column, kind in data.items()}
    # not imported above: kernels know no data, but for who asks with some in hand
    rooms = import_module("vff.data")
    kinds = rooms.column_kinds(rooms.open_rows(data))
    if kinds is None:
        raise ValueError(
            f"parse_kernel: data were expected whose columns are known beforehand, got {shown(type(data).__name__)}; "
            "give a frame, or what the columns hold as in {'hour': 'number', 'zone': 'text'}"
        )
    return kinds
