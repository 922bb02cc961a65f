"""Lines of progress of a fit: what a pass will take, and how far it has come."""

import time
from collections.abc import Callable
from typing import Any

from vff.data import Progress
from vff.inference import NO_LEVELS, Exchangeable, memory_needed
from vff.moments import MomentRequest

_PATIENCE = 2.0  # seconds between lines of progress


def _paced(line: Callable[[Any], str], progress: Callable[[str], None]) -> Callable[[Any], None]:
    """A line of progress every two seconds or so."""
    last = time.perf_counter()

    def report(done: Any) -> None:
        nonlocal last
        if time.perf_counter() - last > _PATIENCE:
            last = time.perf_counter()
            progress(line(done))

    return report


def lines_of_rows(n: int, progress: Callable[[str], None]) -> Callable[[int], None]:
    """Of a table in memory."""
    started = time.perf_counter()
    return _paced(
        lambda done: f"{done:,} of {n:,} rows, {done / (time.perf_counter() - started):,.0f} rows/s", progress
    )


def lines_of_pass(progress: Callable[[str], None]) -> Callable[[Progress], None]:
    """Of a source that is read chunk by chunk."""

    def line(done: Progress) -> str:
        rate = (done.rows - done.resumed) / max(done.seconds, 1e-9)
        left = "" if done.n_rows is None else f" of {done.n_rows:,}"
        ahead = "" if not done.n_rows or not rate else f", {(done.n_rows - done.rows) / rate:,.0f} s left"
        return f"{done.phase}: {done.rows:,}{left} rows, {rate:,.0f} rows/s{ahead}; {done.part}"

    return _paced(line, progress)


def plan_text(request: MomentRequest, n: int, exchangeable: Exchangeable = NO_LEVELS) -> str:
    """What a pass will take."""
    needed = memory_needed(request, exchangeable, n) / 2**20
    return f"{n:,} rows to sum for at most {request.size} features; at most {needed:,.0f} MiB are needed for them"
