"""What users gave, as messages show it: never longer than a line, however long it is."""

import re
from collections.abc import Sequence

LONGEST = 80
_BREAK = re.compile(r"\s*\n\s*")


def shortened(text: object, longest: int = LONGEST) -> str:
    """A text on one line; of a long one the beginning, and how long it is."""
    line = _BREAK.sub(" ", str(text))
    if len(line) <= longest:
        return line
    ending = f"... ({len(line):,} characters)"
    return line[: longest - len(ending)] + ending


def shown(value: object) -> str:
    """``repr``, shortened."""
    return shortened(repr(value))


def listed(values: Sequence[object], most: int = 12) -> str:
    """The first of some values, each as ``shown``, with commas between them."""
    return ", ".join(map(shown, values[:most])) + (" ..." if len(values) > most else "")
