"""Write ``numbers.csv`` anew: python -m tests.golden.write [names of cases]. Say in the commit why numbers moved."""

import csv
import sys
import tempfile
from pathlib import Path

from tests.golden.cases import CASES, answers

NUMBERS = Path(__file__).parent / "numbers.csv"


def read() -> dict[str, dict[str, float]]:
    """The numbers by case."""
    kept: dict[str, dict[str, float]] = {}
    with NUMBERS.open(newline="") as file:
        for name, what, value in csv.reader(file):
            kept.setdefault(name, {})[what] = float(value)
    return kept


def main(names: list[str]) -> None:
    """Fit the named cases, or all, and keep the other numbers."""
    kept = read() if NUMBERS.exists() else {}
    for one in CASES:
        if not names or one.name in names:
            with tempfile.TemporaryDirectory() as folder:
                kept[one.name] = answers(*one.fit(Path(folder)))
    with NUMBERS.open("w", newline="") as file:
        rows = [(one.name, what, repr(value)) for one in CASES for what, value in kept[one.name].items()]
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
