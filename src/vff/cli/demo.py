"""``vff demo``: a table with known effects, and the three commands that find them again."""

import shlex
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vff.cli.entry import Result, run
from vff.cli.failures import OutputError
from vff.cli.parser import make_parser
from vff.storage import written_whole

_PACKAGES = ("pyarrow", "matplotlib")
_SEED = 1
_HOUSES = ("north", "south", "villa")
_NOISE = 0.5
_TRUTH = "load = 3 sin(hour / 4) + 0.02 (outdoors - 18)^2 + 2 in a villa, with noise of sd 0.5"


def demo(options: Namespace) -> Result:
    """Make the table, fit, predict, draw."""
    for package in _PACKAGES:  # before anything is written
        import_module(package)
    folder = Path(options.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"--out was expected to name a folder, and {folder} is a file; name another") from error
    data = folder / "loads.csv"
    if data.exists() and not options.force:
        raise OutputError(f"{data} exists already; name another folder, or give --force to replace it")
    _write_table(data, options.rows)
    results, commands = {}, _commands(folder, data)
    for words in commands:
        results[words[0]] = _ran(words, options)
    lines = [f"made {data}: {options.rows:,} rows, {_TRUTH}"]
    for words in commands:
        lines += ["", f"$ vff {shlex.join(words)}", results[words[0]].text]
    shown = [f"vff {shlex.join(words)}" for words in commands]
    record = {"data": str(data), "truth": _TRUTH, "commands": shown}
    return Result(record | {name: result.record for name, result in results.items()}, "\n".join(lines))


def _commands(folder: Path, data: Path) -> list[list[str]]:
    model, terms, units = (
        str(folder / "load.vff"),
        "smooth(hour, 5/2) + outdoors + house",
        "hour=h, outdoors=°C, load=kW",
    )
    return [
        ["fit", str(data), "--target", "load", "--terms", terms, "--units", units, "--out", model],
        ["predict", model, str(data), "--keep", "hour, load", "--out", str(folder / "predicted.csv")],
        ["effects", model, "--out", str(folder / "effects.png")],
    ]


def _ran(words: list[str], options: Namespace) -> Result:
    requested: Any = make_parser().parse_args([*words, *["--force"] * options.force, *["--quiet"] * options.quiet])
    return run(requested)


def _write_table(path: Path, rows: int) -> None:
    rng = np.random.default_rng(_SEED)
    hour, outdoors = rng.uniform(0, 24, rows), rng.normal(12, 8, rows)
    house = rng.integers(len(_HOUSES), size=rows)
    load = 3 * np.sin(hour / 4) + 0.02 * (outdoors - 18) ** 2 + 2.0 * (house == 2) + rng.normal(0, _NOISE, rows)
    with written_whole(path) as draft, open(draft, "w", encoding="utf-8") as stream:
        stream.write("hour,outdoors,house,load\n")
        for values in zip(hour, outdoors, house, load, strict=True):
            stream.write(f"{values[0]:.3f},{values[1]:.2f},{_HOUSES[values[2]]},{values[3]:.4f}\n")
