"""The state of a pass on the disk, so that a process which dies takes nothing with it.

State is kept at the end of a chunk, and numbers go on from where they were: a pass that is interrupted any number of
times adds the same numbers in the same order, and ends with the same bits.
"""

import glob
import json
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from vff.storage import Codec, FileError, check_writable, read_file, write_file
from vff.words import shortened

T = TypeVar("T")
_KIND = "checkpoint"
_INTERVAL = 5.0  # seconds between states that are written
_CODEC = Codec("vff")
_DELETE = "delete the file to begin anew"
_NAME_ANOTHER = "name another file for the checkpoint, or delete this one"
_LONG = 400  # characters that describe a fit
_HALF_WRITTEN = re.compile("[0-9a-f]{12}")  # what the name of a file ends in until all of it is written


class PartRecord(NamedTuple):
    """What was read of one part."""

    name: str
    fingerprint: str
    rows: int = 0
    dropped: int = 0
    chunks: int = 0
    fault: str = ""
    """Why it was left out, if it was."""


@dataclass(frozen=True)
class PassState(Generic[T]):
    """How far a pass has come."""

    done: tuple[PartRecord, ...] = ()
    current: PartRecord | None = None
    """The part that is being read."""
    committed: T | None = None
    """Of the parts that are done."""
    pending: T | None = None
    """Of the chunks of the current one."""
    complete: bool = False

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self._counted)

    @property
    def dropped(self) -> int:
        """Rows that were left out, as asked, because something in them is missing."""
        return sum(part.dropped for part in self._counted)

    @property
    def skipped(self) -> tuple[str, ...]:
        """Parts that were left out, as asked, because they cannot be read."""
        return tuple(part.name for part in self.done if part.fault)

    @property
    def _counted(self) -> tuple[PartRecord, ...]:
        parts = tuple(part for part in self.done if not part.fault)
        return parts if self.current is None else (*parts, self.current)


@dataclass
class Checkpoint:
    """A file with the state of every pass of one fit."""

    path: Path
    identity: str
    """What is being done, in writing: the state of another fit is of no use."""
    _phases: dict[str, Any] = field(default_factory=dict)
    _written: float = field(default_factory=time.monotonic)
    _behind: bool = False
    _refused: bool = False
    """Whether the state is such that no file can hold it."""

    @classmethod
    def at(cls, path: str, identity: str) -> "Checkpoint":
        """The state that an earlier run left, or none."""
        checkpoint = cls(Path(path), identity)
        if checkpoint.path.exists():
            record = read_file(checkpoint.path, (_KIND,), damaged=_DELETE, foreign=_NAME_ANOTHER).record
            if not isinstance(record, dict) or not isinstance(record.get("phases"), dict):
                raise FileError(f"{path}: the phases of a pass were expected, found none; {_DELETE}")
            if record.get("identity") != identity:
                raise ValueError(
                    f"the checkpoint {path} belongs to another fit ({shortened(record.get('identity'), _LONG)}) than "
                    f"this one ({shortened(identity, _LONG)}); delete it to begin anew, or name another"
                )
            checkpoint._phases = record["phases"]
        check_writable(path)  # now, and not after hours
        return checkpoint

    def state(self, phase: str, kind: Any) -> PassState:
        """Where the pass of this name was left; ``kind`` is the type of its sums."""
        found = self._phases.get(phase)
        if found is None:
            return PassState()
        try:
            complete, current, *done = json.loads(found["parts"].tobytes())
            committed, pending = (
                None if found[name] is None else _CODEC.decode(found[name], kind) for name in ("committed", "pending")
            )
            current = None if current is None else _record(current)
            return PassState(tuple(map(_record, done)), current, committed, pending, bool(complete))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise FileError(
                f"{self.path}: the state of a pass was expected, found one that makes no sense ({error}); {_DELETE}"
            ) from error

    def note(self, phase: str, kind: Any, state: Callable[[], PassState], *, complete: bool = False) -> None:
        """Keep the state; on the disk when the last one there is old, or when the pass is complete.

        ``state`` is asked for when it is written, since a state of many parts takes a while to make.
        """
        self._latest = phase, kind, state
        self._behind = True
        if complete or time.monotonic() - self._written > _INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Write what is not yet written. What cannot be written leaves the old state as it is, and the pass goes on."""
        if not self._behind or self._refused:
            return
        self._behind = False
        try:
            self._write(*self._latest)
        except (OSError, FileError) as error:
            self._refused = isinstance(error, FileError)  # and would be again
            why = getattr(error.__cause__ or error, "strerror", None) or error
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({why}); the state before it is still there, and the "
                "pass goes on",
                stacklevel=2,
            )
        self._written = time.monotonic()  # a slow disk gets its rest, too

    def _write(self, phase: str, kind: Any, state: Callable[[], PassState]) -> None:
        found = state()
        # parts may be many: they are kept in one text, not as a record each
        parts = json.dumps([found.complete, found.current, *found.done]).encode("ascii")
        sums = {"committed": found.committed, "pending": found.pending}
        self._phases[phase] = {"parts": np.frombuffer(parts, np.uint8)} | {
            name: None if value is None else _CODEC.encode(value, kind) for name, value in sums.items()
        }
        write_file(self.path, _KIND, {"identity": self.identity, "phases": self._phases}, private=True)

    def remove(self) -> None:
        """The work is done. Files that runs were writing when they died go, too."""
        for one in self.path.parent.glob(f".{glob.escape(self.path.name)}.*"):
            if _HALF_WRITTEN.fullmatch(one.name.removeprefix(f".{self.path.name}.")):
                one.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def _record(values: list[Any]) -> PartRecord:
    record = PartRecord(*values)
    if list(map(type, record)) != [str, str, int, int, int, str]:
        raise TypeError("a part is described by two texts, three numbers and a text")
    return record
