"""Pictures of models whose likelihood is not Gaussian: on the scale of y, and effects on the scale of the link."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import vff
from vff import GPClassifier, GPRegressor, Matern32
from vff.likelihoods import Poisson

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.collections import PolyCollection  # noqa: E402


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def rows() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A table, counts, labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(0.0, 6.0, 150), "hours": rng.uniform(1.0, 5.0, 150)})
    f = np.sin(2.0 * frame["x"].to_numpy())
    return frame, rng.poisson(frame["hours"] * np.exp(f)).astype(float), np.where(rng.random(150) < f, "late", "early")


def kept(**options: Any) -> dict[str, Any]:
    return {"kernel": Matern32("x", variance=1.0, lengthscale=1.0), "frequencies": 8, "optimizer": None, **options}


def texts(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def band(ax: Axes, number: int) -> np.ndarray:
    return np.asarray(cast(PolyCollection, ax.collections[number]).get_paths()[0].vertices)[:, 1]


def test_counts_are_drawn_on_their_own_scale() -> None:
    X, y, _ = rows()
    model = GPRegressor(**kept(likelihood="poisson")).fit(X[["x"]], y)
    ax = vff.plot.fit(model, X[["x"]], y, level=0.9).axes[0]
    grid, mean = (np.asarray(values) for values in ax.lines[0].get_data())
    frame = pd.DataFrame({"x": grid})
    np.testing.assert_allclose(mean, model.predict(frame))
    f, variance = model.predict_f(frame)
    assert band(ax, 0).max() == pytest.approx(np.exp(f + 1.6448536 * np.sqrt(variance)).max())
    assert band(ax, 1).max() == model.predict_quantiles(frame, [0.95]).max()
    assert texts(ax)[:3] == ["mean of y", "90 % interval of it", "90 % interval of a new y"]
    figure = vff.plot.effects(model)
    assert figure.get_supylabel() == "effect on the logarithm of the mean of y"
    assert figure.axes[0].get_title() == ""


def test_counts_with_an_exposure_are_drawn_per_unit_of_it() -> None:
    X, y, _ = rows()
    model = GPRegressor(**kept(likelihood=Poisson(exposure="hours"))).fit(X, y)
    ax = vff.plot.fit(model, X, y).axes[0]
    assert ax.get_ylabel() == "y / hours"
    assert "95 % interval of a new y" not in texts(ax)
    grid, mean = (np.asarray(values) for values in ax.lines[0].get_data())
    np.testing.assert_allclose(mean, model.predict(pd.DataFrame({"x": grid, "hours": 1.0})))
    dots = np.asarray(ax.collections[-1].get_offsets())
    np.testing.assert_allclose(dots[:, 1], y / X["hours"])


def test_classes_are_drawn_as_the_probability_of_the_second() -> None:
    X, _, labels = rows()
    model = GPClassifier(**kept(likelihood="probit")).fit(X[["x"]], labels)
    ax = vff.plot.fit(model, X[["x"]], labels).axes[0]
    assert ax.get_ylabel() == "P(y = late)"
    grid, mean = (np.asarray(values) for values in ax.lines[0].get_data())
    np.testing.assert_allclose(mean, model.predict_proba(pd.DataFrame({"x": grid}))[:, 1])
    assert "95 % interval of a new y" not in texts(ax)
    assert set(np.asarray(ax.collections[-1].get_offsets())[:, 1]) == {0.0, 1.0}
    assert vff.plot.effects(model).get_supylabel() == "effect on the probit of P(y = late)"


def test_a_map_of_classes_has_probabilities_and_a_latent_deviation() -> None:
    X, _, labels = rows()
    kernel = Matern32("x", variance=1.0, lengthscale=1.0) * Matern32("hours", variance=1.0, lengthscale=2.0)
    model = GPClassifier(**kept(likelihood="probit", kernel=kernel, frequencies=3)).fit(X, labels)
    figure = vff.plot.map(model, X, labels)
    panels = {str(ax.get_label()): ax for ax in figure.axes}
    bars = [panels[name].child_axes[0].get_ylabel() for name in ("mean", "std")]
    assert bars == ["P(y = late)", "the probit of P(y = late)"]
    low, high = panels["mean"].collections[0].get_clim()
    assert 0.0 <= low < high <= 1.0


def test_more_than_two_classes_are_refused() -> None:
    X, y, _ = rows()
    model = GPClassifier(**kept(likelihood="probit")).fit(X[["x"]], np.minimum(y, 2.0))
    for draw in (vff.plot.effects, vff.plot.fit, vff.plot.map):
        with pytest.raises(ValueError, match="more than two classes there is one per class; give it one of"):
            draw(model)  # pyright: ignore[reportArgumentType]
    vff.plot.effects(model.estimators_[0])
