"""The map of a model of two columns: what is drawn equals what is predicted."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import vff
from vff import Categorical, GPRegressor, Matern32
from vff.baselines import ExactGP

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.collections import PathCollection, QuadMesh  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


def scattered(n: int) -> tuple[pd.DataFrame, pd.Series]:
    """A surface over a square without its upper right quarter."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"lon": rng.uniform(0.0, 3.0, 2 * n), "lat": rng.uniform(40.0, 43.0, 2 * n)})
    X = X[(X["lon"] < 1.5) | (X["lat"] < 41.5)].head(n).reset_index(drop=True)
    y = 10.0 + np.sin(7.0 * X["lon"]) * np.cos(7.0 * X["lat"]) + 0.2 * rng.standard_normal(n)
    return X, y.rename("rain")


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return GPRegressor(Matern32("lon") * Matern32("lat"), frequencies=8).fit(*scattered(600))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def panels(figure: Figure) -> dict[str, Axes]:
    figure.canvas.draw()
    return {str(ax.get_label()): ax for ax in figure.axes}


def mesh(ax: Axes) -> QuadMesh:
    return next(item for item in ax.collections if isinstance(item, QuadMesh))


def dots(ax: Axes) -> list[PathCollection]:
    return [item for item in ax.collections if isinstance(item, PathCollection)]


def test_the_images_are_the_prediction(model: GPRegressor) -> None:
    figure = vff.plot.map(model)
    found = panels(figure)
    assert list(found) == ["mean", "std"]
    X, _ = scattered(600)
    lon, lat = (np.linspace(X[name].min(), X[name].max(), 121) for name in ("lon", "lat"))
    np.testing.assert_allclose(found["mean"].get_xlim(), lon[[0, -1]])
    np.testing.assert_allclose(found["std"].get_ylim(), lat[[0, -1]])
    mean, variance = model.predict_f(pd.DataFrame({"lon": lon, "lat": np.full(121, lat[30])}))
    np.testing.assert_allclose(np.asarray(mesh(found["mean"]).get_array())[30], mean, rtol=1e-7)
    np.testing.assert_allclose(np.asarray(mesh(found["std"]).get_array())[30], np.sqrt(variance), rtol=1e-6)
    assert mesh(found["std"]).get_clim()[0] == 0.0
    assert not any(dots(ax) for ax in figure.axes)


def test_labels_and_titles(model: GPRegressor) -> None:
    X, y = scattered(600)
    found = panels(vff.plot.map(model, X, y))
    assert [ax.get_title() for ax in found.values()] == [
        "600 rows",
        "posterior mean",
        "standard deviation of f, 600 rows",
    ]
    assert [ax.get_xlabel() for ax in found.values()] == ["lon"] * 3
    assert [ax.get_ylabel() for ax in found.values()] == ["lat", "", ""]
    assert [ax.child_axes[0].get_ylabel() for ax in list(found.values())[1:]] == ["rain", "rain"]
    found = panels(vff.plot.map(model, X, xlabel="longitude (°)", ylabel="latitude (°)", label="rain (mm)", equal=True))
    assert (found["mean"].get_xlabel(), found["mean"].get_ylabel()) == ("longitude (°)", "latitude (°)")
    assert found["mean"].child_axes[0].get_ylabel() == "rain (mm)"
    assert found["mean"].get_title() == "posterior mean, 600 rows"
    assert found["mean"].get_aspect() == 1.0


def test_grey_is_where_the_data_say_nothing(model: GPRegressor) -> None:
    figure = vff.plot.map(model)
    grey = next(item for item in figure.axes[0].collections if item.get_label() == "unknown")
    path = grey.get_paths()[0]
    assert path.contains_point((2.5, 42.5))
    assert not path.contains_point((0.7, 40.7))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["nearly as uncertain as without data"]
    low, high = mesh(figure.axes[0]).get_clim()
    mean = np.asarray(mesh(figure.axes[0]).get_array())
    assert mean.min() <= low < high <= mean.max()


