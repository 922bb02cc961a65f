"""Weights 1 / (s^2 + noise) from sums that know no noise: against loops over rows, whatever the partition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import ColumnBasis, Interval
from vff.moments import (
    NODES,
    ColumnRequest,
    MomentRequest,
    Moments,
    NoisySums,
    RowBlock,
    distinct_values_for,
    moments_of_arrays,
    plan_pass,
    run_noisy_pass,
    summarise_column,
)
from vff.moments.noise_nodes import stretches

REQUEST = MomentRequest.of_columns([ColumnRequest(Interval(0.0, 1.0), ColumnBasis(M, 2)) for M in (4, 3)])


def noisy(columns, y, w, variances, offset=0.3, engine="auto"):
    source = RowBlock(y.size, lambda c, rows: columns[c][rows], y, w)
    found = [summarise_column(y.size, lambda rows, x=x: x[rows]) for x in columns]
    plan = plan_pass(y.size, REQUEST, distinct_values_for(engine, REQUEST, found, source), engine)
    return run_noisy_pass(plan, source, variances, offset)[0]


def rows(n=300, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    columns = [rng.uniform(0.0, 1.0, n), rng.integers(0, 9, n) / 8.0]
    return columns, rng.normal(size=n), rng.uniform(0.2, 2.0, n), np.exp(spread * rng.normal(size=n))


def check(found: Moments, expected: Moments, rtol=1e-11):
    for name in ("weight", "target", "target_squared"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rtol)
    size = np.abs(expected.gram().dense()).max()
    np.testing.assert_allclose(found.gram().dense(), expected.gram().dense(), rtol=0.0, atol=rtol * size)
    np.testing.assert_allclose(found.project, expected.project, rtol=0.0, atol=rtol * size)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3, 0.7, 40.0, 1e6])
@pytest.mark.parametrize("engine", ["auto", "dense", "nufft"])
def test_weights_are_those_of_the_rows(noise, engine):
    columns, y, w, variances = rows()
    found = NoisySums(noisy(columns, y, w, variances, engine=engine))
    expected = moments_of_arrays(REQUEST, columns, y, w / (variances + noise), offset=0.3)
    check(found.weighed(noise), expected)
    assert found.log_noise(noise) == pytest.approx(float(w @ np.log(variances + noise)), abs=1e-9)
    check(replaced(found.moments), moments_of_arrays(REQUEST, columns, y, w, offset=0.3))
    if noise:
        _, drift = found.weighed_and_drift(noise)
        check(drift, moments_of_arrays(REQUEST, columns, y, -w * noise / (variances + noise) ** 2, offset=0.3))
        slope = float(w @ (noise / (variances + noise)))
        assert found.log_noise_drift(noise) == pytest.approx(slope, rel=1e-10)


def replaced(moments: Moments) -> Moments:
    return NoisySums(moments).combined(np.ones((1, len(moments.nodes))))[0]


@settings(max_examples=30)
@given(st.floats(-60.0, 60.0), st.floats(-80.0, 80.0))
def test_the_weight_of_a_row_is_met_to_parts_in_1e12_over_many_decades(u, log_noise):
    """Whatever its error bar and the noise: relative to the weight itself."""
    variances = np.exp(u + np.linspace(0.0, 3.0, 90))
    for stretch in stretches(variances):
        noise = np.exp(log_noise)
        weights = stretch.shares @ (1.0 / (stretch.variances + noise))
        np.testing.assert_allclose(weights * (variances[stretch.rows] + noise), 1.0, rtol=2e-12)
        logs = stretch.shares @ np.log(stretch.variances + noise)
        np.testing.assert_allclose(logs, np.log(variances[stretch.rows] + noise), atol=3e-12 * max(1.0, abs(u)))


def test_few_variances_are_nodes_themselves_and_zero_always_is():
    columns, y, w, variances = rows()
    few = np.array([0.0, 0.25, 4.0])[np.arange(y.size) % 3]
    found = noisy(columns, y, w, few)
    assert sorted(found.nodes) == [0.0, 0.25, 4.0]
    check(found.nodes[4.0], moments_of_arrays(REQUEST, columns, y, np.where(few == 4.0, w, 0.0), offset=0.3))
    assert len(noisy(columns, y, w, np.full(y.size, 0.3)).nodes) == 1
    mixed = np.where(np.arange(y.size) % 4 == 0, 0.0, variances)
    found = noisy(columns, y, w, mixed)
    assert 0.0 in found.nodes
    check(NoisySums(found).weighed(0.5), moments_of_arrays(REQUEST, columns, y, w / (mixed + 0.5), offset=0.3))


def test_every_row_meets_few_nodes():
    variances = rows(2000, spread=4.0)[3]
    assert all(stretch.shares.shape[1] <= NODES for stretch in stretches(variances))
    assert sorted(np.concatenate([stretch.rows for stretch in stretches(variances)])) == list(range(2000))


@settings(max_examples=6)
@given(st.sampled_from([1, 5, 11, 40, 150, 299]), st.integers(0, 3))
def test_any_partition_adds_up_and_can_be_taken_back(cut, seed):
    columns, y, w, variances = rows(seed=seed)
    whole = noisy(columns, y, w, variances)
    one, two = (
        noisy([x[part] for x in columns], y[part], w[part], variances[part], offset)
        for part, offset in ((slice(0, cut), 0.3), (slice(cut, None), -0.4))
    )
    for noise in (1e-4, 0.5):
        expected = NoisySums(whole).weighed(noise)
        check(NoisySums(one + two).weighed(noise), expected)
        check(NoisySums(whole - two).weighed(noise), NoisySums(one).weighed(noise), 1e-9)
    assert (one + two).n == 300


def test_maps_of_sums_are_maps_of_every_node():
    columns, y, w, variances = rows()
    found = noisy(columns, y, w, variances)
    fewer = ((2,), (3,))
    check(NoisySums(found.restricted(fewer)).weighed(0.2), NoisySums(found).weighed(0.2).restricted(fewer))
    check(NoisySums(found.recentred(1.0)).weighed(0.2), NoisySums(found).weighed(0.2).recentred(1.0))
    check(NoisySums(found.terms((1,))).weighed(0.2), NoisySums(found).weighed(0.2).terms((1,)))
    scaled = NoisySums(found.in_units(2.0)).weighed(0.2)
    expected = moments_of_arrays(REQUEST, columns, (y - 0.3) / 2.0, w / (variances / 4.0 + 0.2))
    check(scaled, expected)
