"""Every picture is a figure, may be drawn on given axes, and has what it shows in ``figure.data``."""

from typing import Any

import matplotlib as mpl

mpl.use("agg")

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import vff
from vff import Categorical, CoxProcess, GPRegressor, Matern32

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.uniform(0, 50, 300), unit="D"),
        "x": RNG.uniform(0, 10, 300),
        "zone": RNG.choice(["north", "south"], 300),
    }
)
Y = np.sin(FRAME.x) + (FRAME.zone == "north") + 0.2 * RNG.standard_normal(300)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    kernel = Matern32("x") + Categorical("zone") + Matern32("x") * Matern32("day") + Matern32("x") * Categorical("zone")
    many = GPRegressor(kernel, frequencies=4, optimizer=None).fit(FRAME, Y)
    one = GPRegressor(Matern32("day"), frequencies=4, optimizer=None).fit(FRAME, Y)
    two = GPRegressor(Matern32("x") + Matern32("day"), frequencies=4, optimizer=None).fit(FRAME, Y)
    line = CoxProcess(grid=10, frequencies=3).fit(FRAME[["x"]])
    plane = CoxProcess(grid=5, frequencies=2).fit(np.c_[FRAME.x, RNG.uniform(size=300)])
    return {"many": many, "one": one, "two": two, "line": line, "plane": plane}


PICTURES = {
    "fit": (lambda m, ax: vff.plot.fit(m["one"], ax=ax), ["x", "mean", "lower", "upper", "y_lower", "y_upper"]),
    "map": (lambda m, ax: vff.plot.map(m["two"], ax=ax), ["x", "y", "mean", "std", "known"]),
    "line": (lambda m, ax: vff.plot.intensity(m["line"], ax=ax), ["x", "mean", "lower", "upper"]),
    "plane": (lambda m, ax: vff.plot.intensity(m["plane"], ax=ax), ["x", "y", "mean", "observed"]),
    **{
        term: (
            lambda m, ax, term=term: vff.plot.effects(m["many"], term, ax=ax),
            ["term", "x", "y", "mean", "lower", "upper", "known"],
        )
        for term in ("x", "zone", "x * day", "x * zone")
    },
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_a_figure_with_its_data(name: str, models: dict[str, Any]) -> None:
    draw, columns = PICTURES[name]
    figure = draw(models, None)
    assert type(figure) is Figure
    table = pd.DataFrame(figure.data)
    assert list(table) == columns
    assert len(table) > 1
    if "lower" in table:
        assert np.all((table.lower <= table["mean"]) & (table["mean"] <= table.upper))
    mine, axes = pyplot.subplots(1, 2)
    assert draw(models, axes[1]) is mine
    assert not axes[0].has_data()
    assert axes[1].has_data()
    pd.testing.assert_frame_equal(pd.DataFrame(mine.data), table)
    mine.canvas.draw()
    pyplot.close("all")


def test_data_are_what_the_model_says(models: dict[str, Any]) -> None:
    data = vff.plot.fit(models["one"]).data
    assert data["x"].dtype.kind == "M"
    rows = pd.DataFrame({"day": data["x"], "x": 0.0, "zone": "north"})
    np.testing.assert_allclose(models["one"].predict(rows), data["mean"], atol=1e-6)
    whole = pd.DataFrame(vff.plot.effects(models["many"]).data)
    assert list(whole.term.unique()) == ["x", "zone", "x * day", "x * zone"]
    zones = whole[whole.term == "zone"]
    assert list(zones.x) == ["north", "south"]
    assert zones.y.isna().all()
    asked = pd.DataFrame({"day": FRAME.day[:2], "x": [1.0, 1.0], "zone": ["north", "south"]})
    np.testing.assert_allclose(models["many"].effects(asked).mean[:, 1], zones["mean"].astype(float), rtol=1e-6)
    pyplot.close("all")


def test_axes_for_several_terms_are_refused(models: dict[str, Any]) -> None:
    _, ax = pyplot.subplots()
    with pytest.raises(ValueError, match="draws a panel per term, 4 here, and ax is one; name one of the terms"):
        vff.plot.effects(models["many"], ax=ax)
    pyplot.close("all")
