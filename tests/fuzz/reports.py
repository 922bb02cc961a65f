"""What a run prints: a line now and then, every failure with its seed and its program, a table at the end."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import vff
from fuzz.findings import Finding, Outcome

_SHOWN = 60  # lines of a program that is printed as well as written


@dataclass
class Tally:
    """What was done of one kind."""

    cases: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, Finding]] = field(default_factory=list)

    def add(self, seed: int, seconds: float, outcome: Outcome) -> None:
        self.cases += 1
        self.seconds += seconds
        self.counts.update(outcome.counts)
        if outcome.finding is not None:
            self.failures.append((seed, outcome.finding))


def again(kind: str, seed: int) -> str:
    """The command that tries a case again."""
    return f"python tests/fuzz --kind {kind} --seed {seed}"


def report(kind: str, seed: int, finding: Finding, path: Path | None) -> str:
    """All that is known about a failure."""
    lines = [f"FAILED {kind}, seed {seed}: {finding.law}", f"  {finding.sentence}", f"  again: {again(kind, seed)}"]
    lines += [] if path is None else [f"  program: {path}"]
    program = finding.script.splitlines()
    if program and len(program) <= _SHOWN and max(map(len, program)) < 2000:
        lines += [f"    {line}".rstrip() for line in program]
    return "\n".join(lines)


def progress_line(seconds: float, tallies: Mapping[str, Tally]) -> str:
    done = ", ".join(f"{name} {tally.cases}" for name, tally in tallies.items())
    return f"[{seconds:6.0f} s] {done}; {sum(len(tally.failures) for tally in tallies.values())} failures"


def table_text(tallies: Mapping[str, Tally]) -> str:
    """Kinds, what was done, and failures, in aligned columns."""
    rows = [("kind", "cases", "failures", "seconds", "of them")]
    for name, tally in tallies.items():
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(tally.counts.items()))
        rows.append((name, f"{tally.cases:,}", str(len(tally.failures)), f"{tally.seconds:,.0f}", counts))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in (1, 2, 3)), row[4]]).rstrip()
        for row in rows
    )


def figures(tallies: Mapping[str, Tally], seconds: float, command: Sequence[str]) -> dict[str, Any]:
    """The same for docs/reliability.md, with date and command."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": " ".join(command),
        "version": vff.__version__,
        "python": platform.python_version(),
        "seconds": round(seconds),
        "kinds": {
            name: {
                "cases": tally.cases,
                "seconds": round(tally.seconds),
                "counts": dict(tally.counts),
                "failures": [
                    {"seed": seed, "law": found.law, "sentence": found.sentence} for seed, found in tally.failures
                ],
            }
            for name, tally in tallies.items()
        },
    }
