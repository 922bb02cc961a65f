"""The state of a pass: of many parts, of sums that no file can hold, of parts that are gone, and what is told of it."""

import os
import stat
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from vff.data import Checkpoint, Chunk, Part, PartRecord, PassState, ReadOptions, Source, scan
from vff.data import checkpoint as checkpoint_module
from vff.data.passes import run_task
from vff.storage import FileError, read_file, write_file

Total = tuple[int, ...]
Levels = tuple[Any, ...]


class Count:
    phase: ClassVar[str] = "counting"
    kind: ClassVar[Any] = Total

    def __call__(self, chunk: Chunk) -> Total:
        return (chunk.n_rows,)

    def merge(self, one: Total, other: Total) -> Total:
        return (one[0] + other[0],)


class Prices:
    """Answers with values that no file can hold."""

    phase: ClassVar[str] = "looking at prices"
    kind: ClassVar[Any] = Levels

    def __call__(self, chunk: Chunk) -> Levels:
        return (Decimal("1.5"),)

    def merge(self, one: Levels, other: Levels) -> Levels:
        return one


class Piece(Part):
    def __init__(self, name: str, broken: Exception | None = None) -> None:
        self.name, self.size, self.broken = name, 10, broken

    def fingerprint(self) -> str:
        return f"mark of {self.name}, with \x00, \n and [1, 2]"

    def chunks(self) -> Iterator[Chunk]:
        for _ in range(2):
            yield Chunk(self.name, np.ones((3, 1)), n_rows=3)
        if self.broken is not None:
            raise self.broken


class Pieces(Source):
    repeatable = True
    names = None
    n_rows = None

    def __init__(self, parts: list[Piece], **options: Any) -> None:
        self.options, self._parts, self.asked = ReadOptions(**options), parts, 0

    def restricted(self, columns: Any) -> "Pieces":
        return self

    def parts(self) -> Iterator[Part]:
        for part in self._parts:
            self.asked += 1
            yield part


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_module, "_INTERVAL", -1.0)


