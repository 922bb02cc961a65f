"""The three small data sets of the paper."""

import numpy as np

from vff.datasets.files import REPOSITORY, Dataset, NumberFile, load

_LICENCE = "Apache-2.0, as part of the authors' repository"

SOLAR = NumberFile("solar_irradiance.csv", "experiments/solar/solar_data.txt", (391, 3),
    "e229c07bfc607604ec5fad58f9b26f073cab3b6f0633c9ed58b146dffd4d932b")  # fmt: skip
BANANA_X = NumberFile("banana_X.csv", "experiments/banana/banana_X_train", (400, 2),
    "227dda4481058901ff1d0257eb65ee74076ebb17c1f6e960d7bd9bb346fb0d92")  # fmt: skip
BANANA_Y = NumberFile("banana_y.csv", "experiments/banana/banana_Y_train", (400, 1),
    "b150d9fa0d3032f6773c9d2e452b91dd243c1f16ab2e05a11735da6193d36f7f")  # fmt: skip
PINES = NumberFile("pines.csv", "experiments/mcmc_pines/pines.csv", (127, 2),
    "1a15a5c5ff905bcb6da241896c60de664a7f87a2eba459ce8ec7e1a1eba69ab6")  # fmt: skip


def load_solar() -> Dataset:
    """Solar irradiance reconstructed for the years 1610 to 2000.

    Returns
    -------
    Dataset
        391 rows, one column.

    Examples
    --------
    (Not run by the tests, since it may download.)

    >>> vff.datasets.load_solar().X.shape  # doctest: +SKIP
    (391, 1)
    """
    numbers = load(SOLAR)
    return Dataset(
        numbers[:, :1],
        numbers[:, 2],
        ("year",),
        "solar irradiance (W/m²)",
        "Yearly total solar irradiance, 1610.5 to 2000.5, reconstructed from sunspots and a model of the sun's "
        "background: the 11-year cycle plus the background. The paper standardises it on all rows and holds out "
        "1620-1650, 1700-1720, 1780-1800, 1850-1870 and 1930-1950, ends excluded.",
        "J. Lean (2004), Solar Irradiance Reconstruction, IGBP PAGES/World Data Center for Paleoclimatology, Data "
        f"Contribution Series 2004-035; {REPOSITORY}",
        _LICENCE,
    )


def load_banana() -> Dataset:
    """Two banana-shaped classes in the plane.

    Returns
    -------
    Dataset
        400 rows, two columns, labels 0 and 1.

    Examples
    --------
    (Not run by the tests, since it may download.)

    >>> vff.datasets.load_banana().X.shape  # doctest: +SKIP
    (400, 2)
    """
    return Dataset(
        load(BANANA_X),
        load(BANANA_Y)[:, 0],
        ("x1", "x2"),
        "class (0 or 1)",
        "Points of two interlocking classes, made for comparing classifiers.",
        f"usually credited to G. Rätsch's benchmark repository; {REPOSITORY}",
        _LICENCE,
    )


def load_pines() -> Dataset:
    """Places of 127 pine saplings in a unit square.

    Returns
    -------
    Dataset
        y is one sapling per row. The first two rows are the same.

    Examples
    --------
    (Not run by the tests, since it may download.)

    >>> vff.datasets.load_pines().X.shape  # doctest: +SKIP
    (127, 2)
    """
    numbers = load(PINES)
    return Dataset(
        numbers,
        np.ones(len(numbers)),
        ("east", "north"),
        "saplings",
        "Positions of pine saplings in a square of a forest, scaled to [0, 1]. The first two rows are one tree. The "
        "paper counts them on a 64 x 64 grid.",
        REPOSITORY,
        _LICENCE,
    )
