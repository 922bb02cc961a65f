"""Pictures of products: images, curves by level, slices; what is drawn equals what the model says."""

from collections.abc import Iterator
from typing import cast

import numpy as np
import pandas as pd
import pytest

import vff
from vff import Categorical, GPRegressor, Matern12, Matern32

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.collections import QuadMesh  # noqa: E402
from matplotlib.contour import QuadContourSet  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

_SEASONS = ("autumn", "spring", "summer", None)
_PRODUCTS = {
    "hour * day": Matern32("hour") * Matern32("day"),
    "season * hour": Categorical("season") * Matern32("hour"),
    "season * station": Categorical("season") * Categorical("station"),
    "hour * station": Matern32("hour") * Categorical("station"),
}


def frame(n: int = 700) -> tuple[pd.DataFrame, np.ndarray]:
    """An hour, a day, four seasons and ten stations, of which the last has no rows in autumn."""
    rng = np.random.default_rng(11)
    seasons, stations = rng.integers(4, size=n), rng.integers(10, size=n)
    seasons[(stations == 9) & (seasons == 0)] = 1
    days = rng.integers(365, size=n)
    X = pd.DataFrame(
        {
            "hour": rng.uniform(0.0, 24.0, n),
            "day": np.datetime64("2013-01-01") + days.astype("timedelta64[D]"),
            "season": np.array(_SEASONS, dtype=object)[seasons],
            "station": [f"station {number}" for number in stations],
        }
    )
    hour = X["hour"].to_numpy()
    y = 5.0 * np.sin(hour / 4.0 + seasons) + 3.0 * np.sin(days / 60.0) * np.cos(hour / 5.0)
    y += 3.0 * np.sin(stations * (1 + seasons)) + 2.0 * np.cos(hour / 3.0 + stations)
    return X, y + 0.5 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    a, b, c, d = _PRODUCTS.values()
    return GPRegressor(a + b + c + d, frequencies=5).fit(*frame())


@pytest.fixture(scope="module")
def drawn(model: GPRegressor) -> Figure:
    figure = vff.plot.effects(model, ylabel="effect (°C)", xlabels={"hour": "hour of the day"})
    figure.canvas.draw()
    return figure


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def panel(figure: Figure, name: str) -> Axes:
    return next(ax for ax in figure.axes if ax.get_label() == name)


def image(ax: Axes) -> QuadMesh:
    return next(item for item in ax.collections if isinstance(item, QuadMesh))


def marks(ax: Axes) -> set[str]:
    return {str(item.get_label()) for item in ax.collections if isinstance(item, QuadContourSet)}


def rows_at(n: int, **values: object) -> pd.DataFrame:
    """Rows of the fit with some columns replaced."""
    return frame()[0].iloc[np.zeros(n, int)].reset_index(drop=True).assign(**values)


def number(model: GPRegressor, name: str) -> int:
    return [term.name for term in model.rows_.terms].index(name)


def test_the_panels_are_the_terms_and_their_axes_the_columns(drawn: Figure) -> None:
    assert [ax.get_label() for ax in drawn.axes] == list(_PRODUCTS)
    assert [ax.get_xlabel() for ax in drawn.axes] == ["hour of the day", "hour of the day", "season", "hour of the day"]
    assert [ax.get_ylabel() for ax in drawn.axes] == ["day", "effect (°C)", "station", "station"]
    assert all(ax.get_title().endswith("% of the variance of y") for ax in drawn.axes)
    assert drawn.get_supylabel() == ""


def test_an_image_is_the_effect_with_colours_symmetric_about_zero(model: GPRegressor, drawn: Figure) -> None:
    ax = panel(drawn, "hour * day")
    mesh = image(ax)
    values = np.asarray(mesh.get_array())
    low, high = mesh.get_clim()
    assert (low, high) == (-np.abs(values).max(), np.abs(values).max())
    X, _ = frame()
    hours = np.linspace(X["hour"].min(), X["hour"].max(), values.shape[1])
    days = pd.date_range(X["day"].min(), X["day"].max(), periods=values.shape[0])
    np.testing.assert_allclose(ax.get_xlim(), hours[[0, -1]])
    ends = [moment.date() for moment in matplotlib.dates.num2date(ax.get_ylim())]
    assert ends == [X["day"].min().date(), X["day"].max().date()]
    some = np.arange(0, values.shape[0], 30)
    for column in (0, 45, 120):
        rows = rows_at(some.size, hour=hours[column], day=days[some])
        expected = model.effects(rows).mean[:, number(model, "hour * day")]
        np.testing.assert_allclose(values[some, column], expected, rtol=1e-7, atol=1e-7)


