"""One pass over the rows of a source: a task is asked of every chunk, and its answers are merged.

A part counts when it was read to its end. Until then its answers are apart from the others, so that one which turns out
to be damaged can be left out, with nothing of it half counted.
"""

import re
import time
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from vff.data.checkpoint import Checkpoint, PartRecord, PassState
from vff.data.frames import column_names, selected
from vff.data.source import Chunk, Part, Progress, Source, SourceError

_ROW = re.compile(r"(\b(?:in|at) row )(\d+)\b")

T = TypeVar("T")


class Task(Protocol[T]):
    """What is asked of the rows. Tasks travel to other machines: they hold what they need, and little else."""

    phase: ClassVar[str]
    """What is being done, for people."""
    kind: ClassVar[Any]
    """The type of its answers."""

    def __call__(self, chunk: Chunk) -> T: ...

    def merge(self, one: T, other: T) -> T: ...


class FaultyPartWarning(UserWarning):
    """A part was left out, as asked."""


def in_order(source: Source) -> Generator[Chunk]:
    """All chunks, one after another, with progress after each.

    A part that turns out to be damaged counts not at all: where it is to be left out, it is read to its end before the
    first of its rows is handed on, and then again, so that memory stays flat.
    """
    meter = _ProgressMeter(source, "predicting", 0)
    for part in source.parts():
        if source.options.faulty == "skip":
            try:
                for _ in part.chunks():
                    pass
            except SourceError as error:
                warnings.warn(f"left out: {error}", FaultyPartWarning, stacklevel=2)
                continue
        with closing(_chunks_of(part, source)) as chunks:
            for chunk in chunks:
                yield chunk
                meter.update(part, chunk)
        meter.finished(part)


def _chunks_of(part: Part, source: Source) -> Generator[Chunk]:
    """All chunks of a part, complete; where that may be, the next is read while the last is worked on."""
    chunks = (_complete(chunk, source) for chunk in part.chunks())
    if not source.ahead:
        yield from chunks
        return
    with ThreadPoolExecutor(1) as reader:
        found = reader.submit(next, chunks, None)
        while (chunk := found.result()) is not None:
            found = reader.submit(next, chunks, None)
            yield chunk


def _complete(chunk: Chunk, source: Source) -> Chunk:
    """A chunk with the columns that are asked for and no others, handled as asked, if its part has not seen to that."""
    if chunk.n_rows is not None:
        return chunk
    names = source.names
    if names is not None and column_names(chunk.data) != names:
        chunk = replace(chunk, data=selected(chunk.data, names))
    return chunk.counted(source.options)


def read_through(
    source: Source, task: Task[T], checkpoint: Checkpoint | None = None, without: tuple[str, ...] = ()
) -> PassState[T]:
    """All answers merged; parts named in ``without`` are not asked."""
    before: PassState[T] = PassState() if checkpoint is None else checkpoint.state(task.phase, task.kind)
    if before.skipped and source.options.faulty == "refuse":
        raise ValueError(
            f"{before.skipped[0]} was left out by the run that the checkpoint is of, as asked then; go on with "
            "faulty='skip', or delete the checkpoint to begin anew"
        )
    work = _Pass(source, task, before, checkpoint)
    try:
        work.read_all(before, without)
    except BaseException:
        if checkpoint is not None:
            with suppress(Exception):  # what went wrong first is what is to be told
                checkpoint.flush()
        raise
    state = replace(work.state(), complete=True)
    if checkpoint is not None and not before.complete:
        checkpoint.note(task.phase, task.kind, lambda: state, complete=True)
    return state


