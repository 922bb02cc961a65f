"""One pass over the rows of a source: a task is asked of every chunk, and its answers are merged.

A part counts when it was read to its end. Until then its answers are apart from the others, so that one which turns out
to be damaged can be left out, with nothing of it half counted.
"""

import queue
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from vff.data.checkpoint import Checkpoint, PartRecord, PassState
from vff.data.frames import column_names, selected
from vff.data.missing import handled
from vff.data.source import Chunk, Part, Progress, Source, SourceError

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


def in_order(source: Source, phase: str) -> Iterator[Chunk]:
    """All chunks, one after another, with progress after each.

    A part that turns out to be damaged counts not at all: where it is to be left out, it is read to its end before the
    first of its rows is handed on, and then again, so that memory stays flat.
    """
    meter = _ProgressMeter(source, phase, 0)
    for part in source.parts():
        if source.handling.faulty == "skip":
            try:
                for _ in part.chunks():
                    pass
            except SourceError as error:
                warnings.warn(f"left out: {error}", FaultyPartWarning, stacklevel=2)
                continue
        with closing(_ahead(part.chunks()) if source.ahead else _plainly(part.chunks())) as found:
            for one in found:
                chunk = _complete(one, source)
                yield chunk
                meter.update(part, chunk)
        meter.finished(part)


def _complete(chunk: Chunk, source: Source) -> Chunk:
    """A chunk with the columns that are asked for and no others, handled as asked, if its part has not seen to that."""
    if chunk.n_rows is not None:
        return chunk
    names = source.names
    if names is not None and column_names(chunk.data) != names:
        chunk = replace(chunk, data=selected(chunk.data, names))
    return handled(chunk, source.handling)


def read_through(
    source: Source, task: Task[T], checkpoint: Checkpoint | None = None, without: tuple[str, ...] = ()
) -> PassState[T]:
    """All answers merged; parts named in ``without`` are not asked."""
    state: PassState[T] = PassState() if checkpoint is None else checkpoint.state(task.phase, task.kind)
    _check_skipped(source, state)
    if state.complete:
        check_unchanged(source, state, without)
        return state
    work = _Pass(source, task, state, checkpoint)
    try:
        work.read_all(state, without)
    except BaseException:
        if checkpoint is not None:
            with suppress(Exception):  # what went wrong first is what is to be told
                checkpoint.flush()
        raise
    state = replace(work.state(), complete=True)
    if checkpoint is not None:
        checkpoint.note(task.phase, task.kind, lambda: state, complete=True)
    return state


def _check_skipped(source: Source, state: PassState[T]) -> None:
    """Refuse to go on without parts that an earlier run left out, when nobody asks for that any more."""
    if state.skipped and source.handling.faulty == "refuse":
        raise ValueError(
            f"{state.skipped[0]} was left out by the run that the checkpoint is of, as asked then; go on with "
            "faulty='skip', or delete the checkpoint to begin anew"
        )


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
                _check_same(left.pop(part.name), part)
                self.meter.finished(part)
                continue
            self._read(part)
        _check_none_gone({**left, **begun})

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
            if self.source.handling.faulty != "skip":
                raise
            warnings.warn(f"left out: {error}", FaultyPartWarning, stacklevel=2)
            self._done.append(PartRecord(part.name, mark, skipped=True))
            self._become(replace(rest, current=None, pending=None))
            return
        self.meter.finished(part)
        assert rest.current is not None
        committed = _merged(self.task, rest.committed, rest.pending)
        self._done.append(rest.current)
        self._become(replace(rest, current=None, pending=None, committed=committed))

    def _read_chunks(self, part: Part, rest: PassState[T]) -> PassState[T]:
        assert rest.current is not None
        ready = rest.current.chunks
        with closing(_ahead(part.chunks()) if self.source.ahead else _plainly(part.chunks())) as chunks:
            for number, found in enumerate(chunks):
                if number < ready:  # an earlier run had it
                    continue
                chunk = _complete(found, self.source)
                rest = _taken(rest, self.task, chunk)
                self.meter.update(part, chunk)
                self._become(rest)
                if self.checkpoint is not None:
                    self.checkpoint.note(self.task.phase, self.task.kind, self.state)
        return rest


