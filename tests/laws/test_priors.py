"""What holds for every prior: its density by quadrature, compiled formulas, quantiles, files."""

import inspect
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.makers.priors import MAKERS, PRIORS

from vff import priors
from vff.priors import AbstractPrior, Gamma
from vff.priors.base import from_t, log_slope
from vff.storage import Codec

GRID = np.linspace(-80.0, 80.0, 64001)  # of t: the value, or its logarithm
LEVELS = np.array([0.01, 0.05, 0.3, 0.5, 0.8, 0.95, 0.99])

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())


def value_of(prior: AbstractPrior, t: Any) -> Any:
    """t itself, its exponential, or of a correlation (e - 1) / (e + 1) with e the exponential."""
    return {"real": t, "positive": np.exp(t), "correlation": -np.expm1(-t) / (1.0 + np.exp(-t))}[prior.support]


def t_of(prior: AbstractPrior, value: Any) -> Any:
    if prior.support == "correlation":
        return np.log((1.0 + value) / (1.0 - value))
    return value if prior.support == "real" else np.log(value)


def _unconstrained(prior: AbstractPrior, t: Any, numbers: Any) -> Any:
    """The log density of t up to a constant, with the Jacobian of a value that is a function of t."""
    return prior.formula(from_t(prior.support, t), *numbers) + log_slope(prior.support, t)


