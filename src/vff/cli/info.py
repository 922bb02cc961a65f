"""``vff info``: what is in a model, in statistics or in a file of data."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vff.cli.models import about, load_model
from vff.cli.results import Result
from vff.cli.rows import kinds_of, open_rows
from vff.cli.summary import summary, summary_text
from vff.report.text import table
from vff.storage.container import MAGIC

_OURS = (".vff", ".vffm")


def info(options: Namespace) -> Result:
    """Say what a file holds."""
    return _of_model(options.file) if _is_ours(options.file) else _of_data(options)


def _is_ours(path: str) -> bool:
    """By the ending, or by how the file begins when it was renamed."""
    if Path(path).suffix.lower() in _OURS:
        return True
    if not Path(path).is_file():
        return False
    with open(path, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _of_model(path: str) -> Result:
    record = {"file": path, **summary(load_model(path, learnt=False), about(path))}
    frequencies = ", ".join(f"{term} {count}" for term, count in record.get("frequencies", {}).items())
    choices = f"{record['features']:,} features" + (f"; frequencies: {frequencies}" if frequencies else "")
    provenance = table([(name, _words(value)) for name, value in record["provenance"].items()])
    return Result(record, "\n\n".join([summary_text(record), _columns_text(record), choices, provenance]))


def _columns_text(record: Mapping[str, Any]) -> str:
    domain = record.get("domain", {})
    rows = [
        {
            "column": column["name"],
            "holds": column["kind"] or "-",
            "unit": column["unit"] or "-",
            "levels": "-" if column["levels"] is None else str(column["levels"]),
            "domain": " to ".join(_place(end, column["kind"]) for end in domain.get(column["name"], ())) or "-",
        }
        for column in record["columns"]
    ]
    return table(rows)


def _place(value: float, kind: str | None) -> str:
    """An end of a domain: times are counted in days since 1970."""
    if kind != "datetime":
        return f"{value:.6g}"
    return (datetime(1970, 1, 1) + timedelta(days=value)).isoformat(sep=" ", timespec="minutes")


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, Mapping):
        return " ".join(_words(item) for item in value.values())
    return str(value)


def _of_data(options: Namespace) -> Result:
    source = open_rows(Namespace(data=[options.file], types=options.types, delimiter=options.delimiter), None)
    kinds, parts = kinds_of(source), [part.name for part in source.parts()]
    record = {"file": options.file, "rows": source.n_rows, "files": parts, "columns": kinds}
    rows = "rows are not counted before they are read" if source.n_rows is None else f"{source.n_rows:,} rows"
    listed = table([{"column": name, "holds": kind} for name, kind in kinds.items()])
    return Result(record, f"{options.file}: {len(parts)} file(s), {rows}, {len(kinds)} columns\n\n{listed}")
