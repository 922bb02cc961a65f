"""Files of data, opened as the options say, with sentences about columns that are not there."""

from argparse import Namespace
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from vff.cli.options import types as types_given
from vff.cli.progress import Reporter
from vff.data import Kind, Source
from vff.data.opening import scan
from vff.words import shown

_TABS = {"tab": "\t", "\\t": "\t"}


class DataError(ValueError):
    """Data that are not there, or do not have what the command needs."""


def open_rows(options: Namespace, reporter: Reporter | None) -> Source:
    """The rows of DATA, to be read in chunks."""
    try:
        return scan(
            list(options.data),
            missing=getattr(options, "missing", "refuse"),
            faulty=getattr(options, "faulty", "refuse"),
            checkpoint=getattr(options, "checkpoint", None),
            chunk_rows=getattr(options, "chunk_rows", 2**20),
            types=types_given(getattr(options, "types", None)),
            delimiter=_TABS.get(options.delimiter, options.delimiter),
            report=reporter,
        )
    except FileNotFoundError as error:
        raise DataError(str(error)) from error


def kinds_of(source: Source) -> dict[str, str]:
    """What every column holds, in the words of terms; a column with nothing in it yet is taken for numbers."""
    return {name: source.kinds[name].family.value for name in source.names or ()}


def need_columns(source: Source, wanted: Iterable[tuple[str, str]]) -> None:
    """Refuse columns, each with who asks for it, that the rows do not have."""
    names = list(source.names or ())
    for name, who in wanted:
        if name not in names:
            raise DataError(
                f"{who} was expected to be a column of the data, found {shown(name)}; {_nearest(name, names)}"
            )


def _nearest(name: str, names: list[str]) -> str:
    lowered = {column.lower(): column for column in names}
    near = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3)]
    if near:
        return f"perhaps {' or '.join(map(shown, near))} was meant"
    return f"the columns are {', '.join(map(shown, names[:8]))}{', ...' if len(names) > 8 else ''}"


def open_for(model: Any, options: Namespace, reporter: Reporter | None) -> Source:
    """Rows for a model: its columns are there, and hold text where the model knows text."""
    source = open_rows(options, reporter)
    need_columns(source, [(name, "what the model uses") for name in columns_of(model)])
    return source.expecting_text([name for name, kind in model_kinds(model).items() if kind == Kind.TEXT])


def columns_of(model: Any) -> list[str]:
    """The columns that a model reads."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise DataError("a model of named columns was expected, and this one was fitted to an array; fit it to a table")
    return [str(name) for name in names]


def model_kinds(model: Any) -> dict[str, str]:
    """What the columns of the terms held when the model was fitted."""
    return {name: column.kind for name, column in _columns(model)}


def level_columns(model: Any) -> set[str]:
    """The columns that the model takes as levels, where missing is a level like the others."""
    return {name for name, column in _columns(model) if column.levels is not None}


def _columns(model: Any) -> list[tuple[str, Any]]:
    """The columns of the terms, by name; models of several classes have the same."""
    names = columns_of(model)
    return [(names[column.index], column) for column in model.functions_[0].statistics_.binding.columns]
