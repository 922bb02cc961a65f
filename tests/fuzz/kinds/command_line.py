"""Random words and files for the command ``vff``: exit codes as documented, errors of one line, no traceback."""

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from fuzz.findings import Finding, Outcome, accident
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.tables import Rng, chance, one_of
from vff.cli import main

_NAME = "command line"
_CODES = (0, 2, 3, 4, 5)  # done, usage, data, files, a package that is not there; 1 is a bug of ours
_LONGEST = 600  # characters of a line
_PROCESS = 0.05  # the share of commands that run in a process of their own

WORDS = {
    "--target": ("y", "y", "y", "a", "g", "nonsense", "", "ü", "x" * 3000),
    "--terms": ("a", "a + b", "a * b", ".", "cat(g)", "smooth(a, 5/2) + g", "a +", "(((a", "`a`", "nonsense", "",
                "g * a", "smooth(a, 4/2)", "Matern32(a, lengthscale=-1)", "(" * 3000, "a + " * 3000 + "a",
                "cat(a) * cat(g)"),
    "--weight": ("w", "w", "y", "g", "nonsense"),
    "--domain": ("a=0:1", "a=5:1", "a=nan:1", "a=-1:2, b=-9:9", "g=0:1", "a", "=", "a=0:1:2", "a=x:y"),
    "--frequencies": ("4", "0", "-1", "a=3", "a * b=3x2", "1e9", "99999999", "x", "nonsense=4", ""),
    "--edges": ("0", "2", "-1", "99", "x"),
    "--interactions": ("auto", "1", "0", "-1", "x", "1e3"),
    "--units": ("a=m", "a=", "=", "nonsense=kg", "a=°C, y=kW"),
    "--likelihood": ("gaussian", "poisson", "student-t", "nonsense", "bernoulli"),
    "--exposure": ("w", "a", "nonsense"),
    "--missing": ("drop", "refuse", "x"),
    "--faulty": ("skip", "refuse"),
    "--types": ("b=number", "a=text", "a=colour", "a", "g=number", "nonsense=text"),
    "--delimiter": (",", ";", "", "ab", "\t"),
    "--chunk-rows": ("7", "1", "0", "-1", "x", "1000000"),
    "--checkpoint": ("state", "nowhere/state", "table.csv", ""),
    "--level": ("0.9", "0", "1", "nan", "x"),
    "--keep": ("a", "a, b", "nonsense", ""),
    "--class": ("x", "yes"),
}  # fmt: skip
_READING = ("--missing", "--faulty", "--types", "--delimiter", "--chunk-rows")
_MODEL = (
    "--terms",
    "--terms",
    "--weight",
    "--domain",
    "--frequencies",
    "--edges",
    "--units",
    "--checkpoint",
    *_READING,
)
OPTIONS = {
    "fit": ("--likelihood", "--exposure", "--interactions", *_MODEL),
    "moments": _MODEL,
    "predict": ("--level", "--keep", *_READING),
    "effects": ("--level", "--terms", "--class"),
    "info": ("--types", "--delimiter"),
    "update": ("--weight", "--checkpoint", *_READING),
    "forget": ("--weight", "--checkpoint", *_READING),
}
FLAGS = ("--classify", "--json", "--quiet", "--force", "--help", "--version", "--nonsense")
FILES = (
    *("table.csv", "table.csv", "table.csv", "table.parquet", "table.feather", "part*.csv", "folder", "missing.csv"),
    *(
        "latin1.csv",
        "utf16.csv",
        "zipped.csv",
        "zeros.csv",
        "ragged.csv",
        "empty.csv",
        "header.csv",
        "nan.csv",
        "text.csv",
    ),
    *(
        "model.vff",
        "model.vffm",
        "damaged.vff",
        "table.csv.vff",
        "",
        ".",
        "/dev/null",
        "x" * 300 + ".csv",
        "*",
        "[",
        "a\nb",
    ),
)
GOOD_FILES = ("table.csv", "table.csv", "table.parquet", "table.feather", "part*.csv", "folder")
OUTS = (
    "out.vff",
    "out.vff",
    "out.vffm",
    "out.csv",
    "out.parquet",
    "out.png",
    "nowhere/out.vff",
    "table.csv",
    "",
    "folder",
)
COMMANDS = ("fit", "fit", "fit", "predict", "predict", "effects", "info", "update", "forget", "moments", "merge")
"""Not ``demo``, which takes seconds to say nothing new."""


