"""The state of a pass on the disk, so that a process which dies takes nothing with it.

State is kept at the end of a chunk, and numbers go on from where they were: a pass that is interrupted any number of
times adds the same numbers in the same order, and ends with the same bits.
"""

import glob
import re
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from vff.storage import Codec, FileError, read_file, write_file

T = TypeVar("T")
_KIND = "checkpoint"
_INTERVAL = 5.0  # seconds between states that are written
_CODEC = Codec("vff")
_HALF_WRITTEN = re.compile("[0-9a-f]{12}")  # what the name of a file ends in until all of it is written


@dataclass(frozen=True)
class PartRecord:
    """What was read of one part."""

    name: str
    fingerprint: str
    rows: int = 0
    dropped: int = 0
    chunks: int = 0
    skipped: bool = False


@dataclass(frozen=True)
class Standing(Generic[T]):
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
        return tuple(part.name for part in self.done if part.skipped)

    @property
    def _counted(self) -> tuple[PartRecord, ...]:
        parts = tuple(part for part in self.done if not part.skipped)
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

    @classmethod
    def at(cls, path: str, identity: str) -> "Checkpoint":
        """The state that an earlier run left, or none."""
        checkpoint = cls(Path(path), identity)
        if checkpoint.path.exists():
            record = read_file(checkpoint.path, (_KIND,)).record
            if not isinstance(record, dict) or not isinstance(record.get("phases"), dict):
                raise FileError(
                    f"{path}: the phases of a pass were expected, found none; delete the file to begin anew"
                )
            if record.get("identity") != identity:
                raise ValueError(
                    f"the checkpoint {path} belongs to another fit ({record.get('identity')}) than this one "
                    f"({identity}); delete it to begin anew, or name another"
                )
            checkpoint._phases = record["phases"]
        return checkpoint

    def standing(self, phase: str, kind: Any) -> Standing:
        """Where the pass of this name was left; ``kind`` is the type of its sums."""
        found = self._phases.get(phase)
        if found is None:
            return Standing()
        parts = _CODEC.decode(found["parts"], Parts)
        committed, pending = (
            None if found[name] is None else _CODEC.decode(found[name], kind) for name in ("committed", "pending")
        )
        return Standing(parts.done, parts.current, committed, pending, parts.complete)

    def note(self, phase: str, kind: Any, standing: Standing) -> None:
        """Keep the state; on the disk when the last one there is old, or when the pass is complete."""
        self._latest = phase, kind, standing
        self._behind = True
        if standing.complete or time.monotonic() - self._written > _INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Write what is not yet written. A disk that is full leaves the old state as it is, and the pass goes on."""
        if not self._behind:
            return
        phase, kind, standing = self._latest
        parts = Parts(standing.done, standing.current, standing.complete)
        sums = {"committed": standing.committed, "pending": standing.pending}
        self._phases[phase] = {"parts": _CODEC.encode(parts, Parts)} | {
            name: None if value is None else _CODEC.encode(value, kind) for name, value in sums.items()
        }
        self._behind = False
        try:
            write_file(self.path, _KIND, {"identity": self.identity, "phases": self._phases})
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error.strerror or error}); the state before it is "
                "still there, and the pass goes on",
                stacklevel=2,
            )
        self._written = time.monotonic()  # a slow disk gets its rest, too

    def remove(self) -> None:
        """The work is done. Files that runs were writing when they died go, too."""
        for one in self.path.parent.glob(f".{glob.escape(self.path.name)}.*"):
            if _HALF_WRITTEN.fullmatch(one.name.removeprefix(f".{self.path.name}.")):
                one.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Parts:
    """What of a standing is not sums."""

    done: tuple[PartRecord, ...]
    current: PartRecord | None
    complete: bool
