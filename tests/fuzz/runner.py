"""Random cases for as long as time allows, in worker processes that are watched: a crash or a hang is a failure."""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fuzz.findings import Finding, Outcome, accident
from fuzz.kinds import KINDS, kind_named
from fuzz.kinds.base import Effort, Kind
from fuzz.programs import save_script
from fuzz.reports import Tally, figures, progress_line, report, table_text

_QUICK = " ".join(
    f"--xla_{flag}"
    for flag in ("backend_optimization_level=0", "cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1")
)
_EVERY = 5.0  # seconds between lines of progress
_MOST_FAILURES = 50  # a run that finds more than these has found enough


def attempted(kind: Kind, seed: int, effort: Effort) -> Outcome:
    """One case; a failure of the machine itself is one, too."""
    try:
        return kind.attempt(seed, effort)
    except Exception as error:
        return Outcome(Finding("the machine itself works", accident(error)))


def work(orders: Connection, effort: Effort) -> None:
    """What a worker process does until it is told to stop."""
    while (order := orders.recv()) is not None:
        name, seed = order
        orders.send(attempted(kind_named(name), seed, effort))


@dataclass
class Worker:
    """A process, and the case that it is at."""

    effort: Effort
    process: BaseProcess = field(init=False)
    orders: Connection = field(init=False)
    kind: Kind | None = None
    seed: int = 0
    began: float = 0.0

    def __post_init__(self) -> None:
        # not by fork: what is tried may start threads
        context = multiprocessing.get_context("spawn")
        self.orders, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.effort))
        self.process.start()
        theirs.close()

    def give(self, kind: Kind, seed: int) -> None:
        self.kind, self.seed, self.began = kind, seed, time.monotonic()
        self.orders.send((kind.name, seed))

    def hangs(self) -> bool:
        spare = self.effort.shrink_seconds
        return self.kind is not None and time.monotonic() - self.began > self.kind.limit + spare

    def outcome(self) -> Outcome:
        """What it answers; when it died without an answer, that."""
        try:
            return self.orders.recv()
        except (EOFError, OSError):
            self.process.join()
            return Outcome(Finding("no crash", f"the process ended with exit code {self.process.exitcode}"))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.orders.close()


@dataclass
class Campaign:
    """A run over kinds and seeds."""

    kinds: Sequence[Kind]
    seed: int
    seconds: float
    effort: Effort
    folder: Path
    tallies: dict[str, Tally] = field(init=False)

    def __post_init__(self) -> None:
        self.tallies = {kind.name: Tally() for kind in self.kinds}
        self._given = {kind.name: 0 for kind in self.kinds}

    def next_case(self) -> tuple[Kind, int]:
        """Of the kind that is furthest behind its share of the time; cases under way count half a second."""

        def behind(kind: Kind) -> float:
            tally = self.tallies[kind.name]
            return (tally.seconds + 0.5 * (self._given[kind.name] - tally.cases)) / kind.share

        kind = min(self.kinds, key=behind)
        self._given[kind.name] += 1
        return kind, self.seed + self._given[kind.name] - 1

    def run(self, workers: int) -> dict[str, Tally]:
        began = said = time.monotonic()
        crew = [Worker(self.effort) for _ in range(workers)]
        try:
            for worker in crew:
                worker.give(*self.next_case())
            while any(worker.kind is not None for worker in crew):
                going = time.monotonic() - began < self.seconds and self._failures() < _MOST_FAILURES
                self._collect(crew, going)
                if time.monotonic() - said > _EVERY:
                    said = time.monotonic()
                    print(progress_line(said - began, self.tallies), flush=True)
        finally:
            for worker in crew:
                worker.stop()
        return self.tallies

    def _failures(self) -> int:
        return sum(len(tally.failures) for tally in self.tallies.values())

    def _collect(self, crew: list[Worker], going: bool) -> None:
        """Answers that have come, and a new case for those who gave them."""
        busy = {worker.orders: worker for worker in crew if worker.kind is not None}
        answered = wait(list(busy), timeout=0.5)
        for place, worker in enumerate(crew):
            if worker.kind is None:
                continue
            if worker.orders in answered:
                outcome = worker.outcome()
            elif worker.hangs():
                outcome = Outcome(Finding("no hang", f"no answer within {worker.kind.limit:.0f} seconds"))
            else:
                continue
            self._note(worker, outcome)
            if worker.orders not in answered or not worker.process.is_alive():
                worker.stop()
                crew[place] = worker = Worker(self.effort)
            worker.kind = None
            if going:
                worker.give(*self.next_case())

    def _note(self, worker: Worker, outcome: Outcome) -> None:
        assert worker.kind is not None
        name, seed = worker.kind.name, worker.seed
        self.tallies[name].add(seed, time.monotonic() - worker.began, outcome)
        if outcome.finding is not None:
            path = (
                save_script(self.folder, f"{name}-{seed}", outcome.finding.script) if outcome.finding.script else None
            )
            print(report(name, seed, outcome.finding, path), flush=True)


def once(kind: Kind, seed: int, effort: Effort, folder: Path) -> int:
    """One case again, in this process."""
    outcome = attempted(kind, seed, effort)
    if outcome.finding is None:
        print(f"{kind.name} {seed}: every law holds ({', '.join(f'{n} {k}' for k, n in outcome.counts.items())})")
        return 0
    path = save_script(folder, f"{kind.name}-{seed}", outcome.finding.script) if outcome.finding.script else None
    print(report(kind.name, seed, outcome.finding, path))
    return 1


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    names = [kind.name for kind in KINDS]
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default: 600)")
    parser.add_argument("--kind", action="append", choices=names, help="only this kind; may be given again")
    parser.add_argument("--seed", type=int, help="one case again, of one kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed of every kind (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default: 2)")
    parser.add_argument("--rows", type=int, default=Effort.rows, help="the most rows of a table")
    parser.add_argument("--shrink", type=float, default=Effort.shrink_seconds, help="seconds to make a failure smaller")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz"), help="for programs that reproduce failures")
    options = parser.parse_args(words)
    if options.seed is not None and len(options.kind or ()) != 1:
        parser.error("--seed repeats one case: give one --kind beside it")
    return options


def quick_compilation() -> None:
    """Most of the time of a small fit is compilation: of code that runs for a moment, it may be less thorough."""
    os.environ.setdefault("XLA_FLAGS", _QUICK)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[2] / ".jax_cache"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def main(words: Sequence[str] | None = None) -> int:
    quick_compilation()
    options = parsed(words)
    kinds, effort = [kind_named(name) for name in options.kind or ()] or KINDS, Effort(options.rows, options.shrink)
    if options.seed is not None:
        return once(kinds[0], options.seed, effort, options.folder)
    began = time.monotonic()
    tallies = Campaign(kinds, options.first, options.seconds, effort, options.folder).run(options.jobs)
    record: dict[str, Any] = figures(tallies, time.monotonic() - began, sys.argv if words is None else list(words))
    print(table_text(tallies))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return int(any(tally.failures for tally in tallies.values()))
