"""The experiments with products of columns run, go on where they stopped, and stand in the order theory demands."""

import csv
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("matplotlib")

from vff.baselines import ExactGP
from vff.datasets import FLIGHT_COLUMNS, Dataset

HOME = Path(__file__).parents[2] / "experiments"


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The experiment as a user starts it, in a quick version; returns its global names."""
    monkeypatch.syspath_prepend(HOME)
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--out", str(folder)])
    with threadpool_limits(1):  # small matrices, and other tests beside this one
        return runpy.run_path(str(HOME / f"{name}.py"), run_name="__main__")


def names_of(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the file defines, without running it."""
    monkeypatch.syspath_prepend(HOME)
    return runpy.run_path(str(HOME / f"{name}.py"), run_name=name)


def read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def test_figure_5_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run("figure5_dimensions", tmp_path, monkeypatch)
    log = tmp_path / "figure5_dimensions_repetitions.csv"
    rows, complete = read(log), log.read_text(encoding="utf-8")
    assert (tmp_path / "figure5_dimensions.png").stat().st_size > 10_000
    assert {row["d"] for row in rows} == {1.0, 2.0, 3.0, 4.0}
    assert all(row["kl"] > 0.0 and row["seconds"] > 0.0 and row["features"] == row["m"] ** row["d"] for row in rows)
    assert all(row["kl"] == pytest.approx(row["log_evidence"] - row["elbo"]) for row in rows)
    kl = {(row["d"], row["repetition"], row["method"], row["m"]): row["kl"] for row in rows}
    for repetition in (0, 1):
        for method in names["COLOURS"]:
            assert kl[1, repetition, method, 11] > kl[1, repetition, method, 21]
            assert kl[2, repetition, method, 7] > kl[2, repetition, method, 9]
        for d, m in ((1, 21), (2, 9), (3, 5)):
            assert kl[d, repetition, names["EDGES"][2], m] < kl[d, repetition, names["PAPER"], m]
    assert "time / grid's" in capsys.readouterr().out
    # killed in the middle of writing its last row
    log.write_text(complete[: len(complete) - 20], encoding="utf-8")
    run("figure5_dimensions", tmp_path, monkeypatch)
    said = capsys.readouterr().err
    assert f"{len(rows) - 1} fits are taken from" in said
    assert said.count("KL") == 1
    assert read(log)[-1]["kl"] == pytest.approx(rows[-1]["kl"], rel=1e-6)


