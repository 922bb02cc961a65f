"""How far a long command has come, on standard error: a line that changes on a terminal, lines now and then elsewhere.

A thread does the talking, so that a phase that reports nothing, as learning does, is still seen to be alive.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from vff.data.source import Progress

_PATIENCE = 2.0  # seconds without a word
_EVERY = {True: 0.2, False: 5.0}  # seconds between lines, on a terminal and elsewhere
_LEARNING = 3.0  # seconds after the last rows
_BAR = 24


class Reporter:
    """Takes ``Progress`` records; says nothing in the first two seconds, or when ``quiet``.

    ``then`` is what is done with rows that were read.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None, then: str = "learning from") -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._quiet = quiet
        self._then = then
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._latest: Progress | None = None
        self._heard = self._began
        self._phase = "reading"
        self._shown = False

    def __enter__(self) -> Self:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._terminal and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, progress: Progress) -> None:
        self._latest, self._heard = progress, time.monotonic()

    def phase(self, name: str) -> None:
        """What is being done where no rows are counted."""
        self._phase, self._latest, self._heard = name, None, time.monotonic()

    def _talk(self) -> None:
        wait, line = _PATIENCE, ""
        while not self._over.wait(wait):
            wait = _EVERY[self._terminal]
            line, before = self.line(), line
            if line == before and not self._terminal:
                continue
            self._stream.write(f"\r{line}\x1b[K" if self._terminal else f"vff: {line}\n")
            self._stream.flush()
            self._shown = True

    def line(self) -> str:
        """The state of things in at most one line."""
        latest, now = self._latest, time.monotonic()
        if latest is None:
            return f"{self._phase}, {duration(now - self._heard)}"
        text = describe(latest, bar=self._terminal)
        if latest.share is not None and latest.share < 1.0:
            return text
        # bytes are read ahead of rows, and what comes after the last row reports nothing
        if now - self._heard > _LEARNING:
            return f"{self._then} {latest.rows:,} rows, {duration(now - self._began)} so far"
        return f"{text}, {duration(now - self._began)} so far"


def describe(progress: Progress, *, bar: bool) -> str:
    """Phase, rows, rows per second and the time left."""
    parts = [f"{progress.rows:,}" + (f" of {progress.n_rows:,} rows" if progress.n_rows else " rows")]
    new = progress.rows - progress.resumed
    if progress.seconds > 0 and new > 0:
        parts.append(f"{new / progress.seconds:,.0f} rows/s")
    left = _seconds_left(progress)
    if left is not None:
        parts.append(f"{duration(left)} left")
    drawn = ""
    if bar and progress.share is not None:
        filled = round(_BAR * min(max(progress.share, 0.0), 1.0))
        drawn = f" [{'#' * filled}{'.' * (_BAR - filled)}]"
    return f"{progress.phase}{drawn} {', '.join(parts)}"


def _seconds_left(progress: Progress) -> float | None:
    """By the share that this run has done; rows of an earlier run cost nothing."""
    share = progress.share
    if share is None or not 0.0 < share < 1.0 or progress.rows <= 0:
        return None
    done = share * (1.0 - progress.resumed / progress.rows)
    return progress.seconds * (1.0 - share) / done if done > 0.0 else None


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
