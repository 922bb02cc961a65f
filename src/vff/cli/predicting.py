"""``vff predict``: new observations with their uncertainty, chunk by chunk, so that memory stays flat."""

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from vff.cli.failures import UsageError
from vff.cli.models import load_model
from vff.cli.options import names
from vff.cli.progress import Reporter, duration
from vff.cli.results import Result, check_output, written_whole
from vff.cli.rows import DataError, columns_of, level_columns, need_columns, open_for
from vff.cli.summary import label_text
from vff.cli.tables import TableWriter
from vff.data import Source
from vff.words import shown


def predict(options: Namespace) -> Result:
    """Predict every row of DATA."""
    out = check_output(options.out, [options.model, *options.data], (".parquet", ".csv"), force=options.force)
    began, keep, model = time.monotonic(), names(options.keep, "--keep"), load_model(options.model)
    _check_names(keep, output_columns(model))
    with Reporter(quiet=options.quiet) as reporter:
        reporter.phase("looking at the files")
        source = _opened(model, options, keep, reporter)
        reporter.phase("predicting")
        with written_whole(out) as draft:
            writer = TableWriter(draft, out.suffix.lower() == ".parquet")
            dropped = _write(model, source, keep, options.level, writer)
    seconds = time.monotonic() - began
    record = {
        "out": str(out),
        "rows": writer.rows,
        "dropped": dropped,
        "columns": [*keep, *output_columns(model)],
        "level": options.level,
        "seconds": round(seconds, 3),
    }
    left_out = f", {dropped:,} left out for missing values" if dropped else ""
    return Result(record, f"wrote {writer.rows:,} predictions to {out} in {duration(seconds)}{left_out}")


def output_columns(model: Any) -> list[str]:
    """What is written of every row, beside what is kept."""
    if hasattr(model, "classes_"):
        return [*(f"P({label_text(label)})" for label in model.classes_), "predicted"]
    return ["mean", "sd", "lower", "upper"]


def predicted(model: Any, X: Any, level: float) -> list[Any]:
    """The columns of ``output_columns``."""
    if hasattr(model, "classes_"):
        each = model.predict_proba(X)
        return [*each.T, model.classes_[np.argmax(each, axis=1)]]
    return [*model._described(X, level)]


def _check_names(keep: Sequence[str], written: Sequence[str]) -> None:
    for place, name in enumerate(keep):
        if name in written or name in keep[:place]:
            raise UsageError(
                f"--keep was expected to name columns that are not written yet, found {shown(name)}; leave it out"
            )


def _opened(model: Any, options: Namespace, keep: Sequence[str], reporter: Reporter) -> Source:
    source = open_for(model, options, reporter)
    need_columns(source, [(name, "--keep") for name in keep])
    used = columns_of(model)
    harmless = {*level_columns(model), *(name for name in keep if name not in used)}
    return source.restricted([*used, *keep]).with_options(keep_missing=tuple(sorted(harmless)))


def _write(model: Any, source: Source, keep: Sequence[str], level: float, writer: TableWriter) -> int:
    """Predict and write all chunks; how many rows were left out."""
    used, labels, dropped = columns_of(model), output_columns(model), 0
    for chunk in source.chunks():
        dropped += chunk.dropped
        if chunk.n_rows == 0:
            continue
        try:
            values = predicted(model, chunk.data.select(used), level)
        except ValueError as error:
            raise DataError(f"{chunk.where}: {error}") from error
        kept = {name: chunk.data.column(name) for name in keep}
        writer.write({**kept, **dict(zip(labels, values, strict=True))})
    writer.close()
    if writer.rows == 0:
        raise DataError(
            f"rows to predict were expected, found none ({dropped:,} left out); give rows that are complete"
        )
    return dropped
