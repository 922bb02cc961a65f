"""Features of harmonics and edge functions against their series and their derivatives."""

import numpy as np
import pytest

from vff.basis import ColumnBasis, Interval, bernoulli_rows, harmonic_part, largest_resolved

T = np.linspace(-0.97, 0.95, 23)


def test_interval_maps_its_ends_exactly():
    for a, b in [(0.1, 0.7), (-3.0, 1e6), (1999.3, 2024.1)]:
        np.testing.assert_array_equal(Interval(a, b).to_unit(np.array([a, b])), [-1.0, 1.0])
        assert Interval(a, b).half_length == pytest.approx((b - a) / 2)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_bernoulli_polynomials_are_their_fourier_series(n):
    omega = np.pi * np.arange(1, 20_000)
    series = [np.sum(((1j * omega) ** -n * np.exp(1j * omega * (t + 1.0))).real) for t in T]
    np.testing.assert_allclose(bernoulli_rows(T, n)[n - 1], series, atol=1e-5 if n == 2 else 1e-9)


def test_bernoulli_polynomials_form_a_chain_of_derivatives():
    np.testing.assert_allclose(bernoulli_rows(T, 1)[0], -T / 2)
    for n in range(2, 6):
        np.testing.assert_allclose(bernoulli_rows(T, n, 1)[n - 1], bernoulli_rows(T, n - 1)[n - 2], atol=1e-15)
        np.testing.assert_allclose(bernoulli_rows(T, n, n)[n - 1], -0.5)


@pytest.mark.parametrize(("M", "q"), [(1, 0), (3, 2), (6, 4)])
def test_features_are_harmonics_and_remainders(M, q):
    phi = ColumnBasis(M, q).evaluate(T)
    for i, t in enumerate(T):
        s = t + 1.0
        waves = [np.cos(np.pi * m * s) for m in range(M + 1)] + [np.sin(np.pi * m * s) for m in range(1, M + 1)]
        np.testing.assert_allclose(phi[i, : 2 * M + 1], waves, atol=1e-14)
        omega = np.pi * np.arange(1, M + 1)
        for n in range(1, q + 1):
            harmonics = np.sum(((1j * omega) ** -n * np.exp(1j * omega * s)).real)
            assert phi[i, 2 * M + n] == pytest.approx(bernoulli_rows(np.array([t]), n)[n - 1, 0] - harmonics, abs=1e-15)


@pytest.mark.parametrize("derivative", [1, 2, 3])
def test_derivatives_against_differences(derivative):
    basis, h = ColumnBasis(4, 4), 1e-5
    differences = (basis.evaluate(T + h, derivative - 1) - basis.evaluate(T - h, derivative - 1)) / (2 * h)
    np.testing.assert_allclose(basis.evaluate(T, derivative), differences, atol=1e-4)


@pytest.mark.parametrize("side", [-1, 1])
def test_harmonic_state_is_the_value_and_derivatives_at_the_edge(side):
    basis = ColumnBasis(5, 0)
    state = basis.harmonic_state(3)
    for j in range(4):
        expected = basis.evaluate(np.array([float(side)]), j)[0]
        np.testing.assert_allclose(state[:, j], expected, atol=1e-10 * basis.omega.max() ** j)


def test_highest_edge_function_is_resolved_up_to_its_limit():
    for q in (2, 3, 4, 5, 6):
        M = min(largest_resolved(q), 2000)
        size = np.sqrt(0.5 * np.sum((np.pi * np.arange(M + 1, 60 * M)) ** (-2.0 * q)))
        assert size > 1e-13 * np.abs(harmonic_part(M, q)[-1]).max()
