"""The picture of a fit: what is drawn, and that it needs no display."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import vff
from vff import GPRegressor, Matern32

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.collections import PolyCollection, QuadMesh  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.uniform(2.0, 5.0, n)
    return x[:, None], 10.0 + np.sin(4.0 * x) + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return GPRegressor(Matern32(0), frequencies=12).fit(*rows(300))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_draws_curves_rows_and_domain(model: GPRegressor) -> None:
    X, y = rows(300)
    ax = vff.plot.fit(model, X, y).axes[0]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["posterior mean", "95 % interval of f", "95 % interval of a new y", "300 rows", "domain [a, b]"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "y")
    domain = [line.get_xdata()[0] for line in ax.lines[1:]]
    np.testing.assert_allclose(domain, model.domain_[0])


def test_the_line_and_the_bands_are_the_prediction(model: GPRegressor) -> None:
    ax = vff.plot.fit(model, level=0.9).axes[0]
    grid, mean = (np.asarray(values) for values in ax.lines[0].get_data())
    expected, std = model.predict(grid[:, None], return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    latent, noisy = (cast(PolyCollection, band).get_paths()[0].vertices for band in ax.collections)
    assert np.max(noisy[:, 1]) == pytest.approx(np.max(expected + 1.6448536 * std))
    _, variance = model.predict_f(grid[:, None])
    assert np.max(latent[:, 1]) == pytest.approx(np.max(expected + 1.6448536 * np.sqrt(variance)))


def test_many_rows_become_a_density_that_says_what_is_hidden(model: GPRegressor) -> None:
    X, y = rows(20_000)
    y[:2] = 1e6
    ax = vff.plot.fit(model, X, y).axes[0]
    meshes = [item for item in ax.collections if isinstance(item, QuadMesh)]
    assert len(meshes) == 1
    shown = np.expm1(np.ma.filled(meshes[0].get_array(), 0.0)).sum()
    low, high = ax.get_ylim()
    assert high < 20.0
    assert shown == pytest.approx(np.count_nonzero((low <= y) & (y <= high)))
    label = f"20,000 rows ({20_000 - round(shown)} out of view)"
    assert label in [text.get_text() for text in ax.get_legend().get_texts()]


def test_names_come_from_the_frame() -> None:
    X, y = rows(200)
    frame = pd.DataFrame({"other": 0.0, "hour": X[:, 0]})
    named = GPRegressor(Matern32("hour"), frequencies=10).fit(frame, y)
    ax = vff.plot.fit(named, frame, pd.Series(y, name="delay")).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "delay")
    ax = vff.plot.fit(named, frame, y, xlabel="hour of the day", ylabel="delay (min)").axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour of the day", "delay (min)")


def test_draws_where_it_is_told_and_beyond_the_domain(model: GPRegressor, tmp_path: Path) -> None:
    figure, axes = pyplot.subplots(1, 2)
    X = np.array([[0.0], [7.0]])
    assert vff.plot.fit(model, X, np.array([9.0, 11.0]), axes[1]) is figure
    assert not axes[0].lines
    grid = np.asarray(axes[1].lines[0].get_xdata())
    assert (grid[0], grid[-1]) == (0.0, 7.0)
    cast(Figure, figure).savefig(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 1000


def test_refusals(model: GPRegressor) -> None:
    X, y = rows(10)
    with pytest.raises(NotFittedError):
        vff.plot.fit(GPRegressor(), X, y)
    with pytest.raises(ValueError, match="needs both X and y"):
        vff.plot.fit(model, X)
    with pytest.raises(ValueError, match=r"X has 2 column\(s\) and the model was fitted to 1"):
        vff.plot.fit(model, np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        vff.plot.fit(model, X, y, level=95)


def test_without_matplotlib_the_error_teaches(model: GPRegressor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"drawing needs matplotlib.*install it with"):
        vff.plot.fit(model)


def test_without_a_display(tmp_path: Path) -> None:
    program = """
import numpy as np, vff
x = np.linspace(0, 1, 50)
model = vff.GPRegressor(frequencies=5).fit(x[:, None], x)
vff.plot.fit(model).figure.savefig("fit.png")
"""
    environment = {"PYTHONPATH": str(Path(vff.__file__).parents[1]), "MPLCONFIGDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "fit.png").is_file()
