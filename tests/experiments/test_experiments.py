"""Every experiment runs, leaves a table and a picture, and its numbers stand in the order that theory demands."""

import csv
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("matplotlib")

HOME = Path(__file__).parents[2] / "experiments"
SOLAR = "solar_irradiance.csv"


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The experiment as a user starts it, in a quick version; returns its global names."""
    monkeypatch.syspath_prepend(HOME)
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--out", str(folder)])
    with threadpool_limits(1):  # small matrices, and other tests beside this one
        return runpy.run_path(str(HOME / f"{name}.py"), run_name="__main__")


def read(name: str, folder: Path) -> list[dict[str, Any]]:
    """Its table, numbers as numbers; its picture must be there too."""
    assert (folder / f"{name}.png").stat().st_size > 10_000
    with (folder / f"{name}.csv").open(encoding="utf-8") as stream:
        return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def test_decomposition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("figure1_decomposition", tmp_path / "new", monkeypatch)
    points, paper, edges = read("figure1_decomposition", tmp_path / "new")
    assert list(points) == ["features", "number", "a", "b", "mean_var_h", "max_var_h"]
    assert edges["number"] <= paper["number"]
    assert 0.0 < edges["max_var_h"] < 0.1 * paper["max_var_h"] < points["max_var_h"] < 1.0
    assert "figure1_decomposition.png" in capsys.readouterr().out


def test_l2_against_rkhs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("figure2_l2_rkhs", tmp_path, monkeypatch)
    rows = read("figure2_l2_rkhs", tmp_path)
    assert list(rows[0]) == ["kernel", "features", "largest", "departure_from_sinusoid"]
    assert len(rows) == 6
    for row in rows:
        departure = row["departure_from_sinusoid"]
        assert departure < 1e-12 if row["features"] == "RKHS" else departure > 0.1
    # both kinds are continuous across a and b: the tails meet the waves, the quadrature the closed form
    edges = np.array([-1e-9, 1e-9, 1.0 - 1e-9, 1.0 + 1e-9])
    for p in range(3):
        for curve in (names["l2_covariance"](edges, p), names["rkhs_covariance"](edges, p)):
            np.testing.assert_allclose(curve[::2], curve[1::2], atol=1e-6)


def test_random_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("figure3_random_features", tmp_path, monkeypatch)
    rows = {row["method"]: row for row in read("figure3_random_features", tmp_path)}
    exact = rows["exact"]["log_evidence_or_elbo"]
    for kind in ("variational", "with edge functions"):
        few, many = (rows[f"{kind} ({F})"] for F in (20, 100))
        assert few["log_evidence_or_elbo"] < many["log_evidence_or_elbo"] < exact
        assert many["rmse_of_mean"] < few["rmse_of_mean"]
    for F in (20, 100):
        random, paper, edges = (
            rows[f"{kind} ({F})"] for kind in ("random features", "variational", "with edge functions")
        )
        assert edges["features"] <= paper["features"] <= random["features"]
        assert edges["log_evidence_or_elbo"] > paper["log_evidence_or_elbo"]
        assert edges["rmse_of_mean"] < paper["rmse_of_mean"] < random["rmse_of_mean"]


def test_setting_a_b_and_m(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("figure4_a_b_M", tmp_path, monkeypatch)
    rows = read("figure4_a_b_M", tmp_path)
    assert list(rows[0]) == ["interval", "a", "b", "M", "features", "elbo", "log_evidence", "missed"]
    bounds = {(row["interval"], row["M"]): row["elbo"] for row in rows}
    intervals = list(dict.fromkeys(row["interval"] for row in rows))
    assert intervals == ["inside the data", "too near", "right", "too wide", "edge functions"]
    assert all(row["elbo"] < row["log_evidence"] for row in rows)
    for interval in intervals:
        assert bounds[interval, 8] < bounds[interval, 16] < bounds[interval, 32]
    for M in (8, 16, 32):
        assert max(bounds[interval, M] for interval in intervals) == bounds["edge functions", M]
    assert rows[-1]["missed"] < 0.05


def test_one_column_of_figure_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("figure5_one_column", tmp_path, monkeypatch)
    rows = read("figure5_one_column", tmp_path)
    assert {"method", "features", "used", "repetition", "seconds", "log_evidence", "elbo", "kl"} <= set(rows[0])
    assert names["filter_error"](60) < 1e-12
    assert all(row["kl"] > 0.0 and row["used"] <= row["features"] for row in rows)
    kl = {(row["method"], row["features"], row["repetition"]): row["kl"] for row in rows}
    for repetition in (0, 1):
        for method in names["COLOURS"]:
            assert kl[method, 9, repetition] > kl[method, 21, repetition] > kl[method, 41, repetition]
        for size in (21, 41):
            paper, edges = (kl[method, size, repetition] for method in ("paper, [-0.3, 1.3]", "edge functions, [0, 1]"))
            assert edges < 0.5 * paper


def test_simulated_data_have_the_kernel_s_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME)
    names = runpy.run_path(str(HOME / "figure5_one_column.py"), run_name="figure5")
    x = np.array([0.1, 0.15, 0.4])
    A, Q = names["steps"](x)
    stationary = np.diag([1.0, names["RATE"] ** 2])
    np.testing.assert_allclose((A[1] @ A[0] @ stationary)[0, 0], names["KERNEL"](x[2:], x[:1])[0, 0], rtol=1e-12)
    np.testing.assert_allclose(A[0] @ stationary @ A[0].T + Q[0], stationary, rtol=1e-12, atol=1e-12)


def has_solar_data() -> bool:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vff"
    folders = [Path(os.environ["VFF_DATA"]), cache] if os.environ.get("VFF_DATA") else [cache]
    return any((folder / SOLAR).is_file() for folder in folders)


@pytest.mark.skipif(not has_solar_data(), reason="the solar data are neither in VFF_DATA nor in the cache")
def test_solar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("solar", tmp_path, monkeypatch)
    rows = {row["method"][:3]: row for row in read("solar", tmp_path)}
    assert {"held_out_rmse", "held_out_nlpd", "evidence_or_bound", "seconds", "lengthscale"} <= set(rows["(a)"])
    exact, default = rows["(e)"], rows["(f)"]
    for bound in ("(a)", "(d)", "(f)"):
        assert rows[bound]["evidence_or_bound"] <= exact["evidence_or_bound"]
    assert default["evidence_or_bound"] > exact["evidence_or_bound"] - 2.0
    assert default["lengthscale"] == pytest.approx(exact["lengthscale"], rel=0.1)
    assert default["held_out_nlpd"] == pytest.approx(exact["held_out_nlpd"], abs=0.05)


def test_solar_without_data_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VFF_DATA", str(tmp_path / "nowhere"))
    run("solar", tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert said.startswith("solar: skipped")
    assert said.count("\n") == 1
    assert not (tmp_path / "solar.csv").exists()


class StandIn:
    """A linear model in the place of GPRegressor: quick, and with no more than what the experiment may ask."""

    made = 0

    def __init__(self, kernel: Any = None, **options: Any) -> None:
        self.kernel, self.options = kernel, options
        type(self).made += 1

    def fit(self, X: np.ndarray, y: np.ndarray) -> "StandIn":
        self.centre, self.mean = X.mean(axis=0), y.mean()
        self.slope = np.linalg.lstsq(X - self.centre, y - self.mean)[0]
        self.std = np.std(y - self.predict(X))
        return self

    def predict(self, X: np.ndarray, return_std: bool = False) -> Any:
        mean = self.mean + (X - self.centre) @ self.slope
        return (mean, np.full(len(X), self.std)) if return_std else mean

    def effects(self, X: np.ndarray) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        effect = (X - self.centre) * self.slope
        return tuple("abcdefgh"), effect, 0.1 + 0.0 * effect


@pytest.fixture
def airline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 700 flights whose delay falls with the hour of arrival."""
    rng, N = np.random.default_rng(0), 700
    ranges = {"Month": 12, "DayofMonth": 28, "DayOfWeek": 7, "plane_age": 40, "AirTime": 300, "Distance": 2000}
    frame = pd.DataFrame({name: rng.integers(1, most + 1, N) for name, most in ranges.items()})
    for name in ("ArrTime", "DepTime"):
        frame[name] = 100 * rng.integers(0, 24, N) + rng.integers(0, 60, N)
    frame["ArrDelay"] = 40.0 - frame["ArrTime"] / 30.0 + 10.0 * rng.standard_normal(N)
    frame.to_parquet(tmp_path / "us_flights.parquet")
    monkeypatch.setenv("VFF_DATA", str(tmp_path))
    monkeypatch.setattr("vff.estimators.GPRegressor", StandIn)
    return tmp_path


