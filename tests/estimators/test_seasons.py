"""Kernels of a circle of every order and kind: the seam, scikit-learn's own, choices in texts, files and errors."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ive
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, ExpSineSquared, WhiteKernel

from vff import GPRegressor, Matern32, Periodic, load, parse_kernel
from vff.baselines import ExactGP
from vff.factors import Leaf, Prior
from vff.factors.circle.basis import Circle, CircleBasis
from vff.factors.circle.factor import CirclePrior
from vff.factors.circle.kernels import WrappedMatern, scaled_bessel
from vff.kernels import Matern12, Matern52, write_kernel
from vff.kernels.formula import parse_terms
from vff.storage import Codec

NOISE = 0.05
KERNELS = [
    Periodic(0, 24, variance=1.0, lengthscale=6.0, order=0),
    Periodic(0, 24, variance=1.0, lengthscale=6.0),
    Periodic(0, 24, variance=1.0, lengthscale=6.0, order=2),
    Periodic(0, 24, variance=1.0, lengthscale=6.0, order=5),
    Periodic(0, 24, variance=1.3, lengthscale=0.8, kind="exponential-sine"),
]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    hour = rng.uniform(0.0, 96.0, 120)
    return hour, np.sin(2 * np.pi * hour / 24) ** 3 + np.sqrt(NOISE) * rng.normal(size=120)


def held(kernel: Any, rows: tuple[np.ndarray, np.ndarray], frequencies: int = 30) -> GPRegressor:
    model = GPRegressor(kernel, noise_variance=NOISE, optimizer=None, frequencies=frequencies, normalize_y=False)
    return model.fit(rows[0][:, None], rows[1])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_seam_is_closed_in_value_and_slope(kernel: Periodic, rows: Any) -> None:
    model, ends = held(kernel, rows), np.array([[0.0], [24.0]])
    mean, variance = model.predict_f(ends)
    assert mean[0] == pytest.approx(mean[1], abs=1e-12)
    assert variance[0] == pytest.approx(variance[1], abs=1e-12)
    if kernel.order != 0:
        slope, _ = model.predict_derivative(np.array([[0.0], [24.0], [np.nextafter(24.0, 0.0)]]))
        assert slope == pytest.approx(np.full(3, slope[0]), abs=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_draws_close_the_seam(kernel: Periodic, rows: Any) -> None:
    """Value and slope: a second difference across the seam is no larger than the prior lets it be anywhere."""
    model, h = held(kernel, rows), 1e-3
    ends = np.array([0.0, 24.0, 24.0 - h, h])
    first, last, before, after = model.sample_f(ends[:, None], 20, random_state=0)
    np.testing.assert_allclose(first, last, atol=1e-6)  # draws of equal rows: the root of a singular covariance
    step = np.array([1.0, -2.0, 1.0])
    mean = model.predict_f(ends[[2, 0, 3], None])[0] @ step
    sd = np.sqrt(max(0.0, step @ kernel(h * np.arange(3), h * np.arange(3)) @ step))
    assert np.all(np.abs(before - 2.0 * first + after) < abs(mean) + 5.0 * sd + 1e-6)
    if kernel.order != 0:
        assert abs(mean) + 5.0 * sd < 0.3 * h  # a kink would leave h times the jump of the slope


@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 1.0, 4.0])
def test_the_kernel_is_that_of_scikit_learn(lengthscale: float) -> None:
    x, z = np.linspace(-40.0, 70.0, 31), np.linspace(0.0, 24.0, 17)
    own = Periodic("x", 24, variance=1.0, lengthscale=lengthscale, kind="exponential-sine")
    theirs = ExpSineSquared(length_scale=lengthscale, periodicity=24.0)
    np.testing.assert_allclose(own(x, z), theirs(x[:, None], z[:, None]), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("lengthscale", [0.3, 1.0])
def test_the_bound_arrives_at_the_evidence_of_scikit_learn(lengthscale: float, rows: Any) -> None:
    kernel = Periodic(0, 24, variance=1.3, lengthscale=lengthscale, kind="exponential-sine")
    theirs = ConstantKernel(1.3) * ExpSineSquared(lengthscale, 24.0) + WhiteKernel(NOISE)
    exact = GaussianProcessRegressor(theirs, alpha=0.0, optimizer=None).fit(rows[0][:, None], rows[1])
    evidence = exact.log_marginal_likelihood_value_
    few, many = held(kernel, rows, 2), held(kernel, rows, 40)
    assert few.elbo_ < many.elbo_ < evidence + 1e-8
    assert many.elbo_ == pytest.approx(evidence, abs=1e-6)
    at = np.array([[0.0], [7.3], [24.0], [1000.0]])
    mean, sd = exact.predict(at, return_std=True)
    np.testing.assert_allclose(many.predict_f(at)[0], mean, atol=1e-8)
    np.testing.assert_allclose(many.predict_f(at)[1] + NOISE, sd**2, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_exact_process_agrees(kernel: Periodic, rows: Any) -> None:
    exact = ExactGP(kernel, noise_variance=NOISE, optimizer=None, normalize_y=False).fit(rows[0][:, None], rows[1])
    model = held(kernel, rows, 400 if kernel.order == 0 else 60)
    at = np.linspace(0.0, 48.0, 9)[:, None]
    close = 5e-3 if kernel.order == 0 else 2e-4
    np.testing.assert_allclose(model.predict_f(at)[0], exact.predict_f(at)[0], atol=close)
    np.testing.assert_allclose(model.predict_f(at)[1], exact.predict_f(at)[1], atol=close)


@pytest.mark.parametrize(("order", "leaf"), [(0, Matern12), (1, Matern32), (2, Matern52)])
def test_of_a_short_lengthscale_it_is_the_matern_of_the_line(order: int, leaf: Any) -> None:
    x = np.linspace(0.0, 6.0, 25)
    circle = Periodic("x", 24, variance=1.0, lengthscale=0.3, order=order)
    np.testing.assert_allclose(circle(x, x), leaf("x", variance=1.0, lengthscale=0.3)(x, x), atol=1e-12)


@pytest.mark.parametrize("p", range(9))
@pytest.mark.parametrize("lengthscale", [0.02, 0.5, 8.0])
def test_harmonics_sum_to_the_correlation(p: int, lengthscale: float) -> None:
    kernel, k, r = WrappedMatern.of(p, lengthscale), np.arange(20_000.0), np.array([0.3, -0.9, 1.7])
    close = {0: 1e-5, 1: 1e-9}.get(p, 1e-13)
    np.testing.assert_allclose(
        np.cos(np.pi * np.multiply.outer(r, k)) @ kernel.power(k), kernel.correlation(r), atol=close
    )
    assert kernel.correlation(np.zeros(1))[0] == pytest.approx(1.0, abs=1e-14)
    if p > 1:
        assert kernel.slope_variance() == pytest.approx(kernel.power(k) @ (np.pi * k) ** 2, rel=1e-6)


@pytest.mark.parametrize("z", [1e-3, 0.2, 1.0, 30.0, 1e3, 4e4])
def test_bessel_functions_are_those_of_scipy(z: float) -> None:
    k = np.arange(0.0, 500.0)
    expected = ive(k, z)
    known = expected > 1e-290
    np.testing.assert_allclose(scaled_bessel(k[known], z), expected[known], rtol=2e-12)


@pytest.mark.parametrize("frequencies", [3, 250])
def test_harmonics_that_float64_cannot_tell_from_nothing_do_no_harm(frequencies: int, rows: Any) -> None:
    kernel = Periodic(0, 24, variance=1.3, lengthscale=10.0, kind="exponential-sine")
    model = held(kernel, rows, frequencies)
    assert np.isfinite(model.predict_f(rows[0][:, None])).all()
    assert model.elbo_ == pytest.approx(held(kernel, rows, 20).elbo_, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_learning_finds_the_shape(kernel: Periodic, rows: Any, tmp_path: Any) -> None:
    model = GPRegressor(kernel.bare()).fit(rows[0][:, None], rows[1])
    at = np.linspace(0.0, 24.0, 40)
    assert np.sqrt(np.mean((model.predict(at[:, None]) - np.sin(2 * np.pi * at / 24) ** 3) ** 2)) < 0.12
    model.save(tmp_path / "season.vff")
    again = load(tmp_path / "season.vff")
    assert again.kernel_ == model.kernel_
    assert (again.kernel_.order, again.kernel_.kind) == (kernel.order, kernel.kind)
    assert np.array_equal(again.predict(at[:, None]), model.predict(at[:, None]))


def test_chains_sample_a_lengthscale_that_is_free_of_units(rows: Any) -> None:
    pytest.importorskip("blackjax")
    kernel = Periodic(0, 24, kind="exponential-sine")
    given: dict[str, Any] = {"frequencies": 8, "inference": "mcmc", "draws": 150, "warmup": 150, "chains": 1}
    chain = GPRegressor(kernel, **given, random_state=0).fit(rows[0][:, None], rows[1])
    found = GPRegressor(kernel, frequencies=8).fit(rows[0][:, None], rows[1]).kernel_.lengthscale
    drawn = chain.samples_.values["lengthscale[0]"]
    assert np.quantile(drawn, 0.01) < found < np.quantile(drawn, 0.99)


# --- texts, files, errors --------------------------------------------------------------------------------------------


def test_choices_are_written_where_they_are_not_the_usual_ones() -> None:
    assert repr(Periodic("h", 24)) == "Periodic('h', period=24)"
    assert repr(Periodic("h", 24, order=2)) == "Periodic('h', period=24, order=2)"
    sine = Periodic("h", 24, kind="exponential-sine", lengthscale=0.5)
    assert write_kernel(sine) == "Periodic('h', period=24, lengthscale=0.5, kind='exponential-sine')"
    rough = "Periodic('h', period=24, order=0) * Matern32('h')"
    assert repr(parse_kernel(rough)) == rough


def test_terms_of_the_command_line_have_choices() -> None:
    kinds = {"h": "number", "exponential-sine": "number"}
    kernel = parse_terms("periodic(h, period=24, kind='exponential-sine') + .", kinds)
    assert kernel == Periodic("h", 24, kind="exponential-sine") + Matern32("exponential-sine")
    with pytest.raises(ValueError, match=r"a text in quotes, a number.* was expected, found sine"):
        parse_terms("periodic(h, period=24, kind=sine)", kinds)
    with pytest.raises(ValueError, match="a number was expected, found 'day'"):
        parse_terms("periodic(h, period='day')", kinds)


def test_choices_are_what_it_is() -> None:
    every = [Periodic("h", 24), Periodic("h", 24, order=2), Periodic("h", 24, kind="exponential-sine")]
    assert len({own.identity for own in every}) == 3
    assert Periodic("h", 24, order=2, lengthscale=3.0).identity == every[1].identity
    assert {own.factor.axis for own in every} == {("circle", 24.0)}  # one pass over the rows serves all


def test_files_of_before_choices_are_read() -> None:
    codec = Codec("vff")
    for record, hint in (
        (Periodic("h", 24, lengthscale=3.0), Leaf),
        (CirclePrior(Circle(24.0), CircleBasis(3), 0.4), Prior),
    ):
        tree = codec.encode(record, hint)
        (fields,) = tree.values()
        del fields["order"], fields["kind"]
        assert codec.decode(tree, hint) == record


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "sine"}, r"kind must be 'matern' or 'exponential-sine', got 'sine'; leave it out for a Matérn"),
        ({"kind": 3}, r"kind must be 'matern' or 'exponential-sine', got 3"),
        ({"order": -1}, r"order must be an integer from 0 \(as Matern12\) to 8, got -1; leave it out for 1"),
        ({"order": 1.5}, r"order must be an integer from 0 .* got 1.5"),
        ({"order": True}, r"order must be an integer from 0 .* got True"),
        ({"order": 1, "kind": "exponential-sine"}, r"order=1 is that of a Matérn, and kind='exponential-sine' is"),
    ],
)
def test_wrong_choices_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Periodic("h", 24, **given)


def test_a_rough_function_has_no_slope(rows: Any) -> None:
    with pytest.raises(ValueError, match="order 0 has no derivative; use order=1"):
        held(KERNELS[0], rows).predict_derivative(np.zeros((1, 1)))
