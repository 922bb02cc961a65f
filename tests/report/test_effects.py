"""The picture of a sum: a panel per term, with what is drawn equal to what the model says."""

from collections.abc import Iterator
from typing import cast

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import vff
from vff import Categorical, GPRegressor, Matern12, Matern32
from vff.baselines import ExactGP

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.collections import LineCollection, PolyCollection  # noqa: E402
from matplotlib.container import ErrorbarContainer  # noqa: E402

_CARRIERS = ("AA", "B6", "DL", None)


def frame(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Effects of an hour, of a carrier and of the season.

    Every row is there twice, with opposite noise, so that noise cannot be taken for an effect of the last column.
    """
    rng = np.random.default_rng(5)
    codes = rng.integers(4, size=n)
    X = pd.DataFrame(
        {
            "hour": rng.uniform(5.0, 23.0, n),
            "day": np.datetime64("2013-01-01") + rng.integers(365, size=n).astype("timedelta64[D]"),
            "carrier": np.array(_CARRIERS, dtype=object)[codes],
            "nothing": rng.uniform(size=n),
        }
    )
    seasons = 5.0 * np.sin(X["day"].dt.day_of_year.to_numpy() / 60.0)
    y = 20.0 * np.sin(X["hour"].to_numpy() / 3.0) + seasons + np.array([9.0, -4.0, 2.0, 0.0])[codes]
    noise = 3.0 * rng.standard_normal(n)
    return pd.concat([X, X], ignore_index=True), np.concatenate([y + noise, y - noise])


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return GPRegressor(frequencies=12).fit(*frame())


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def panel(figure: matplotlib.figure.Figure, name: str) -> Axes:
    return next(ax for ax in figure.axes if ax.get_label() == name)


def rows_at(column: str, values: object, n: int) -> pd.DataFrame:
    """Rows of the fit with one column replaced."""
    X = frame()[0].iloc[np.zeros(n, int)].reset_index(drop=True)
    X[column] = values
    return X


def test_a_panel_per_term_with_labels(model: GPRegressor) -> None:
    figure = vff.plot.effects(model, xlabels={"hour": "hour of the day"}, ylabel="delay (min)")
    assert [ax.get_label() for ax in figure.axes] == ["hour", "day", "carrier", "nothing"]
    assert [ax.get_xlabel() for ax in figure.axes] == ["hour of the day", "day", "carrier", "nothing"]
    assert figure.get_supylabel() == "delay (min)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["posterior mean", "95 % interval"]
    assert figure.axes[0].get_title().endswith("% of the variance of y")
    figure.canvas.draw()


def test_terms_are_drawn_as_asked_for(model: GPRegressor) -> None:
    figure = vff.plot.effects(model, ["carrier", "hour"], ncols=1, sharey=True)
    assert [ax.get_label() for ax in figure.axes] == ["carrier", "hour"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert figure.axes[0].get_position().x0 == pytest.approx(figure.axes[1].get_position().x0)
    assert len(vff.plot.effects(model, "hour").axes) == 1


@pytest.mark.parametrize("count", [1, 3, 5, 8, 9])
def test_any_number_of_panels(count: int) -> None:
    X = np.random.default_rng(0).uniform(size=(60, count))
    model = GPRegressor(frequencies=2, optimizer=None).fit(X, X[:, 0])
    figure = vff.plot.effects(model)
    assert [ax.get_xlabel() for ax in figure.axes] == [f"column {number}" for number in range(count)]


def test_the_line_and_the_band_are_the_effects(model: GPRegressor) -> None:
    ax = panel(vff.plot.effects(model, level=0.9), "hour")
    grid, mean = (np.asarray(values) for values in ax.lines[1].get_data())
    X = frame()[0]
    np.testing.assert_allclose(grid[[0, -1]], [X["hour"].min(), X["hour"].max()])
    expected = model.effects(rows_at("hour", grid, grid.size))
    np.testing.assert_allclose(mean, expected.mean[:, 0], rtol=1e-9, atol=1e-9)
    band = next(item for item in ax.collections if isinstance(item, PolyCollection)).get_paths()[0].vertices
    assert np.max(band[:, 1]) == pytest.approx(np.max(expected.mean[:, 0] + 1.6448536 * expected.std[:, 0]))


def test_levels_are_sorted_dots_with_bars(model: GPRegressor) -> None:
    ax = panel(vff.plot.effects(model), "carrier")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["B6", "missing", "DL", "AA"]
    dots, _, (bars,) = cast(ErrorbarContainer, ax.containers[0])
    expected = model.effects(rows_at("carrier", ["B6", None, "DL", "AA"], 4))
    np.testing.assert_allclose(dots.get_ydata(), expected.mean[:, 2], rtol=1e-9)
    lengths = [np.ptp(segment[:, 1]) for segment in cast(LineCollection, bars).get_segments()]
    np.testing.assert_allclose(lengths, 2 * 1.959964 * expected.std[:, 2], rtol=1e-6)


def test_many_levels_are_named_in_part() -> None:
    n = 400
    X = pd.DataFrame({"tail": [f"a rather long name of plane {row % 100:03d}" for row in range(n)]})
    model = GPRegressor(Categorical("tail")).fit(X, np.arange(n) % 100 + np.random.default_rng(1).standard_normal(n))
    ax = vff.plot.effects(model).axes[0]
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert len(labels) == 25
    assert max(map(len, labels)) <= 16
    assert ax.get_xlabel() == "tail: 100 levels, one in 4 named"


def test_times_are_ticked_with_dates(model: GPRegressor) -> None:
    figure = vff.plot.effects(model, ["day"])
    ax = figure.axes[0]
    figure.canvas.draw()
    grid = np.asarray(ax.lines[1].get_xdata(), float)
    days = frame()[0]["day"]
    ends = matplotlib.dates.num2date(grid[[0, -1]])
    assert [end.date() for end in ends] == [days.min().date(), days.max().date()]
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert "Jul" in labels or "Jun" in labels


def test_terms_that_came_to_nothing_say_so(model: GPRegressor) -> None:
    assert [term.active for term in model.fit_.terms] == [True, True, True, False]
    ax = vff.plot.effects(model).axes[3]
    assert ax.get_title() == "no effect"
    assert [text.get_text() for text in ax.texts] == ["the data do not support\nan effect"]
    assert list(ax.get_yticks()) == [0.0]


def test_booleans_durations_constants_and_columns_with_two_terms() -> None:
    rng = np.random.default_rng(2)
    n = 200
    X = pd.DataFrame({"late": rng.uniform(size=n) < 0.5, "wait": rng.integers(9, size=n).astype("timedelta64[h]")})
    X["same"] = 3.0
    kernel = Matern32("late") + Matern32("wait") + Matern12("wait") + Matern32("same")
    y = X["late"] * 2.0 + X["wait"].dt.total_seconds() / 3600 + 0.1 * rng.standard_normal(n)
    figure = vff.plot.effects(GPRegressor(kernel, frequencies=6).fit(X, y))
    labels = ["late", "wait (days), term 'wait'", "wait (days), term 'wait_2'", "same"]
    assert [ax.get_xlabel() for ax in figure.axes] == labels
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["False", "True"]
    assert len(figure.axes[3].containers) == 1
    figure.canvas.draw()


def test_refusals(model: GPRegressor) -> None:
    with pytest.raises(NotFittedError):
        vff.plot.effects(GPRegressor())
    with pytest.raises(TypeError, match=r"terms of a GPRegressor, got ExactGP"):
        vff.plot.effects(ExactGP())  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        ValueError, match=r"terms must name terms of the model, got 'minute'; its terms are 'hour', 'day'"
    ):
        vff.plot.effects(model, ["hour", "minute"])
    with pytest.raises(ValueError, match="terms must name terms of the model, got none"):
        vff.plot.effects(model, [])
    with pytest.raises(ValueError, match=r"xlabels must name columns .* or its terms of one column, got 'minute'"):
        vff.plot.effects(model, xlabels={"minute": "m"})
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        vff.plot.effects(model, level=95)
    with pytest.raises(ValueError, match="ncols must be 1 or more"):
        vff.plot.effects(model, ncols=0)


def test_the_curve_of_a_sum_is_refused_and_points_here(model: GPRegressor) -> None:
    with pytest.raises(ValueError, match=r"one column of numbers, and this model has 4 columns.*plot\.effects"):
        vff.plot.fit(model)
    X, y = frame()
    levels = GPRegressor(Categorical("carrier")).fit(X[["carrier"]], y)
    with pytest.raises(ValueError, match=r"this model has a categorical column; vff\.plot\.effects"):
        vff.plot.fit(levels)
    with pytest.raises(ValueError, match=r"this model has 2 columns; .*plot\.map"):
        vff.plot.fit(ExactGP("rbf", optimizer=None).fit(np.c_[X["hour"], X["nothing"]][:50], y[:50]))


def test_the_curve_over_times_is_ticked_with_dates() -> None:
    X, y = frame()
    ax = vff.plot.fit(GPRegressor(Matern32("day"), frequencies=8).fit(X, y), X, y).axes[0]
    assert isinstance(ax.xaxis.get_major_formatter(), matplotlib.dates.ConciseDateFormatter)
