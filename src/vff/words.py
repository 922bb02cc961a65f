"""What users gave, as messages show it: never longer than a line, however long it is."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

LONGEST = 80
LONGEST_PATH = 300  # which is worth nothing without its end
_BREAK = re.compile(r"\s*\n\s*")


def shortened(text: object, longest: int = LONGEST) -> str:
    """A text on one line; of a long one the beginning and the end, and how long it is."""
    line = _BREAK.sub(" ", str(text))
    if len(line) <= longest:
        return line
    note = f" ({len(line):,} characters)"
    room = longest - len(note) - len("...")
    return f"{line[: room - room // 3]}...{line[-(room // 3) :]}{note}"


def shown(value: object) -> str:
    """``repr``, shortened."""
    return shortened(repr(value))


def shown_path(path: object) -> str:
    """``repr`` of a path or a pattern, shortened."""
    return shortened(repr(path), LONGEST_PATH)


def listed(values: Sequence[object], most: int = 12) -> str:
    """The first of some values, each as ``shown``, with commas between them."""
    return ", ".join(map(shown, values[:most])) + (" ..." if len(values) > most else "")


def near(name: object, known: Sequence[str]) -> list[str]:
    """The likeliest of these names, where one is not among them but almost."""
    lowered = {other.lower(): other for other in known}
    return [lowered[match] for match in get_close_matches(str(name).lower(), lowered, n=3)]


def perhaps(name: object, known: Sequence[str] | None) -> str:
    """How a sentence about a name that is not there ends: with those that may have been meant, if any."""
    found = near(name, known or ())
    return f": perhaps {' or '.join(map(shown, found))} was meant" if found and name not in found else ""