def write_files(folder: Path, rng: Rng) -> None:
    """A good table in several forms, and bad ones."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.feather

    n = int(rng.integers(2, 60))
    frame = pd.DataFrame({"a": rng.uniform(0, 1, n), "b": rng.normal(size=n).round(1), "w": rng.integers(1, 4, n)})
    frame["g"] = np.array(["x", "y", "ü"])[rng.integers(0, 3, n)]
    frame["y"] = rng.integers(0, 3, n)
    text = frame.to_csv(index=False)
    (folder / "folder").mkdir()
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_csv(folder / "folder" / "one.csv", index=False)
    frame.to_parquet(folder / "table.parquet")
    pa.feather.write_feather(pa.Table.from_pandas(frame), folder / "table.feather")
    for k in range(2):
        frame[k::2].to_csv(folder / f"part{k}.csv", index=False)
    frame.assign(a=np.where(np.arange(n) == 0, np.nan, frame["a"])).to_csv(folder / "nan.csv", index=False)
    frame.assign(a=np.where(np.arange(n) == n - 1, "oops", frame["a"].astype(str))).to_csv(
        folder / "text.csv", index=False
    )
    (folder / "latin1.csv").write_bytes(text.encode("latin-1"))
    (folder / "utf16.csv").write_bytes(text.encode("utf-16"))
    (folder / "zipped.csv").write_bytes(b"\x1f\x8b" + text.encode())
    (folder / "zeros.csv").write_bytes(text.encode() + b"\0\0\0")
    (folder / "ragged.csv").write_text(text + "1,2\n")
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("a,b,w,g,y\n")
    (folder / "model.vff").write_bytes(_model())
    (folder / "model.vffm").write_bytes(_model())
    damaged = bytearray(_model())
    damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    (folder / "damaged.vff").write_bytes(bytes(damaged))


@cache
def _model() -> bytes:
    import pandas as pd

    from vff import GPRegressor

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 1, 30), "b": rng.normal(size=30)})
    with tempfile.TemporaryDirectory() as folder:
        GPRegressor(frequencies=3, domain=(-9, 9)).fit(frame, frame["a"]).save(f"{folder}/m.vff")
        return Path(f"{folder}/m.vff").read_bytes()


def random_words(rng: Rng) -> list[str]:
    """Mostly a command that could be meant, with a few words that could not."""
    command = one_of(rng, COMMANDS) if chance(rng, 0.97) else one_of(rng, ["nonsense", "", "--json"])
    words = [command]
    if command in ("predict", "effects", "update", "forget"):
        words += ["model.vff" if chance(rng, 0.8) else one_of(rng, FILES)]
    if command != "effects":
        words += [one_of(rng, GOOD_FILES if chance(rng, 0.6) else FILES) for _ in range(one_of(rng, [1, 1, 1, 2]))]
    if command in ("fit", "moments", "update", "forget") and chance(rng, 0.9):
        words += ["--target", "y" if chance(rng, 0.8) else one_of(rng, WORDS["--target"])]
    for _ in range(int(rng.integers(0, 4))):
        option = one_of(rng, OPTIONS[command]) if command in OPTIONS and chance(rng, 0.95) else one_of(rng, WORDS)
        words += [option, WORDS[option][0] if chance(rng, 0.5) else one_of(rng, WORDS[option])]
    words += [one_of(rng, FLAGS)] if chance(rng, 0.3) else []
    return words + (["--out", _random_out(command, rng)] if command != "info" and chance(rng, 0.95) else [])


def _random_out(command: str, rng: Rng) -> str:
    usual = {"predict": "out.csv", "effects": "out.csv", "moments": "out.vffm", "merge": "out.vffm"}
    return usual.get(command, "out.vff") if chance(rng, 0.8) else one_of(rng, OUTS)


def ran(words: list[str], apart: bool) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    if apart:
        done = subprocess.run([sys.executable, "-m", "vff", *words], capture_output=True, text=True, timeout=200)
        return done.returncode, done.stdout, done.stderr
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def wrong(words: list[str], code: int, out: str, err: str) -> tuple[str, str] | None:
    """The law that a command breaks."""
    if code not in _CODES:
        return "exit codes are those of the help", f"exit code {code}: {err.strip()[-400:]}"
    if "Traceback" in err:
        return "no traceback", err.strip()[-400:]
    last = err.strip().splitlines()[-1:] or [""]
    shows_a_text = code == 0 and {"--help", "--version"} & set(words)
    if "--json" in words and not shows_a_text:
        try:
            json.loads(out)
        except ValueError:
            return "--json prints one object", f"it printed {out[:300]!r}"
    elif code != 0 and not last[0].startswith("vff: error: "):
        return "errors are one line", f"the last line is {last[0][:300]!r}"
    if code != 0 and len(last[0]) > _LONGEST:
        return "errors are one line", f"a line of {len(last[0])} characters: {last[0][:200]!r}"
    return None


@contextlib.contextmanager
def inside(folder: Path):
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def attempt(seed: int, effort: Effort) -> Outcome:
    rng = generator(_NAME, seed)
    with tempfile.TemporaryDirectory() as name, inside(Path(name)):
        write_files(Path(name), rng)
        words, apart, code = random_words(rng), chance(rng, _PROCESS), -1
        try:
            code, out, err = ran(words, apart)
            found = wrong(words, code, out, err)
        except Exception as error:
            found = "the command ends", accident(error)
    counts = {"commands": 1, "done": int(found is None and code == 0)}
    if found is None:
        return Outcome(None, counts)
    return Outcome(Finding(found[0], f"vff {shlex.join(words)[:500]}: {found[1]}"), counts)


KIND = Kind(_NAME, "random words and files for the command vff", attempt, share=1.0, limit=240.0)
