"""A source that is defined here, registered here, and obeys every law: nothing else knows of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.laws.test_sources import *  # noqa: F403  every law
from tests.laws.test_sources import over
from tests.makers.sources import Case, cut

from vff.data import SOURCES, Chunk, Part, ReadOptions, Source, SourceError, SourceKind


@dataclass(frozen=True)
class Tape:
    """Rows on reels, some of which may be torn."""

    reels: tuple[pd.DataFrame, ...]
    torn: tuple[int, ...] = ()


class TapeSource(Source):
    """A part per reel."""

    def __init__(self, tape: Tape, *, options: ReadOptions | None = None) -> None:
        self.options, self._tape = options or ReadOptions(), tape
        self.names = tuple(tape.reels[0].columns)

    def parts(self) -> Iterator[Part]:
        for number, reel in enumerate(self._tape.reels):
            yield Reel(f"reel {number}", reel, number in self._tape.torn, self.options.chunk_rows)


class Reel(Part):
    def __init__(self, name: str, frame: pd.DataFrame, torn: bool, step: int) -> None:
        self.name, self._frame, self._torn, self._step = name, frame, torn, step

    def fingerprint(self) -> str:
        return f"{len(self._frame)} rows"

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, len(self._frame), self._step):
            yield Chunk(f"{self.name}, from {start}", self._frame.iloc[start : start + self._step])
            if self._torn:
                raise SourceError(f"expected a whole reel, found a torn one, {self.name}; mend it")


def _tape(frame: pd.DataFrame, folder: Path) -> Tape:
    return Tape(tuple(cut(frame)))


def _torn(frame: pd.DataFrame, folder: Path) -> Tape:
    return Tape(tuple(cut(frame)), torn=(1,))


OWN = (Case("tape", _tape, _torn),)


@pytest.fixture(autouse=True, scope="module")
def _tapes() -> Any:
    with SOURCES.registered(SourceKind("tape", lambda data: isinstance(data, Tape), TapeSource), first=True):
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    over(metafunc, OWN)


def test_every_kind_has_a_maker() -> None:
    """Here, that of this file."""
