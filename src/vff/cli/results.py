"""What a command gives back, and files that are complete or not there at all."""

import glob
import json
import math
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vff.cli.failures import OutputError, UsageError


@dataclass(frozen=True)
class Result:
    """The answer of a command, for programs and for people."""

    record: dict[str, Any] = field(default_factory=dict)
    """What ``--json`` prints."""
    text: str = ""
    """What is printed otherwise."""


def as_json(record: Mapping[str, Any]) -> str:
    """One JSON object; numbers that JSON does not have become null."""
    return json.dumps(_plain(record), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def check_output(out: str, inputs: Sequence[str], endings: Sequence[str], *, force: bool) -> Path:
    """Refuse, before any work is done, an output that cannot be or must not be written."""
    path = Path(out)
    if path.suffix.lower() not in endings:
        raise UsageError(f"--out must end in {' or '.join(endings)}, found {out}; the ending says what is written")
    if path.is_dir() or not path.absolute().parent.is_dir():
        found = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise OutputError(f"--out was expected to name a file that can be written, and {out} {found}; name another")
    if path.exists() and any(_holds(name, path) for name in inputs):
        raise UsageError(f"--out {out} is one of the inputs, which are never overwritten; name another file")
    if path.exists() and not force:
        raise OutputError(f"--out {out} exists already; name another file, or give --force to replace it")
    _check_writable(path)
    return path


def check_checkpoint(options: Namespace) -> None:
    """Refuse a checkpoint in the place of another file of the command, or where none can be written."""
    if getattr(options, "checkpoint", None) is None:
        return
    path = Path(options.checkpoint)
    others = [*options.data, *([options.model] if "model" in options else [])]
    if path.absolute() == Path(options.out).absolute() or any(_holds(name, path) for name in others):
        raise UsageError(f"--checkpoint {path} is another file of this command; give it a name of its own")
    _check_writable(path)


def _check_writable(path: Path) -> None:
    from vff.storage import check_writable  # here, because help needs no NumPy

    check_writable(path)


def _holds(name: str, path: Path) -> bool:
    """Whether an input is this file, or a folder or a pattern that holds it."""
    for found in glob.glob(name, recursive=True) or [name]:
        with suppress(OSError):
            if os.path.samefile(found, path) or (
                os.path.isdir(found) and Path(found).resolve() in path.resolve().parents
            ):
                return True
    return False


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes ``path`` at the end, or nothing when something fails."""
    draft = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:
        from vff.storage import is_full, unwritable

        if is_full(error) or draft.name in str(error):  # and not one of the files that are read meanwhile
            raise unwritable(path, error) from error
        raise
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
