"""Problems as programs of public calls: what is run is what is printed."""

import base64
import re
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.problems import Leaf, Problem, Table, Terms

_WRITTEN_OUT = 40  # rows of a table that is printed number by number; longer ones are packed

IMPORTS = """import base64
import tempfile
import zlib

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
from sklearn.base import clone

from vff import *
from vff.likelihoods import *
"""

_BESIDE = "beside = {name: values for name, values in [('y', y), ('w', w)] if values is not None}"
_CHUNKED = f"{_BESIDE}\nframe = pd.DataFrame(table | beside)\nsize = max(1, len(frame) // 3)"
_NAMES = "'y', sample_weight=None if w is None else 'w'"
_PIECES = "[frame[k : k + size] for k in range(0, len(frame), size)]"

SOURCES = {
    "array": ("X = np.column_stack(list(table.values()))", "X, y, sample_weight=w"),
    "pandas": ("X = pd.DataFrame(table)", "X, y, sample_weight=w"),
    "polars": ("X = pl.DataFrame(table)", "X, y, sample_weight=w"),
    "arrow": ("X = pa.table(table)", "X, y, sample_weight=w"),
    "list of chunks": (f"{_CHUNKED}\nX = {_PIECES}", f"X, {_NAMES}"),
    "function of chunks": (f"{_CHUNKED}\nX = lambda: iter({_PIECES})", f"X, {_NAMES}"),
    "dask": (f"{_CHUNKED}\nX = dask.dataframe.from_pandas(frame, npartitions=3)", f"X, {_NAMES}"),
    "parquet": (
        f"{_CHUNKED}\nrows = pa.table(table | beside)\nfor k in range(0, len(y), size):\n"
        "    pa.parquet.write_table(rows.slice(k, size), f'{folder}/{k:06d}.parquet')\nX = folder",
        f"X, {_NAMES}",
    ),
}
"""What makes X of ``table``, ``y`` and ``w`` (and perhaps of a ``folder``), and what ``fit`` is called with."""

STEPS = {
    "fit": "model.fit({arguments})",
    "save and load": "model.fit({arguments})\nmodel.save(f'{{folder}}/m.vff')\nmodel = load(f'{{folder}}/m.vff')",
    "partial_fit": (
        "size = max(1, len(y) // 3)\n"
        "for k in range(0, len(y), size):\n"
        "    part = slice(k, k + size)\n"
        "    model.partial_fit(X[part], y[part], sample_weight=None if w is None else w[part])"
    ),
    "collect and merge": (
        "other, half = clone(model), len(y) // 2 or 1\n"
        "model.collect(X[:half], y[:half], sample_weight=None if w is None else w[:half])\n"
        "if half < len(y):\n"
        "    other.collect(X[half:], y[half:], sample_weight=None if w is None else w[half:])\n"
        "    model.merge(other)\n"
        "model.learn()"
    ),
    "columns in another order": (
        "model.fit({arguments})\n"
        "asked = {{'not in the model': next(iter(asked.values()))}} | dict(reversed(asked.items()))"
    ),
}
"""From X, y, w and a model to one that has learnt."""

_CONTAINERS = {"array": "np.column_stack(list({}.values()))", "polars": "pl.DataFrame({})", "arrow": "pa.table({})"}


def in_chunks(source: str) -> bool:
    return SOURCES[source][1].endswith(_NAMES)


def literal(values: np.ndarray | None) -> str:
    """An array as Python text, every bit of it."""
    if values is None:
        return "None"
    if values.dtype.kind == "M":
        return f"np.array({values.astype(str).tolist()!r}, {values.dtype.str!r})"
    if values.dtype.kind == "O" or len(values) <= _WRITTEN_OUT:
        kind = ", object" if values.dtype.kind == "O" else ", float" if values.dtype.kind == "f" else ""
        text = repr(values.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
        return f"np.array({text}{kind})"
    packed = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 9)).decode()
    return f"np.frombuffer(zlib.decompress(base64.b64decode({packed!r})), {values.dtype.str!r})"


def written(table: Table) -> str:
    return "{\n" + "".join(f"    {name!r}: {literal(values)},\n" for name, values in table.items()) + "}"


def kernel_text(terms: Terms, places: Sequence[str] | None) -> str:
    """The kernel in Python; columns by number where they have no names."""

    def leaf_text(leaf: Leaf) -> str:
        column = leaf.column if places is None else list(places).index(leaf.column)
        return f"{leaf.kernel}({', '.join([repr(column), *(f'{k}={v!r}' for k, v in leaf.values.items())])})"

    return " + ".join(" * ".join(map(leaf_text, term)) for term in terms) or "None"


