"""What is drawn with matplotlib: figures, legends, and axes with the names and ticks of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.estimators.arguments import interval_level
from vff.estimators.predict import ProcessMixin
from vff.report.levels import LABELLED, named_extremes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MEAN, BAND = "#0b4f8a", "#2f7fc1"
"""The colours of a posterior mean and of the intervals around it."""
UNKNOWN = "0.82"
"""The grey of places about which the data say nothing."""
_EPOCH = np.datetime64("1970-01-01")  # from which the columns' days are counted
_MOST_LABELS = 30
_LONGEST_LABEL = 16

Data = dict[str, np.ndarray]
"""What a picture shows, as numbers: arrays of equal length, one entry per point."""


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "drawing needs matplotlib, which is not installed; install it with pip install 'vff[plot]'"
        ) from None
    return pyplot


def new_axes(width: float = 8.0, height: float = 4.6) -> Axes:
    """Axes on a new figure of this size in inches. Without a display, matplotlib draws to memory by itself."""
    _, ax = _pyplot().subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_panels(count: int, ncols: int, *, width: float, height: float) -> list[Axes]:
    """So many panels of a new figure, row by row, each of this size in inches."""
    ncols = min(ncols, count)
    nrows = -(-count // ncols)
    # a single panel would be too narrow for the legend below it
    size = (max(width * ncols, 5.0), height * nrows + 0.4)
    _, grid = _pyplot().subplots(nrows, ncols, figsize=size, layout="constrained", squeeze=False)
    panels = list(np.ravel(grid))
    for ax in panels[count:]:
        ax.remove()
    for ax in panels[:count]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize="small")
    return panels[:count]


def legend_below(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """A legend below all panels, in as many columns as there is room for; none without handles."""
    if handles:
        ncols = min(len(handles), max(1, int(figure.get_figwidth() // 2.5)))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=ncols, fontsize="small")


def legend_on(ax: Axes, *handles: Any) -> None:
    """A legend on the panel."""
    ax.legend(*handles, loc="best", fontsize="small", framealpha=0.9)


def half_width(level: float) -> float:
    """Standard deviations on each side of the mean that hold this share of a normal law."""
    return NormalDist().inv_cdf(0.5 + 0.5 * interval_level(level, "0.95 draws 95 % intervals"))


def figure_of(ax: Axes) -> Figure:
    """The figure that axes are on."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def finished(ax: Axes, data: Data) -> Figure:
    """The figure that axes are on, with what was drawn."""
    figure = figure_of(ax)
    setattr(figure, "data", data)  # noqa: B010
    return figure


def column_name(model: Any, number: int) -> str:
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


def held_columns(model: Any) -> dict[int, float]:
    """Columns over which nothing is drawn, and where they are held: how wide rows are, at nothing."""
    statistics = getattr(model, "statistics_", None)
    columns = () if statistics is None else statistics.moments.request.columns
    return {c: held for c, column in enumerate(columns) if (held := column.domain.held) is not None}


def drawn_kind(model: Any, number: int) -> str:
    """The same of what is drawn of it: of a season, the time since its beginning and no date."""
    kind, rows = column_kind(model, number), getattr(model, "statistics_", None)
    if kind == "datetime" and rows is not None and rows.moments.request.columns[number].domain.closed:
        return "duration"
    return kind


def compass(model: Any, number: int) -> str | None:
    """The letters of degrees on a globe, "SN" or "WE"; None of other columns."""
    rows = getattr(model, "statistics_", None)
    return None if rows is None else rows.moments.request.columns[number].domain.compass


def across_first(model: Any, columns: Sequence[int]) -> list[int]:
    """The columns in the order of a picture's axes: a globe comes first, and east and west go across."""
    return sorted(columns, key=lambda c: ("WE", "SN", None).index(compass(model, c)))


def degrees_text(value: float, letters: str) -> str:
    """Degrees on a globe, as maps have them: 30° S."""
    turned = (value + 180.0) % 360.0 - 180.0 if letters == "WE" and abs(value) > 180.0 else value
    side = "" if turned == 0.0 or (letters == "WE" and abs(turned) == 180.0) else f" {letters[int(turned > 0.0)]}"
    return f"{abs(turned):g}°{side}"


def tick_globe(axis: Axis, model: Any, number: int) -> None:
    """Degrees, as maps have them, if the column is one of a globe."""
    letters = compass(model, number)
    if letters is not None:
        from matplotlib.ticker import MultipleLocator

        axis.set_major_locator(MultipleLocator(30.0 if letters == "SN" else 60.0))
        axis.set_major_formatter(lambda value, _: degrees_text(value, letters))


def with_unit(name: str, kind: str) -> str:
    """The name of a column, with its unit if the reading of the table gave it one."""
    return f"{name} (days)" if kind == "duration" else name


def column_label(model: ProcessMixin, number: int) -> str:
    """What an axis calls the column."""
    return with_unit(column_name(model, number), drawn_kind(model, number))


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


def as_values(kind: str, x: np.ndarray) -> np.ndarray:
    """Numbers as values of the column: dates where days are counted."""
    return np.round(x * 86_400e6).astype(np.int64).view("datetime64[us]") if kind == "datetime" else x


def tick(axis: Axis, kind: str) -> None:
    """Dates for days, words for booleans; numbers are ticked well by themselves."""
    if kind == "datetime":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
    elif kind == "boolean":
        axis.set_ticks([0.0, 1.0], labels=["False", "True"])


def tick_levels(axis: Axis, levels: Sequence[Any], effects: np.ndarray | None = None) -> None:
    """Names at 0, 1, 2 ... in the order given; of very many, those of the largest and smallest effects, or some.

    The label of the axis then says which.
    """
    count, said = len(levels), ""
    named = range(count)
    if count > _MOST_LABELS:
        step = -(-count // _MOST_LABELS)
        named, said = range(0, count, step), f"{count} levels, one in {step} named"
        if effects is not None:
            named, said = named_extremes(effects), f"{count} levels, the {LABELLED} highest and lowest named"
    texts = [level_text(levels[number]) for number in named]
    crowded = len(texts) > 6 or sum(map(len, texts)) > 30
    across = axis.axis_name == "x"  # pyright: ignore[reportAttributeAccessIssue]
    rotation, size = (90 if crowded and across else 0), ("x-small" if crowded else "small")
    axis.set_ticks(list(named), labels=texts, rotation=rotation, fontsize=size)
    if said:
        axis.set_label_text(f"{axis.get_label_text()}: {said}")
