"""Columns of levels and labels are integers where their files say so, and above 2**53 they are still told apart."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from vff.data import arrow as arrow_module
from vff.data.opening import scan
from vff.data.source import SourceError

LARGE = 2**53


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def values(source: Any, name: str) -> tuple[str, list[Any]]:
    tables = [chunk.data for part in source.parts() for chunk in part.chunks()]
    whole = pa.concat_tables(tables)
    return str(whole.schema.field(name).type), whole.column(name).to_pylist()


def test_large_integers_are_told_apart(tmp_path: Path) -> None:
    source = scan(write(tmp_path / "t.csv", f"k,x\n{LARGE},1\n{LARGE + 1},2\n,3\n"))
    assert values(source, "k") == ("double", [float(LARGE)] * 2 + [None])
    whole = source.with_integers(["k"])
    assert values(whole, "k") == ("int64", [LARGE, LARGE + 1, None])
    assert values(whole.restricted(["k"]), "k")[0] == "int64"
    assert values(whole, "x")[0] == "double"
    assert values(source, "k")[0] == "double"
    assert whole.kinds == source.kinds


def test_the_caller_and_the_first_rows_have_the_last_word(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "k,x,s,e\n1,1.5,a,\n2,2,b,\n")
    names = ["k", "x", "s", "e", "nowhere"]
    assert values(scan(path, types={"k": "number"}).with_integers(names), "k")[0] == "double"
    source = scan(path).with_integers(names)
    assert [values(source, name)[0] for name in "kxse"] == ["int64", "double", "string", "double"]


def test_all_files_must_show_integers(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "k\n1\n")
    write(tmp_path / "b.csv", "k\n\n")
    assert values(scan(tmp_path).with_integers(["k"]), "k") == ("int64", [1, None])
    write(tmp_path / "c.csv", "k\n1.5\n")
    assert values(scan(tmp_path).with_integers(["k"]), "k") == ("double", [1.0, None, 1.5])


def test_files_of_other_formats_and_folders(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"k": [LARGE + 1]}), tmp_path / "a.parquet")
    write(tmp_path / "b.csv", f"k\n{LARGE + 3}\n")
    assert values(scan(tmp_path).with_integers(["k"]), "k") == ("int64", [LARGE + 1, LARGE + 3])
    for year in (2023, 2024):
        write(tmp_path / "years" / f"year={year}" / "t.csv", "x\n1\n")
    folder = scan(tmp_path / "years")
    assert values(folder, "year") == ("double", [2023.0, 2024.0])
    assert values(folder.with_integers(["year"]), "year") == ("int64", [2023, 2024])
    write(tmp_path / "years" / "year=2024.5" / "t.csv", "x\n1\n")
    assert values(scan(tmp_path / "years").with_integers(["year"]), "year")[0] == "double"


@pytest.mark.parametrize(("late", "other"), [("1.5", "number"), ("one", "text")])
def test_a_late_fraction_is_refused_with_its_place(
    late: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_module, "_BLOCK_BYTES", 64)
    path = write(tmp_path / "t.csv", "k,x\n" + "1,2\n" * 100 + f"{late},2\n")
    sentence = f"expected an integer in column 'k', found '{late}' in {str(path)!r}, row 102 (the header is row 1); "
    advice = f"correct it, or read the column as {other} with types={{'k': \"{other}\"}}"
    with pytest.raises(SourceError, match=f"^{re.escape(sentence + advice)}$"):
        values(scan(path).with_integers(["k"]), "k")
    if other == "number":
        assert values(scan(path, types={"k": "number"}).with_integers(["k"]), "k")[1][-1] == 1.5


def test_other_sources_are_as_they_are() -> None:
    source = scan([np.ones((2, 1))] * 2)
    assert source.with_integers(["a"]) is source
