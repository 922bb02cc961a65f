"""Traps that sums of terms once fell into."""

import numpy as np
import pandas as pd
import pytest

from vff import GPRegressor, Matern32
from vff.moments import ColumnRequest, MomentRequest, plan_pass
from vff.moments.distinct import DistinctValues


@pytest.mark.parametrize(("cycles", "amplitude"), [(30, 0.3), (60, 0.5), (200, 3.0)])
def test_detail_of_one_column_is_not_taken_for_noise(cycles, amplitude):
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(8000, 2))
    y = amplitude * np.sin(2 * np.pi * cycles * X[:, 0]) + np.sin(6 * X[:, 1]) + rng.normal(size=8000)
    model = GPRegressor().fit(X, y)
    assert all(term.active for term in model.fit_.terms)
    assert model.noise_variance_ < 1.0 + 0.25 * amplitude**2
    assert model.frequencies_[0] > cycles


def test_merging_keeps_the_kernel_and_takes_the_fewer_harmonics():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, 1)), rng.normal(size=60)
    options = {"domain": (0, 1), "optimizer": None, "noise_variance": 0.5}
    mine = GPRegressor(Matern32(0, variance=1.0, lengthscale=0.3), frequencies=30, **options).fit(X[:30], y[:30])
    other = GPRegressor(Matern32(0, variance=5.0, lengthscale=0.1), frequencies=20, **options).fit(X[30:], y[30:])
    mine.merge(other)
    assert mine.kernel_.variance == pytest.approx(1.0)
    assert mine.kernel_.lengthscale == pytest.approx(0.3)
    assert mine.frequencies_ == {0: 20}


def test_frames_with_exchanged_columns_are_not_merged():
    rng = np.random.default_rng(0)
    frame, y = pd.DataFrame(rng.uniform(size=(40, 2)), columns=["u", "v"]), rng.normal(size=40)
    one, other = GPRegressor(domain=(0, 1)).fit(frame, y), GPRegressor(domain=(0, 1)).fit(frame[["v", "u"]], y)
    with pytest.raises(ValueError, match="cannot be added"):
        one.merge(other)


def test_options_cannot_change_between_pieces():
    X, y = np.linspace(0, 1, 30)[:, None], np.zeros(30)
    model = GPRegressor(domain=(0, 1), frequencies=10).partial_fit(X, y)
    with pytest.raises(ValueError, match="frequencies is now 40"):
        model.set_params(frequencies=40).partial_fit(X, y)


def test_missing_values_are_counted_in_the_whole_column():
    x = np.arange(50_000.0)
    x[[10, *range(100, 1000)]] = np.nan
    with pytest.raises(ValueError, match=r"901 of 50000 values, first in row 10\b"):
        GPRegressor(missing="refuse").fit(x[:, None], np.ones(50_000))


def test_text_with_very_many_values_is_not_taken_for_a_category():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=3000), "date": [f"day {n}" for n in range(3000)]})
    with pytest.raises(ValueError, match="3000 different values"):
        GPRegressor().fit(frame, rng.normal(size=3000))


def test_shares_do_not_depend_on_the_mean_of_y():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 1))
    y = 100.0 + np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=500)
    shares = [GPRegressor(normalize_y=normalise).fit(X, y).fit_.terms[0].variance_share for normalise in (True, False)]
    assert shares[0] == pytest.approx(shares[1], rel=0.02)


def test_all_contingency_tables_together_stay_within_memory():
    from vff.basis import ColumnBasis, Interval

    request = MomentRequest.of_columns([ColumnRequest(Interval(0, 4000), ColumnBasis(16, 3)) for _ in range(12)])
    distinct = DistinctValues(np.arange(4000.0), 0.0, 1.0)
    plan = plan_pass(4_000_000, request, [distinct] * 12)
    tables = [one for one in plan.sets if one.choice.name == "table"]
    assert 0 < len(tables) * 4000**2 <= 2**26
    assert len(plan.sets) == 66


def test_one_row_of_positive_weight_is_too_few():
    with pytest.raises(ValueError, match="minimum of 2"):
        GPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], sample_weight=[0, 1, 0])
