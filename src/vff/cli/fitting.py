"""``vff fit``, ``vff update`` and ``vff forget``: models from rows, and from other models."""

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from vff.cli.building import make_model, provenance_of, units_of
from vff.cli.failures import UsageError
from vff.cli.models import about, load_model, save_model
from vff.cli.progress import Reporter, duration
from vff.cli.results import Result, check_checkpoint, check_output
from vff.cli.rows import need_columns, open_for, open_rows
from vff.cli.summary import summary, summary_text
from vff.cli.summing import merged
from vff.estimators.saved_records import Description

_OF_ROWS = ("target", "terms", "weight", "likelihood", "exposure", "domain", "frequencies", "edges", "types",
            "delimiter", "checkpoint")  # fmt: skip


def fit(options: Namespace) -> Result:
    """Learn from rows in one or more files, or from statistics."""
    out = check_output(options.out, options.data, (".vff",), force=options.force)
    check_checkpoint(options)
    statistics = [name for name in options.data if name.lower().endswith(".vffm")]
    if statistics and len(statistics) < len(options.data):
        raise UsageError("DATA was expected to be rows or statistics, found both; fit one kind at a time")
    return _fit_statistics(options, out) if statistics else _fit_rows(options, out)


def _fit_rows(options: Namespace, out: Path) -> Result:
    began, units = time.monotonic(), units_of(options)
    with Reporter(quiet=options.quiet) as reporter:
        reporter.phase("looking at the files")
        source = open_rows(options, reporter)
        model = make_model(options, source, units)
        reporter.phase("reading the rows")
        model.fit(source, options.target, sample_weight=options.weight)
        description = save_model(model, out, units, provenance_of(options))
    return _done(model, out, description, began)


def _fit_statistics(options: Namespace, out: Path) -> Result:
    given = [name for name in _OF_ROWS if getattr(options, name) is not None] + ["classify"] * options.classify
    if given:
        raise UsageError(f"--{given[0]} is for rows, found it beside statistics, which have it settled; leave it out")
    began = time.monotonic()
    with Reporter(quiet=options.quiet) as reporter:
        reporter.phase("learning")
        model, before = merged(options.data)
        model.learn()
        provenance = {**before.provenance, "data": list(options.data)}
        description = save_model(model, out, {**before.units, **units_of(options)}, provenance)
    return _done(model, out, description, began)


def update(options: Namespace) -> Result:
    """Add rows."""
    return _changed(options, "partial_fit")


def forget(options: Namespace) -> Result:
    """Take rows away."""
    return _changed(options, "forget")


def _changed(options: Namespace, how: str) -> Result:
    out = check_output(options.out, [options.model, *options.data], (".vff",), force=options.force)
    check_checkpoint(options)
    began, model, before = time.monotonic(), load_model(options.model), about(options.model)
    target, weight = options.target or before.target, options.weight or before.provenance.get("weight")
    if target is None:
        raise UsageError("--target was expected, since the model does not know its name; give --target COLUMN")
    with Reporter(quiet=options.quiet) as reporter:
        reporter.phase("looking at the files")
        source = open_for(model, options, reporter)
        need_columns(source, [(target, "--target"), *([(weight, "--weight")] if weight else [])])
        reporter.phase("reading the rows")
        getattr(model, how)(source, target, sample_weight=weight)
        steps = [*before.provenance.get("steps", []), {"command": options.command, "data": list(options.data)}]
        description = save_model(model, out, before.units, {**before.provenance, "target": target, "steps": steps})
    return _done(model, out, description, began)


def _done(model: Any, out: Path, description: Description, began: float) -> Result:
    seconds = time.monotonic() - began
    record = {"out": str(out), "seconds": round(seconds, 3), **summary(model, description)}
    return Result(record, f"{summary_text(record)}\n\nwrote {out} in {duration(seconds)}")
