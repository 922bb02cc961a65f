"""Two revisions of the library beside each other, in one run: python benchmarks/revisions.py BEFORE [--after REVISION].

Every task runs in fresh processes, before and after in turn, and the least of all times counts: other work on the
machine only ever adds to it. Times are those of the second and later fits of a process; "first" is that of the first,
which includes what is compiled or planned. A ratio above one says that the task became slower.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _machine import describe
from _revision_task import TASKS

from vff.report import table

HERE = Path(__file__).parent
ROOT = HERE.parent


def checked_out(revision: str, folder: Path) -> Path:
    """The sources of a revision."""
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder / "src"


def timed(name: str, source: Path, repetitions: int) -> dict[str, float]:
    """Seconds of one task in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, str(HERE / "_revision_task.py"), name, str(repetitions)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(name: str, sources: tuple[Path, Path], rounds: int, repetitions: int) -> list[str]:
    """A line of the table."""
    found = [[timed(name, source, repetitions) for source in sources] for _ in range(rounds)]
    best = [[min(one[side][what] for one in found) for side in (0, 1)] for what in ("again", "first")]
    (before, after), (first_before, first_after) = best
    line = [before, after, after / before, first_before, first_after, first_after / first_before]
    return [name, *(f"{value:.3f}" for value in line)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a revision, as git names it")
    parser.add_argument("--after", default="HEAD", help="another one (default: HEAD)")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=4)
    options = parser.parse_args()
    print(describe(["numpy", "scipy", "jax", "finufft"]))
    with tempfile.TemporaryDirectory() as folder:
        sources = (
            checked_out(options.before, Path(folder) / "before"),
            checked_out(options.after, Path(folder) / "after"),
        )
        lines = []
        for name in options.tasks:
            lines.append(compare(name, sources, options.rounds, options.repetitions))
            print(*lines[-1], flush=True)
    print(table(lines, ["task", "before (s)", "after (s)", "ratio", "first before", "first after", "its ratio"]))


if __name__ == "__main__":
    main()
