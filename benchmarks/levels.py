"""Columns with very many levels: vff beside lme4 and GPBoost, then vff alone on a Parquet file.

    python benchmarks/levels.py [--rows N] [--levels L] [--only peers|stream|crossed] [--text] [--gpboost PYTHON]
                                [--repeats 1] [--quick]

Simulated rows, always the same. Levels have sizes from a Pareto: most have a row or a few, the largest tens of
thousands. ``peers``: 10^6 rows, 10^5 levels and four columns of numbers. vff fits a sum of smooth functions and
effects of levels; what all can do is lines in their place. ``stream``: 10^7 rows of 10^6 levels, read from a file.
``crossed``: two columns of levels, 10^6 rows of 20,000 and 1,000 beside lme4, and 10^7 rows of 10^5 and 10^4 alone.
Each fit is in a process of its own. GPBoost may live in another environment, whose Python is given. What is printed is
Markdown for RESULTS.md.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from _levels_data import LEVEL, NOISE
from _machine import describe
from additive import HERE, Found, Line, call, middle, progress, show

PACKAGES = ("numpy", "scipy", "finufft", "scikit-learn", "pandas", "pyarrow")
SECONDS, MIB = 60.0, 3072.0
"""What ``stream`` should stay below."""


def has_lme4() -> bool:
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(lme4)"], capture_output=True).returncode == 0


def has_gpboost(python: str) -> bool:
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "-c", "import gpboost"], capture_output=True).returncode == 0


def whole(found: Found) -> float:
    """Seconds from rows in memory, or in a file, to the effects of all levels with their deviations."""
    return found["fit"] + found["effects"]


def line(model: str, found: Found) -> Line:
    return {
        "model": model,
        "import s": f"{found['import']:.2f}",
        "fit s": f"{found['fit']:.2f}",
        "effects s": f"{found['effects']:.2f}",
        "cpu s": f"{found['cpu']:.2f}",
        "peak MiB": f"{found['peak']:.0f}",
        "noise": f"{found['noise']:.5f}",
        "level": f"{found['level']:.5f}",
        "z": f"{found['z']:.3f}" if "z" in found else "",
    }


def peer_line(model: str, found: Found, linear: Found, smooth: Found) -> Line:
    ratios = {
        "ratio": f"{whole(found) / whole(linear):.2f}",
        "to smooth": f"{whole(found) / whole(smooth):.2f}",
    }
    return line(model, found) | ratios


def vff_note(model: str, found: Found, spread: str) -> str:
    timing = ", ".join(f"{name} {seconds:.2f}" for name, seconds in found["timing"].items())
    return (
        f"{model}: solver `{found['solver']}`, {found['harmonics']} harmonics beside levels, {found['evaluations']} "
        f"evaluations, {timing} s; fits of {spread} s."
    )


def peer_note(found: Found, ours: Found, spread: str) -> str:
    noise, level = (abs(found[key] / ours[key] - 1.0) for key in ("noise", "level"))
    return (
        f"{found['version']}: fits of {spread} s. Its noise differs from vff's by {noise:.1e} of it, the variance of "
        f"levels by {level:.1e}."
    )


def write(folder: Path, rows: int, levels: int, form: str, *more: str) -> str:
    """Rows in a folder, and a sentence on their levels."""
    progress(f"{rows:,} rows of {levels:,} levels, {form}: making them")
    found = call(sys.executable, HERE / "_levels_data.py", folder, str(rows), str(levels), form, *more)
    return (
        f"{rows:,} rows of {levels:,} levels, which have {found['smallest']:,} to {found['largest']:,} rows, half of "
        f"them at\nmost {found['median']:.0f}. Drawn with a noise variance of {NOISE:g} and a variance of levels of "
        f"{LEVEL:g}."
    )


def peers(options: argparse.Namespace) -> None:
    rows, levels = options.rows or 1_000_000, options.levels or 100_000
    commands: dict[str, tuple[str | Path, ...]] = {
        "vff, smooth": (sys.executable, HERE / "_levels_vff.py", "smooth"),
        "vff, linear": (sys.executable, HERE / "_levels_vff.py", "linear"),
    }
    missing = []
    if has_lme4():
        commands["lme4, linear"] = ("Rscript", HERE / "_levels_lme4.R")
    else:
        missing.append(
            "lme4 is left out: there is no Rscript with it; apt-get install r-base-core r-cran-lme4 brings both."
        )
    if has_gpboost(options.gpboost):
        commands["GPBoost, linear"] = (options.gpboost, HERE / "_levels_gpboost.py")
    else:
        missing.append("GPBoost is left out: it is not installed; pip install gpboost brings it, --gpboost says where.")
    runs: dict[str, tuple[Found, str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        sentence = write(Path(temporary), rows, levels, "columns")
        for model, (program, script, *part) in commands.items():
            progress(f"{rows:,} rows of {levels:,} levels: {model}, {options.repeats} times")
            runs[model] = middle([call(program, script, temporary, *part) for _ in range(options.repeats)])
    print(
        f"\n## Many levels: vff, lme4, GPBoost\n\n{sentence}\nFour columns of numbers beside them: smooth functions, "
        "or, what all can do, lines, which leave more to the noise.\n`fit s` is from arrays in memory to learnt "
        "variances, `effects s` that for effects of all levels and their\ndeviations, both in a fresh process without "
        "the import. `ratio` is of their sum to that of vff with lines,\n`to smooth` to that of vff with smooth "
        "functions, which the others do not fit. `z` is the deviation of errors of\neffects over the stated one. vff "
        "and lme4 find the variances of REML, GPBoost those of the likelihood;\nby its defaults it may stop "
        "before the maximum. Peers run as they come."
    )
    for absent in missing:
        print(f"\n{absent}")
    (smooth, _), (linear, _) = runs["vff, smooth"], runs["vff, linear"]
    lines = [peer_line(model, found, linear, smooth) for model, (found, _) in runs.items()]
    notes = [
        vff_note(model, *run) if "vff" in model else peer_note(run[0], linear, run[1]) for model, run in runs.items()
    ]
    show(None, lines, notes)


def stream(options: argparse.Namespace) -> None:
    rows, levels = options.rows or 10_000_000, options.levels or 1_000_000
    print("\n## Many levels from a Parquet file")
    if find_spec("pyarrow") is None:
        print("\nThis is left out: pyarrow is not installed; pip install pyarrow brings it.")
        return
    lines, notes, sentence = [], [], ""
    for form in ("integer", "text") if options.text else ("integer",):
        with tempfile.TemporaryDirectory() as temporary:
            sentence = write(Path(temporary), rows, levels, form)
            progress(f"{rows:,} rows of {levels:,} levels, {form}: vff, {options.repeats} times")
            script = HERE / "_levels_vff.py"
            runs = [call(sys.executable, script, temporary, "stream") for _ in range(options.repeats)]
        found, spread = middle(runs)
        kept = whole(found) < SECONDS and found["peak"] < MIB
        lines.append(line(form, found) | {"total s": f"{whole(found):.2f}", "goal": "kept" if kept else "missed"})
        notes.append(vff_note(form, found, spread))
    print(
        f"\n{sentence}\n`Categorical` alone, g as integers or as text. `total s` is fit and effects of all levels. The "
        f"goal is less than {SECONDS:.0f} s\nof that and a peak below {MIB / 1024:.0f} GiB."
    )
    show(None, lines, notes)


def crossed(options: argparse.Namespace) -> None:
    """Two columns of levels, of which most pairs have no rows."""
    print("\n## Two columns of levels, crossed")
    small = (options.rows or 1_000_000, options.levels or 20_000)
    sizes = [(*small, max(small[1] // 20, 2), True), *([] if options.rows else [(10_000_000, 100_000, 10_000, False)])]
    lines, notes, sentences = [], [], []
    for rows, levels, items, beside in sizes:
        commands: dict[str, tuple[str | Path, ...]] = {"vff": (sys.executable, HERE / "_levels_vff.py")}
        if beside and has_lme4():
            commands["lme4"] = ("Rscript", HERE / "_levels_lme4.R")
        runs: dict[str, tuple[Found, str]] = {}
        with tempfile.TemporaryDirectory() as temporary:
            sentences.append(write(Path(temporary), rows, levels, "crossed", str(items)))
            for model, (program, script) in commands.items():
                progress(f"{rows:,} rows of {levels:,} x {items:,} levels: {model}, {options.repeats} times")
                part = () if model == "lme4" else ("crossed",)
                runs[model] = middle([call(program, script, temporary, *part) for _ in range(options.repeats)])
        ours, spread = runs["vff"]
        notes.append(vff_note(f"{rows:,} rows", ours, spread) + f" The bound is known to {ours['error']:.1g} nats.")
        for model, (found, _) in runs.items():
            own = {"rows": f"{rows:,}", "levels": f"{levels:,} x {items:,}"} | line(model, found)
            lines.append(own | {"item": f"{found['item']:.5f}", "ratio of cpu": f"{found['cpu'] / ours['cpu']:.2f}"})
    print(
        f"\n{sentences[-1]}\nAnother column of levels is crossed with it. `level` and `item` are\nthe variances learnt."
    )
    show(None, lines, notes)


PARTS = {"peers": peers, "stream": stream, "crossed": crossed}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, help="of every part that runs; 10^6 beside peers, 10^7 from the file if left"
    )
    parser.add_argument("--levels", type=int, help="of every part that runs; a tenth of these if left")
    parser.add_argument("--only", choices=PARTS, help="one part instead of all")
    parser.add_argument("--text", action="store_true", help="also a file whose levels are text")
    parser.add_argument("--gpboost", default=sys.executable, metavar="PYTHON", help="the Python that has GPBoost")
    parser.add_argument("--repeats", type=int, default=1, help="runs of everything, of which the median counts")
    parser.add_argument("--quick", action="store_true", help="few rows everywhere, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.rows = options.rows or 20_000
    if options.rows and not options.levels:
        options.levels = max(options.rows // 10, 1)
    if options.rows and options.rows < options.levels:
        parser.error("every level has a row, so there must be as many rows as levels at least")
    return options


def main() -> None:
    options = read_options()
    print(describe(PACKAGES), flush=True)
    for part in [options.only] if options.only else PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
