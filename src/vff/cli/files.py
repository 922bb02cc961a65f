"""The files of a command: data and models are opened as the options say, outputs are checked before any work."""

import csv
import glob
import os
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vff.cli.failures import OutputError, UsageError
from vff.cli.options import types as types_given
from vff.cli.progress import Reporter
from vff.data import Kind, Source, column_kinds
from vff.data.opening import scan
from vff.estimators.saving import load
from vff.kernels.formula import nearest
from vff.kernels.grammar import INTEGER
from vff.storage import check_writable
from vff.words import shown

_TABS = {"tab": "\t", "\\t": "\t"}


class DataError(ValueError):
    """Data that are not there, or do not have what the command needs."""


def open_rows(options: Namespace, reporter: Reporter | None) -> Source:
    """The rows of DATA, to be read in chunks."""
    if reporter is not None:
        reporter.phase("looking at the files")
    named = ("missing", "faulty", "checkpoint", "chunk_rows")
    given = {name: getattr(options, name) for name in named if hasattr(options, name)}
    delimiter = _TABS.get(options.delimiter, options.delimiter)
    try:
        return scan(list(options.data), types=types_given(options.types), delimiter=delimiter, report=reporter, **given)
    except FileNotFoundError as error:
        raise DataError(str(error)) from error


def kinds_of(source: Source) -> dict[str, str]:
    """What every column holds, in the words of terms; a column with nothing in it yet is taken for numbers."""
    return {str(name): kind for name, kind in (column_kinds(source) or {}).items()}


def read_pairs(path: str, kind: str) -> dict[str | float, list[str | float]]:
    """Neighbours of a column that holds ``kind``: two names per line below a header, or one for an area without any."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, delimiter="\t" if path.lower().endswith(".tsv") else ","))[1:]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"--terms was expected to name a CSV file of neighbours, and {path} cannot be read ({error}); give two "
            "columns of names with a header"
        ) from error
    found: dict[str | float, list[str | float]] = {}
    for number, line in enumerate(lines, start=2):
        names = [name for name in line if name]
        if not line:
            continue
        if len(line) > 2 or not names:
            raise DataError(
                f"two names of neighbours were expected in every line of {path}, found {shown(line)} in line {number}; "
                "write the names with a comma between them, or one alone for an area without neighbours"
            )
        first, *others = (_level(name, kind, f"line {number} of {path}") for name in names)
        found.setdefault(first, []).extend(others)
    return found


def _level(name: str, kind: str, where: str) -> str | float:
    """A name as its column holds it."""
    if kind != "number":
        return name
    try:
        return int(name) if INTEGER.fullmatch(name.strip()) else float(name)
    except ValueError:
        raise DataError(
            f"a number was expected in {where}, as in the column of areas, found {shown(name)}; give --types "
            "'column=text' if these are names"
        ) from None


def need_columns(source: Source, wanted: Iterable[tuple[str, str]]) -> None:
    """Refuse columns, each with who asks for it, that the rows do not have."""
    names = list(source.names or ())
    for name, who in wanted:
        if name not in names:
            raise DataError(
                f"{who} was expected to be a column of the data, found {shown(name)}; {nearest(name, names)}"
            )


def open_for(model: Any, options: Namespace, reporter: Reporter | None) -> Source:
    """Rows for a model: its columns are there, and hold text where the model knows text."""
    source = open_rows(options, reporter)
    uses = _uses(model)
    need_columns(source, [(name, uses.get(name, "what the model uses")) for name in columns_of(model)])
    return source.expecting_text([name for name, column in bound_columns(model) if column.kind == Kind.TEXT])


def _uses(model: Any) -> dict[str, str]:
    """What a model reads columns for that no term is about."""
    function = model.functions_[0]
    likelihood, offset = function.likelihood_, function._offset
    role = "noise-std" if likelihood.known_errors else likelihood.column_role()
    return {likelihood.column: f"the {role} of the model", offset: "the offset of the model"}


def columns_of(model: Any) -> list[str]:
    """The columns that a model reads."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise DataError("a model of named columns was expected, and this one was fitted to an array; fit it to a table")
    return [str(name) for name in names]


def bound_columns(model: Any) -> list[tuple[str, Any]]:
    """The columns of the terms as they were fitted, by name; models of several classes have the same."""
    names = columns_of(model)
    return [(names[column.index], column) for column in model.functions_[0].statistics_.binding.columns]


def load_model(path: str, *, learnt: bool = True) -> Any:
    """The estimator in a file; refused when it is statistics where a model is needed."""
    if not os.path.isfile(path):
        found = "a folder" if os.path.isdir(path) else "nothing"
        raise OutputError(f"a file of 'vff fit' or 'vff moments' was expected, found {found} at {path}; check the path")
    model = load(path)
    if learnt and not hasattr(model, "predict"):
        raise OutputError(
            f"a regressor or a classifier was expected, found a {type(model).__name__} in {path}; use Python"
        )
    if learnt and not hasattr(model.functions_[0], "posterior_"):
        raise OutputError(
            f"a model was expected, found statistics in {path}; run 'vff fit {path} --out model.vff' first"
        )
    return model


def check_output(options: Namespace, endings: Sequence[str]) -> Path:
    """Refuse, before any work is done, an output or a checkpoint that cannot be or must not be written."""
    out, path = options.out, Path(options.out)
    inputs = [
        *([options.model] if "model" in options else []),
        *getattr(options, "data", getattr(options, "parts", ())),
    ]
    if path.suffix.lower() not in endings:
        raise UsageError(f"--out must end in {' or '.join(endings)}, found {out}; the ending says what is written")
    if path.is_dir() or not path.absolute().parent.is_dir():
        found = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise OutputError(f"--out was expected to name a file that can be written, and {out} {found}; name another")
    if path.exists() and any(_holds(name, path) for name in inputs):
        raise UsageError(f"--out {out} is one of the inputs, which are never overwritten; name another file")
    if path.exists() and not options.force:
        raise OutputError(f"--out {out} exists already; name another file, or give --force to replace it")
    check_writable(path)
    if getattr(options, "checkpoint", None) is not None:
        state = Path(options.checkpoint)
        if state.absolute() == path.absolute() or any(_holds(name, state) for name in inputs):
            raise UsageError(f"--checkpoint {state} is another file of this command; give it a name of its own")
        check_writable(state)
    return path


def _holds(name: str, path: Path) -> bool:
    """Whether an input is this file, or a folder or a pattern that holds it."""
    for found in glob.glob(name, recursive=True) or [name]:
        with suppress(OSError):
            if os.path.samefile(found, path) or (
                os.path.isdir(found) and Path(found).resolve() in path.resolve().parents
            ):
                return True
    return False
