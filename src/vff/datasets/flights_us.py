"""Flights inside the United States, 1999 to 2024, from a parquet file that the user has."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vff.datasets.files import VARIABLE, folders
from vff.datasets.flights import FLIGHT_COLUMNS, check_columns, minutes, whole_flights
from vff.datasets.record import Dataset

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
    check_columns(columns)
    table = _read(_find(), [*(_FIELDS[column] for column in columns), _TARGET])
    X = np.column_stack([_column(table, column) for column in columns])
    y = _numbers(table, _TARGET)
    return whole_flights(
        X,
        y,
        columns,
        f"{y.size} flights inside the United States, 1999 to 2024, put together from public extracts: of the scale and "
        "kind of the paper's airline set (2008; 5,929,413 flights), but not the same rows.",
        "US Bureau of Transportation Statistics and FAA aircraft registry, through public extracts",
        "public domain (US government)",
    )


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


def _numbers(table: Any, field: str) -> np.ndarray:
    return table[field].to_numpy(dtype=float, na_value=np.nan)


def _column(table: Any, column: str) -> np.ndarray:
    values = _numbers(table, _FIELDS[column])
    return minutes(values) if column in ("dep_time", "arr_time") else values
