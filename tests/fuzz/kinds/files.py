"""Saved models and statistics with numbers that somebody changed, and the checksum made right: ``mutated_files``."""

import atexit
import importlib
import importlib.util
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.findings import Finding, Outcome
from fuzz.kinds.base import Effort, Kind

_NAME = "files"
_MUTATOR = "fuzz.mutated_files"
_AT_ONCE = 20  # files of a case, since one takes a few milliseconds


@cache
def _originals() -> tuple[Any, Path, dict[str, tuple[Path, Any]]]:
    """The mutator, a folder, and small files of many kinds in it: made once per process."""
    mutator, kept = importlib.import_module(_MUTATOR), tempfile.TemporaryDirectory()
    atexit.register(kept.cleanup)
    folder = Path(kept.name)
    return mutator, folder, mutator.written(folder)


def attempt(seed: int, effort: Effort) -> Outcome:
    mutator, folder, files = _originals()
    seeds = range(seed * _AT_ONCE, (seed + 1) * _AT_ONCE)
    for number, changed, wrong in mutator.complaints(files, seeds, folder / "mutated.vff"):
        return Outcome(Finding("a changed file is refused or answers", f"{changed}: {wrong} (mutation {number})"))
    return Outcome(None, {"files": _AT_ONCE})


KIND = Kind(_NAME, "files whose numbers were changed, with the right checksum", attempt, share=1.0)
AVAILABLE = importlib.util.find_spec(_MUTATOR) is not None
