"""``vff predict``: new observations with their uncertainty; ``vff effects``: what every term adds."""

import os
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from vff.cli.entry import Result
from vff.cli.failures import UsageError
from vff.cli.files import DataError, bound_columns, check_output, columns_of, load_model, need_columns, open_for
from vff.cli.info import named
from vff.cli.options import name_of_term, names
from vff.cli.progress import Reporter, duration
from vff.data import Chunk, Source, open_rows, run_task
from vff.data.checks import label_text
from vff.estimators.saved_records import Description
from vff.estimators.saving import describe
from vff.report.canvas import column_kind, column_name
from vff.report.views import effect_on, grid_along, levels_of, view_of
from vff.storage import written_whole
from vff.words import listed, shown

_PICTURES = (".png", ".pdf", ".svg")
_ALONG = {1: 200, 2: 40}  # places per column, in terms over one column and over two
_DPI = 150
_EPOCH = np.datetime64("1970-01-01T00:00:00")
_DAY = 86_400


class TableWriter:
    """Takes columns in pieces; the first piece settles their names and types."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self.rows = 0

    def write(self, columns: Mapping[str, Any]) -> None:
        """Some rows: every column an Arrow or a NumPy array."""
        import pyarrow as pa
        from pyarrow import csv, parquet

        piece = pa.table(dict(columns))
        if self._writer is None:
            kind = parquet.ParquetWriter if self._path.suffix.lower() == ".parquet" else csv.CSVWriter
            self._schema, self._writer = piece.schema, kind(self._path, piece.schema)
        self._writer.write_table(piece if piece.schema == self._schema else piece.cast(self._schema))
        self.rows += piece.num_rows


@contextmanager
def table_written(path: Path) -> Iterator[TableWriter]:
    """A table to write to, which is complete in the end or not there at all."""
    with written_whole(path) as draft:
        writer = TableWriter(draft)
        yield writer
        if writer._writer is not None:
            writer._writer.close()


def predict(options: Namespace) -> Result:
    """Predict every row of DATA, chunk by chunk, so that memory stays flat."""
    out = check_output(options, (".parquet", ".csv"))
    began, keep, model = time.monotonic(), names(options.keep, "--keep"), load_model(options.model)
    columns = [*keep, *model._described_names]
    for name in keep:
        if columns.count(name) > 1:
            raise UsageError(
                f"--keep was expected to name columns that are not written yet, found {shown(name)}; leave it out"
            )
    with Reporter(quiet=options.quiet, then="answering for") as reporter:
        source = _opened(model, options, keep, reporter)
        reporter.phase("predicting")
        with table_written(out) as writer:
            dropped = _write_predictions(model, source, keep, options.level, writer)
    seconds = time.monotonic() - began
    record = {"out": str(out), "rows": writer.rows, "dropped": dropped, "columns": columns, "level": options.level}
    left_out = f", {dropped:,} left out for missing values" if dropped else ""
    text = f"wrote {writer.rows:,} predictions to {out} in {duration(seconds)}{left_out}"
    return Result({**record, "seconds": round(seconds, 3)}, text)


def _opened(model: Any, options: Namespace, keep: Sequence[str], reporter: Reporter) -> Source:
    """The rows, of which missing is a level like the others where the model knows levels, and harmless where kept."""
    source = open_for(model, options, reporter)
    need_columns(source, [(name, "--keep") for name in keep])
    used = columns_of(model)
    levels = [name for name, column in bound_columns(model) if column.levels is not None]
    harmless = {*levels, *(name for name in keep if name not in used)}
    return source.restricted([*used, *keep]).with_options(keep_missing=tuple(sorted(harmless)))


def _write_predictions(model: Any, source: Source, keep: Sequence[str], level: float, writer: TableWriter) -> int:
    """Predict and write all chunks; how many rows were left out."""
    used, dropped = columns_of(model), 0

    def described(chunk: Chunk) -> Sequence[np.ndarray]:
        rows = open_rows(chunk.data.select(used)).with_options(missing=source.options.missing)
        return model._described(rows, level)

    for chunk in source.chunks():
        dropped += chunk.dropped
        if chunk.n_rows == 0:
            continue
        values = run_task(described, chunk)
        kept = {name: chunk.data.column(name) for name in keep}
        writer.write({**kept, **dict(zip(model._described_names, values, strict=True))})
    if writer.rows == 0:
        raise DataError(
            f"rows to predict were expected, found none ({dropped:,} left out); give rows that are complete"
        )
    return dropped


def effects(options: Namespace) -> Result:
    """Draw the terms of a model, or write them as numbers."""
    out = check_output(options, (*_PICTURES, ".csv"))
    model, description = load_model(options.model), describe(options.model)
    model = _of_class(model, options.of_class)
    known = [term.name for term in model.statistics_.terms]
    requested = [name_of_term(name) for name in names(options.terms, "--terms")] or known
    unknown = [name for name in requested if name not in known]
    if unknown:
        raise UsageError(
            f"--terms was expected to name terms of the model, found {shown(unknown[0])}; it has {listed(known)}"
        )
    record = {"out": str(out), "terms": requested}
    if out.suffix.lower() == ".csv":
        with table_written(out) as writer:
            for name in requested:
                writer.write(_numbers(model, known.index(name)))
        text = f"wrote {writer.rows:,} rows of {len(requested)} term(s) to {out}"
        return Result({**record, "rows": writer.rows}, text)
    _draw(model, requested, options.level, description, out)
    return Result(record, f"drew {', '.join(requested)} in {out}")


def _of_class(model: Any, label: str | None) -> Any:
    """The model of one class, where there is one for each."""
    if len(model.functions_) == 1:
        if label is not None:
            raise UsageError("--class is for models of more than two classes, found another; leave it out")
        return model
    labels = [label_text(one) for one in model._labels]
    if label not in labels:
        found = "none" if label is None else repr(label)
        raise UsageError(
            f"--class was expected to name one of {', '.join(labels)}, found {found}; each has its effects"
        )
    return model.functions_[labels.index(label)]


def _draw(model: Any, terms: Sequence[str], level: float, description: Description, out: Path) -> None:
    os.environ.setdefault("MPLBACKEND", "agg")  # no window is opened, and none is needed
    from vff import plot

    units, target = description.units, description.target
    columns = {column_name(model, c) for c in range(len(model.column_indices_))}
    xlabels = {name: named(name, units) for name in columns if name in units}
    ylabel = f"effect on {named(target, units)}" if target and model.fit_.from_sums else None
    figure = plot.effects(model, list(terms), level=level, xlabels=xlabels, ylabel=ylabel)
    with written_whole(out) as draft:
        figure.savefig(draft, dpi=_DPI)


def _numbers(model: Any, number: int) -> dict[str, Any]:
    """A term on a lattice of its columns: there is nothing between False and True, and the last runs fastest."""
    view = view_of(model, number)
    along = {c: 2 if column_kind(model, c) == "boolean" else _ALONG[len(view.over)] for c in view.over}
    lattice = {c: grid_along(model, c, count) for c, count in along.items()}
    effect = effect_on(model, view, lattice)
    labels = [" * ".join(cells) for cells in product(*(_texts(model, c, x) for c, x in lattice.items()))]
    columns = {"term": [model.statistics_.terms[number].name] * len(labels), "x": labels}
    return {**columns, "effect": effect.mean.ravel(), "sd": effect.std.ravel()}


def _texts(model: Any, c: int, x: np.ndarray) -> list[str]:
    kind = column_kind(model, c)
    if kind == "levels":
        levels = levels_of(model, c)
        return ["missing" if levels[int(code)] is None else str(levels[int(code)]) for code in x]
    if kind == "datetime":
        return [str(_EPOCH + np.timedelta64(round(day * _DAY), "s")) for day in x]
    if kind == "boolean":
        return [str(value >= 0.5) for value in x]
    return [f"{value:.10g}" for value in x]
