"""What a column means is not guessed: numbers with a stray word, numbers as text, periods, times of the day."""

from datetime import date, time
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from vff import Categorical, GPClassifier, GPRegressor, Matern32, scan
from vff.data import frames, meaning
from vff.data.conversion import Origin
from vff.data.meaning import are_written, refuse_to_guess

N = 40
RNG = np.random.default_rng(0)
NUMBERS = RNG.uniform(size=N)
Y = np.sin(6 * NUMBERS) + 0.1 * RNG.normal(size=N)
WRITTEN = [f"{value:.3f}" for value in NUMBERS]
HALF_HOURS = [time(n // 2, 30 * (n % 2)) for n in range(N)]


def _objects(values, *changes) -> pd.DataFrame:
    column = pd.Series(list(values), dtype=object)
    for row, value in changes:
        column[row] = value
    return pd.DataFrame({"x": column})


STRANGE = {
    "a word among numbers": (_objects(NUMBERS, (7, "oops"), (9, "?")), r"numbers, and something else in 2 of 40 rows"),
    "its row": (_objects(NUMBERS, (7, "oops"), (9, "?")), r"first 'oops' in row 7; .*mend or drop"),
    "a number among words": (_objects("ab" * 20, (3, 1.5)), r"holds text, and .* first 1\.5 in row 3"),
    "a date among numbers": (_objects(NUMBERS, (3, date(2020, 1, 1))), r"holds numbers, and .* first datetime\.date"),
    "missing values beside": (_objects(NUMBERS, (0, None), (1, np.nan), (7, "oops")), r"1 of 40 rows, first 'oops'"),
    "numbers as text": (pd.DataFrame({"x": WRITTEN}), r"numbers written as text, such as '0\.0.*pandas\.to_numeric"),
    "in polars": (pl.DataFrame({"x": WRITTEN}), r"numbers written as text.*Categorical\('x'\) if they are codes"),
    "in Arrow": (pa.table({"x": WRITTEN}), r"numbers written as text"),
    "in objects": (_objects(WRITTEN), r"numbers written as text"),
    "mostly numbers": (pd.DataFrame({"x": [*WRITTEN[:-1], "oops"]}), r"such as '0\.0.*, all but 1 such as 'oops'"),
    "few numbers": (pd.DataFrame({"x": ["1", "2,5", "-3e4", None] * 10}), r"numbers written as text"),
    "dates as text": (pd.DataFrame({"x": ["2020-01-01", "2021-12-31 10:00"] * 20}), r"dates written.*to_datetime"),
    "periods": (
        pd.DataFrame({"x": pd.period_range("2020", periods=N, freq="D")}),
        r"periods.*\['x'\]\.dt\.to_timestamp",
    ),
    "period objects": (_objects(pd.period_range("2020", periods=N, freq="D")), r"holds periods"),
    "intervals": (pd.DataFrame({"x": pd.arrays.IntervalArray.from_breaks(range(N + 1))}), r"intervals.*\.mid"),
    "times of the day": (pd.DataFrame({"x": HALF_HOURS}), r"times of the day.*hours from midnight"),
    "in a polars frame": (pl.DataFrame({"x": HALF_HOURS}), r"times of the day"),
    "in an Arrow table": (pa.table({"x": HALF_HOURS}), r"times of the day"),
    "other objects": (_objects(map(UUID, (f"{n:032}" for n in range(N)))), r"objects of type UUID.*numbers or as text"),
}


@pytest.mark.parametrize("case", STRANGE, ids=str)
def test_a_default_kernel_does_not_guess(case):
    X, pattern = STRANGE[case]
    for model, y in ((GPRegressor(), Y), (GPClassifier(), Y > 0)):
        with pytest.raises(ValueError, match=f"column 'x' of X .*{pattern}"):
            model.fit(X, y)


@pytest.mark.parametrize("case", STRANGE, ids=str)
def test_a_kernel_that_says_so_takes_every_value_for_a_level(case):
    model = GPRegressor(Categorical("x"), optimizer=None).fit(STRANGE[case][0], Y)
    assert len(model.column_levels_[0]) > 2 or case == "dates as text"
    assert np.all(np.isfinite(model.predict(STRANGE[case][0])))


DECLARED = {
    "pandas": lambda values: pd.DataFrame({"x": pd.Series(values, dtype="category")}),
    "polars": lambda values: pl.DataFrame({"x": pl.Series(values).cast(pl.Categorical)}),
    "arrow": lambda values: pa.table({"x": pa.array(values).dictionary_encode()}),
}


@pytest.mark.parametrize("make", DECLARED, ids=str)
def test_a_type_that_says_category_is_believed(make):
    frame = DECLARED[make](["1", "2", "30", "4"] * 10)
    assert GPRegressor(optimizer=None).fit(frame, Y).column_levels_ == (("1", "2", "30", "4"),)
    with pytest.raises(ValueError, match="numbers written as text"):
        GPRegressor().fit(pd.DataFrame({"x": ["1", "2", "30", "4"] * 10}), Y)


def test_text_with_some_numbers_is_a_category():
    frame = pd.DataFrame({"x": ["8", "10", "S", "M", "XL"] * 8})
    assert GPRegressor(optimizer=None).fit(frame, Y).column_levels_ == (("10", "8", "M", "S", "XL"),)


def _frames():
    return pd.DataFrame({"x": WRITTEN, "y": Y}), pd.DataFrame({"x": [*WRITTEN[:-1], "oops"], "y": Y})


def test_rows_in_chunks_and_files_are_no_other(tmp_path):
    for number, frame in enumerate(_frames()):
        frame.to_parquet(tmp_path / f"{number}.parquet")
        for rows in (
            [frame[:20], frame[20:]],
            [frame[n : n + 4] for n in range(0, N, 4)],
            tmp_path / f"{number}.parquet",
        ):
            with pytest.raises(ValueError, match="column 'x' of X holds numbers written as text"):
                GPRegressor().fit(rows, "y")
    _frames()[1].to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="all but 1 such as 'oops'"):
        GPRegressor().fit(tmp_path / "rows.csv", "y")
    mixed = _objects(NUMBERS, (27, "oops")).assign(y=Y)
    with pytest.raises(ValueError, match=r"chunks 0 to 1: .* something else in 1 of 40 rows, first 'oops' in row 27"):
        GPRegressor().fit([mixed[:20], mixed[20:]], "y")


def test_files_that_were_told_what_a_column_is(tmp_path):
    codes = pd.DataFrame({"x": ["1", "2", "30", "4"] * 10, "y": Y})
    codes.to_csv(tmp_path / "codes.csv", index=False)
    model = GPRegressor(optimizer=None).fit(scan(tmp_path / "codes.csv", types={"x": "text"}), "y")
    assert model.column_levels_ == (("1", "2", "30", "4"),)
    codes.astype({"x": "category"}).to_parquet(tmp_path / "codes.parquet")
    assert GPRegressor(optimizer=None).fit(tmp_path / "codes.parquet", "y").column_levels_ == model.column_levels_


def test_names_of_rows_are_noted():
    frame = pd.DataFrame({"x": [f"row {n}" for n in range(N)]})
    (note, *_) = GPRegressor(optimizer=None).fit(frame, Y).notes_
    assert note.startswith("kernel=None took the text in column 'x' for a category, of 40 levels in 40 rows")
    assert not GPRegressor(Categorical("x"), optimizer=None).fit(frame, Y).notes_
    assert not GPRegressor(optimizer=None).fit(pd.DataFrame({"x": list("ab") * 20}), Y).notes_


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: columns["x"][:, None]])
def test_whole_numbers_that_float64_does_not_tell_apart(make):
    near = make({"x": 2**62 + np.arange(N)})
    with pytest.raises(ValueError, match=r"whole numbers from 4611686018427387904 to .*does not tell apart; subtract"):
        GPRegressor().fit(near, Y)
    with pytest.raises(ValueError, match="y holds whole numbers"):
        GPRegressor().fit(NUMBERS[:, None], 2**62 + np.arange(N))
    same = GPRegressor(optimizer=None).fit(make({"x": np.full(N, 2**62)}), Y)
    assert any("holds one value" in note for note in same.notes_)
    assert GPRegressor(Categorical(0), optimizer=None).fit(near, Y).column_levels_[0][1] == 2**62 + 1


