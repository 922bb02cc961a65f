"""The horizontal axis of a picture: what a column is called, and ticks for what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vff.estimators.face import RegressionFace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EPOCH = np.datetime64("1970-01-01")  # from which the columns' days are counted


def column_name(model: RegressionFace, number: int) -> str:
    """What the numbered one of the modelled columns is called in a picture."""
    index, names = model.column_indices_[number], getattr(model, "feature_names_in_", None)
    return f"column {index}" if names is None else str(names[index])


def column_kind(model: RegressionFace, number: int) -> str:
    """What the column holds, as ``Table.kind`` says; "levels" when it is modelled as categories.

    Models that do not keep what they were given, as the baselines, hold numbers.
    """
    rows = getattr(model, "rows_", None)
    if rows is None:
        return "number"
    return rows.terms[number].kind if rows.terms[number].levels is None else "levels"


def on_axis(kind: str, x: np.ndarray) -> np.ndarray:
    """Values of a column as matplotlib counts them; days differ when the user has moved matplotlib's epoch."""
    if kind != "datetime":
        return x
    from matplotlib.dates import date2num

    return x + float(date2num(_EPOCH))


def tick(ax: Axes, kind: str) -> None:
    """Dates under days, words under booleans; numbers are ticked well by themselves."""
    if kind == "datetime":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    elif kind == "boolean":
        ax.set_xticks([0.0, 1.0], ["False", "True"])
