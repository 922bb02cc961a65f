"""Questions to a database: what is asked, what comes back, what is refused."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vff
from vff.data import DatabaseRows, DatabaseTable, Roles, TooManyGroupsError
from vff.data.opening import is_chunked

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")
pytestmark = [  # Ibis 12 calls what DuckDB and pandas will not have for ever
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]

ROWS = {
    "x": [2, 1, 2, 1, 3],
    "s": ["b", None, "b", "a", "a"],
    "y": [1.0, 2.0, 4.0, 8.0, 16.0],
    "w": [1, 2, 0, 3, 1],
}
NAN, INF = float("nan"), float("inf")


def relation(**columns: Any) -> Any:
    return duckdb.from_arrow(pa.table(columns or ROWS))


def opened(data: Any, **how: Any) -> DatabaseTable:
    table = vff.scan(data, **how)
    assert isinstance(table, DatabaseTable)
    return table


def rows(data: Any, features: tuple[str, ...] = ("x",), weight: str | None = None, **how: Any) -> DatabaseRows:
    return DatabaseRows(opened(data, **how), Roles(features, "y", weight))


def sqlite(path: Path) -> Any:
    connection = sqlite3.connect(path)
    connection.execute("create table t (x integer, s text, y real, w integer)")
    connection.executemany("insert into t values (?, ?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    connection.commit()
    connection.close()
    return ibis.sqlite.connect(path).table("t")


@pytest.fixture(params=["relation", "memtable", "table", "sqlite"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The same rows in several databases."""
    if request.param == "relation":
        yield relation()
    elif request.param == "memtable":
        yield ibis.memtable(pa.table(ROWS))
    elif request.param == "sqlite":
        found = sqlite(tmp_path / "rows.db")
        yield found
        found.get_backend().disconnect()  # Python warns of those left open, from 3.13 on
    else:
        backend = ibis.duckdb.connect()
        backend.con.register("rows", pa.table(ROWS))
        backend.con.execute("create table t as select * from rows")
        yield backend.table("t")


def test_a_table_is_known_by_its_library_and_opened(table: Any) -> None:
    assert is_chunked(table)
    found = opened(table)
    assert is_chunked(found)
    assert found.names == ("x", "s", "y", "w")
    assert found.kinds == {"x": "number", "s": "text", "y": "number", "w": "number"}
    assert opened(found, missing="drop").options.missing == "drop"


def test_totals_leave_out_rows_without_weight(table: Any) -> None:
    found = rows(table, weight="w").totals
    assert found == (5, 4, 1, 0, 7.0, 1.0 + 4.0 + 24.0 + 16.0)
    assert rows(table).totals == (5, 5, 0, 0, 5.0, 31.0)


def test_sums_by_group_are_those_of_a_loop(table: Any) -> None:
    found = rows(table, weight="w").grouped(["s", "x"], 0.5, 10)
    sums: dict[tuple[Any, int], list[float]] = {}
    for x, s, y, w in zip(*ROWS.values(), strict=True):
        if w:
            total = sums.setdefault((s, x), [0.0, 0.0, 0.0])
            sums[s, x] = [a + w * b for a, b in zip(total, (1.0, y - 0.5, (y - 0.5) ** 2), strict=True)]
    there = list(zip(found.w, found.target, found.squares, strict=True))
    keys = [(row["s"], row["x"]) for row in found.values.to_pylist()]
    assert dict(zip(keys, there, strict=True)) == {key: tuple(value) for key, value in sums.items()}


def test_groups_are_in_order(table: Any) -> None:
    assert rows(table).grouped(["x"], 0.0, 3).values.column("x").to_pylist() == [1, 2, 3]


def test_combinations_are_counted(table: Any) -> None:
    assert rows(table).combinations(["x", "s"]) == 4


def test_no_more_groups_are_fetched_than_were_allowed(table: Any) -> None:
    asked = rows(table)
    with pytest.raises(TooManyGroupsError, match=r"column 'x' has more than 2 different values.*scan\(table\.to_"):
        asked.grouped(["x"], 0.0, 2)
    assert asked.table.queries[-1].rows == 3
    with pytest.raises(TooManyGroupsError, match="columns 'x', 's' have more than 2 combinations"):
        asked.grouped(["x", "s"], 0.0, 2)


