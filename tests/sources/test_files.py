"""Files of every format: the same rows whatever they are cut into, and a sentence for everything that is wrong."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vff.data.opening import scan
from vff.data.source import SourceError

TABLE = pa.table(
    {
        "x": pa.array([1.5, None, 2.5, -3.0, 1e300], pa.float64()),
        "n": pa.array([1, 2, None, 4, 5], pa.int64()),
        "city": pa.array(["Oslo", None, "NA", 'a "b", c', "two\nlines"], pa.string()),
        "at": pa.array([0, 1, 2, None, 86_400_000_000], pa.timestamp("us")),
        "ok": pa.array([True, False, None, True, True], pa.bool_()),
    }
)


def write(table: pa.Table, path: Path) -> Path:
    """A file of the format that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name
    if name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            pyarrow.csv.write_csv(table, file)
    elif name.endswith(".csv"):
        pyarrow.csv.write_csv(table, path)
    elif name.endswith(".tsv"):
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter="\t"))
    elif name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path, row_group_size=3)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(table, str(path), chunksize=3)
    else:
        make = pa.ipc.new_stream if name.endswith(".arrows") else pa.ipc.new_file
        with make(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    return path


def text(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def chunks(source) -> list:
    return [chunk for part in source.parts() for chunk in part.chunks()]


def rows(source) -> dict[str, list]:
    """All rows, with integers as floats, as delimited files have them."""
    found: dict[str, list] = {name: [] for name in source.names}
    for chunk in chunks(source):
        assert tuple(chunk.data.column_names) == source.names
        for name, values in chunk.data.to_pydict().items():
            found[name] += [float(value) if type(value) is int else value for value in values]
    return found


def expected(table: pa.Table) -> dict[str, list]:
    return {
        name: [float(value) if type(value) is int else value for value in values]
        for name, values in table.to_pydict().items()
    }


FORMATS = (".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".arrow", ".arrows")


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_back_its_rows(tmp_path, suffix) -> None:
    path = write(TABLE, tmp_path / f"a{suffix}")
    source = scan(path, chunk_rows=2)
    assert rows(source) == expected(TABLE)
    assert rows(source) == expected(TABLE), "a file can be read again"
    assert source.repeatable
    assert source.n_rows == (None if "sv" in suffix or suffix == ".arrows" else 5)
    found = chunks(source)
    assert [chunk.n_rows for chunk in found] == [2, 2, 1]
    text = "sv" in suffix  # whose rows are counted from its header on, as an editor does
    assert found[1].where == f"{path}, rows {'4 to 5 (the header is row 1)' if text else '2 to 3'}"
    assert found[1].first == (4 if text else 2)
    shares = [chunk.share_of_part for chunk in found]
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1.0, "a stream ends with a mark that is no row"
    (part,) = source.parts()
    assert (part.name, part.size) == (str(path), path.stat().st_size)
    assert part.fingerprint() == f"{path.stat().st_size} bytes, {path.stat().st_mtime_ns} ns"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=30)
@given(
    values=st.lists(st.tuples(st.floats(width=32) | st.none(), st.text("ab,;\"\n\r\t 'é", max_size=4)), max_size=25),
    cuts=st.lists(st.tuples(st.integers(0, 25), st.sampled_from(FORMATS)), max_size=4),
    chunk_rows=st.integers(1, 30),
)
def test_any_split_gives_the_same_rows(tmp_path_factory, values, cuts, chunk_rows) -> None:
    folder = tmp_path_factory.mktemp("split")
    x = [None if v is None or np.isnan(v) else v for v, _ in values]
    # empty text is missing in delimited files: a table that is to be the same everywhere has none
    label = [f"<{t}>" if t else None for _, t in values]
    table = pa.table({"x": pa.array(x, pa.float64()), "label": pa.array(label, pa.string())})
    bounds = sorted((min(cut, len(values)), suffix) for cut, suffix in cuts)
    starts = [0, *(cut for cut, _ in bounds)]
    stops = [*(cut for cut, _ in bounds), len(values)]
    suffixes = [".parquet", *(suffix for _, suffix in bounds)]
    for i, (start, stop, suffix) in enumerate(zip(starts, stops, suffixes, strict=True)):
        write(table.slice(start, stop - start), folder / f"{i}{suffix}")
    source = scan(folder, chunk_rows=chunk_rows)
    assert rows(source) == expected(table)
    for part in source.parts():
        counts = [chunk.n_rows for chunk in part.chunks()]
        assert all(count == chunk_rows for count in counts[:-1])
        assert all(0 < count <= chunk_rows for count in counts[-1:])
    dropped = chunks(source.with_options(missing="drop"))
    whole = [v is not None and np.isfinite(v) and t is not None for v, t in zip(x, label, strict=True)]
    assert sum(chunk.n_rows for chunk in dropped) == sum(whole)
    assert sum(chunk.dropped for chunk in dropped) == len(whole) - sum(whole)


@pytest.mark.parametrize("suffix", FORMATS)
def test_rows_with_something_missing_are_left_out_and_counted(tmp_path, suffix) -> None:
    source = scan(write(TABLE, tmp_path / f"a{suffix}"), missing="drop")
    (chunk,) = chunks(source)
    assert (chunk.n_rows, chunk.dropped) == (2, 3)
    assert chunk.data.column("x").to_pylist() == [1.5, 1e300]
    (chunk,) = chunks(source.restricted(["city"]))
    assert (chunk.n_rows, chunk.dropped) == (4, 1)
    (chunk,) = chunks(source.restricted(["x", "city"]).with_options(keep_missing=("city",)))
    assert (chunk.n_rows, chunk.dropped) == (4, 1)
    assert chunk.data.column("city").to_pylist()[0] == "Oslo"


def test_infinite_is_missing_and_a_chunk_may_be_left_with_nothing(tmp_path) -> None:
    source = scan(text(tmp_path / "a.csv", "x\ninf\nnan\n-inf\n4\n"), missing="drop", chunk_rows=3)
    assert [(chunk.n_rows, chunk.dropped) for chunk in chunks(source)] == [(0, 3), (1, 0)]


def test_only_columns_asked_for_are_read(tmp_path) -> None:
    path = text(tmp_path / "a.csv", "x,y,z\n1,2,3\n4,5,6\n7,8,9\n")
    source = scan(path).restricted(["z", "x"])
    assert source.names == ("x", "z")
    assert rows(source) == {"x": [1.0, 4.0, 7.0], "z": [3.0, 6.0, 9.0]}
    with pytest.raises(ValueError, match="expected columns of the files, found 'q'; the columns are 'x', 'y', 'z'"):
        scan(path).restricted(["q"])


def test_a_fault_in_a_column_nobody_asks_for_is_none(tmp_path) -> None:
    content = "x,y\n" + "1,2\n" * 300_000 + "1,oops\n"
    source = scan(text(tmp_path / "a.csv", content))
    assert len(rows(source.restricted(["x"]))["x"]) == 300_001
    with pytest.raises(SourceError, match=r"expected a number in column 'y', found 'oops' in '.*a.csv', row 300002"):
        rows(source)
    with pytest.raises(SourceError, match=r"column 'y', found 'oops'.*types=\{'y': \"text\"\}"):
        rows(source.restricted(["y"]))
    assert rows(scan(tmp_path / "a.csv", types={"y": "text"}))["y"][-1] == "oops"


def test_integers_are_numbers_so_that_a_late_fraction_is_no_fault(tmp_path) -> None:
    path = text(tmp_path / "a.csv", "n\n" + "1\n" * 700_000 + "1.5\n")
    assert rows(scan(path))["n"][-1] == 1.5
    with pytest.raises(SourceError, match=r"expected an integer in column 'n', found '1\.5'"):
        rows(scan(path, types={"n": "integer"}))


def test_types_are_what_the_caller_says(tmp_path) -> None:
    write(pa.table({"id": [7, 8], "t": ["2024-01-01", "2024-01-02"]}), tmp_path / "a.parquet")
    text(tmp_path / "b.csv", "id,t\n007,2024-01-03 12:00\n")
    source = scan(tmp_path, types={"id": "text", "t": "datetime"})
    found = rows(source)
    assert found["id"] == ["7", "8", "007"]
    assert [str(value) for value in found["t"]] == ["2024-01-01 00:00:00", "2024-01-02 00:00:00", "2024-01-03 12:00:00"]
    with pytest.raises(ValueError, match=r"expected types= to say 'text', .* found 'string' for column 'id'"):
        scan(tmp_path, types={"id": "string"})
    with pytest.raises(ValueError, match="expected types= to name columns, found 'idd'; the columns are 'id', 't'"):
        scan(tmp_path, types={"idd": "text"})
    with pytest.raises(SourceError, match="expected a date or time like 2024-02-29 12:00 in column 'id'"):
        rows(scan(tmp_path / "b.csv", types={"id": "datetime"}))
    with pytest.raises(SourceError, match=r"expected column 't' to be number, found .* in '.*a.parquet'; correct it"):
        rows(scan(tmp_path / "a.parquet", types={"t": "number"}))


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("\ufeffx,y\r\n1,2\r\n3,4\r\n", None),
        ("x;y\n1;2\n3;4", None),
        ('"x"|"y"\n1|2\n\n3|4\n', None),
        ("x\ty\n1\t2\n3\t4\n", None),
        ("x:y\n1:2\n3:4\n", ":"),
    ],
)
def test_dialects(tmp_path, content, delimiter) -> None:
    source = scan(text(tmp_path / "a.csv", content), delimiter=delimiter)
    assert rows(source) == {"x": [1.0, 3.0], "y": [2.0, 4.0]}