@pytest.mark.parametrize("d", [1, 3])
def test_figure_5_knows_the_evidence_of_what_it_draws(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("figure5_dimensions", monkeypatch)
    monkeypatch.setitem(names["covariance"].__globals__, "_BLOCK", 17)  # rows are not a multiple of it
    data = names["simulate"](60, d, 1)
    exact = ExactGP(names["kernel"](d), **names["GIVEN"]).fit(data.X, data.y)
    assert data.log_evidence == pytest.approx(exact.log_marginal_likelihood_, abs=1e-8)


def test_figure_5_compares_equal_numbers_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("figure5_dimensions", monkeypatch)
    assert [len(names["methods"](4, m)) for m in (3, 5, 7)] == [2, 3, 4]
    for make in names["methods"](2, 9).values():
        model = make()
        size = (
            len(model.inducing)
            if hasattr(model, "inducing")
            else (2 * model.frequencies + 1 + model.edges) ** len(model.kernel.factors)
        )
        assert size == 81


def test_figure_5_names_the_better_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of("figure5_dimensions", monkeypatch)
    spent = {names["PAPER"]: (900.0, 1.0), names["GRID"]: (100.0, 8.0)}
    spent |= {names["EDGES"][2]: (109.0, 4.0), names["EDGES"][4]: (120.0, 2.0)}
    lines = [
        {"d": 2, "m": 15, "method": method, "kl": kl, "milliseconds": time} for method, (kl, time) in spent.items()
    ]
    (found,) = names["beside_grid"](lines)
    assert (found["better edges"], found["KL / grid's"]) == (names["EDGES"][2], 1.09)
    assert (found["time / grid's"], found["bar"]) == (0.5, "met")
    lines[2]["milliseconds"] = 9.0
    assert names["beside_grid"](lines)[0]["bar"] == "missed"


def test_interactions_come_from_what_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, N = np.random.default_rng(0), 900
    X = rng.integers(0, 12, (N, len(FLIGHT_COLUMNS))).astype(float)
    columns = list(FLIGHT_COLUMNS)
    a, b = (X[:, columns.index(name)] for name in ("month", "dep_time"))
    y = X[:, 2] + 0.5 * (a - 6.0) * (b - 6.0) + rng.standard_normal(N)
    flights = Dataset(X, y, tuple(FLIGHT_COLUMNS.values()), "delay (minutes)", "", "", "")
    asked = []

    def suggest(model: Any, X: Any, y: Any) -> list[Any]:
        asked.append(model)
        pairs = (("month", "dep_time"), ("day", "weekday"), ("arr_time", "distance"), ("air_time", "distance"))
        return [SimpleNamespace(columns=pair, gain=9.0 - place) for place, pair in enumerate(pairs)]

    monkeypatch.setattr("vff.datasets.load_flights_nyc", lambda: flights)
    monkeypatch.setattr("vff.suggest_interactions", suggest, raising=False)
    run("interactions", tmp_path, monkeypatch)
    additive, whole, chosen = read(tmp_path / "interactions.csv")
    assert (tmp_path / "interactions.png").stat().st_size > 10_000
    assert list(additive) == ["model", "mse", "nlpd", "seconds", "features", "elbo"]
    assert (additive["features"], whole["features"]) == (64.0, 64.0 + 3 * 64.0)
    assert whole["mse"] < 0.5 * additive["mse"]
    assert whole["nlpd"] < additive["nlpd"]
    assert chosen["features"] == 64.0 + 64.0  # the one that is there, and no other
    assert chosen["nlpd"] <= whole["nlpd"] + 0.01
    assert len(asked[0].kernel_.terms) == 8
    said, tried = capsys.readouterr().out.split('interactions="auto":')
    assert "month * dep_time" in said
    assert "air_time * distance" not in said
    assert "month * dep_time" in tried


def test_spatial_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("spatial_map", tmp_path, monkeypatch)
    rows = {row["model"]: row for row in read(tmp_path / "spatial_map.csv")}
    assert (tmp_path / "spatial_map.png").stat().st_size > 10_000
    assert list(rows) == ["sum", "product", "sum and product", "sum and product, exact"]
    assert all(0.5 < row["r2"] < 1.0 and 0.7 < row["covered"] <= 1.0 for row in rows.values())
    assert rows["sum and product"]["elbo"] > rows["sum"]["elbo"]


def test_disease_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours tell more than independent effects, and these more than raw ratios; intervals hold the truth."""
    run("disease_map", tmp_path, monkeypatch)
    rows = {row["model"]: row for row in read(tmp_path / "disease_map.csv")}
    assert (tmp_path / "disease_map.png").stat().st_size > 10_000
    assert list(rows) == ["raw SMR", "independent", "BYM2", "BYM2, a level per land", "proper"]
    assert rows["proper"]["rmse"] < rows["independent"]["rmse"] < rows["raw SMR"]["rmse"]
    assert all(0.7 < row["covered"] <= 1.0 for row in rows.values())


@pytest.mark.parametrize("name", ["spatial_map", "interactions"])
def test_without_data_it_says_so_and_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vff.suggest_interactions", None, raising=False)
    monkeypatch.setattr("vff.datasets.flights.find_spec", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run(name, tmp_path, monkeypatch)
    assert capsys.readouterr().out.startswith(f"{name}: skipped")
    assert not list(tmp_path.iterdir())