@pytest.mark.parametrize(
    "options", [{"domain": {"g": (0, 1)}}, {"frequencies": {"g": 5}}, {"edges": {"g": 1}}], ids=str
)
def test_a_category_has_no_domain(options):
    frame = pd.DataFrame({"x": NUMBERS, "g": list("ab") * 20})
    for kernel in (None, Matern32("x") + Categorical("g"), Matern32("x") * Categorical("g"), Categorical("g")):
        with pytest.raises(ValueError, match=r"for column 'g' is .* takes this column for a category, which has no"):
            GPRegressor(kernel, **options).fit(frame, Y)
    with pytest.raises(ValueError, match="which has no domain; leave it out"):
        GPRegressor(domain=(0, 1)).fit(frame[["g"]], Y)
    both = GPRegressor(Matern32(0) + Categorical(0), domain={0: (0, 1)}, optimizer=None, frequencies=4)
    assert both.fit(NUMBERS[:, None].round(1), Y).domain_ == {0: (0, 1)}


NESTED = {"lists": [[value] for value in NUMBERS], "records": [{"a": value} for value in NUMBERS]}


@pytest.mark.parametrize("values", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_several_values_in_one_are_refused(make, values):
    frame = make({"x": values})
    fitted = GPRegressor(frequencies=4).fit(pd.DataFrame({"x": NUMBERS}), Y)
    for call in (
        lambda: GPRegressor().fit(frame, Y),
        lambda: GPRegressor(Matern32("x")).fit(frame, Y),
        lambda: GPRegressor(Categorical("x")).fit(frame, Y),
        lambda: fitted.predict(frame),
    ):
        with pytest.raises(
            TypeError, match=r"column 'x' of X(: argument| holds (several values in one|values that can))"
        ):
            call()
    target = frame.column("x") if hasattr(frame, "column") else frame["x"]
    with pytest.raises(TypeError, match=r"y(: argument| holds several values in one)"):
        GPRegressor().fit(NUMBERS[:, None], target)


def test_levels_of_very_many_digits_are_text():
    digits = "7" * 200_000  # looked at once: with every digit tried as the last one, this would not end
    levels = [f"{digits}{letter}" for letter in "xyz"]
    assert not are_written(levels)
    assert are_written([digits, f"{digits}.", f"{digits},5e3", f" -.{digits} "])
    assert are_written([digits, digits[:-1], "x"])


def test_objects_are_looked_at_by_their_types(monkeypatch):
    """And one by one on refusal alone: a million rows of text have a single type."""
    looked = []
    missing = frames.is_missing
    monkeypatch.setattr(meaning, "is_missing", lambda value: looked.append(value) or missing(value))
    monkeypatch.setattr(frames, "is_missing", lambda value: looked.append(value) or missing(value))
    origin = Origin("column 'x' of X", 0, "'x'")
    refuse_to_guess(_objects("ab" * 20)["x"], origin)
    assert looked == []
    refuse_to_guess(_objects("ab" * 20, (3, np.nan), (4, None), (5, pd.NA))["x"], origin)
    assert len(looked) == 1
    with pytest.raises(ValueError, match=r"first 1\.5 in row 3"):
        refuse_to_guess(_objects("ab" * 20, (3, 1.5), (1, None))["x"], origin)
    assert len(looked) > 40


def test_long_names_are_declared_as_short_ones_are(tmp_path):
    name = "what " * 30
    frame = pd.DataFrame({name: ["1", "2", "30", "4"] * 10, "y": Y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = GPRegressor(optimizer=None).fit(scan(tmp_path / "rows.csv", types={name: "text"}), "y")
    assert model.column_levels_ == (("1", "2", "30", "4"),)
    twin = frame.rename(columns={name: name.replace("w", "W", 1)})  # shown alike, where names are shortened
    pieces = [twin.astype({twin.columns[0]: "category"})[:20], twin.astype({twin.columns[0]: "category"})[20:]]
    assert GPRegressor(optimizer=None).fit(pieces, "y").column_levels_ == (("1", "2", "30", "4"),)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("datetime", ["2024-01-01", "2024-05-01"]),
        ("datetime", ["1.2.2024", "2.3.2024"]),
        ("timedelta", ["1 days", "9 days"]),
    ],
)
def test_times_that_come_as_text_after_the_fit(kind, texts):
    days = pd.to_timedelta(np.arange(N), unit="D")
    times = pd.DataFrame({"z": NUMBERS, "day": days if kind == "timedelta" else pd.Timestamp("2024-01-01") + days})
    model = GPRegressor(frequencies=6).fit(times, Y)
    late = pd.DataFrame({"day": texts, "z": 0.5})
    sentence = rf"'day' of X holds text such as '{texts[0]}', and .* times in it: .*pandas\.to_{kind}\(X\['day'\]\)$"
    for ask in (model.predict, model.effects, model.sample_f):
        with pytest.raises(ValueError, match=sentence):
            ask(late)
    with pytest.raises(ValueError, match=r"'z' of X holds text .*use Categorical\('z'\)"):
        model.predict(times.assign(z="u"))


def _sold(**changes) -> pd.DataFrame:
    days = pd.date_range("2024-01-01", periods=40).astype(str)
    return pd.DataFrame({"sold": days, "area": np.arange(40.0), "y": np.arange(40) % 7.0}).assign(**changes)


@pytest.mark.parametrize("kernel", ["s(sold)", Matern32("sold")])
def test_dates_as_text_are_to_be_converted(kernel):
    with pytest.raises(
        ValueError, match=r"holds dates written as text, such as '2024-01-01'.*to_datetime\(X\['sold'\]\)"
    ):
        GPRegressor(kernel).fit(_sold(), "y")


@pytest.mark.parametrize("kernel", ["s(area)", Matern32("area")])
def test_a_word_among_numbers_is_found_in_its_row(kernel, tmp_path):
    area = np.arange(40.0).astype(str).astype(object)
    area[3] = "big"
    path = tmp_path / "homes.csv"
    _sold(area=area).to_csv(path, index=False)
    with pytest.raises(
        ValueError, match=r"(?s)header is row 1\).*'big'.* in row 5|'big' in row 5 \(the header is row 1\)"
    ):
        GPRegressor(kernel).fit(scan(path), "y")
    with pytest.raises(ValueError, match=r"'big'.* in row 3"):
        GPRegressor(kernel).fit(_sold(area=area), "y")
    mixed = np.arange(40.0).astype(object)
    mixed[3] = "big"
    with pytest.raises(ValueError, match=r"'big'.* in row 3"):
        GPRegressor(kernel).fit(_sold(area=mixed), "y")


def test_rows_of_files_are_counted_as_an_editor_does(tmp_path):
    path = tmp_path / "homes.csv"
    frame = _sold()
    frame.loc[[26, 30], "y"] = np.nan
    frame.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"homes.csv, rows 22 to 41 \(the header is row 1\): y .* first in row 28\)"):
        GPRegressor("s(area)").fit(scan(path, chunk_rows=20), "y")
    assert path.read_text().splitlines()[27].endswith(",")
