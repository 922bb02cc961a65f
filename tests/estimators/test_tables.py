"""Tables of every make give the same numbers and the same levels, or a sentence."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from vff.data.checks import check_target
from vff.data.table import Table

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def _objects(values) -> np.ndarray:
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


MAKERS = {
    "pandas": lambda values: pd.DataFrame({"x": values}),
    "pandas objects": lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
    "pandas category": lambda values: pd.DataFrame({"x": pd.Series(values, dtype="category")}),
    "pandas on arrow": lambda values: pa.table({"x": values}).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda values: pl.DataFrame({"x": values}, strict=False),
    "arrow": lambda values: pa.table({"x": values}),
    "arrow dictionary": lambda values: pa.table({"x": pa.array(values).dictionary_encode()}),
    "arrow batch": lambda values: pa.record_batch({"x": values}),
    "numpy objects": _objects,
    "list": lambda values: [[value] for value in values],
}
TEXT_MAKERS = {
    "polars categorical": lambda values: pl.DataFrame({"x": pl.Series(values).cast(pl.Categorical)}),
    "polars enum": lambda values: pl.DataFrame(
        {"x": pl.Series(values, dtype=pl.Enum(["unseen", *dict.fromkeys(v for v in values if v is not None)]))}
    ),
    "pandas python strings": lambda values: pd.DataFrame({"x": pd.Series(values, dtype="string[python]")}),
}
GROUPED = ("pandas category", "arrow dictionary")
NUMBER_MAKERS = {name: make for name, make in MAKERS.items() if name not in GROUPED}

# values, their kind, the floats they become
NUMBERS = {
    "integers": ([3, -1, 2**40], "number", [3.0, -1.0, 2.0**40]),
    "floats": ([0.5, -1e300, 0.0], "number", [0.5, -1e300, 0.0]),
    "booleans": ([True, False, True], "boolean", [1.0, 0.0, 1.0]),
    "decimals": ([Decimal("1.5"), Decimal("-2.25")], "number", [1.5, -2.25]),
    "dates": ([date(1970, 1, 2), date(1969, 12, 31)], "datetime", [1.0, -1.0]),
    "datetimes": ([datetime(1970, 1, 1, 6), datetime(2000, 1, 1)], "datetime", [0.25, 10957.0]),
    "aware datetimes": (
        [datetime(1970, 1, 1, 6, tzinfo=UTC), datetime(1970, 1, 3, tzinfo=UTC)],
        "datetime",
        [0.25, 2.0],
    ),
    "durations": ([timedelta(hours=12), timedelta(days=-3)], "duration", [0.5, -3.0]),
}
LEVELS = {
    "text": (["b", "a", None, "b", "c"], ("a", "b", "c", None)),
    "integers": ([7, 3, 7, -2], (-2, 3, 7)),
    "far integers": ([2**60 + 1, 0, 2**60], (0, 2**60, 2**60 + 1)),
    "floats": ([0.5, 0.25, None, 0.5], (0.25, 0.5, None)),
    "booleans": ([True, False, True], (False, True)),
    "datetimes": (
        [datetime(2020, 1, 2), datetime(2020, 1, 1, 5), None],
        (np.datetime64("2020-01-01T05", "us"), np.datetime64("2020-01-02", "us"), None),
    ),
    "durations": ([timedelta(2), timedelta(1)], (np.timedelta64(1, "D"), np.timedelta64(2, "D"))),
}


@pytest.mark.parametrize("case", NUMBERS, ids=str)
@pytest.mark.parametrize("make", NUMBER_MAKERS, ids=str)
def test_numbers_and_kinds_do_not_depend_on_the_container(make, case):
    values, kind, expected = NUMBERS[case]
    table = Table.of(NUMBER_MAKERS[make](values))
    assert table.kind(0) == kind
    numbers = table.numbers(0)
    np.testing.assert_array_equal(numbers, expected)
    assert numbers.dtype == np.float64
    assert numbers.flags.c_contiguous
    np.testing.assert_array_equal(table.numbers(0, slice(1, 2)), expected[1:2])
    np.testing.assert_array_equal(table.numbers(0), expected)


@pytest.mark.parametrize("case", LEVELS, ids=str)
@pytest.mark.parametrize("fitted", MAKERS, ids=str)
def test_levels_found_in_one_container_encode_every_other(fitted, case):
    values, expected = LEVELS[case]
    makers = MAKERS | (TEXT_MAKERS if case == "text" else {})
    levels = Table.of(makers[fitted](values)).levels(0)
    assert levels == expected
    for name, make in makers.items():
        table = Table.of(make(values))
        assert table.levels(0) == expected, name
        codes = table.codes(0, levels)
        assert codes.dtype == np.float64
        np.testing.assert_array_equal(codes, [expected.index(_plain(value)) for value in values], err_msg=name)
        np.testing.assert_array_equal(table.codes(0, levels[1:], slice(1, None)), codes[1:] - 1, err_msg=name)


def _plain(value):
    return np.datetime64(value) if isinstance(value, datetime) else value


@pytest.mark.parametrize("make", MAKERS | TEXT_MAKERS, ids=str)
def test_text_is_refused_as_numbers_with_advice(make):
    table = Table.of((MAKERS | TEXT_MAKERS)[make](["a", "b", None]))
    assert table.kind(0) == "text"
    with pytest.raises(ValueError, match=r"'a'; numbers.*Categorical\(.*could not convert string to float") as caught:
        table.numbers(0)
    assert ("Categorical('x')" in str(caught.value)) == (table.names is not None)


@pytest.mark.parametrize("make", GROUPED)
def test_categories_are_text_even_if_they_are_numbers(make):
    table = Table.of(MAKERS[make]([3, 4, 3]))
    assert table.kind(0) == "text"
    assert table.levels(0) == (3, 4)
    with pytest.raises(ValueError, match="holds categories such as 3"):
        table.numbers(0)


@pytest.mark.parametrize("case", NUMBERS, ids=str)
@pytest.mark.parametrize("make", NUMBER_MAKERS, ids=str)
def test_missing_values_are_counted_from_the_start_of_the_table(make, case):
    values = [*NUMBERS[case][0], None, None]
    table, row = Table.of(NUMBER_MAKERS[make](values)), len(values) - 2
    for rows in (slice(None), slice(1, None)):
        with pytest.raises(ValueError, match=rf"missing value \(2 of .*row {row}\).*missing='effect'"):
            table.numbers(0, rows)
    assert len(table.numbers(0, slice(0, row))) == row


@pytest.mark.parametrize(
    "raw",
    [
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series([1, 2, None], dtype="Float32"),
        pd.Series([1, 2, pd.NA], dtype=object),
        pd.Series([1, 2, np.nan], dtype="Sparse[float]"),
    ],
    ids=lambda raw: str(raw.dtype),
)
def test_nullable_columns(raw):
    table = Table.of(raw.to_frame("x"))
    np.testing.assert_array_equal(table.numbers(0, slice(0, 2)), [1, 2])
    assert table.levels(0) == (1, 2, None)
    with pytest.raises(ValueError, match=r"missing value .1 of 3 values, first in row 2"):
        table.numbers(0)


def test_narrow_and_wide_types():
    for dtype in (np.float16, np.float32, np.int8, np.uint64, np.longdouble):
        np.testing.assert_array_equal(Table.of(np.array([[1], [3]], dtype)).numbers(0), [1, 3])
    assert Table.of(np.array([[-128], [127]], np.int8)).levels(0) == (-128, 127)
    assert Table.of(np.array([[2**64 - 1], [2**64 - 2]], np.uint64)).levels(0) == (2**64 - 2, 2**64 - 1)


def test_times_do_not_depend_on_their_unit_or_zone():
    fine = np.array([["2001-02-03T04:05:06.789", "1960-01-01T00:00:00.001"]], "datetime64[ms]").T
    expected = Table.of(fine).numbers(0)
    for unit in ("us", "ns"):
        np.testing.assert_array_equal(Table.of(fine.astype(f"datetime64[{unit}]")).numbers(0), expected)
        assert Table.of(fine.astype(f"datetime64[{unit}]")).levels(0) == Table.of(fine).levels(0)
    aware = pd.Series(fine[:, 0]).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo").to_frame("x")
    for X in (aware, pl.from_pandas(aware), pa.Table.from_pandas(aware), aware.astype(object), aware.to_numpy()):
        np.testing.assert_array_equal(Table.of(X).numbers(0), expected)
        assert Table.of(X).levels(0) == Table.of(fine).levels(0)
    np.testing.assert_array_equal(Table.of(np.array([["1970-03"]], "datetime64[M]")).numbers(0), [59.0])
    with pytest.raises(ValueError, match=r"timedelta64\[M\]; numbers were expected"):
        Table.of(np.array([[3]], "timedelta64[M]")).numbers(0)


def test_nanoseconds_are_levels_of_their_own():
    times = np.array(["2020-01-01T00:00:00.000000001", "2020-01-01"], "datetime64[ns]")
    frame = pd.DataFrame({"x": times})
    tables = [Table.of(X) for X in (frame, pl.DataFrame({"x": times}), pa.table({"x": times}), frame.astype(object))]
    assert {table.levels(0) for table in tables} == {(times[1], times[0])}


def test_levels_that_cannot_be_sorted_come_as_they_appear():
    assert Table.of(_objects(["b", 3, None, "a", np.nan, 3.0])).levels(0) == ("b", 3, "a", None)
    assert Table.of([[1, "b"], [2, "a"]]).levels(1) == ("a", "b")
    np.testing.assert_array_equal(Table.of([[1, "b"], [2, "a"]]).numbers(0), [1, 2])


def test_unknown_levels_and_no_rows():
    table = Table.of(pd.DataFrame({"x": ["a", None, "z"]}))
    np.testing.assert_array_equal(table.codes(0, ("a", "b")), [0, -1, -1])
    for make in NUMBER_MAKERS.values():
        none = Table.of(make([1, 2]))
        assert none.levels(0, slice(0, 0)) == ()
        assert none.codes(0, (), slice(2, None)).shape == (0,)
        assert none.numbers(0, slice(0, 0)).shape == (0,)


@pytest.mark.parametrize(
    ("X", "pattern"),
    [
        (pl.LazyFrame({"x": [1]}), r"got a polars LazyFrame.*X\.collect\(\)"),
        (pl.Series([1]), r"polars Series.*to_frame"),
        (pd.Series([1]), r"pandas Series.*to_frame"),
        (pa.array([1]), r"pyarrow.*pyarrow\.table"),
        ({"x": [1]}, r"dict.*DataFrame"),
        (sparse.eye(3), "(?i)sparse"),
        (sparse.dok_array((2, 2)), "(?i)sparse"),
        (np.array([[1j]]), "Complex data not supported"),
        (pd.DataFrame(index=[1]), "0 feature"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_table(X, pattern):
    with pytest.raises((TypeError, ValueError), match=f"(?s){pattern}"):
        Table.of(X)


def test_columns_that_stay_out():
    with pytest.raises(TypeError, match=r"column 'x' of X holds values that cannot be told apart as levels"):
        Table.of(pd.DataFrame({"x": [[1], [2]]})).levels(0)
    with pytest.raises(ValueError, match="column 'x', which X has more than once"):
        Table.of(pd.DataFrame([[1, 2]], columns=["x", "x"])).index("x")
    with pytest.raises(ValueError, match="step 1"):
        Table.of([[1], [2]]).numbers(0, slice(None, None, 2))
    masked = np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]])
    for X in (masked, masked.astype(int)):
        assert Table.of(X).levels(0) == (1, None)
        with pytest.raises(ValueError, match=r"missing value .*row 1"):
            Table.of(X).numbers(0)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([1, None, 3, None], dtype="Int64"),
        pl.Series([1, None, 3, None]),
        pa.chunked_array([[1, None], [3, None]]),
        [1, None, 3, float("nan")],
        np.ma.masked_array([1, 2, 3, 4], mask=[0, 1, 0, 1]),
    ],
    ids=lambda y: type(y).__module__,
)
def test_missing_targets_are_counted(y):
    with pytest.raises(ValueError, match=r"y contains NaN or another missing value \(2 of 4 values, first in row 1\)"):
        check_target(y, 4)


def test_targets_of_every_make():
    for y in (pd.Series([1, 2], dtype="Int64"), pl.Series([1, 2]), pa.array([1, 2]), [True, 2.0], [Decimal(1), 2]):
        np.testing.assert_array_equal(check_target(y, 2), [1, 2])
    for y in (pd.Series(["a", "b"]), pl.Series([timedelta(1), timedelta(2)]), pd.to_datetime(["2020", "2021"])):
        with pytest.raises(ValueError, match=r"y holds .*numbers were expected"):
            check_target(y, 2)


scalars = st.one_of(st.none(), st.text(max_size=3), st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False))
columns = st.one_of(
    st.lists(st.one_of(st.none(), st.text("ab\x00é", max_size=2)), min_size=1, max_size=30),
    st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=1, max_size=30),
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=1, max_size=30),
    st.lists(st.one_of(st.none(), st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))), min_size=1, max_size=30),
)
EXACT = ("pandas objects", "polars", "arrow", "arrow dictionary", "numpy objects", "pandas on arrow")


@settings(deadline=None, max_examples=60, derandomize=True)
@given(columns, st.sampled_from(EXACT))
def test_codes_decode_to_the_values(values, make):
    _check_round_trip(Table.of(MAKERS[make](values)), values)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(scalars, min_size=1, max_size=30))
def test_codes_of_mixed_objects_decode_to_the_values(values):
    _check_round_trip(Table.of(_objects(values)), values)
    _check_round_trip(Table.of(MAKERS["pandas objects"](values)), values)


def _check_round_trip(table: Table, values: list) -> None:
    levels = table.levels(0)
    codes = table.codes(0, levels)
    assert [levels[int(code)] for code in codes] == [_plain(value) for value in values]
    assert len(set(levels)) == len(levels)
    assert None not in levels[:-1]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.one_of(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
        st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30),
        st.lists(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)), min_size=1, max_size=30),
    ),
    st.integers(1, 7),
    st.sampled_from(sorted(NUMBER_MAKERS)),
)
def test_numbers_of_pieces_are_the_numbers_of_the_whole(values, step, make):
    table = Table.of(NUMBER_MAKERS[make](values))
    pieces = [table.numbers(0, slice(first, first + step)) for first in range(0, table.n_rows, step)]
    np.testing.assert_array_equal(np.concatenate(pieces), table.numbers(0))
