"""``vff effects``: what every term adds, as a picture or as numbers."""

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from vff.cli.failures import UsageError
from vff.cli.models import about, load_model
from vff.cli.options import name_of_term, names
from vff.cli.results import Result, check_output, written_whole
from vff.cli.summary import label_text, named
from vff.cli.tables import TableWriter
from vff.estimators.saved_records import Description
from vff.report.columns import column_kind, column_name
from vff.report.views import View, effect_on, levels_of, places, view_of
from vff.words import listed, shown

_PICTURES = (".png", ".pdf", ".svg")
_ALONG = {1: 200, 2: 40}  # places per column, in terms over one column and over two
_DPI = 150
_EPOCH = np.datetime64("1970-01-01T00:00:00")
_DAY = 86_400


def effects(options: Namespace) -> Result:
    """Draw the terms of a model, or write them as numbers."""
    out = check_output(options.out, [options.model], (*_PICTURES, ".csv"), force=options.force)
    model, description = load_model(options.model), about(options.model)
    model = _of_class(model, options.of_class)
    known = [term.name for term in model.statistics_.terms]
    requested = [name_of_term(name) for name in names(options.terms, "--terms")] or known
    unknown = [name for name in requested if name not in known]
    if unknown:
        raise UsageError(
            f"--terms was expected to name terms of the model, found {shown(unknown[0])}; it has {listed(known)}"
        )
    if out.suffix.lower() == ".csv":
        rows = _write(model, [known.index(name) for name in requested], out)
        record = {"out": str(out), "terms": requested, "rows": rows}
        return Result(record, f"wrote {rows:,} rows of {len(requested)} term(s) to {out}")
    _draw(model, requested, options.level, description, out)
    return Result({"out": str(out), "terms": requested}, f"drew {', '.join(requested)} in {out}")


def _of_class(model: Any, label: str | None) -> Any:
    """The model of one class, where there is one for each."""
    if len(model.functions_) == 1:
        if label is not None:
            raise UsageError("--class is for models of more than two classes, found another; leave it out")
        return model
    labels = [label_text(one) for one in model.classes_]
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
    gaussian = model.fit_.from_sums
    ylabel = f"effect on {named(target, units)}" if target and gaussian else None
    figure = plot.effects(model, list(terms), level=level, xlabels=xlabels, ylabel=ylabel)
    with written_whole(out) as draft:
        figure.savefig(draft, dpi=_DPI)


def _write(model: Any, numbers: Sequence[int], out: Path) -> int:
    with written_whole(out) as draft:
        writer = TableWriter(draft, parquet=False)
        for number in numbers:
            view = view_of(model, number)
            lattice = {c: _places(model, c, _ALONG[len(view.over)]) for c in view.over}
            effect = effect_on(model, view, lattice)
            labels = list(_labels(model, view, list(lattice.values())))
            columns = {"term": [model.statistics_.terms[number].name] * len(labels), "x": labels}
            writer.write({**columns, "effect": effect.mean.ravel(), "sd": effect.std.ravel()})
        writer.close()
    return writer.rows


def _places(model: Any, c: int, count: int) -> np.ndarray:
    """Where a column is asked: there is nothing between False and True."""
    return places(model, c, 2 if column_kind(model, c) == "boolean" else count)


def _labels(model: Any, view: View, lattice: Sequence[np.ndarray]) -> Iterator[str]:
    """Where the effect is, in words; the last column runs fastest, as in the effect."""
    texts = [_texts(model, c, x) for c, x in zip(view.over, lattice, strict=True)]
    return (" * ".join(cells) for cells in product(*texts))


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
