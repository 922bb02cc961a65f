"""Aligned text tables."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

Row = Mapping[str, object] | Sequence[object]


def table(rows: Sequence[Row], header: Sequence[str] | None = None) -> str:
    """Rows as aligned text: numbers to the right, the rest to the left.

    Rows are sequences, with an optional header, or dictionaries, whose keys are the header.

    >>> print(table([{"M": 10, "elbo": -3.25}, {"M": 200, "elbo": -1.5}]))
      M   elbo
    ---  -----
     10  -3.25
    200   -1.5
    """
    if not rows:
        return ""
    cells, header = _cells(rows, header)
    width = len(cells[0])
    if any(len(row) != width for row in cells) or (header is not None and len(header) != width):
        found = sorted({len(row) for row in cells} | ({len(header)} if header is not None else set()))
        raise ValueError(f"every row of a table, and its header, must have equally many cells; found {found}")
    numeric = [all(_is_number(row[column]) for row in cells) for column in range(width)]
    lines = [[_text(cell) for cell in row] for row in cells]
    if header is not None:
        lines.insert(0, list(header))
    widths = [max(len(line[column]) for line in lines) for column in range(width)]
    if header is not None:
        lines.insert(1, ["-" * w for w in widths])
    return "\n".join(_line(line, widths, numeric) for line in lines)


def _cells(rows: Sequence[Row], header: Sequence[str] | None) -> tuple[list[list[object]], Sequence[str] | None]:
    first = rows[0]
    if not isinstance(first, Mapping):
        return [list(row) for row in rows], header
    names = list(header) if header is not None else list(first)
    return [[row.get(name, "") for name in names] for row in rows if isinstance(row, Mapping)], names


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return "  ".join(aligned).rstrip()


def _is_number(cell: object) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, bool)


def _text(cell: object) -> str:
    if isinstance(cell, Integral) and not isinstance(cell, bool):
        return str(int(cell))
    return f"{float(cell):.6g}" if isinstance(cell, Real) and not isinstance(cell, bool) else str(cell)
