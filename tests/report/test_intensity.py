"""The picture of a point pattern: what is drawn equals what is learnt."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import vff
from vff import CoxProcess

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.collections import PathCollection, QuadMesh  # noqa: E402

RNG = np.random.default_rng(0)
LINE, PLANE = 10.0 * RNG.beta(2, 3, 80), RNG.uniform(0, 1, (60, 2)) * (4, 1)
HIDDEN = np.arange(20) >= 18


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_one_column() -> None:
    model = CoxProcess(grid=20, frequencies=3, random_state=0).fit(LINE[LINE < 9], (0, 10), exposure=1.0 * ~HIDDEN)
    ax = vff.plot.intensity(model, level=0.8).axes[0]
    mean, rug = ax.lines
    x, y = np.asarray(mean.get_xdata(), float), np.asarray(mean.get_ydata(), float)
    np.testing.assert_allclose(y, model.intensity(x).mean)
    assert (x[0], x[-1]) == (0.0, 10.0) == tuple(ax.get_xlim())
    np.testing.assert_array_equal(rug.get_xdata(), LINE[LINE < 9])
    assert ax.get_ylabel() == "points per unit of column 0"
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "posterior mean",
        "80 % interval",
        "points",
        "not observed",
    ]


def test_times_have_dates() -> None:
    frame = pd.DataFrame({"when": pd.Timestamp("2020-01-01") + pd.to_timedelta(10 * LINE, unit="D")})
    ax = vff.plot.intensity(CoxProcess(grid=20, frequencies=3).fit(frame), xlabel="date").axes[0]
    ax.figure.canvas.draw()
    assert "Feb" in [tick.get_text() for tick in ax.get_xticklabels()]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("date", "points per day")


def test_two_columns() -> None:
    frame = pd.DataFrame(PLANE, columns=["east", "north"])
    inside = frame[frame.east < 3]
    model = CoxProcess(grid=(8, 6), frequencies=2, random_state=0)
    model.fit(inside, [(0, 4), (0, 1)], exposure=lambda c: 2.0 * (c[:, 0] < 3))
    ax = vff.plot.intensity(model).axes[0]
    (mesh,) = (item for item in ax.collections if isinstance(item, QuadMesh))
    (dots,) = (item for item in ax.collections if isinstance(item, PathCollection))
    shown = mesh.get_array()
    assert isinstance(shown, np.ma.MaskedArray)
    np.testing.assert_allclose(shown[:, :6], model.intensity().mean.T[:, :6])
    assert np.ma.getmaskarray(shown)[:, 6:].all()
    np.testing.assert_allclose(np.asarray(dots.get_offsets()), inside)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")
    assert "grey not observed" in ax.get_title()
    ax.figure.canvas.draw()
    (bar,) = ax.child_axes
    assert bar.get_ylabel() == "points per unit area and exposure"


def test_given_axes_and_names() -> None:
    model = CoxProcess(grid=6, frequencies=1).fit(PLANE, [(0, 4), (0, 1)])
    _, ax = pyplot.subplots()
    assert vff.plot.intensity(model, ax, label="trees per hectare", ylabel="up") is ax.figure
    assert ax.get_ylabel() == "up"
    assert ax.child_axes[0].get_ylabel() == "trees per hectare"


def test_refusals() -> None:
    with pytest.raises(TypeError, match="draws a CoxProcess, found a GPRegressor"):
        vff.plot.intensity(vff.GPRegressor())
    with pytest.raises(NotFittedError):
        vff.plot.intensity(CoxProcess())
    cube = CoxProcess(grid=3, frequencies=1).fit(np.random.default_rng(0).uniform(0, 1, (30, 3)), [(0, 1)] * 3)
    with pytest.raises(ValueError, match=r"plot\.intensity draws points of one or two columns, and these have 3"):
        vff.plot.intensity(cube)