def _by_place(option: Any, places: Sequence[str]) -> Any:
    """An option by column, for a table whose columns have no names."""
    if not isinstance(option, dict):
        return option
    return {list(places).index(key) if key in places else key: value for key, value in option.items()}


def model_text(problem: Problem) -> str:
    """The call of the constructor."""
    places = tuple(problem.table) if problem.source == "array" else None
    options = {name: _by_place(value, places) if places else value for name, value in problem.options.items()}
    words = [kernel_text(problem.terms, places)]
    words += [] if problem.likelihood is None else [f"likelihood={problem.likelihood}"]
    words += [f"{name}={value!r}" for name, value in options.items()]
    return f"{problem.estimator}({', '.join(words)})"


def fit_text(problem: Problem) -> str:
    """From ``table``, ``y`` and ``w`` to a fitted ``model`` and the rows to ask it about, ``at`` and its ``own``."""
    make, arguments = SOURCES[problem.source]
    container = _CONTAINERS.get(problem.source, "pd.DataFrame({})")
    steps = STEPS[problem.steps].format(arguments=arguments)
    questions = f"at, own = {container.format('asked')}, {container.format('table')}"
    return "\n".join([make, f"model = {model_text(problem)}", steps, questions])


ANSWERS_TEXT = """answers = {}
answers["mean"], answers["std"] = model.predict(at, return_std=True)
answers["f"], answers["variance of f"] = model.predict_f(at)
effects = model.effects(at)
answers["effects"], answers["std of effects"] = effects.mean, effects.std
answers["quantiles"] = model.predict_quantiles(at, (0.025, 0.5, 0.975))
answers["own quantiles"] = model.predict_quantiles(own, (0.001, 0.999))
"""
CLASS_ANSWERS_TEXT = """answers = {"probability": model.predict_proba(at)}
"""


def answers_text(problem: Problem) -> str:
    return ANSWERS_TEXT if problem.estimator == "GPRegressor" else CLASS_ANSWERS_TEXT


def data_text(problem: Problem) -> str:
    lines = [f"table = {written(problem.table)}", f"asked = {written(problem.asked)}"]
    lines += [f"y = {literal(problem.y)}", f"w = {literal(problem.weights)}"]
    lines += ["folder = tempfile.mkdtemp()"] if "folder" in fit_text(problem) else []
    return "\n".join(lines)


@dataclass(frozen=True)
class Run:
    """What came of a program: a model and its answers, or the error that it ended with; and what it warned of."""

    model: Any
    answers: dict[str, np.ndarray]
    error: BaseException | None
    warned: tuple[warnings.WarningMessage, ...]


def run(problem: Problem, more: str = "") -> Run:
    """Fit and ask, as the printed program does; ``more`` comes between the two."""
    names: dict[str, Any] = {"table": problem.table, "asked": problem.asked, "y": problem.y, "w": problem.weights}
    text = "\n".join([IMPORTS, fit_text(problem), more, answers_text(problem)])
    error = None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        names["folder"] = folder
        try:
            exec(compile(text, "the program of a random problem", "exec"), names)
        except Exception as found:  # which of them are sentences, a law says
            error = found
    return Run(names.get("model"), names.get("answers", {}), error, tuple(warned))


def script(problems: Sequence[Problem], law: str, sentence: str, more: str = "") -> str:
    """A program that stands by itself and shows what broke a law, one fit after another."""
    head = "\n".join(f"# {line}" for line in [f"law: {law}", *sentence.splitlines()])
    body = []
    for problem in problems:
        body += [data_text(problem), fit_text(problem), more, answers_text(problem)]
        body += ["print(model.elbo_, model.evidence_upper_bound_, model.noise_variance_, model.kernel_)"]
        body += ["print(answers)\n"]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(body))
    return f"{head}\n{used_imports(text)}\n{text.strip()}\n"


def used_imports(text: str) -> str:
    """Those that a program needs."""
    lines = [line for line in IMPORTS.splitlines() if line]
    used = [line for line in lines if "*" in line or re.search(rf"\b{_called(line)}[.(]", text)]
    return "\n".join(used) + "\n"


def _called(line: str) -> str:
    """What an import is called by in a program."""
    return line.split()[-1].replace("pyarrow.", "pa.")


def save_script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path