def cumulated(prior: AbstractPrior) -> np.ndarray:
    """The distribution function on the grid, by the trapezoidal rule."""
    slopes = {"real": np.ones(GRID.size), "positive": np.exp(GRID), "correlation": 0.5 / np.cosh(GRID / 2.0) ** 2}
    jacobian = slopes[prior.support]
    heights = np.exp(prior.log_density(value_of(prior, GRID))) * jacobian
    steps = np.diff(GRID) * (heights[1:] + heights[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def test_every_kind_has_a_maker() -> None:
    public = [getattr(priors, name) for name in priors.__all__]
    kinds = [kind for kind in public if inspect.isclass(kind) and issubclass(kind, AbstractPrior)]
    assert {kind.__name__ for kind in kinds if not inspect.isabstract(kind)} == set(MAKERS)


@every_prior
def test_the_density_integrates_to_one(prior: AbstractPrior) -> None:
    assert cumulated(prior)[-1] == pytest.approx(1.0, abs=1e-8)


@every_prior
def test_quantiles_invert_the_distribution_function(prior: AbstractPrior) -> None:
    quantiles = prior.quantile(LEVELS)
    assert np.interp(t_of(prior, quantiles), GRID, cumulated(prior)) == pytest.approx(LEVELS, abs=1e-5)
    assert prior.median == pytest.approx(prior.quantile(0.5), rel=1e-14)


@every_prior
def test_samples_have_the_quantiles(prior: AbstractPrior, rng: np.random.Generator) -> None:
    samples = prior.sample((100, 200), rng)
    assert samples.shape == (100, 200)
    assert np.all(np.isfinite(prior.log_density(samples)))
    shares = np.mean(samples.reshape(-1, 1) <= prior.quantile(LEVELS), axis=0)
    assert np.all(np.abs(shares - LEVELS) < 4.5 * np.sqrt(LEVELS * (1 - LEVELS) / samples.size))


@every_prior
def test_unconstrained_is_the_density_of_the_logarithm(prior: AbstractPrior) -> None:
    t = np.linspace(-2.0, 2.0, 9)
    expected = prior.log_density(value_of(prior, t)) - prior.log_constant
    expected += {"real": 0.0, "positive": t, "correlation": -2.0 * np.log(2.0 * np.cosh(t / 2.0))}[prior.support]
    assert _unconstrained(prior, t, prior.numbers) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert _unconstrained(prior.form, t, prior.numbers) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@every_prior
def test_the_form_has_no_numbers_of_its_own(prior: AbstractPrior) -> None:
    assert type(prior.form) is type(prior)
    assert prior.form == prior.form.form
    assert prior.form.support == prior.support
    assert prior.form.formula(0.7, *prior.numbers) == prior.formula(0.7, *prior.numbers)


@every_prior
def test_formulas_compile_and_differentiate(prior: AbstractPrior) -> None:
    """Value and numbers are tracers; in double precision."""
    jax = pytest.importorskip("jax")
    form, numbers, step = prior.form, np.array(prior.numbers), 1e-6
    with jax.enable_x64(True):
        compiled = jax.jit(lambda t, numbers: _unconstrained(form, t, tuple(numbers)))
        slopes = jax.jit(jax.grad(lambda t, numbers: _unconstrained(form, t, tuple(numbers)), argnums=(0, 1)))
        for t in (-1.3, 0.4):
            value = compiled(t, numbers)
            assert value.dtype == np.float64
            assert float(value) == pytest.approx(_unconstrained(prior, t, prior.numbers), rel=1e-13)
            by_t, by_numbers = slopes(t, numbers)
            difference = _unconstrained(prior, t + step, numbers) - _unconstrained(prior, t - step, numbers)
            assert float(by_t) == pytest.approx(difference / (2 * step), rel=1e-6, abs=1e-7)
            for k, unit in enumerate(np.eye(len(numbers)) * step):
                difference = _unconstrained(form, t, numbers + unit) - _unconstrained(form, t, numbers - unit)
                assert float(by_numbers[k]) == pytest.approx(difference / (2 * step), rel=1e-6, abs=1e-7)


@every_prior
def test_values_or_numbers_alone_may_be_traced(prior: AbstractPrior) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        expected = prior.formula(0.7, *prior.numbers)
        assert float(jax.jit(lambda v: prior.formula(v, *prior.numbers))(0.7)) == pytest.approx(expected, rel=1e-13)
        for value in (0.7, np.float64(0.7), np.array([0.7])):
            numbers_alone = jax.jit(lambda numbers, value=value: prior.formula(value, *numbers))
            assert np.asarray(numbers_alone(prior.numbers)) == pytest.approx(expected, rel=1e-13)
        assert float(jax.jit(prior.log_density)(0.7)) == pytest.approx(prior.log_density(0.7), rel=1e-13)


@every_prior
def test_outside_the_support_there_is_nothing(prior: AbstractPrior) -> None:
    assert prior.log_density(np.inf) == -np.inf
    assert np.isnan(prior.log_density(np.nan))
    assert np.isfinite(prior.log_density(0 if prior.support == "correlation" else 1))
    below = prior.log_density(np.array([[-1.0, 0.0], [0.9, -np.inf]]))
    assert below.shape == (2, 2)
    expected = [[prior.support == "real", prior.support != "positive"], [True, False]]
    assert np.array_equal(np.isfinite(below), expected)
    if prior.support == "correlation":
        assert prior.log_density(1.0) == -np.inf


@every_prior
@given(t=st.floats(-20.0, 20.0))
def test_the_formula_is_finite_over_seventeen_orders_of_magnitude(prior: AbstractPrior, t: float) -> None:
    value = _unconstrained(prior, t, prior.numbers)
    assert math.isfinite(value)
    assert _unconstrained(prior, np.array([t, 0.0]), prior.numbers)[0] == pytest.approx(value, rel=1e-12)


@every_prior
@given(t=st.floats(-700.0, 700.0))
def test_the_density_is_never_nan_and_silent_when_it_vanishes(prior: AbstractPrior, t: float) -> None:
    assert not np.isnan(prior.log_density(value_of(prior, t)))


@every_prior
@given(level=st.integers(1, 10**6 - 1), other=st.integers(1, 10**6 - 1))
def test_quantiles_rise(prior: AbstractPrior, level: int, other: int) -> None:
    """In millionths: SciPy's inverses do not rise between neighbours in float64, where they are all rounding."""
    low, high = sorted((level, other))
    assert prior.quantile(low / 10**6) <= prior.quantile(high / 10**6)


@every_prior
def test_priors_are_values(prior: AbstractPrior) -> None:
    twin = pickle.loads(pickle.dumps(prior))
    assert twin == prior
    assert twin.median == prior.median
    assert hash(twin) == hash(prior)
    assert len({twin, prior, Gamma(17.0, 1.0)}) == 2


@every_prior
def test_files_hold_it(prior: AbstractPrior) -> None:
    codec = Codec("vff")
    assert codec.decode(codec.encode(prior, AbstractPrior), AbstractPrior) == prior
