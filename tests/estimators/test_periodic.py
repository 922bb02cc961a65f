"""Functions of a period, through every door of the library: nothing but their own folder knows of them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vff import Categorical, GPRegressor, Matern32, Periodic, load, parse_kernel, plot
from vff.baselines import ExactGP

pd = pytest.importorskip("pandas")
HELD: dict[str, Any] = {"optimizer": None, "noise_variance": 0.04, "frequencies": 8}
DAY = Periodic("hour", 24, variance=1.0, lengthscale=5.0)


def table(n: int = 400) -> Any:
    """Hours of a month, a level, and something that comes again every day."""
    rng = np.random.default_rng(7)
    hour, house = rng.uniform(0.0, 720.0, n), rng.choice(["east", "west"], n)
    f = np.sin(np.pi * hour / 12.0) + 0.4 * np.cos(np.pi * hour / 4.0) + 0.5 * (house == "west")
    return pd.DataFrame({"hour": hour, "house": house, "load": f + 0.2 * rng.normal(size=n)})


ROWS = table()
HOURS = pd.DataFrame({"hour": [0.0, 5.0, 24.0, 29.0, -19.0, 2405.0]})


def hours_of(model: Any) -> np.ndarray:
    mean, variance = model.predict_f(HOURS)
    return np.stack([mean, variance])


@pytest.fixture(scope="module")
def held() -> Any:
    return GPRegressor(DAY, **HELD).fit(ROWS[["hour"]], ROWS["load"])


def test_the_seam_is_closed_in_value_and_slope(held: Any) -> None:
    mean, variance = hours_of(held)
    assert mean[[0, 1]] == pytest.approx(mean[[2, 3]], abs=1e-12)
    assert mean[[3, 3]] == pytest.approx(mean[[4, 5]], abs=1e-12)
    assert variance[[0, 1]] == pytest.approx(variance[[2, 3]], abs=1e-12)
    slope, _ = held.predict_derivative(HOURS, "hour")
    assert slope[0] == pytest.approx(slope[2], abs=1e-11)


def test_the_exact_process_agrees(held: Any) -> None:
    """Dense algebra with the kernel itself, after hours whose features are nearly all."""
    model = GPRegressor(DAY, **HELD | {"frequencies": 60}).fit(ROWS[["hour"]], ROWS["load"])
    exact = ExactGP(DAY, noise_variance=0.04, optimizer=None).fit(ROWS[["hour"]], ROWS["load"])
    np.testing.assert_allclose(model.predict_f(HOURS)[0], exact.predict_f(HOURS)[0], atol=2e-4)
    np.testing.assert_allclose(model.predict_f(HOURS)[1], exact.predict_f(HOURS)[1], atol=2e-4)


def test_pieces_files_clusters_and_databases_are_one_fit(held: Any, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.dataframe")
    duckdb = pytest.importorskip("duckdb")
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    pieces = GPRegressor(DAY, **HELD)
    for some in np.array_split(np.arange(len(ROWS)), 3):
        pieces.partial_fit(ROWS[["hour"]].iloc[some], ROWS["load"].iloc[some])
    from_file = GPRegressor(DAY, **HELD).fit(tmp_path / "rows.csv", "load")
    from_dask = GPRegressor(DAY, **HELD).fit(dask.from_pandas(ROWS[["hour", "load"]], npartitions=3), "load")
    relation = duckdb.connect().from_csv_auto(str(tmp_path / "rows.csv"))
    from_database = GPRegressor(DAY, **HELD).fit(relation.project("hour, load"), "load")
    for other in (pieces, from_file, from_dask, from_database):
        assert other.elbo_ == pytest.approx(held.elbo_, abs=1e-8)
        np.testing.assert_allclose(hours_of(other), hours_of(held), atol=1e-9)


def test_files_and_texts_hold_it(held: Any, tmp_path: Path) -> None:
    held.save(tmp_path / "day.vff")
    np.testing.assert_array_equal(hours_of(load(tmp_path / "day.vff")), hours_of(held))
    assert parse_kernel(str(Periodic("hour", 24) * Matern32("hour"))) == Periodic("hour", 24) * Matern32("hour")


def test_chains_and_other_likelihoods() -> None:
    pytest.importorskip("blackjax")
    chain = GPRegressor(Periodic("hour", 24), frequencies=4, inference="mcmc", draws=20, warmup=30, chains=1)
    chain.set_params(random_state=0).fit(ROWS[["hour"]], ROWS["load"])
    assert np.all(chain.samples_.values["lengthscale[hour]"] > 0.0)
    counts = np.random.default_rng(1).poisson(np.exp(ROWS["load"]))
    model = GPRegressor(Periodic("hour", 24), likelihood="poisson", frequencies=5).fit(ROWS[["hour"]], counts)
    assert hours_of(model)[0, 0] == pytest.approx(hours_of(model)[0, 2], abs=1e-12)


def test_a_season_that_drifts_is_a_product_on_one_column() -> None:
    kernel = Periodic("hour", 24, variance=1.0, lengthscale=6.0) * Matern32("hour", variance=1.0, lengthscale=400.0)
    model = GPRegressor(kernel, noise_variance=0.04, optimizer=None, frequencies=14).fit(ROWS[["hour"]], ROWS["load"])
    exact = ExactGP(kernel, noise_variance=0.04, optimizer=None).fit(ROWS[["hour"]], ROWS["load"])
    at = pd.DataFrame({"hour": [3.0, 300.0, 719.0]})
    np.testing.assert_allclose(model.predict_f(at)[0], exact.predict_f(at)[0], atol=0.01)


def test_the_drawn_curve_ends_where_it_began() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = GPRegressor(Periodic("hour", 24) + Categorical("house"), frequencies=5)
    model.fit(ROWS[["hour", "house"]], ROWS["load"])
    figure = plot.effects(model, "hour")
    line = max(figure.axes[0].lines, key=lambda own: len(own.get_xdata()))
    x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    assert x[[0, -1]] == pytest.approx([0.0, 24.0])
    assert y[0] == pytest.approx(y[-1], abs=1e-12)
    pyplot.close("all")


def test_the_command_line_knows_it(tmp_path: Path) -> None:
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    command = [sys.executable, "-m", "vff", "fit", "rows.csv", "--target", "load", "--out", "day.vff"]
    terms = ["--terms", "periodic(hour, period=24) + cat(house)"]
    done = subprocess.run([*command, *terms], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "hour" in done.stdout
    assert "period=24" in str(load(tmp_path / "day.vff").kernel_)


def test_a_period_is_needed() -> None:
    with pytest.raises(TypeError, match=r"Periodic\('hour'\) needs a period in the units of the column"):
        Periodic("hour")
    with pytest.raises(
        ValueError, match=r"period must be a positive number, got .*; write Periodic\(.hour., period=24\)"
    ):
        Periodic("hour", -24.0)


def test_a_periodic_function_alone_is_drawn_over_one_turn(rng):
    pytest.importorskip("matplotlib")
    hour = rng.uniform(0.0, 96.0, 80)
    model = GPRegressor(Periodic(0, period=24), frequencies=4).fit(hour[:, None], np.cos(hour / 4))
    drawn = plot.fit(model).data
    assert (drawn["x"][0], drawn["x"][-1]) == (0.0, 24.0)
    assert drawn["mean"][0] == pytest.approx(drawn["mean"][-1], abs=1e-9)