def test_the_questions_can_be_read_afterwards(table: Any) -> None:
    asked = rows(table)
    _ = asked.totals
    asked.grouped(["x"], 0.0, 9)
    first, second = asked.table.queries
    assert (first.rows, second.rows) == (1, 3)
    assert "GROUP BY" not in first.sql
    assert "GROUP BY" in second.sql
    assert second.seconds > 0.0


@pytest.mark.parametrize("bad", [None, NAN, INF, -INF])
@pytest.mark.parametrize("column", ["x", "y"])
def test_missing_values_are_refused_by_name_or_left_out(column: str, bad: float | None) -> None:
    columns = {"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0]}
    columns[column][1] = bad  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=rf"column '{column}' contains NULL, NaN or an infinite value \(1 of 3 rows\)"):
        _ = rows(relation(**columns)).totals
    asked = rows(relation(**columns), missing="drop")
    assert asked.totals == (3, 2, 0, 1, 2.0, 5.0)
    assert asked.grouped(["x"], 0.0, 9).target.tolist() == [1.0, 4.0]


def test_missing_levels_are_levels() -> None:
    asked = DatabaseRows(opened(relation(), missing="drop"), Roles(("x", "s"), "y", levels=("s",)))
    assert asked.totals.dropped == 0
    assert set(asked.grouped(["s"], 0.0, 9).values.column("s").to_pylist()) == {"a", "b", None}


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, 1e16]])
def test_weights_that_count_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"column 'w' reaches {weights[1]:g}")):
        _ = rows(relation(x=[1, 2], y=[1.0, 2.0], w=weights), weight="w").totals


def test_targets_whose_squares_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="column 'y' reaches 1e\\+150"):
        _ = rows(relation(x=[1, 2], y=[-1e150, 2.0])).totals


def test_columns_that_cannot_be_summed_are_refused() -> None:
    with pytest.raises(ValueError, match="targets must be numbers, and column 'y' holds text"):
        rows(relation(x=[1], y=["a"]))
    with pytest.raises(ValueError, match=r"column 'x' holds intervals.*days or seconds"):
        rows(relation(x=pa.array([1], pa.duration("s")), y=[1.0]))


def test_kinds_are_those_of_a_table_in_memory() -> None:
    times, dates = pa.array([0], pa.timestamp("us", "UTC")), pa.array([0], pa.date32())
    found = opened(relation(t=times, d=dates, b=[True], f=[1.0], i=[1], s=["a"])).kinds
    assert list(found.values()) == ["datetime", "datetime", "boolean", "number", "number", "text"]


def test_what_is_no_table_or_needs_no_file_is_refused() -> None:
    with pytest.raises(TypeError, match="a table of a database was expected, found IntegerColumn"):
        vff.scan(ibis.memtable(pa.table(ROWS)).x)
    with pytest.raises(ValueError, match="leave checkpoint= out"):
        vff.scan(relation(), checkpoint="state")  # type: ignore[call-overload]


def test_weights_of_decimals_and_booleans_are_numbers() -> None:
    from decimal import Decimal

    asked = rows(relation(x=[True, False, True], y=[Decimal("0.1"), Decimal("0.2"), Decimal("0.3")]))
    found = asked.grouped(["x"], 0.0, 2)
    np.testing.assert_allclose(found.target, [0.2, 0.4], rtol=1e-15)


@pytest.mark.parametrize(
    "name", ["vff_weight", "vff_target", "vff_squares", "vff_n", "vff_rows", "VFF_Weight", "vff__n"]
)
def test_a_column_may_have_any_name(name: str) -> None:
    asked = DatabaseRows(opened(relation(**{name: [1, 2, 2], "y": [1.0, 2.0, 4.0]})), Roles((name,), "y"))
    assert asked.totals == (3, 3, 0, 0, 3.0, 7.0)
    found = asked.grouped([name], 0.0, 9)
    assert (found.values.column(name).to_pylist(), found.target.tolist()) == ([1, 2], [1.0, 6.0])
    assert asked.combinations([name]) == 2
    assert asked.counted([name], 9).w.tolist() == [1.0, 2.0]


def test_a_column_of_a_type_that_nobody_knows_is_no_matter_as_long_as_it_is_not_used() -> None:
    columns = "i as x, 2.0 * i as y, union_value(num := 2) as u, interval '1 day' as v"
    asked = rows(duckdb.sql(f"select {columns} from range(3) t(i)"))
    assert asked.table.kinds == {"x": "number", "y": "number", "u": "text", "v": "duration"}
    assert asked.totals == (3, 3, 0, 0, 3.0, 6.0)
