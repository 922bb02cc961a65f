"""Single priors: textbooks, the statements of probability that set them, and refusals."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.laws.test_priors import GRID, LEVELS, cumulated

from vff.priors import (
    Exponential,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    OfSd,
    PenalisedLengthscale,
    penalised_sd,
)


def test_formulas_say_what_textbooks_say() -> None:
    assert Gamma(3.0, 0.5).log_density(2.0) == pytest.approx(math.log(2.0**2 * math.exp(-4.0) / (2.0 * 0.5**3)))
    assert InverseGamma(3.0, 2.0).log_density(0.5) == pytest.approx(math.log(2.0**3 / 2.0 * 0.5**-4 * math.exp(-4.0)))
    assert Normal(1.0, 2.0).log_density(1.0) == pytest.approx(-math.log(2.0 * math.sqrt(2 * math.pi)))
    assert LogNormal(median=2.0, sigma=0.5).median == 2.0
    half, lam = 1.5, -math.log(0.1) * 0.2**1.5
    expected = half * lam * 0.7 ** (-half - 1) * math.exp(-lam * 0.7**-half)
    assert PenalisedLengthscale(0.2, 0.1, columns=3).log_density(0.7) == pytest.approx(math.log(expected))


@pytest.mark.parametrize("probability", [0.01, 0.5, 0.9])
def test_penalised_priors_keep_their_statement(probability: float) -> None:
    """By quadrature of the density, up to the edge that the statement names."""
    variance = penalised_sd(3.0, probability)
    assert 1 - np.interp(np.log(3.0**2), GRID, cumulated(variance)) == pytest.approx(probability, abs=1e-5)
    for columns in (1, 2, 5):
        lengthscale = PenalisedLengthscale(0.2, probability, columns)
        assert np.interp(np.log(0.2), GRID, cumulated(lengthscale)) == pytest.approx(probability, abs=1e-5)
        assert lengthscale.quantile(probability) == pytest.approx(0.2)


def test_a_variance_has_the_quantiles_of_its_sd_squared() -> None:
    assert OfSd(Gamma(2.0, 3.0)).quantile(LEVELS) == pytest.approx(Gamma(2.0, 3.0).quantile(LEVELS) ** 2)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gamma(-1.0, 1.0), "Gamma expects a finite number above zero as its shape, but found -1.0; give a"),
        (lambda: Gamma(1.0, np.inf), "Gamma .* scale, but found inf"),
        (lambda: LogNormal(0.0, 1.0), "LogNormal .* median, but found 0.0"),
        (lambda: LogNormal(1.0, np.nan), "LogNormal .* sigma, but found nan"),
        (lambda: InverseGamma("2", 1.0), "InverseGamma .* shape, but found '2'"),  # pyright: ignore[reportArgumentType]
        (lambda: HalfNormal(0.0), "HalfNormal .* scale"),
        (lambda: Exponential(-0.1), "Exponential .* scale"),
        (lambda: Normal(np.nan, 1.0), "Normal expects a finite number as its mean, but found nan"),
        (lambda: Normal(0.0, 0.0), "Normal .* sd, but found 0.0"),
        (lambda: OfSd(Normal(0.0, 1.0)), r"OfSd expects .* found Normal\(mean=0.0, sd=1.0\); give the prior of the"),
        (lambda: OfSd(2.0), "OfSd expects a prior of a positive number, but found 2.0"),  # pyright: ignore[reportArgumentType]
        (lambda: penalised_sd(0.0, 0.1), "penalised_sd .* above, but found 0.0"),
        (lambda: penalised_sd(1.0, 1.0), "penalised_sd expects a probability between 0 and 1, but found 1.0; give one"),
        (lambda: PenalisedLengthscale(1.0, 0.0), "PenalisedLengthscale expects a probability .* found 0.0"),
        (lambda: PenalisedLengthscale(-1.0, 0.5), "PenalisedLengthscale .* below, but found -1.0"),
        (lambda: PenalisedLengthscale(1.0, 0.5, columns=0), "a whole number of columns from one, but found 0"),
        (lambda: Gamma(1.0, 1.0).quantile([0.5, 1.0]), "expects levels between 0 and 1, but found 1; give one"),
    ],
)
def test_refusals(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
