"""What the experiments share: their options, their tables on disk, and a few habits of drawing."""

import argparse
import csv
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import ExtrapolationWarning
from vff.report import table

# Okabe & Ito's palette: told apart with any colour vision, and in grey.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"

Rows = Sequence[Mapping[str, Any]]


@dataclass
class Run:
    """One run of one experiment."""

    name: str
    quick: bool
    folder: Path
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def from_command_line(cls, file: str, description: str | None) -> "Run":
        """Options of ``python experiments/<name>.py [--quick] [--out FOLDER]``."""
        home = Path(file).resolve().parent / "results"
        parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
        parser.add_argument("--quick", action="store_true", help="a smaller problem, to see that it runs")
        parser.add_argument("--out", type=Path, default=home, help="folder of the results (experiments/results)")
        chosen = parser.parse_args()
        return cls(Path(file).stem, chosen.quick, chosen.out)

    def say(self, message: str) -> None:
        """A line of progress."""
        print(f"[{self.name} {time.perf_counter() - self.started:6.1f} s] {message}", file=sys.stderr, flush=True)

    def finish(self, rows: Rows, figure: Figure, shown: Rows | None = None) -> None:
        """Write the table and the picture, print the table (or a shorter one), and say where they are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        numbers, picture = (self.folder / f"{self.name}.{ending}" for ending in ("csv", "png"))
        with numbers.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        figure.savefig(picture, dpi=70 if self.quick else 150)
        print(table(shown or rows))
        print(f"\ntable:   {_short(numbers)}\npicture: {_short(picture)}")


class Log:
    """A table on disk that grows by a row at a time: a run that dies can be started again and goes on where it stopped.

    Cells come back as they are read from text: numbers where they are numbers.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, tuple(columns)
        header = ",".join(self.columns)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        first, *lines = text.split("\n")
        if text and first != header:
            raise ValueError(
                f"{path} should begin with the columns {header} and begins with {first!r}; delete it, or move it away"
            )
        # What follows the last line end is a row that was cut short.
        whole = lines[:-1]
        self.rows = [dict(zip(self.columns, map(_number, cells), strict=True)) for cells in csv.reader(whole)]
        if not lines or lines[-1]:
            self._begin([header, *whole])

    def _begin(self, lines: list[str]) -> None:
        """Write all lines, or nothing when it is interrupted."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text("\n".join([*lines, ""]), encoding="utf-8")
        new.replace(self.path)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row, on disk when this returns."""
        with self.path.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerow([row[column] for column in self.columns])
            stream.flush()
            os.fsync(stream.fileno())
        self.rows.append(dict(row))


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _short(path: Path) -> Path:
    """The path from here, when it is below."""
    here, whole = Path.cwd(), path.resolve()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def split_budget(features: int, order: int) -> tuple[int, int]:
    """(M, q): harmonics and edge functions that stay within a number of features, for a Matérn-(order + 1/2).

    The default q = order + 2 where there is room for it. 2M + 1 + q may come out one below the budget, never above.
    """
    M = max(1, (features - 1 - (order + 2)) // 2)
    return M, min(order + 2, features - 1 - 2 * M)


@contextmanager
def looking_outside() -> Iterator[None]:
    """For pictures that mean to show what lies beyond the domain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, size in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def tidy(ax: Axes) -> None:
    """Fewer lines around the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def draw_band(
    ax: Axes, x: np.ndarray, mean: np.ndarray, half: np.ndarray, colour: str = BLUE, label: str | None = None
) -> None:
    """A mean with a band of ``half`` on either side."""
    ax.fill_between(x, mean - half, mean + half, color=colour, alpha=0.25, lw=0, label=label)
    ax.plot(x, mean, color=colour, lw=1.5)


def mark_domain(ax: Axes, domain: tuple[float, float]) -> None:
    """Vertical lines at a and b."""
    for end in domain:
        ax.axvline(end, color="0.35", lw=0.9, ls="--", zorder=1)