def test_names_may_be_quoted_and_hold_delimiters_and_lines(tmp_path) -> None:
    source = scan(text(tmp_path / "a.csv", '"a;b;c","two\nlines",z\n1,2,3\n'))
    assert rows(source) == {"a;b;c": [1.0], "two\nlines": [2.0], "z": [3.0]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "expected a header line with the columns' names in .*, found an empty file; leave it out"),
        ("\n1,2\n", "expected a header line with the columns' names in .*, found none; write one"),
        ("1,2\n3,4\n", "expected a header line .*, found the numbers 1, 2; write one above them"),
        ("x,y,x\n1,2,3\n", "expected every column to have a name of its own, found 'x' more than once in the header"),
        ("x,y\n1,2\n3\n", "expected as many columns as the header has, 2 columns, got 1 in .*, row 3"),
        ("x,y\n1,2\n3,4,5\n", "expected as many columns as the header has, 2 columns, got 3 in .*, row 3"),
        (b"x,y\n1,\xff\xfe\n", "expected UTF-8|expected text"),
        ("x,y\n1,2\n".encode("utf-16"), "found UTF-16; write it as UTF-8, as in iconv -f UTF-16 -t UTF-8"),
        ("x,y\n1,2\n".encode("utf-16-le"), "found UTF-16; write it as UTF-8, as in iconv -f UTF-16LE -t UTF-8"),
        ("x,y\n1,2\n".encode("utf-16-be"), "found UTF-16; write it as UTF-8, as in iconv -f UTF-16BE -t UTF-8"),
        ("x,y\n1,2\n".encode("utf-32"), "found UTF-32; write it as UTF-8"),
        ("x,ø\n1,2\n".encode("latin-1"), "found the byte 0xF8 in line 1, which is 'ø' in .*Latin-1; write the file as"),
        ("x,y\n1,2\né,3\n".encode("latin-1"), "found the byte 0xE9 in line 3, which is 'é'"),
        (b"x,y\n1,2\n\x81,3\n", "found the byte 0x81 in line 3; write the file as UTF-8"),
        (b"x,y\n1,\x002\n", "found a NUL byte in line 2; write the file again without it"),
        (b"x,y\x00\n1,2\n", "found a NUL byte in line 1; write the file again without it"),
        (bytes(4000), "found a NUL byte in line 1"),
        (gzip.compress(b"x,y\n1,2\n", mtime=0), "found what gzip has packed; let its name end in .gz, or unpack it"),
        (b"PK\x03\x04 and more", "found a zip archive, as spreadsheets are, too; unpack it"),
        (bz2.compress(b"x,y\n1,2\n"), "found what bzip2 has packed; unpack it"),
        (lzma.compress(b"x,y\n1,2\n"), "found what xz has packed; unpack it"),
        (pa.compress(b"x,y\n1,2\n", "zstd", asbytes=True), "found what zstd has packed; unpack it"),
        (b"PAR1\x15\x04 and more", "found a Parquet file; let its name end in .parquet"),
    ],
)
def test_delimited_files_that_are_refused(tmp_path, content, sentence) -> None:
    path = text(tmp_path / "a.csv", content)
    with pytest.raises(SourceError, match=sentence) as caught:
        rows(scan(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("end", [".parquet", ".arrow"])
def test_tables_under_the_name_of_another_format(tmp_path, end) -> None:
    write(TABLE, tmp_path / f"a{end}")
    (tmp_path / f"a{end}").rename(tmp_path / "a.csv")
    with pytest.raises(SourceError, match=rf"found an? (Parquet|Arrow) file; let its name end in \{end}"):
        scan(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["PAR1", "BZh", "BZh9", "ARROW1", "PK"])
def test_names_that_begin_as_other_files_do(tmp_path, name) -> None:
    assert rows(scan(text(tmp_path / "a.csv", f"{name},y\n1,2\n"))) == {name: [1.0], "y": [2.0]}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        (
            b"1,\xe9",
            r"expected UTF-8 text in column 'y', found bytes that are none in .*, row 300002",
        ),
        (b"1,\0", r"expected text without NUL bytes in column 'y', found one in .*; write the file again without it"),
        (
            b"1\0,a",
            r"expected text without NUL bytes in column 'x', found one in .*, row 300002",
        ),
    ],
)
def test_bytes_that_are_no_text_are_found_beyond_the_first_megabyte(tmp_path, suffix, last, sentence) -> None:
    content = b"x,y\n" + b"1,a\n" * 300_000 + last + b"\n"
    path = text(tmp_path / f"a{suffix}", gzip.compress(content, 1, mtime=0) if suffix.endswith("gz") else content)
    with pytest.raises(SourceError, match=sentence):
        rows(scan(path))