def test_forty_thousand_parts_are_kept(tmp_path: Path) -> None:
    done = tuple(PartRecord(f"{i}, {{[.csv", f'"{i}" bytes', i, 1, 2, "torn" * (i % 7 == 0)) for i in range(40_000))
    state = PassState(done, PartRecord("now", "here", 3), (5,), (6,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = Checkpoint.at(str(tmp_path / "state"), "mine")
        one.note("counting", Total, lambda: state, complete=True)
    assert Checkpoint.at(str(tmp_path / "state"), "mine").state("counting", Total) == state


def test_a_state_is_for_its_owner_alone(tmp_path: Path) -> None:
    Pieces([Piece("a")]).reduce(Count(), Checkpoint.at(str(tmp_path / "state"), "mine"))
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600


def test_many_parts_take_no_time_each(tmp_path: Path) -> None:
    found = Pieces([Piece(str(i)) for i in range(5000)]).reduce(Count(), Checkpoint.at(str(tmp_path / "state"), ""))
    assert (found.rows, len(found.done), found.committed) == (30_000, 5000, (30_000,))


def test_sums_that_no_file_can_hold_are_told_of_once(tmp_path: Path, always: None) -> None:
    state = Checkpoint.at(str(tmp_path / "state"), "mine")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = Pieces([Piece("a"), Piece("b")]).reduce(Prices(), state)
    assert found.committed == (Decimal("1.5"),)
    assert found.rows == 12
    assert len(told) == 1
    assert "could not be written (a value of type Decimal cannot be written" in str(told[0].message)


@pytest.mark.parametrize("task", [Count(), Prices()])
def test_what_went_wrong_first_is_what_is_told(task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("nothing can be written")

    monkeypatch.setattr(checkpoint_module, "write_file", refuse)
    parts = [Piece("a", ZeroDivisionError("first of all"))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError, match="first of all"):
            Pieces(parts).reduce(task, Checkpoint.at(str(tmp_path / "state"), "mine"))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_part_that_was_begun_and_is_gone_is_missed(place: int, tmp_path: Path) -> None:
    def pieces(broken: int | None) -> list[Piece]:
        return [Piece(name, KeyboardInterrupt() if i == broken else None) for i, name in enumerate("abc")]  # type: ignore[arg-type]

    path = str(tmp_path / "state")
    with pytest.raises(KeyboardInterrupt):
        Pieces(pieces(place)).reduce(Count(), Checkpoint.at(path, ""))
    left = [part for part in pieces(None) if part.name != "abc"[place]]
    with pytest.raises(ValueError, match=f"^{'abc'[place]} is in the sums that the checkpoint has, and no longer"):
        Pieces(left).reduce(Count(), Checkpoint.at(path, ""))
    found = Pieces(pieces(None)).reduce(Count(), Checkpoint.at(path, ""))
    assert (found.rows, found.current, found.pending, found.committed) == (18, None, None, (18,))


@pytest.mark.parametrize(
    "change",
    [
        lambda phase: phase.pop("parts"),
        lambda phase: phase.pop("pending"),
        lambda phase: phase.update(parts=3),
        lambda phase: phase.update(parts=np.zeros(3)),
        lambda phase: phase.update(parts=np.frombuffer(b'[true, null, ["a", "b", 1.5, 0, 1, ""]]', np.uint8)),
        lambda phase: phase.update(parts=np.frombuffer(b'[true, null, ["a", "b", 1, 0, 1, "", 2]]', np.uint8)),
        lambda phase: phase.update(parts=np.frombuffer(b"[1]", np.uint8)),
        lambda phase: phase.update(parts=np.frombuffer(b"\xff", np.uint8)),
        lambda phase: phase.update(committed=7),
    ],
)
def test_a_state_that_makes_no_sense_is_to_be_deleted(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "state"
    Pieces([Piece("a")]).reduce(Count(), Checkpoint.at(str(path), ""))
    record = read_file(path, ("checkpoint",)).record
    change(record["phases"]["counting"])
    write_file(path, "checkpoint", record)
    with pytest.raises(FileError, match=r"state: the state of a pass was expected, .*; delete the file to begin anew$"):
        Pieces([Piece("a")]).reduce(Count(), Checkpoint.at(str(path), ""))


def test_progress_does_not_ask_for_the_rows_once_more() -> None:
    source = Pieces([Piece("a"), Piece("b")], report=lambda progress: None)
    source.reduce(Count())
    assert source.asked == 2
    source.ahead, source.asked = True, 0
    shares: list[float | None] = []
    source.with_options(report=lambda progress: shares.append(progress.share)).reduce(Count())
    assert shares == [None] * 4  # a chunk does not say how much of its part it is
    calls: list[int] = []

    def rows() -> Iterator[Any]:
        calls.append(1)
        yield np.ones((2, 1)), np.ones(2)

    scan(rows, report=lambda progress: None).reduce(Count())
    assert len(calls) == 1


def test_sizes_are_asked_up_to_the_first_that_is_not_known() -> None:
    parts = [Piece("a"), Piece("b"), Piece("c")]
    parts[0].size = None
    source = Pieces(parts, report=lambda progress: None)
    source.ahead = True
    source.reduce(Count())
    assert source.asked == 1 + 3


def test_errors_that_are_not_made_of_a_text_keep_their_kind() -> None:
    class Strict:
        phase: ClassVar[str] = "reading"
        kind: ClassVar[Any] = None

        def __call__(self, chunk: Chunk) -> Any:
            return b"\xff".decode()

        def merge(self, one: Any, other: Any) -> Any:
            return one

    with pytest.raises(UnicodeDecodeError) as caught:
        run_task(Strict(), Chunk("b.csv, rows 0 to 1", None))
    assert caught.value.__notes__ == ["in b.csv, rows 0 to 1"]


def test_other_targets_are_other_rows(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": np.linspace(0.0, 1.0, 9)})

    def source(change: float) -> Source:
        y = np.zeros(9)
        y[4] = change
        return scan([(rows, y), (rows, y)], chunk_rows=9)

    path = str(tmp_path / "state")
    source(0.0).reduce(Count(), Checkpoint.at(path, ""))
    assert source(0.0).reduce(Count(), Checkpoint.at(path, "")).rows == 18
    with pytest.raises(ValueError, match=r"^chunk 0 is not what it was when its rows were summed"):
        source(1e-12).reduce(Count(), Checkpoint.at(path, ""))


def test_parts_that_were_left_out_are_not_forgotten_when_nobody_asks_for_that(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.0, 2.0]}).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"z": [1.0, 2.0]}).to_csv(tmp_path / "b.csv", index=False)
    path, files = str(tmp_path / "state"), str(tmp_path / "*.csv")
    with pytest.warns(UserWarning, match="left out"):
        found = scan(files, faulty="skip").restricted(["x"]).reduce(Count(), Checkpoint.at(path, ""))
    assert found.rows == 2
    with pytest.raises(ValueError, match=r"b.csv was left out by the run that the checkpoint is of"):
        scan(files).restricted(["x"]).reduce(Count(), Checkpoint.at(path, ""))
