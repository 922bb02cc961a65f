"""The experiments with likelihoods meet the paper's numbers, score as they say, and draw what they measure."""

import csv
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("matplotlib")

from vff import GPRegressor, Matern52
from vff.datasets import Dataset, load_banana

HOME = Path(__file__).parents[2] / "experiments"


def names_of(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the file defines, without running it."""
    monkeypatch.syspath_prepend(HOME)
    return runpy.run_path(str(HOME / f"{name}.py"), run_name=name)


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """The experiment as a user starts it, in a quick version."""
    monkeypatch.syspath_prepend(HOME)
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--out", str(folder), *options])
    with threadpool_limits(1):  # small matrices, and other tests beside this one
        runpy.run_path(str(HOME / f"{name}.py"), run_name="__main__")


def read(name: str, folder: Path) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def banana() -> Dataset:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vff"
    folders = [Path(os.environ["VFF_DATA"]), cache] if os.environ.get("VFF_DATA") else [cache]
    if not any((folder / "banana_X.csv").is_file() for folder in folders):
        pytest.skip("the banana data are neither in VFF_DATA nor in the cache")
    return load_banana()


def test_the_published_bounds_are_met(banana: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("banana_bounds", monkeypatch)
    for kind in (names["FULL"], names["ONE"]):
        assert names["METHODS"][kind](banana, 4) == pytest.approx(names["PUBLISHED"][kind][4], abs=1e-3)
    assert names["default"](banana, 5) > names["BARS"][14]
    assert names["exact"](banana, names["SQUASHED"]) == pytest.approx(names["PUBLISHED_EXACT"], abs=0.02)


def test_the_published_numbers_are_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("banana_bounds", monkeypatch)
    published = names["PUBLISHED"]
    assert {kind: (min(points), max(points), len(points)) for kind, points in published.items()} == {
        names["FULL"]: (2, 16, 8),
        names["ONE"]: (2, 24, 12),
        names["TWO"]: (2, 24, 12),
    }
    lines = [
        {"covariance": kind, "M": M, "features": 2 * M - 1, "bound": bound + 0.5, "published": bound}
        for kind, points in published.items()
        for M, bound in points.items()
    ]
    lines += [
        {"covariance": name, "M": 6, "features": 14, "bound": -139.0, "published": ""}
        for name in ("exact, squashed", "exact, clean", names["DEFAULT"])
    ]
    shown = names["shown"](lines)
    assert [shown[0]["ours - published"], shown[-1]["ours - published"]] == ["+0.500", ""]
    figure = names["draw"](lines)
    published_marks = [
        len(line.get_xdata()) for ax in figure.axes for line in ax.lines if line.get_label() == "published"
    ]
    assert published_marks == [8, 12, 12]


def test_panels_draw_what_carries_q(banana: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("banana_panels", monkeypatch)
    few = Dataset(banana.X[:60], banana.y[:60], banana.names, banana.target, "", "", "")
    lattice, make = names["Lattice"].over(few.X), names["makers"](few)
    fits = [(names["FULL"], 60, names["EDGES"], 1), (names["POINTS"], 4, names["POINTS"], 4)]
    kernel = Matern52(0, variance=1.0, lengthscale=1.0) * Matern52(1, variance=1.0, lengthscale=1.0)
    panels = []
    for method, size, maker, asked in fits:
        model = make[maker](asked).set_params(optimizer=None, kernel=kernel).fit(few.X, few.y)
        panels.append(names["Panel"](method, size, model, lattice.probability(model), 0.1))
    lines = names["summary"](panels)
    assert [line["features"] for line in lines] == [49, 4]
    assert float(lines[0]["most"]) == 0.0 < float(lines[1]["most"])
    figure = names["new_figure"](3.0, 3.0)
    names["draw_panel"](figure.subplots(), few, lattice, panels[1])
    (dots,) = figure.axes[0].lines
    np.testing.assert_allclose(np.array(dots.get_data()).T, panels[1].model.inducing_)


def test_reliability_is_that_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("late_flights", monkeypatch)
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    found = names["reliability"](p, rng.random(p.size) < p)
    np.testing.assert_allclose(found.predicted, np.arange(0.05, 1.0, 0.1), atol=0.01)
    assert np.all(np.abs(found.observed - found.predicted) < 4.0 * found.error)
    assert np.all(np.abs(found.observed - found.predicted**2)[3:7] > 10.0 * found.error[3:7])
    assert found.rows.sum() == p.size
    q = found.predicted[4]
    assert found.error[4] == pytest.approx(np.sqrt(q * (1.0 - q) / 4000), rel=0.02)


def test_intervals_hold_what_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    names, rng = names_of("calibration", monkeypatch), np.random.default_rng(0)
    truth = names["TRUTHS"]["poisson"]
    X, y = names["simulate"](truth, 200, rng)
    model = GPRegressor(likelihood="poisson", frequencies=3).fit(X, y)
    drawn = truth.sample(model.predict_f(X)[0], np.ones(len(X)), rng)
    lines = names["coverage"]("poisson", model, X, drawn)
    assert [line["nominal"] for line in lines] == list(names["LEVELS"])
    for line in lines:
        assert line["nominal"] < line["expected"] < 1.0
        assert line["actual"] == pytest.approx(line["expected"], abs=4.0 * line["error"])
    u = names["transform"](model, X, drawn, rng)
    assert 0.0 <= u.min() < u.max() <= 1.0
    assert u.mean() == pytest.approx(0.5, abs=4.0 / np.sqrt(12.0 * u.size))


def test_late_flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rng, N = np.random.default_rng(0), 400
    X = np.column_stack([rng.uniform(0.0, span, N) for span in (12, 31, 7, 1440, 1440, 300, 2000, 30)])
    y = 60.0 * np.sin(X[:, 3] / 230.0) + 20.0 * rng.standard_normal(N)
    flights = SimpleNamespace(X=X, y=y)
    monkeypatch.setattr("vff.datasets.load_flights_us", lambda: flights)
    monkeypatch.setattr("vff.datasets.load_flights_nyc", lambda: pytest.fail("--us was given"))
    run("late_flights", tmp_path, monkeypatch, "--us")
    constant, logistic, ours = read("late_flights", tmp_path)
    assert list(ours) == ["model", "log-loss", "Brier", "AUC", "seconds", "worst group (%)"]
    assert float(constant["AUC"]) == 0.5
    for score in ("log-loss", "Brier"):
        assert float(ours[score]) < float(logistic[score]) < float(constant[score])
    assert float(ours["AUC"]) > 0.9
    for picture in ("late_flights", "late_flights_reliability"):
        assert (tmp_path / f"{picture}.png").stat().st_size > 10_000
    assert "were held out" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["banana_bounds", "banana_panels", "late_flights"])
def test_without_data_it_says_so_and_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise FileNotFoundError("nowhere")

    for loader in ("load_banana", "load_flights_nyc"):
        monkeypatch.setattr(f"vff.datasets.{loader}", missing)
    run(name, tmp_path, monkeypatch)
    assert capsys.readouterr().out == f"{name}: skipped, because the data could not be had: nowhere\n"
    assert not any(tmp_path.iterdir())


def test_coal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("coal", tmp_path, monkeypatch, "--inference", "variational")
    whole, early, *_ = read("coal", tmp_path)
    assert (whole["period"], whole["happened"]) == ("1851-1962", "191")
    assert float(whole["expected"]) == pytest.approx(191.0, rel=0.01)
    assert float(whole["std"]) == pytest.approx(np.sqrt(191.0), rel=0.1)
    assert float(early["lower"]) < 123 < float(early["upper"])
    assert (tmp_path / "coal.png").stat().st_size > 10_000