def test_a_letter_of_several_bytes_may_lie_where_the_look_at_a_file_ends(tmp_path) -> None:
    for before in range(4):
        source = scan(text(tmp_path / "a.csv", "x,y\n" + "1" * before + ",a\n" + "1,€\n" * 200_000))
        assert rows(source)["y"] == ["a"] + ["€"] * 200_000


def test_plain_text_that_is_said_to_be_packed(tmp_path) -> None:
    with pytest.raises(SourceError, match=r"expected what gzip has packed in .*, found something else; take .gz off"):
        rows(scan(text(tmp_path / "a.csv.gz", "x,y\n1,2\n")))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_quote_that_is_not_closed_hides_no_rows(tmp_path, suffix) -> None:
    write_text = gzip.open if suffix.endswith("gz") else open
    with write_text(tmp_path / f"a{suffix}", "wt") as file:
        file.write('x,y\n1,"a"\n2,"b\n' + "3,c\n" * 1000)
    source = scan(tmp_path / f"a{suffix}")
    for columns in ("x", "y"):
        with pytest.raises(
            SourceError, match=r"expected every quote to be closed, found one that is not before 'b\\n3,c"
        ):
            rows(source.restricted([columns]))
    with write_text(tmp_path / f"a{suffix}", "wt") as file:
        file.write('x,y\n1,5" pipe\n2,"b\nc"\n')
    assert rows(scan(tmp_path / f"a{suffix}")) == {"x": [1.0, 2.0], "y": ['5" pipe', "b\nc"]}


