"""The axes of a picture: what a column is called, and ticks for what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.estimators.predict import ProcessMixin

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_EPOCH = np.datetime64("1970-01-01")  # from which the columns' days are counted
_MOST_LABELS = 30
_LONGEST_LABEL = 16


def column_name(model: ProcessMixin, number: int) -> str:
    """What the numbered one of the modelled columns is called in a picture."""
    index, names = model.column_indices_[number], getattr(model, "feature_names_in_", None)
    return f"column {index}" if names is None else str(names[index])


def column_kind(model: ProcessMixin, number: int) -> str:
    """What the column holds, as ``Table.kind`` says; "levels" when it is modelled as categories.

    Models that do not keep what they were given, as the baselines, hold numbers.
    """
    rows = getattr(model, "statistics_", None)
    if rows is None:
        levels = model.column_levels_
        return "levels" if levels and levels[number] is not None else "number"
    column = rows.binding.columns[number]
    return column.kind if column.levels is None else "levels"


def column_label(model: ProcessMixin, number: int) -> str:
    """The name of the column, with its unit if the reading of the table gave it one."""
    unit = " (days)" if column_kind(model, number) == "duration" else ""
    return f"{column_name(model, number)}{unit}"


def value_text(kind: str, value: float) -> str:
    """One value of a column of numbers, as a title says it."""
    if kind == "datetime":
        return str(_EPOCH + np.timedelta64(round(value), "D"))
    if kind == "boolean":
        return str(value >= 0.5)
    return f"{value:.3g} days" if kind == "duration" else f"{value:.4g}"


def level_text(level: Any) -> str:
    """The name of a level, cut when it is long."""
    text = "missing" if level is None else str(level)
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def on_axis(kind: str, x: np.ndarray) -> np.ndarray:
    """Values of a column as matplotlib counts them; days differ when the user has moved matplotlib's epoch."""
    if kind != "datetime":
        return x
    from matplotlib.dates import date2num

    return x + float(date2num(_EPOCH))


def tick(axis: Axis, kind: str) -> None:
    """Dates for days, words for booleans; numbers are ticked well by themselves."""
    if kind == "datetime":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
    elif kind == "boolean":
        axis.set_ticks([0.0, 1.0], labels=["False", "True"])


def tick_levels(axis: Axis, levels: Sequence[Any]) -> None:
    """Names at 0, 1, 2 ... in the order given; some of them, as the axis then says, when they are many."""
    step = -(-len(levels) // _MOST_LABELS)
    named = [level_text(level) for level in levels[::step]]
    crowded = len(named) > 6 or sum(map(len, named)) > 30
    across = axis.axis_name == "x"  # pyright: ignore[reportAttributeAccessIssue]
    rotation, size = (90 if crowded and across else 0), ("x-small" if crowded else "small")
    axis.set_ticks(range(0, len(levels), step), labels=named, rotation=rotation, fontsize=size)
    if step > 1:
        axis.set_label_text(f"{axis.get_label_text()}: {len(levels)} levels, one in {step} named")