def _taken(state: PassState[T], task: Task[T], chunk: Chunk) -> PassState[T]:
    """With one more chunk of the current part."""
    current = state.current
    assert current is not None
    record = replace(
        current, rows=current.rows + chunk.n_rows, dropped=current.dropped + chunk.dropped, chunks=current.chunks + 1
    )
    answer = run_task(task, chunk) if chunk.n_rows else None
    return replace(state, current=record, pending=_merged(task, state.pending, answer))


def _merged(task: Task[T], one: T | None, other: T | None) -> T | None:
    return other if one is None else one if other is None else task.merge(one, other)


def run_task(task: Task[T], chunk: Chunk) -> T:
    """The answer of a chunk; a refusal says which rows it is about."""
    try:
        return task(chunk)
    except (ValueError, TypeError) as error:
        if not chunk.where:  # all rows: there is nothing to tell apart
            raise
        renamed = with_place(error, chunk.where)
        if renamed is error:  # an exception that were its own cause would never end
            raise
        raise renamed from error


def with_place(error: Exception, place: str) -> Exception:
    """The same exception with its place in front, or in a note where it is not made of a text alone."""
    try:
        return type(error)(f"{place}: {error}")
    except Exception:
        error.add_note(f"in {place}")
        return error


def check_unchanged(source: Source, state: PassState, without: tuple[str, ...] = ()) -> None:
    """Refuse parts that are not as they were when they were counted."""
    left = {part.name: part for part in state.done}
    for part in source.parts():
        if part.name in without:
            continue
        if part.name not in left:
            raise ValueError(f"{part.name} came after the checkpoint was complete; delete the checkpoint to begin anew")
        _check_same(left.pop(part.name), part)
    _check_none_gone(left)


def _check_none_gone(left: Mapping[str, PartRecord]) -> None:
    for part in left.values():
        if not part.skipped:
            raise ValueError(
                f"{part.name} is in the sums that the checkpoint has, and no longer among the rows; bring it back, or "
                "delete the checkpoint to begin anew"
            )


def check_same_rows(first: PassState, later: PassState) -> None:
    """Refuse what was settled by other rows than those that were summed."""
    before = {part.name: part for part in first.done if not part.skipped}
    for part in later.done:
        if part != before.pop(part.name, None):
            raise ValueError(f"{part.name} changed after the first pass over the rows; wait until it is written")
    if before:
        raise ValueError(f"{next(iter(before))} was there in the first pass over the rows, and is gone; bring it back")


def _check_same(record: PartRecord, part: Part) -> None:
    if not record.skipped and part.fingerprint() != record.fingerprint:
        raise ValueError(
            f"{part.name} is not what it was when its rows were summed, as the checkpoint has it; delete the "
            "checkpoint to begin anew"
        )


class _ProgressMeter:
    """Tells how far a pass has come."""

    def __init__(self, source: Source, phase: str, resumed: int):
        self.report, self.phase, self.n_rows = source.handling.report, phase, source.n_rows
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


_END = object()


def _plainly(chunks: Iterator[Chunk]) -> Generator[Chunk]:
    yield from chunks


def _ahead(chunks: Iterator[Chunk]) -> Generator[Chunk]:
    """The same chunks, the next one being read while the last is worked on."""
    box: queue.Queue[Any] = queue.Queue(maxsize=1)
    stop = threading.Event()

    def read() -> None:
        try:
            for chunk in chunks:
                if stop.is_set():
                    return
                box.put(chunk)
            box.put(_END)
        except BaseException as error:  # raised where the chunks are wanted
            box.put(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (found := box.get()) is not _END:
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        stop.set()
        while reader.is_alive():  # it may wait for room
            try:
                box.get(timeout=0.05)
            except queue.Empty:
                continue
        reader.join()
