"""Distinct values are those of np.unique, however they are found, and every row finds its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vff.moments import distinct as distinct_module
from vff.moments import distinct_values_of, summarise_column

SAMPLE = 64**2


def _assert_distinct(x: np.ndarray):
    """The range is right, and the distinct values, when there are few, are exact; they are returned."""
    found = summarise_column(x.size, lambda rows: x[rows])
    assert (found.low, found.high) == (x.min(), x.max())
    assert found.constant == (np.unique(x).size == 1)
    if found.distinct is not None:
        np.testing.assert_array_equal(found.distinct.values, np.unique(x))
        np.testing.assert_array_equal(found.distinct.values[found.distinct.encode(x)], x)
        np.testing.assert_array_equal(found.distinct.encode(found.distinct.values), np.arange(found.distinct.size))
    return found.distinct


def _seeded(make):
    return make(np.random.default_rng(11), 9000)


COLUMNS = {
    "integers": lambda rng, n: rng.integers(0, 50, n).astype(float),
    "negative integers": lambda rng, n: rng.integers(-900, -100, n).astype(float),
    "even integers": lambda rng, n: 2.0 * rng.integers(-40, 40, n),
    "integers with gaps": lambda rng, n: rng.integers(0, 40, n) ** 3.0,
    "tenths": lambda rng, n: np.round(rng.uniform(-3, 30, n), 1),
    "tenths, rounded in two ways": lambda rng, n: np.where(rng.random(n) < 0.5, rng.integers(0, 99, n) * 0.1, 0.3),
    "hundredths": lambda rng, n: np.round(rng.uniform(0, 15, n), 2),
    "dates as days": lambda rng, n: 19000.25 + 0.25 * rng.integers(0, 1000, n),
    "hours as days": lambda rng, n: 19000.0 + rng.integers(0, 1000, n) / 24.0,
    "irregular": lambda rng, n: rng.choice([-1.0, -0.3, 0.123456, 1.0], n),
    "irregular, wide": lambda rng, n: rng.choice([1e-9, 1.0, np.pi, 1e12], n),
    "sorted, long ties": lambda rng, n: np.sort(rng.integers(0, 80, n) * 0.7),
    "sorted down": lambda rng, n: -np.sort(rng.integers(0, 80, n).astype(float)),
    "huge offset": lambda rng, n: 1e9 + rng.integers(0, 30, n),
    "huge offset, small steps": lambda rng, n: 1e9 + rng.choice([0.0, 1e-6, 2e-6, 2.4e-6], n),
    "near 2^53": lambda rng, n: 2.0**53 - rng.integers(0, 30, n),
    "across 2^53": lambda rng, n: 2.0**53 + 2.0 * rng.integers(-20, 20, n),
    "denormal": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "denormal and ordinary": lambda rng, n: rng.choice([0.0, 5e-324, 1.0], n),
    "huge": lambda rng, n: rng.choice([-1e300, 0.0, 1e300, 1.0], n),
    "huge steps": lambda rng, n: 1e299 * rng.integers(-9, 9, n),
    "both zeros": lambda rng, n: rng.choice([-0.0, 0.0, 1.0], n),
    "all equal": lambda rng, n: np.full(n, 0.25),
    "all equal and huge": lambda rng, n: np.full(n, -1e300),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_few_distinct_values_are_found(name):
    assert _assert_distinct(_seeded(COLUMNS[name])) is not None


@pytest.mark.parametrize("name", COLUMNS)
def test_few_distinct_values_are_found_piece_by_piece(name, monkeypatch):
    monkeypatch.setattr(distinct_module, "_PIECE", 1000)
    assert _assert_distinct(_seeded(COLUMNS[name])) is not None


@pytest.mark.parametrize("name", ["integers", "even integers", "tenths", "hundredths", "dates as days", "huge offset"])
def test_a_lattice_is_coded_by_division(name):
    distinct = _assert_distinct(_seeded(COLUMNS[name]))
    assert distinct is not None
    assert distinct.step > 0.0


BREAKS = {
    "odd among even": (lambda rng, n: 2.0 * rng.integers(0, 40, n), 7.0),
    "odd among even, where rounding is coarse": (lambda rng, n: 1e15 + 2.0 * rng.integers(0, 40, n), 1e15 + 7.0),
    "half among integers": (lambda rng, n: rng.integers(0, 40, n).astype(float), 7.5),
    "half a step below": (lambda rng, n: rng.integers(0, 40, n).astype(float), -1.5),
    "a neighbour in the last digit": (lambda rng, n: rng.integers(1, 40, n) * 0.1, np.nextafter(0.7, 1.0)),
    "far away": (lambda rng, n: rng.integers(0, 40, n).astype(float), 1e12),
    "farther away": (lambda rng, n: rng.integers(0, 40, n).astype(float), -1e300),
    "one beside a constant": (lambda rng, n: np.full(n, 0.3), 0.7),
    "a whole step beside a constant": (lambda rng, n: np.full(n, 0.3), 1.3),
}


@pytest.mark.parametrize("piece", [1000, 8999, 2**18])  # the second leaves the last row alone
@pytest.mark.parametrize("name", BREAKS)
def test_a_last_row_that_the_sample_did_not_foresee(name, piece, monkeypatch):
    monkeypatch.setattr(distinct_module, "_PIECE", piece)
    make, last = BREAKS[name]
    x = _seeded(make)
    x[-1] = last  # the sample never sees the last row of a long column
    distinct = _assert_distinct(x)
    assert distinct is not None
    assert last in distinct.values


@given(
    origin=st.sampled_from([0.0, -7.0, 0.1, 19000.25, 1e9, 1e15, -(2.0**53), 1e-310, -1e300]),
    step=st.sampled_from([1.0, 3.0, 0.1, 0.01, 0.25, 1 / 3, 1e-7, 5e-324, 1e6, 1e290]),
    cells=st.lists(st.integers(-3000, 3000), min_size=1, max_size=40),
    arrange=st.sampled_from(["tiled", "sorted", "mixed"]),
)
def test_any_lattice(origin, step, cells, arrange):
    x = origin + step * np.tile(np.array(cells, float), 2)
    if arrange == "sorted":
        x = np.sort(x)
    elif arrange == "mixed":
        x = np.random.default_rng(0).permutation(x)
    assert _assert_distinct(x) is not None


@given(values=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=40), copies=st.integers(1, 3))
def test_any_values(values, copies):
    x = np.tile(np.array(values), copies)
    distinct = _assert_distinct(x)
    assert (distinct is not None) == (2 * np.unique(x).size <= x.size)


@given(
    seed=st.integers(0, 10**6), late=st.lists(st.floats(-1e6, 1e6), max_size=5), step=st.sampled_from([1.0, 0.1, 6.0])
)
def test_any_rows_behind_the_sample(seed, late, step):
    rng = np.random.default_rng(seed)
    x = step * rng.integers(-30, 30, SAMPLE + 500)
    x[rng.integers(0, x.size, len(late))] = late
    assert _assert_distinct(x) is not None


def test_many_distinct_values_make_no_book(rng):
    assert _assert_distinct(rng.uniform(size=9000)) is None
    assert _assert_distinct(np.arange(9000.0)) is None
    # few in every stretch of the sample, many in all
    assert _assert_distinct(np.repeat(np.arange(20_000.0), 100)) is None
    assert _assert_distinct(np.repeat(np.sqrt(np.arange(20_000.0)), 100)) is None


def test_no_rows_have_no_book():
    assert distinct_values_of(np.zeros(0)) is None
    assert summarise_column(0, lambda rows: np.zeros(0)).low == np.inf
