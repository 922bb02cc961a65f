"""Files of data and of models, opened as the options say, with sentences about what is not there."""

import os
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from vff.cli.failures import OutputError
from vff.cli.options import types as types_given
from vff.cli.progress import Reporter
from vff.data import Kind, Source
from vff.data.opening import scan
from vff.estimators.saving import load
from vff.kernels.formula import nearest
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
    kinds = source.schema.kinds
    return {name: kinds[name].family.value for name in source.names or ()}


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
    need_columns(source, [(name, "what the model uses") for name in columns_of(model)])
    return source.expecting_text([name for name, column in bound_columns(model) if column.kind == Kind.TEXT])


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
