"""Options that speak of several columns in one text: ``x=0:24, y=-5:5``."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from vff.cli.failures import UsageError
from vff.data.schema import DECLARABLE
from vff.words import shortened, shown

Value = TypeVar("Value")

_QUOTED = r"`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\""
_ENTRY = re.compile(rf"\s*(?P<name>(?:{_QUOTED}|[^=,`'\"])+)=(?P<value>[^,]*)(?:,|$)")
_PART = re.compile(rf"\s*(?P<part>{_QUOTED}|[^*`'\"]+)\s*(?:\*|$)")
_DAY = 86_400.0


class _Unfit(ValueError):
    """What the value of a column was expected to do, and what to write instead."""


def by_column(text: str, option: str, read: Callable[[str], Value], example: str) -> dict[str, Value]:
    """``name=value, name=value`` as a dictionary; a product goes by ``a * b``, and odd names are quoted."""
    values: dict[str, Value] = {}
    at = 0
    while at < len(text):
        match = _ENTRY.match(text, at)
        name = name_of_term(match["name"]) if match else ""
        if match is None or not name or name in values:
            raise _refused(option, text[at:].strip(), example)
        try:
            values[name] = read(match["value"].strip())
        except _Unfit as unfit:
            expected, advice = unfit.args
            found = shown(match[0].strip(" ,"))
            raise UsageError(f"{option} was expected to {expected}, found {found}; {advice}") from None
        except ValueError:
            raise _refused(option, match[0].strip(" ,"), example) from None
        at = match.end()
    if not values:
        raise _refused(option, text, example)
    return values


def name_of_term(text: str) -> str:
    """A column, or the columns of a product with one sign between them; empty when the quotes do not fit."""
    parts, at, text = [], 0, text.strip()
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            return ""
        parts.append(_unquoted(match["part"].strip()))
        at = match.end()
    return " * ".join(parts)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "`'\"":
        return text[1:-1].replace("``", "`")
    return text


def _refused(option: str, found: str, example: str) -> UsageError:
    return UsageError(
        f"{option} was expected to be like {shown(example)}, found {shown(found)}; quote names that hold , or ="
    )


def domain(text: str | None) -> dict[str, tuple[float, float]] | str:
    """Intervals by column: numbers, or dates, which a model counts in days since 1970."""
    return by_column(text, "--domain", _interval, "hour=0:24, day=2024-01-01:2024-12-31") if text else "auto"


def _interval(text: str) -> tuple[float, float]:
    sign = ".." if ".." in text else ":"
    first, last = (end.strip() for end in text.split(sign))
    low, high = _end(first), _end(last)
    if high <= low:
        advice = f"write {shortened(f'{last}{sign}{first}')}" if high < low else "give two ends that differ"
        raise _Unfit("lead from the lower end of a column to the upper one", advice)
    if not low < high:
        raise ValueError(text)
    return low, high


def _end(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() / _DAY


def frequencies(text: str | None) -> dict[str, Any] | int | str:
    """One number for all columns, or numbers by column and product; 12x8 gives a product one each."""
    if text is None or text == "auto":
        return "auto"
    if re.fullmatch(r"\s*[0-9]+\s*", text):
        return int(text)
    return by_column(text, "--frequencies", _harmonics, "30, or hour=30, hour * day=12x8")


def _harmonics(text: str) -> int | tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split("x"))
    if any(number < 1 for number in numbers):
        raise ValueError(text)
    return numbers[0] if len(numbers) == 1 else numbers


def texts(text: str | None, option: str, example: str) -> dict[str, str]:
    """Words by column."""
    return by_column(text, option, _word, example) if text else {}


def _word(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def types(text: str | None) -> dict[str, str]:
    """What columns hold, in the words of ``scan``."""
    return by_column(text, "--types", _kind, "zip=text, day=datetime") if text else {}


def _kind(text: str) -> str:
    if _word(text) not in list(DECLARABLE):
        raise _Unfit("say what a column holds", f"write one of {', '.join(DECLARABLE)}")
    return text


def names(text: str | None, option: str) -> list[str]:
    """Columns with commas between them."""
    found = re.findall(rf"\s*({_QUOTED}|[^,`'\"]+)\s*(?:,|$)", text) if text else []
    if text and not found:
        raise UsageError(
            f"{option} was expected to be like 'day, `wind speed`', found {shown(text)}; name some columns"
        )
    return [_unquoted(name.strip()) for name in found]