def repetitions(folder: Path) -> list[str]:
    return (folder / "airline_repetitions.csv").read_text(encoding="utf-8").splitlines()


def test_airline(airline: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run("airline", airline, monkeypatch)
    lines = read("airline", airline)
    assert [(line["method"], line["N"]) for line in lines] == [
        *((method, 300.0) for method in ("paper", "default", "exact additive", "exact RBF")),
        *((method, 700.0) for method in ("paper", "default")),
    ]
    assert all(line["repetitions"] == 2.0 and line["mse"] < 1.0 and line["nlpd"] < 1.42 for line in lines)
    assert all(line[f"{name}_sd"] > 0.0 for line in lines for name in ("mse", "nlpd"))
    assert len(repetitions(airline)) == 1 + 12
    said = capsys.readouterr()
    assert "fits left, at most about" in said.err
    assert "fits left, about" in said.err
    assert "±" in said.out


def test_airline_goes_on_where_it_stopped(
    airline: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("airline", airline, monkeypatch)
    complete = repetitions(airline)
    table = read("airline", airline)
    # the run was killed in the middle of writing its eighth row
    (airline / "airline_repetitions.csv").write_text("\n".join(complete[:8]) + "\n" + complete[8][:20])
    made = StandIn.made
    run("airline", airline, monkeypatch)
    assert StandIn.made == made + 4 + 1  # four of the rest are not exact, and one is drawn
    assert "7 fits are taken from" in capsys.readouterr().err
    assert repetitions(airline)[:8] == complete[:8]
    for before, after in zip(table, read("airline", airline), strict=True):
        assert after["mse"] == pytest.approx(before["mse"], rel=1e-6)


def test_airline_splits_and_scales_on_the_training_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME)
    names = runpy.run_path(str(HOME / "airline.py"), run_name="airline")
    rng = np.random.default_rng(0)
    data = names["Dataset"](rng.uniform(3.0, 9.0, (1000, 2)), rng.normal(5.0, 4.0, 1000), ("a", "b"), "y", "", "", "")
    part = names["split"](data, 300, 1)
    assert (part.X.shape, part.X_new.shape) == ((200, 2), (100, 2))
    np.testing.assert_allclose([part.X.min(axis=0), part.X.max(axis=0)], [[0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose([part.y.mean(), part.y.std()], [0.0, 1.0], atol=1e-12)
    # one linear map for both parts, and no row in both
    back = np.concatenate([part.X, part.X_new])
    assert len(np.unique(back, axis=0)) == 300
    assert not np.array_equal(part.y, names["split"](data, 300, 2).y)
    np.testing.assert_array_equal(part.y, names["split"](data, 300, 1).y)
    assert names["sizes"](273_853, False) == ([10_000, 100_000, 273_853], [1_000_000])
    assert names["sizes"](3_145_630, False) == ([10_000, 100_000, 1_000_000, 3_145_630], [])


def test_airline_names_the_paper_s_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME)
    names = runpy.run_path(str(HOME / "airline.py"), run_name="airline")
    model = names["paper"]()
    assert (model.frequencies, model.edges, model.domain, model.noise_variance) == (29, 0, (-2.0, 3.0), 1.0)
    assert [term.column for term in model.kernel.terms] == list(range(8))
    assert {(term.order, term.variance, term.lengthscale) for term in model.kernel.terms} == {(1, 1.0, 1.0)}


def test_airline_without_data_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VFF_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("vff.datasets.flights.find_spec", lambda name: None)
    run("airline", tmp_path, monkeypatch)
    said = capsys.readouterr()
    assert said.out.startswith("airline: skipped")
    assert "flights from New York are used instead" in said.err
    assert not (tmp_path / "airline.csv").exists()


def test_a_log_of_another_experiment_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME)
    from _common import Log  # pyright: ignore[reportMissingImports]

    path = tmp_path / "new" / "log.csv"
    log = Log(path, ("a", "b"))
    log.append({"a": 1, "b": 0.1})
    log.append({"b": "text", "a": 2})
    assert Log(path, ("a", "b")).rows == [{"a": 1, "b": 0.1}, {"a": 2, "b": "text"}]
    with pytest.raises(ValueError, match="should begin with the columns a,c and begins with 'a,b'"):
        Log(path, ("a", "c"))
    path.write_text("")
    assert Log(path, ("a", "c")).rows == []


def test_random_slopes_without_lme4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no R
    run("random_slopes", tmp_path, monkeypatch)
    rows = {row[""]: row for row in read("random_slopes", tmp_path)}
    assert rows["sd of the noise"]["vff"] == pytest.approx(rows["sd of the noise"]["truth"], rel=0.15)
    assert rows["slope"]["vff"] == pytest.approx(rows["slope"]["truth"], abs=4.0)
    assert "is not there" in capsys.readouterr().err


def test_missing_numbers_beside_boosting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("missing", tmp_path, monkeypatch)
    rows = {(row["method"], row["rows"]): row for row in read("missing", tmp_path)}
    assert rows["effect of its own", "all"]["error"] < rows["gradient boosting", "all"]["error"]
    assert 0.85 < rows["effect of its own", "all"]["coverage"] <= 1.0


def test_bayesian_optimisation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("bayesian_optimisation", tmp_path, monkeypatch)
    for row in read("bayesian_optimisation", tmp_path):
        assert row["proposed twice"] == 0
        assert row["worst regret"] < 0.01


def test_coverage_of_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("few_rows", tmp_path, monkeypatch)
    rows = read("few_rows", tmp_path)
    assert {row["hyperparameters"] for row in rows} == {"default", "flat", "maximised"}
    assert all(0.0 <= row["function"] <= 1.0 for row in rows)


def test_calibration_of_averages_over_hyperparameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of truths among weighted draws; so few say no more than that all of it runs."""
    monkeypatch.syspath_prepend(HOME)
    monkeypatch.setattr(sys, "argv", ["sbc", "--integrated", "--sets", "8", "--quick", "--out", str(tmp_path)])
    with threadpool_limits(1):
        runpy.run_path(str(HOME / "sbc.py"), run_name="__main__")
    rows = read("sbc_integrated", tmp_path)
    assert [row["quantity"] for row in rows] == ["variance", "lengthscale", "noise_variance", "f(0.3)", "f(0.85)"]
    assert all(0.1 < row["mean_rank"] < 0.9 and row["ks_p"] > 1e-4 for row in rows)
