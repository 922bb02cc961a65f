"""A sample is chosen by what rows hold: neither their order nor their partition leaves a trace, and it is fair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vff.moments import ColumnSummary, RowBlock, Sample, sample_of, summarise_column
from vff.moments import distinct as distinct_module
from vff.moments import sample as sample_module

LEVELS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def little_room(monkeypatch) -> None:
    """So that small tables are thinned, and are read in several pieces."""
    monkeypatch.setattr(sample_module, "LARGEST_SAMPLE", 40)
    monkeypatch.setattr(sample_module, "_PIECE", 64)
    monkeypatch.setattr(sample_module, "_BLOCK", 16)
    monkeypatch.setattr(distinct_module, "_MOST_VALUES", 30)


def rows(n: int, seed: int, different: int) -> np.ndarray:
    """x, level, y, extra and weight in columns; few different ones when asked."""
    rng = np.random.default_rng(seed)
    some = np.column_stack(
        [rng.normal(size=different), rng.integers(0, 3, different), rng.integers(0, 2, different), np.ones(different)]
    )
    picked = some[rng.integers(0, different, n)] if n else some[:0]
    return np.column_stack([picked, rng.integers(1, 4, n).astype(float)])


def sampled(table: np.ndarray) -> Sample:
    x, level, y, extra, w = table.T
    columns = [x, level]
    return sample_of(RowBlock(y.size, lambda c, at: columns[c][at], y, w), extra, [None, LEVELS])


def as_rows(sample: Sample) -> np.ndarray:
    found = np.column_stack([*sample.columns, sample.y, sample.extra, sample.w])
    return found[np.lexsort(found.T)]


def by_hand(table: np.ndarray) -> np.ndarray:
    """Different rows with the sums of their weights."""
    different, which = np.unique(table[:, :4], axis=0, return_inverse=True)
    found = np.column_stack([different, np.bincount(which.reshape(-1), table[:, 4])])
    return found[np.lexsort(found.T)]


@given(
    n=st.integers(1, 300),
    seed=st.integers(0, 10**6),
    different=st.sampled_from([1, 7, 40, 200]),
    cuts=st.lists(st.integers(1, 299), max_size=5),
)
def test_order_and_partition_leave_no_trace(n, seed, different, cuts) -> None:
    table = rows(n, seed, different)
    whole = sampled(table)
    mixed = np.random.default_rng(seed + 1).permutation(table)
    pieces = [piece for piece in np.split(mixed, sorted({cut for cut in cuts if cut < n})) if len(piece)]
    parts = [sampled(piece) for piece in pieces]
    merged = parts[0]
    for part in parts[1:]:
        merged = part.merged(merged) if seed % 2 else merged.merged(part)
    assert merged.halvings == whole.halvings
    np.testing.assert_array_equal(as_rows(merged), as_rows(whole))
    np.testing.assert_array_equal(np.sort(merged.hashes), np.sort(whole.hashes))
    assert whole.y.size <= 40


@given(n=st.integers(1, 300), seed=st.integers(0, 10**6), different=st.integers(1, 40))
def test_a_complete_sample_is_the_different_rows_with_their_weights(n, seed, different) -> None:
    table = rows(n, seed, different)
    found = sampled(table)
    assert found.complete
    np.testing.assert_array_equal(as_rows(found), by_hand(table))


def test_a_thinned_sample_has_all_weight_of_the_rows_it_has() -> None:
    table = rows(5000, 3, 500)
    found = sampled(table)
    assert not found.complete
    everything = {tuple(row[:4]): row[4] for row in by_hand(table)}
    assert all(everything[tuple(row[:4])] == row[4] for row in as_rows(found))


def test_rows_that_differ_in_their_level_alone_are_two() -> None:
    table = np.array([[1.0, 0, 1, 1, 2], [1.0, 1, 1, 1, 3], [1.0, 0, 1, 1, 4]])
    np.testing.assert_array_equal(as_rows(sampled(table))[:, 1::3], by_hand(table)[:, 1::3])
    assert sampled(table).y.size == 2


def test_levels_count_by_what_they_are_not_by_their_codes() -> None:
    y = np.ones(3)
    source = RowBlock(3, lambda c, at: np.arange(3.0)[at], y, y)
    one = sample_of(source, y, [(False, 2, "a")])
    other = sample_of(RowBlock(3, lambda c, at: np.array([2.0, 0.0, 1.0])[at], y, y), y, [(2.0, "a", 0)])
    np.testing.assert_array_equal(np.sort(one.hashes), np.sort(other.hashes))
    strange = (None, float("inf"), float("nan"), -1, -2, 2**70, "\ud800", np.datetime64("2024-01-01"), 1, "1")
    many = RowBlock(10, lambda c, at: np.arange(10.0)[at], np.ones(10), np.ones(10))
    assert np.unique(sample_of(many, np.ones(10), [strange]).hashes).size == 10


def test_minus_zero_is_zero() -> None:
    zeros = np.array([0.0, -0.0, -0.0, 0.0])
    source = RowBlock(4, lambda c, at: zeros[at], zeros[::-1], np.array([1.0, 2.0, 3.0, 4.0]))
    found = sample_of(source, np.ones(4), [None])
    assert found.w.tolist() == [10.0]


@pytest.mark.parametrize("kind", ["uniform", "integers", "dates", "tiny"])
def test_the_sample_is_fair(kind, monkeypatch) -> None:
    """Of ten stretches of a column, each has its share of the sample: chi-square with nine degrees of freedom."""
    monkeypatch.setattr(sample_module, "LARGEST_SAMPLE", 20_000)
    monkeypatch.setattr(sample_module, "_PIECE", 2**16)
    n = 200_000
    x = {
        "uniform": np.random.default_rng(0).uniform(size=n),
        "integers": np.arange(n, dtype=float),
        "dates": 1.7e9 + 60.0 * np.arange(n),
        "tiny": 5e-324 * np.arange(n),
    }[kind]
    y = np.zeros(n)
    found = sample_of(RowBlock(n, lambda c, at: x[at], y, np.ones(n)), np.ones(n), [None])
    assert 9_000 < found.y.size <= 20_000
    edges = np.linspace(0.0, 1.0, 11)
    counts, all_of_them = (np.histogram((one - x.min()) / np.ptp(x), edges)[0] for one in (found.columns[0], x))
    expected = all_of_them * (found.y.size / n)
    assert np.sum((counts - expected) ** 2 / expected) < 30.0


def of(x: np.ndarray) -> ColumnSummary:
    return summarise_column(x.size, lambda at: x[at])


def assert_same(one: ColumnSummary, other: ColumnSummary) -> None:
    assert (one.low, one.high, one.n) == (other.low, other.high, other.n)
    assert (one.values is None) == (other.values is None)
    if one.values is not None and other.values is not None:
        np.testing.assert_array_equal(one.values, other.values)


@given(
    x=st.lists(
        st.one_of(st.integers(-20, 20).map(float), st.sampled_from([0.0, -0.0, 0.1, 1e300, -1e-300])),
        min_size=1,
        max_size=120,
    ),
    cuts=st.lists(st.integers(0, 120), max_size=5),
    seed=st.integers(0, 99),
)
def test_looks_at_parts_merge_into_the_look_at_the_whole(x, cuts, seed) -> None:
    column = np.array(x)
    mixed = np.random.default_rng(seed).permutation(column)
    parts = [of(piece) for piece in np.split(mixed, sorted(min(cut, column.size) for cut in cuts))]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part) if seed % 2 else part.merged(merged)
    assert_same(merged, of(column))


def test_very_many_values_are_none_from_either_side() -> None:
    many, few = of(np.arange(31.0) ** 1.5), of(np.ones(5))
    assert many.values is None
    assert_same(many.merged(few), few.merged(many))
    assert few.merged(of(np.zeros(0))).values is not None
