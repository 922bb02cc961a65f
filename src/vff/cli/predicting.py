"""``vff predict``: new observations with their uncertainty, chunk by chunk, so that memory stays flat."""

import time
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
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
from vff.sources.base import AbstractPart, AbstractSource, Chunk, Progress, SourceError
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
            dropped = _write(model, source, keep, options.level, writer, reporter)
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


def _opened(model: Any, options: Namespace, keep: Sequence[str], reporter: Reporter) -> AbstractSource:
    source = open_for(model, options, reporter)
    need_columns(source, [(name, "--keep") for name in keep])
    used = columns_of(model)
    harmless = {*level_columns(model), *(name for name in keep if name not in used)}
    return source.restricted([*used, *keep]).handled(keep_missing=tuple(sorted(harmless)))


def _write(
    model: Any, source: AbstractSource, keep: Sequence[str], level: float, writer: TableWriter, reporter: Reporter
) -> int:
    """Predict and write all chunks; how many rows were left out."""
    used, labels, dropped = columns_of(model), output_columns(model), 0
    for chunk in _chunks(source, reporter):
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


def _chunks(source: AbstractSource, reporter: Reporter) -> Iterator[Chunk]:
    """All chunks, with progress after each."""
    began, parts, rows = time.monotonic(), list(source.parts()), 0
    sizes = [getattr(part, "size", None) or 0 for part in parts]
    for place, part in enumerate(parts):
        for chunk in _readable(part, source.handling.faulty):
            yield chunk
            rows += chunk.n_rows + chunk.dropped
            share = _share(rows, source.n_rows, sizes, place, getattr(chunk, "share_of_part", None))
            seconds = time.monotonic() - began
            reporter(Progress("predicting", rows, source.n_rows, share, seconds, part.name))


def _readable(part: AbstractPart, faulty: str) -> Iterator[Chunk]:
    """The chunks of a part, up to where it cannot be read if that is to be skipped."""
    try:
        yield from part.chunks()
    except SourceError as error:
        if faulty == "refuse":
            raise
        warnings.warn(f"{part.name} was left out from where it cannot be read: {error}", stacklevel=2)


def _share(rows: int, n_rows: int | None, sizes: Sequence[int], place: int, of_part: float | None) -> float | None:
    """How much is done, by rows where they are known, else by bytes."""
    if n_rows:
        return rows / n_rows
    total = sum(sizes)
    return (sum(sizes[:place]) + (of_part or 0.0) * sizes[place]) / total if total else None
