"""A text cut into tokens from left to right, and sentences that say where in it something is wrong."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

INTEGER = re.compile(r"-?[0-9]+")
WORD = re.compile(r"[^\W\d][\w.]*")
_STRINGS = {"'": r"(?:[^'\\\n]|\\.)*", '"': r'(?:[^"\\\n]|\\.)*', "`": "(?:[^`]|``)*"}
"""How a text in each kind of quotes goes on to its end."""
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<word>{WORD.pattern})|(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<string>{'|'.join(f'{quote}{inside}{quote}' for quote, inside in _STRINGS.items())})"
    r"|(?P<mark>\|\||[()+*,=/.\[\]{}:|~^-])"
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))")
_ESCAPED = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_OF_R = {
    "-": "which takes nothing away here (leave the term out; normalize_y=False leaves the constant out)",
    "/": "which nests terms in R (write a + a * b here, and (1 | g/h) for groups in groups)",
    "^": "which crosses terms in R (write a + b + a * b here, and make a column of x^2 first)",
    "~": "before which R has the target (leave both out, and name the target in fit)",
    "|": "which stands in parentheses of its own, as in (1 | g) or (1 + x | g)",
}
"""What marks of formulas mean elsewhere, and what to write instead."""
_OF_R["||"] = _OF_R["|"]


@dataclass(frozen=True)
class Voice:
    """Who speaks in messages, and what might have stood where nothing fits."""

    name: str
    marks: str
    """Where no token begins."""
    atom: str
    """Between + and *; {leaves} stands for the names of all kernels."""
    call: str
    """Before a parenthesis; {names} stands for those of all calls."""
    column: str
    advice: str


class Token(NamedTuple):
    """A piece of the text: its kind (a group of the pattern, or "end"), its characters, where it starts."""

    kind: str
    text: str
    start: int

    def is_mark(self, *marks: str) -> bool:
        return self.kind == "mark" and self.text in marks


def excerpt(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def number(text: str) -> float:
    """As Python reads it; an integer too large for a float is infinite, which a kernel then refuses by name."""
    value = float(text)
    return int(text) if INTEGER.fullmatch(text) and isfinite(value) else value


class Reader:
    """Tokens with as many of them in view as are asked for; each is cut when it is.

    So a text is refused long before it has become large.
    """

    def __init__(self, text: str, voice: Voice) -> None:
        self._text, self._voice = text, voice
        self._rest = self._tokens()
        self._ahead: deque[Token] = deque()
        self._seen = next(self._rest)
        """The token in view."""

    def _tokens(self) -> Iterator[Token]:
        """The pieces from left to right without the spaces between them, and an "end" that is never passed."""
        start, text = 0, self._text
        while start < len(text):
            match = _TOKEN.match(text, start)
            if match is None and text[start] in _STRINGS:
                rest = text[start : start + 400].splitlines()[0]
                raise self.error(start, f"a closing {text[start]}", f"none after {excerpt(rest)}")
            if match is None:
                raise self.error(start, self._voice.marks, repr(text[start]))
            if match.lastgroup != "space":
                yield Token(str(match.lastgroup), match[0], start)
            start = match.end()
        yield Token("end", "", start)

    def error(self, start: int, expected: str, found: str, advice: str | None = None) -> ValueError:
        place = f"{self._voice.name}: at character {start + 1}"
        return ValueError(f"{place}, {expected} was expected, found {found}; {advice or self._voice.advice}")

    @contextmanager
    def refused_at(self, start: int) -> Iterator[None]:
        """What a kernel says of its parts, with the place in the text."""
        try:
            yield
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self._voice.name}: at character {start + 1}, {error}") from error

    def unquoted(self, token: Token) -> str:
        """The name that a text in quotes stands for, with the escapes that ``repr`` writes; in backticks as it is."""
        if token.text[0] == "`":
            return token.text[1:-1].replace("``", "`")

        def character(match: re.Match[str]) -> str:
            code = match[1] or match[2] or match[3]
            if code is None and match[4] not in _ESCAPED:
                place = token.start + 1 + match.start()
                expected = "an escape that repr writes (\\\\ \\' \\\" \\n \\r \\t \\x \\u \\U)"
                raise self.error(place, expected, match[0])
            return chr(int(code, 16)) if code else _ESCAPED[match[4]]

        return _ESCAPE.sub(character, token.text[1:-1])

    def _peek(self, places: int) -> Token:
        """A token so many places behind the one in view; the end is followed by itself."""
        if places == 0:
            return self._seen
        while len(self._ahead) < places:
            self._ahead.append(next(self._rest, None) or (self._ahead[-1] if self._ahead else self._seen))
        return self._ahead[places - 1]

    @property
    def _after(self) -> Token:
        """The token behind the one in view."""
        return self._peek(1)

    def _next(self) -> Token:
        """The token in view, which is passed; the end never is."""
        token = self._seen
        if token.kind != "end":
            self._seen = self._ahead.popleft() if self._ahead else next(self._rest)
        return token

    def _skipped(self, mark: str) -> bool:
        """Whether ``mark`` was in view, and is passed."""
        found = self._seen.text == mark and self._seen.kind == "mark"
        if found:
            self._next()
        return found

    def _expect(self, mark: str, expected: str) -> None:
        if not self._skipped(mark):
            raise self._unexpected(expected)

    def _unexpected(self, expected: str, why: str = "", advice: str | None = None) -> ValueError:
        """The sentence about the token in view; ``why`` it is not what it looks like."""
        token = self._seen
        mark = "-" if token.kind == "number" and token.text[0] == "-" and expected[0] == "+" else token.text
        if mark in _OF_R and token.kind in ("mark", "number") and not why:  # x -1 is x - 1
            return self.error(token.start, self._voice.marks, f"{mark!r}, {_OF_R[mark]}")
        found = "the end" if token.kind == "end" else excerpt(" ".join(token.text.split()))
        return self.error(token.start, expected, f"{found}, {why}" if why else found, advice)