def test_damaged_files_are_refused_by_name(tmp_path) -> None:
    big = pa.table({"x": np.random.default_rng(0).normal(size=5_000)})
    for suffix in (".csv.gz", ".parquet", ".feather", ".arrows"):
        whole = write(big, tmp_path / f"whole{suffix}").read_bytes()
        for share in (0.0, 0.001, 0.6):
            path = text(tmp_path / f"cut{suffix}", whole[: int(len(whole) * share)])
            with pytest.raises(SourceError, match="cut" + suffix):
                rows(scan(path))


def test_a_damaged_row_group_is_found_when_it_is_read(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"x": np.arange(200_000.0)})
    pyarrow.parquet.write_table(table, path, row_group_size=20_000, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(200)
    path.write_bytes(content)
    source = scan(path, chunk_rows=5_000)
    (part,) = source.parts()
    found = part.chunks()
    assert next(found).n_rows == 5_000
    with pytest.raises(SourceError, match=r"a\.parquet"):
        list(found)


def test_all_files_are_looked_at_before_the_first_row(tmp_path) -> None:
    write(pa.table({"x": [1.0], "y": [2.0], "z": ["a"]}), tmp_path / "a.parquet")
    write(pa.table({"y": [2.0], "x": [3], "z": ["b"]}), tmp_path / "b.arrow")
    text(tmp_path / "c.csv", "x,z\n5,6\n")
    source = scan(tmp_path)
    assert source.names == ("x", "y", "z")
    with pytest.raises(SourceError, match=r"expected column 'y' in every file, found none of this name in '.*c.csv'"):
        next(source.parts())
    with pytest.raises(SourceError, match=r"'z' to be text, as in the first file, found number in '.*c.csv'; correct"):
        next(source.restricted(["z"]).parts())
    assert rows(source.restricted(["x"])) == {"x": [1.0, 3.0, 5.0]}
    skipping = source.with_options(faulty="skip")
    *good, bad = skipping.parts()
    assert [sum(chunk.n_rows for chunk in part.chunks()) for part in good] == [1, 1]
    with pytest.raises(SourceError, match="found none of this name"):
        next(bad.chunks())


def test_a_faulty_file_is_refused_when_it_is_scanned_or_left_to_the_pass(tmp_path) -> None:
    write(TABLE, tmp_path / "b.parquet")
    text(tmp_path / "a.parquet", b"PAR1 this is not one")
    with pytest.raises(SourceError, match=r"a\.parquet"):
        scan(tmp_path)
    source = scan(tmp_path, faulty="skip")
    assert (source.names, source.n_rows) == (tuple(TABLE.column_names), 5)
    assert len(list(source.parts())) == 2
    with pytest.raises(SourceError, match=r"expected a file that can be read, found none among 1; the first: "):
        scan(tmp_path / "a.parquet", faulty="skip")


def test_a_column_that_is_empty_in_one_file_is_what_it_is_in_the_others(tmp_path) -> None:
    text(tmp_path / "a.csv", "x,label\n1,\n")
    text(tmp_path / "b.csv", "x,label\n2,b\n")
    write(pa.table({"x": [3.0], "label": pa.array([None], pa.null())}), tmp_path / "c.parquet")
    found = chunks(scan(tmp_path))
    assert [chunk.data.schema.field("label").type for chunk in found] == [pa.string()] * 3
    assert rows(scan(tmp_path)) == {"x": [1.0, 2.0, 3.0], "label": [None, "b", None]}


def test_times_with_a_zone_keep_it(tmp_path) -> None:
    source = scan(text(tmp_path / "a.csv", "t\n2024-01-01T12:00:00+02:00\n2024-01-01T12:00:00Z\n"))
    assert [value.hour for value in rows(source)["t"]] == [10, 12]


def test_times_of_nine_digits_are_read(tmp_path) -> None:
    """As Arrow writes times of pandas 2, whose unit is the nanosecond."""
    source = scan(text(tmp_path / "a.csv", "t\n2024-01-29 22:00:00.000000000\n2024-01-29 23:00:00.000000000\n"))
    assert [value.hour for value in rows(source)["t"]] == [22, 23]


def test_hours_are_text_and_dates_may_get_hours_later(tmp_path) -> None:
    source = scan(text(tmp_path / "a.csv", "at,day\n12:30:00,2024-01-01\n13:00:00,2024-01-02 06:00\n"))
    found = rows(source)
    assert found["at"] == ["12:30:00", "13:00:00"]
    assert [value.hour for value in found["day"]] == [0, 6]


def test_names_of_folders_are_columns(tmp_path) -> None:
    for year in (2020, 2021):
        for place in ("a b", None):
            folder = f"year={year}/place={'__HIVE_DEFAULT_PARTITION__' if place is None else 'a%20b'}"
            write(pa.table({"x": [float(year)] * 2}), tmp_path / folder / "part.parquet")
    (tmp_path / "year=2020" / "_SUCCESS").touch()
    (tmp_path / "year=2020" / ".hidden.parquet").touch()
    source = scan(tmp_path)
    assert set(source.names) == {"year", "place", "x"}
    assert rows(source)["year"] == [2020.0] * 4 + [2021.0] * 4
    assert sorted(map(str, rows(source)["place"])) == ["None"] * 4 + ["a b"] * 4
    assert rows(source.restricted(["year"])) == {"year": [2020.0] * 4 + [2021.0] * 4}, "no column of the file itself"
    assert rows(scan(tmp_path, types={"year": "text"}))["year"][0] == "2020"
    assert rows(scan(str(tmp_path / "year=*/*/*.parquet")).restricted(["x"]))["x"] == rows(source)["x"]


def test_lists_and_patterns_in_sorted_order_each_file_once(tmp_path) -> None:
    paths = [write(pa.table({"x": [float(i)]}), tmp_path / f"{i}.parquet") for i in (2, 0, 1)]
    assert rows(scan(paths)) == {"x": [0.0, 1.0, 2.0]}
    assert rows(scan([str(tmp_path / "*.parquet"), paths[0]])) == {"x": [0.0, 1.0, 2.0]}
    assert [part.name for part in scan(tmp_path).parts()] == sorted(map(str, paths))


def test_places_where_nothing_is(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="expected a file, a folder or a pattern, found nothing at"):
        scan(tmp_path / "a.csv")
    with pytest.raises(FileNotFoundError, match=r"expected files that match '.*\*.csv', found none; check the pattern"):
        scan(str(tmp_path / "*.csv"))
    with pytest.raises(FileNotFoundError, match="expected files in the folder"):
        scan(tmp_path)
    with pytest.raises(ValueError, match=r"expected a file whose name ends in \.csv, .*, found '.*a\.xlsx'"):
        scan(text(tmp_path / "a.xlsx", ""))


def test_a_file_that_is_gone_is_refused_when_it_is_read(tmp_path) -> None:
    for suffix in (".csv", ".parquet", ".arrow"):
        path = write(TABLE, tmp_path / f"a{suffix}")
        (part,) = scan(path).parts()
        before = part.fingerprint()
        path.unlink()
        assert part.fingerprint() != before
        with pytest.raises(SourceError, match="a" + suffix):
            list(part.chunks())


def test_datasets_of_pyarrow(tmp_path) -> None:
    for year in (2020, 2021):
        write(TABLE, tmp_path / f"year={year}" / "a.parquet")
    dataset = pyarrow.dataset.dataset(tmp_path, format="parquet", partitioning="hive")
    source = scan(dataset, chunk_rows=4)
    assert source.n_rows == 10
    assert rows(source) == {**expected(pa.concat_tables([TABLE, TABLE])), "year": [2020.0] * 5 + [2021.0] * 5}
    assert [chunk.n_rows for chunk in chunks(source)] == [4, 1, 4, 1]
    first = next(source.parts())
    assert first.size == (tmp_path / "year=2020" / "a.parquet").stat().st_size
    assert "bytes" in first.fingerprint()
    assert rows(source.restricted(["year", "x"]))["year"] == [2020.0] * 5 + [2021.0] * 5
    filtered = scan(dataset.filter(pyarrow.dataset.field("x") > 0))
    assert (filtered.n_rows, len(rows(filtered)["x"])) == (None, 6)
    memory = scan(pyarrow.dataset.dataset(TABLE), types={"n": "text"})
    assert rows(memory)["n"] == ["1", "2", None, "4", "5"]
    assert memory.n_rows == 5


def test_a_dataset_whose_files_differ_has_faulty_parts(tmp_path) -> None:
    write(pa.table({"x": [1.0], "y": [2.0]}), tmp_path / "a.parquet")
    write(pa.table({"x": [1.0]}), tmp_path / "b.parquet")
    source = scan(pyarrow.dataset.dataset(tmp_path, format="parquet"))
    with pytest.raises(
        SourceError, match=r"expected column 'y' in every file, found none of this name in '.*b.parquet'"
    ):
        next(source.parts())
    assert rows(source.restricted(["x"])) == {"x": [1.0, 1.0]}