def test_an_image_over_days_is_ticked_with_dates(drawn: Figure) -> None:
    ax = panel(drawn, "hour * day")
    assert isinstance(ax.yaxis.get_major_formatter(), matplotlib.dates.ConciseDateFormatter)
    assert "Jul" in [text.get_text() for text in ax.get_yticklabels()]


def test_images_have_a_bar_that_says_what_is_shown(drawn: Figure) -> None:
    bars = [ax.child_axes for ax in drawn.axes]
    assert [len(found) for found in bars] == [1, 0, 1, 1]
    assert {found[0].get_ylabel() for found in bars if found} == {"effect (°C)"}
    np.testing.assert_allclose(bars[0][0].get_ylim(), image(drawn.axes[0]).get_clim())


def test_curves_by_level_are_the_effects(model: GPRegressor, drawn: Figure) -> None:
    ax = panel(drawn, "season * hour")
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "season"
    assert [text.get_text() for text in legend.get_texts()] == ["autumn", "spring", "summer", "missing"]
    lines = {line.get_label(): line for line in ax.lines}
    for level in _SEASONS:
        grid, mean = (np.asarray(values) for values in lines[level or "missing"].get_data())
        assert np.isfinite(mean).all()
        some = slice(None, None, 50)
        rows = rows_at(grid[some].size, hour=grid[some], season=pd.Series([level] * grid[some].size, dtype=object))
        expected = model.effects(rows).mean[:, number(model, "season * hour")]
        np.testing.assert_allclose(mean[some], expected, rtol=1e-7, atol=1e-7)


def test_curves_are_dotted_without_a_band_where_the_data_say_nothing() -> None:
    x = np.linspace(0.0, 1.0, 200)
    X = pd.DataFrame({"x": np.concatenate([x, 0.5 * x]), "level": ["all"] * 200 + ["half"] * 200})
    kernel = Matern32("x", variance=1.0, lengthscale=0.1) * Categorical("level", variance=1.0)
    model = GPRegressor(kernel, frequencies=20, noise_variance=0.1, optimizer=None).fit(X, np.sin(9.0 * X["x"]))
    ax = vff.plot.effects(model).axes[0]
    zero, whole, half, dotted = ax.lines
    assert [line.get_linestyle() for line in (whole, half, dotted)] == ["-", "-", ":"]
    known = np.isfinite(np.asarray(half.get_ydata()))
    np.testing.assert_array_equal(np.isfinite(np.asarray(dotted.get_ydata())), ~known)
    assert 0.5 < np.asarray(half.get_xdata())[known].max() < 0.65
    assert np.isfinite(np.asarray(whole.get_ydata())).all()
    strips = [item for item in ax.collections if item.get_label() != "density of the rows"]
    bands = [item.get_paths()[0].get_extents().x1 for item in strips]
    assert bands == [1.0, np.asarray(half.get_xdata())[known].max()]
    assert zero.get_ydata()[0] == 0.0


def test_levels_by_levels_are_named_cells(model: GPRegressor, drawn: Figure) -> None:
    ax = panel(drawn, "season * station")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["autumn", "spring", "summer", "missing"]
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"station {k}" for k in range(10)]
    assert (ax.get_xlim(), ax.get_ylim()) == ((-0.5, 3.5), (9.5, -0.5))
    values = np.asarray(image(ax).get_array())
    rows = rows_at(10, season="spring", station=[f"station {k}" for k in range(10)])
    expected = model.effects(rows).mean[:, number(model, "season * station")]
    np.testing.assert_allclose(values[:, 1], expected, rtol=1e-7)


def test_what_the_data_leave_open_is_marked(drawn: Figure) -> None:
    cells = panel(drawn, "season * station")
    assert marks(cells) == {"interval", "unknown"}
    grey = next(item for item in cells.collections if item.get_label() == "unknown")
    box = cast(QuadContourSet, grey).get_paths()[0].get_extents()
    np.testing.assert_allclose(box.extents, [-0.5, 8.5, 0.5, 9.5])
    assert marks(panel(drawn, "hour * day")) == {"interval"}
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    words = ["posterior mean", "95 % interval", "density of the rows", "95 % interval holds 0"]
    assert texts == [*words, "nearly as uncertain as without data"]


