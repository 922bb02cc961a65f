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
from vff.report.views import density_along, view_of

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
    words = ["posterior mean", "95 % interval", "density of the rows"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == words
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
    assert len(labels) == 10
    assert max(map(len, labels)) <= 16
    assert ax.get_xlabel() == "tail: 100 levels, the 5 highest and lowest named"
    heights = np.asarray(cast(ErrorbarContainer, ax.containers[0])[0].get_ydata())
    named = [int(place) for place in ax.get_xticks()]
    assert {*np.argsort(heights)[:5], *np.argsort(heights)[-5:]} == set(named)


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
    shared = vff.plot.effects(model)
    assert shared.axes[3].get_ylim() == shared.axes[0].get_ylim()
    ax = vff.plot.effects(model, sharey=False).axes[3]
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


_LEVELS = {
    "ordered": (
        pd.Categorical(["low", "mid", "high"] * 40, ["low", "mid", "high"], ordered=True),
        ["low", "mid", "high"],
    ),
    "weekdays": (["Tue", "Sun", "Mon"] * 40, ["Mon", "Tue", "Sun"]),
    "months": (["March", "december", "May"] * 40, ["March", "May", "december"]),
    "numbers in text": (["Q10", "Q2", "Q1"] * 40, ["Q1", "Q2", "Q10"]),
    "numbers": ([30, 4, 11] * 40, ["4", "11", "30"]),
    "none": (["Tue", "Sun", "often"] * 40, ["often", "Sun", "Tue"]),
    "numbers of different things": (["Q10", "H2", "Q1"] * 40, ["Q1", "H2", "Q10"]),
}


@pytest.mark.parametrize("name", _LEVELS)
def test_levels_keep_an_order_of_their_own(name: str) -> None:
    """The effects fall from the first to the last, so that without one levels are turned around."""
    given, expected = _LEVELS[name]
    X = pd.DataFrame({"level": given})
    y = np.tile([3.0, 2.0, 1.0], 40) + 0.1 * np.random.default_rng(0).standard_normal(120)
    figure = vff.plot.effects(GPRegressor(Categorical("level")).fit(X, y))
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == expected
    dots = cast(ErrorbarContainer, figure.axes[0].containers[0])[0]
    drawn = dict(zip(expected, np.asarray(dots.get_ydata()), strict=True))
    effects = GPRegressor(Categorical("level")).fit(X, y).effects(X[:3]).mean[:, 0]
    np.testing.assert_allclose([drawn[str(level)] for level in X["level"][:3]], effects, rtol=1e-9)


def test_the_order_of_a_type_outlives_a_file(tmp_path) -> None:
    X = pd.DataFrame({"size": _LEVELS["ordered"][0], "x": np.linspace(0, 1, 120)})
    model = GPRegressor(Categorical("size") + Matern32("x") * Categorical("size"), frequencies=3)
    model.fit(X, np.tile([3.0, 2.0, 1.0], 40) + np.sin(9.0 * X["x"])).save(tmp_path / "model.vff")
    figure = vff.plot.effects(vff.load(tmp_path / "model.vff"))
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["low", "mid", "high"]
    legend = figure.axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["low", "mid", "high"]


@pytest.mark.parametrize("ends", [(0.02, 0.98), (0.0, 0.6)])
def test_the_strip_is_a_histogram_of_the_rows(ends: tuple[float, float]) -> None:
    """From averages of features alone; rows at one end are not taken for rows at the other."""
    x = np.random.default_rng(1).beta(2.0, 5.0, 4000)
    x = x[(x > ends[0]) & (x < ends[1])]
    model = GPRegressor(Matern32(0), frequencies=12, domain=(0.0, 1.0)).fit(x[:, None], np.sin(5.0 * x))
    edges, heights = density_along(model, view_of(model, 0))  # pyright: ignore[reportGeneralTypeIssues]
    counts, _ = np.histogram(x, edges)
    assert heights.min() >= 0.0
    assert heights.max() == 1.0
    mass = heights * np.diff(edges)
    assert np.abs(mass / mass.sum() - counts / counts.sum()).sum() < 0.12
    ax = vff.plot.effects(model).axes[0]
    strip = next(item for item in ax.collections if item.get_label() == "density of the rows")
    assert strip.get_paths()[0].get_extents().ymax == pytest.approx(0.06)


def test_the_strip_of_whole_numbers_stands_where_these_are() -> None:
    months = np.repeat(np.arange(1.0, 13.0), [90, *[10] * 10, 30])
    model = GPRegressor(Matern32(0), frequencies=32).fit(months[:, None], np.sin(months))
    edges, heights = density_along(model, view_of(model, 0))  # pyright: ignore[reportGeneralTypeIssues]
    mass, middles = heights * np.diff(edges), 0.5 * (edges[:-1] + edges[1:])
    near = [mass[np.abs(middles - month) < 0.5].sum() for month in range(1, 13)]
    np.testing.assert_allclose(near / mass.sum(), np.bincount(months.astype(int))[1:] / months.size, atol=0.05)


def test_lines_of_long_series_are_thin() -> None:
    t = np.linspace(0.0, 100.0, 2000)
    y = np.sin(2.0 * np.pi * t)
    ax = vff.plot.effects(GPRegressor(Matern32(0, lengthscale=0.5), frequencies=250).fit(t[:, None], y)).axes[0]
    line = ax.lines[1]
    assert line.get_linewidth() < 1.0
    assert len(np.asarray(line.get_xdata())) > 2000


def test_shares_in_titles_add_up_and_a_margin_is_an_effect() -> None:
    """The product takes all of t; pure, t has its margin, and says so."""
    rng = np.random.default_rng(3)
    t, g = rng.uniform(0, 6, 600), rng.choice(list("ab"), 600)
    y = np.where(g == "a", 1.5, 0.5) * np.sin(t) + 0.1 * rng.standard_normal(600)
    kernel = Matern32("t", variance=1e-9, lengthscale=2.0) + Matern32("t", variance=1.0, lengthscale=2.0) * Categorical(
        "g"
    )
    model = GPRegressor(kernel, frequencies=8, optimizer=None, noise_variance=0.01).fit(
        pd.DataFrame({"t": t, "g": g}), y
    )
    figure = vff.plot.effects(model)
    shares = [float(ax.get_title().split(" %")[0]) for ax in figure.axes]
    assert sum(shares) == pytest.approx(100 * model.predict(pd.DataFrame({"t": t, "g": g})).var() / y.var(), abs=1.0)
    assert min(shares) > 5.0
    as_they_are = vff.plot.effects(model, pure=False)
    assert np.ptp(as_they_are.data["mean"][as_they_are.data["term"] == "t"]) < 1e-3
    assert np.ptp(figure.data["mean"][figure.data["term"] == "t"]) > 1.0


def test_seasons_are_drawn_over_one_turn_and_drifts_over_the_time():
    dates = pd.date_range("2016-01-01", periods=96, freq="MS")
    frame = pd.DataFrame({"date": dates})
    y = np.sin(2.0 * np.pi * np.arange(96) / 12.0) + 0.1 * np.random.default_rng(0).normal(size=96)
    season = vff.Periodic("date", 365.25)
    model = GPRegressor(season + season * Matern32("date"), frequencies=4).fit(frame, y)
    assert [view_of(model, s).shape for s in (0, 1)] == ["curve", "curve"]
    figure = vff.plot.effects(model)
    low, high = figure.axes[0].get_xlim()
    assert -20.0 < low < high < 390.0
    assert "days" in figure.axes[0].get_xlabel()
    drawn = figure.axes[1].get_lines()[-1].get_xdata()
    assert np.ptp(np.asarray(drawn, float)) == pytest.approx((dates[-1] - dates[0]).days, abs=1.0)
    pyplot.close("all")