def test_few_rows_are_dots_in_the_colours_of_the_mean(model: GPRegressor) -> None:
    X, y = scattered(600)
    found = panels(vff.plot.map(model, X, y))
    (rows,) = dots(found["rows"])
    np.testing.assert_allclose(rows.get_offsets(), X)
    np.testing.assert_allclose(rows.get_array(), y)
    assert rows.get_clim() == mesh(found["mean"]).get_clim()
    assert (len(dots(found["mean"])), len(dots(found["std"]))) == (0, 1)


def test_many_rows_are_averaged_or_sampled(model: GPRegressor) -> None:
    X, y = scattered(20_000)
    found = panels(vff.plot.map(model, X, y))
    assert found["rows"].get_title() == "20,000 rows, averages in cells"
    cells = mesh(found["rows"]).get_array()
    assert 0 < np.ma.count_masked(cells) < cells.size
    assert abs(cells.mean() - y.mean()) < 0.05
    found = panels(vff.plot.map(model, X))
    assert found["mean"].get_title() == "posterior mean, 1,500 of 20,000 rows"
    assert [np.shape(ax_dots.get_offsets()) for ax_dots in dots(found["mean"])] == [(1500, 2)]


def test_dates_have_dates() -> None:
    X, y = scattered(200)
    X["lat"] = np.datetime64("2013-01-01") + (100 * (X["lat"] - 40)).astype(int).to_numpy().astype("timedelta64[D]")
    model = GPRegressor(Matern32("lon") + Matern32("lat"), frequencies=4).fit(X, y)
    ax = vff.plot.map(model, X, y).axes[0]
    assert isinstance(ax.yaxis.get_major_formatter(), matplotlib.dates.ConciseDateFormatter)
    assert matplotlib.dates.num2date(ax.get_ylim()[0]).year == 2013
    offsets = np.asarray(dots(ax)[0].get_offsets())
    assert offsets[:, 1].min() == ax.get_ylim()[0]


def test_a_flat_mean_is_one_colour_and_other_regressors_need_the_rows() -> None:
    X, y = scattered(60)
    exact = ExactGP("rbf", optimizer=None).fit(X.to_numpy(), y.to_numpy())
    with pytest.raises(ValueError, match=r"ExactGP does not keep the range of its data; give plot\.map the rows"):
        vff.plot.map(exact)
    found = panels(vff.plot.map(exact, X.to_numpy()))
    assert (found["mean"].get_xlabel(), found["mean"].get_ylabel()) == ("column 0", "column 1")
    # every row twice, with opposite values: no effect at all
    twice, values = np.repeat(X.to_numpy(), 2, axis=0), np.tile([9.0, 11.0], 60)
    flat = GPRegressor(Matern32(0) * Matern32(1), frequencies=2).fit(twice, values)
    np.testing.assert_allclose(mesh(vff.plot.map(flat, twice).axes[0]).get_clim(), (9.0, 11.0), atol=1e-3)


def test_refusals(model: GPRegressor) -> None:
    X, y = scattered(50)
    with pytest.raises(NotFittedError):
        vff.plot.map(GPRegressor())
    with pytest.raises(ValueError, match=r"needs X to say where y belongs"):
        vff.plot.map(model, y=y)
    with pytest.raises(ValueError, match=r"X has 1 column\(s\) and the model was fitted to 2; give plot\.map a table"):
        vff.plot.map(model, X[["lon"]].to_numpy(), y)
    with pytest.raises(ValueError, match=r"X has no column 'lat', which the model was fitted to"):
        vff.plot.map(model, X[["lon"]], y)
    one = GPRegressor(Matern32("lon"), frequencies=3).fit(X, y)
    with pytest.raises(ValueError, match=r"two columns of numbers, and this model has 1 column\(s\); plot\.fit"):
        vff.plot.map(one)
    X["kind"], X["same"] = np.where(X["lon"] < 1.0, "a", "b"), 2.0
    levels = GPRegressor(Matern32("lon") * Categorical("kind"), frequencies=3).fit(X, y)
    with pytest.raises(ValueError, match=r"this model has a categorical column; plot\.effects\(model\)"):
        vff.plot.map(levels)
    same = GPRegressor(Matern32("lon") + Matern32("same"), frequencies=3).fit(X, y)
    with pytest.raises(ValueError, match=r"two columns that vary, and same is 2 in every row; fit the other"):
        vff.plot.map(same)