def test_hatches_are_where_the_interval_holds_zero(model: GPRegressor) -> None:
    figure = vff.plot.effects(model, "season * station", level=0.5)
    assert figure.legends[0].get_texts()[0].get_text() == "50 % interval holds 0"
    hatched = cast(QuadContourSet, next(item for item in figure.axes[0].collections if item.get_label() == "interval"))
    stations = [f"station {k}" for k in range(10)]
    effects = model.effects(rows_at(10, season="summer", station=stations))
    s = number(model, "season * station")
    holds = np.abs(effects.mean[:, s]) < 0.67449 * effects.std[:, s]
    # a path may hold several polygons; a point is inside when it is inside of one
    polygons = hatched.get_paths()[0].to_polygons()
    inside = [any(matplotlib.path.Path(edge).contains_point((2.0, k)) for edge in polygons) for k in range(10)]
    assert inside == holds.tolist()
    assert 0 < holds.sum() < 10


def test_many_levels_are_rows_of_an_image(drawn: Figure) -> None:
    ax = panel(drawn, "hour * station")
    assert np.asarray(image(ax).get_array()).shape[0] == 10
    assert ax.get_legend() is None


def test_shared_scales_are_one_for_curves_and_one_for_images(model: GPRegressor) -> None:
    figure = vff.plot.effects(model, share_colours=True)
    images = [image(ax).get_clim() for ax in figure.axes if ax.get_label() != "season * hour"]
    assert len(set(images)) == 1
    assert panel(figure, "season * hour").get_ylim()[1] < 20.0
    figure = vff.plot.effects(model, ["season * hour", "hour * day"], ncols=1)
    assert figure.axes[0].get_position().x0 == pytest.approx(figure.axes[1].get_position().x0)
    assert figure.axes[1].get_ylabel() == "day"


def test_of_three_columns_two_are_drawn_and_the_title_holds_the_third() -> None:
    X, y = frame(400)
    kernel = Matern32("hour") * Matern32("day") * Categorical("season")
    ax = vff.plot.effects(GPRegressor(kernel, frequencies=3).fit(X, y)).axes[0]
    assert ax.get_title().endswith("of the variance of y\nat season = autumn")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "day")
    kernel = Categorical("season") * Matern32("hour") * Matern32("day")
    ax = vff.plot.effects(GPRegressor(kernel, frequencies=3).fit(X, y)).axes[0]
    assert "\nat day = 2013-07-" in ax.get_title()
    assert len(ax.get_legend().get_texts()) == 4


def test_constant_columns_are_held_and_products_of_nothing_say_so() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(size=300), "same": 3.0, "late": rng.uniform(size=300) < 0.5})
    noise = rng.standard_normal(150)
    y = np.sin(6.0 * X["a"].to_numpy())
    X, y = pd.concat([X, X]), np.concatenate([y, y]) + 0.1 * np.tile(noise, 4) * np.repeat([1, -1], 300)
    kernel = Matern32("a") * Matern32("same") + Matern32("late") * Matern12("a")
    figure = vff.plot.effects(GPRegressor(kernel, frequencies=5).fit(X, y))
    curve, nothing = figure.axes
    assert curve.get_title().endswith("\nat same = 3")
    assert (curve.get_xlabel(), curve.get_ylabel()) == ("a", "effect on y")
    assert (nothing.get_title(), nothing.get_xlabel(), nothing.get_ylabel()) == ("no effect", "late", "a")
    assert [text.get_text() for text in nothing.texts] == ["the data do not support\nan effect"]
    assert [text.get_text() for text in nothing.get_xticklabels()] == ["False", "True"]
    assert not nothing.child_axes
    figure.canvas.draw()


def test_two_products_of_the_same_columns_are_told_apart() -> None:
    X = np.random.default_rng(0).uniform(size=(80, 2))
    kernel = Matern32(0) * Matern32(1) + Matern12(1) * Matern12(0)
    figure = vff.plot.effects(GPRegressor(kernel, frequencies=2, optimizer=None).fit(X, X[:, 0]))
    assert [ax.get_title().split(":")[0] for ax in figure.axes] == ["0 * 1", "1 * 0"]
    assert [ax.get_xlabel() for ax in figure.axes] == ["column 0", "column 1"]


def test_labels_are_for_columns_not_for_products(model: GPRegressor) -> None:
    with pytest.raises(ValueError, match=r"terms of one column, got 'hour \* day'; name some of 'hour', 'day', 'sea"):
        vff.plot.effects(model, xlabels={"hour * day": "h"})