class _Pass(Generic[T]):
    """A pass on its way. Parts that are done are in a list, since a tuple that grows by one is made anew every time."""

    def __init__(self, source: Source, task: Task[T], state: PassState[T], checkpoint: Checkpoint | None) -> None:
        self.source, self.task, self.checkpoint = source, task, checkpoint
        self.meter = _ProgressMeter(source, task.phase, state.rows)
        self._done = list(state.done)
        self._state = len(self._done), replace(state, done=())

    def state(self) -> PassState[T]:
        """As it is at the end of the last chunk or part."""
        n, rest = self._state
        return replace(rest, done=tuple(self._done[:n]))

    def _become(self, rest: PassState[T]) -> None:
        """In one step, so that an interrupt finds the state before or the state after."""
        self._state = len(self._done), rest

    def read_all(self, before: PassState[T], without: tuple[str, ...]) -> None:
        """All parts that an earlier run has not read; what it has read must still be there."""
        left = {part.name: part for part in before.done}
        begun = {} if before.current is None else {before.current.name: before.current}
        for part in self.source.parts():
            begun.pop(part.name, None)
            if part.name in without:
                continue
            if part.name in left:
                record = left.pop(part.name)
                if not record.fault and part.fingerprint() != record.fingerprint:
                    raise ValueError(
                        f"{part.name} is not what it was when its rows were summed, as the checkpoint has it; delete "
                        "the checkpoint to begin anew"
                    )
                self.meter.finished(part)
            elif before.complete:
                raise ValueError(
                    f"{part.name} came after the checkpoint was complete; delete the checkpoint to begin anew"
                )
            else:
                self._read(part)
        for gone in (*left.values(), *begun.values()):
            if not gone.fault:
                raise ValueError(
                    f"{gone.name} is in the sums that the checkpoint has, and no longer among the rows; bring it back, "
                    "or delete the checkpoint to begin anew"
                )

    def _read(self, part: Part) -> None:
        """One part, done or left out."""
        mark, rest = part.fingerprint(), self._state[1]
        if rest.current is None or (rest.current.name, rest.current.fingerprint) != (part.name, mark):
            rest = replace(rest, current=PartRecord(part.name, mark), pending=None)
        try:
            rest = self._read_chunks(part, rest)
            if part.fingerprint() != mark:
                raise SourceError(f"{part.name} changed while it was read; wait until it is written, and start again")
        except SourceError as error:
            if self.source.options.faulty != "skip":
                raise
            warnings.warn(f"left out: {error}", FaultyPartWarning, stacklevel=2)
            self._done.append(PartRecord(part.name, mark, fault=str(error) or repr(error)))
            self._become(replace(rest, current=None, pending=None))
            return
        self.meter.finished(part)
        assert rest.current is not None
        committed = merged(self.task, rest.committed, rest.pending)
        self._done.append(rest.current)
        self._become(replace(rest, current=None, pending=None, committed=committed))

    def _read_chunks(self, part: Part, rest: PassState[T]) -> PassState[T]:
        assert rest.current is not None
        record, ready = rest.current, rest.current.chunks
        with closing(_chunks_of(part, self.source)) as chunks:
            for number, chunk in enumerate(chunks):
                if number < ready:  # an earlier run had it
                    continue
                rows, dropped = record.rows + chunk.n_rows, record.dropped + chunk.dropped
                record = record._replace(rows=rows, dropped=dropped, chunks=record.chunks + 1)
                answer = run_task(self.task, chunk) if chunk.n_rows else None
                rest = replace(rest, current=record, pending=merged(self.task, rest.pending, answer))
                self.meter.update(part, chunk)
                self._become(rest)
                if self.checkpoint is not None:
                    self.checkpoint.note(self.task.phase, self.task.kind, self.state)
        return rest


def merged(task: Task[T], one: T | None, other: T | None) -> T | None:
    """Two answers, where there are two."""
    return other if one is None else one if other is None else task.merge(one, other)


def run_task(
    task: Callable[[Chunk], T], chunk: Chunk, refusals: tuple[type[Exception], ...] = (ValueError, TypeError)
) -> T:
    """The answer of a chunk; a refusal says which rows it is about, in a note where it is not made of a text alone."""
    try:
        return task(chunk)
    except refusals as error:
        if not chunk.where:  # all rows: there is nothing to tell apart
            raise
        try:
            renamed = type(error)(f"{chunk.where}: {_in_part(str(error), chunk.first)}")
        except Exception:
            renamed = None
        if renamed is None:
            error.add_note(f"in {chunk.where}")
            raise
        raise renamed from error


def _in_part(sentence: str, first: int | None) -> str:
    """A sentence about rows of a chunk, with the numbers that these have in its part."""
    return _ROW.sub(lambda found: f"{found[1]}{int(found[2]) + first:,}", sentence) if first else sentence


def check_same_rows(first: PassState, later: PassState) -> None:
    """Refuse what was settled by other rows than those that were summed."""
    before = {part.name: part for part in first.done if not part.fault}
    for part in later.done:
        if part != before.pop(part.name, None):
            raise ValueError(f"{part.name} changed after the first pass over the rows; wait until it is written")
    if before:
        raise ValueError(f"{next(iter(before))} was there in the first pass over the rows, and is gone; bring it back")


class _ProgressMeter:
    """Tells how far a pass has come."""

    def __init__(self, source: Source, phase: str, resumed: int):
        self.report, self.phase, self.n_rows = source.options.report, phase, source.n_rows
        self.started, self.rows, self.resumed, self.bytes_done = time.perf_counter(), resumed, resumed, 0
        self.bytes = self._size(source) if self.report and self.n_rows is None else None

    @staticmethod
    def _size(source: Source) -> int | None:
        """Of all files; parts of other sources are made by asking for them."""
        total = 0
        for part in source.parts() if source.ahead else ():
            if part.size is None:
                return None
            total += part.size
        return total or None

    def update(self, part: Part, chunk: Chunk) -> None:
        self.rows += chunk.n_rows
        if self.report is not None:
            seconds = time.perf_counter() - self.started
            self.report(
                Progress(self.phase, self.rows, self.n_rows, self._share(part, chunk), seconds, part.name, self.resumed)
            )

    def _share(self, part: Part, chunk: Chunk) -> float | None:
        if self.n_rows:
            return min(1.0, self.rows / self.n_rows)
        if not self.bytes or part.size is None or chunk.share_of_part is None:
            return None
        return min(1.0, (self.bytes_done + part.size * chunk.share_of_part) / self.bytes)

    def finished(self, part: Part) -> None:
        self.bytes_done += part.size or 0
